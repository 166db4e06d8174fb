"""What the report says beyond returns: curves, probes, ablations, when the objective helps."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats as scipy_stats

from ertrl import store
from ertrl.errors import ReportError
from ertrl.evaluation import PROTOCOLS
from ertrl.reporting import benefit as benefits
from ertrl.reporting import stats
from ertrl.reporting.figures import adaptation_curves
from ertrl.reporting.gather import gather
from ertrl.reporting.material import Material
from ertrl.reporting.pictures import draw_shared
from ertrl.reporting.report import compose, raw_numbers
from ertrl.reporting.summary import summarise_family
from ertrl.reporting.taskaxis import TaskAxis
from ertrl.reporting.words import protocol_lines
from fake_runs import GROUPS, TASKS, enrich, fake_run, returns_of, two_by_three
from test_reporting_page import Page
from toys import write_dataset


def lose(path, protocol, task, repeats=(0,), step=2000):
    """Make repeats of a task missing, as a diverged simulation does."""
    file = path / "evaluations" / f"{step:08d}.json"
    content = store.read_json(file)
    for repeat in repeats:
        content["protocols"][protocol]["returns"][task][repeat] = None
    store.write_json(file, content)


# --- what a diverged simulation leaves ---


def test_a_missing_repeat_is_counted_and_not_averaged_in(tmp_path):
    runs = two_by_three(tmp_path)
    file = runs[0] / "evaluations" / "00002000.json"
    content = store.read_json(file)
    content["protocols"]["online"]["returns"][4] = [None, returns_of(40.0)]
    store.write_json(file, content)
    results = gather(runs)
    family = results.families[0]
    first = family.variants[0].runs[0]
    assert family.score(first, "online", "test-id", 2000) == pytest.approx((40 + 80) / 2)
    assert any(
        "ER-TRL, seed 0: 1 of 16 repeats with online context are missing" in note
        for note in results.notes
    )


def test_a_task_that_always_diverged_is_left_out_of_all_comparisons(tmp_path):
    runs = two_by_three(tmp_path)
    lose(runs[0], "offline", task=5, repeats=(0, 1))
    results = gather(runs)
    family = results.families[0]
    for variant in family.variants:
        assert family.seeds_by_tasks(variant, "offline", "test-id").shape == (3, 1)
    assert family.score(family.variants[0].runs[0], "offline", "test-id", 2000) == 90.0
    written = raw_numbers(results)["families"]["point-robot"]["variants"][0]["runs"][0]
    assert written["protocols"]["offline"]["normalised"]["per_task"][5] is None
    assert written["missing_repeats"] == {"offline": 2}
    assert "nan" not in Page(compose(runs).html).text.lower().split()


# --- variants ---


def test_the_variant_of_the_profile_needs_no_more_than_its_name(tmp_path):
    from ertrl.config import to_json
    from ertrl.profiles import train_config

    _, config = train_config("laptop", "point-robot", "er-trl", "td3bc")
    usual = {k: v for k, v in to_json(config).items() if k != "seed"}
    without = {**usual, "method": {**usual["method"], "mi_weight": 0.0}}
    runs = [
        fake_run(tmp_path, settings=settings, name=name, profile="laptop")
        for name, settings in (("a", usual), ("b", without))
    ]
    assert gather(runs).labels == ["ER-TRL", "ER-TRL (mi_weight=0.0)"]


def test_profiles_are_named_where_two_have_their_own(tmp_path):
    from ertrl.config import to_json
    from ertrl.profiles import train_config

    runs = []
    for profile, variant in (("laptop", "paper"), ("paper", "paper"), ("paper", "released")):
        _, config = train_config(profile, "point-robot", "focal", "td3bc", variant)
        label = profile if variant == "paper" else f"{profile} ({variant})"
        settings = {k: v for k, v in to_json(config).items() if k != "seed"}
        settings["evaluation"] = {}
        name = f"{profile}-{variant}"
        runs.append(fake_run(tmp_path, "focal", settings=settings, name=name, profile=label))
    labels = gather(runs).labels
    assert len(set(labels)) == 3
    assert labels[0].startswith("FOCAL (")
    assert "released" in labels[2]


def test_ablations_are_compared_with_the_whole_method(tmp_path):
    runs = []
    for seed in range(3):
        for weight, online in ((0.5, 80.0), (0.0, 30.0)):
            scores = {"offline": 90.0 + seed, "online": online + seed}
            settings = {"method": {"mi_weight": weight}}
            name = f"run-{weight}-{seed}"
            runs.append(fake_run(tmp_path, seed=seed, scores=scores, settings=settings, name=name))
    text = Page(compose(runs).html).text
    section = text[text.index("Compared with ER-TRL (mi_weight=0.5)") :]
    assert "\N{MINUS SIGN}50.0" in section[: section.index("Statistics")]


# --- adaptation, oracle, shift, probes ---


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    return [enrich(run) for run in two_by_three(tmp_path_factory.mktemp("rich"))]


def test_the_curve_ends_at_the_number_of_the_table(rich):
    family = gather(rich).families[0]
    run = family.variants[0].runs[0]
    returns, context = family.curve(run, "online", 2000)
    assert context.tolist() == [[20, 40, 60]] * len(TASKS)
    np.testing.assert_allclose(returns[:, -1], family.task_returns(run, "online", 2000))
    np.testing.assert_allclose(returns[:, -1] - returns[:, 0], 40)  # 8 of 20 raw points


def test_every_finding_is_on_the_page(rich):
    made = compose(rich)
    assert {"adaptation", "probes", "profiles"} <= made.pictures[0].keys()
    text = Page(made.html).text
    assert "95.0" in text[text.index("z from expert data") :]
    # Offline z lies at (task, 0), online at (task, 2): 2 over the spread of 0..7, sqrt(5.25).
    assert f"{2 / np.sqrt(5.25):.2f}" in text[text.index("shift of z") :]
    probes = text[text.index("What z knows", text.index("Return per task")) :]
    for words in ("0.250", "0.200", "0.500", "31%", "71%", "10%", "30%"):
        assert words in probes, words


def test_the_papers_svr_column_is_called_what_it_is(tmp_path):
    runs = [enrich(fake_run(tmp_path, "focal", seed, family="cheetah-vel")) for seed in (0, 1)]
    text = Page(compose(runs).html).text
    assert "SVR column is the error on the transitions that the SVR was trained on" in text
    assert "0.172" in text


def test_probes_that_are_missing_are_said_to_be(tmp_path):
    runs = two_by_three(tmp_path)
    assert "Not measured yet" in Page(compose(runs).html).text
    enrich(runs[0])
    assert "Not measured: ER-TRL, seed 1; ER-TRL, seed 2; FOCAL" in Page(compose(runs).html).text


# --- statistics ---


def test_performance_profile_by_hand():
    scores = np.array([[10.0, 60.0], [50.0, 90.0], [20.0, 100.0]])
    share, band = stats.profile([scores], np.array([0.0, 50.0, 95.0, 100.0]))
    assert share == pytest.approx([1, 3 / 6, 1 / 6, 0])  # 50 itself does not exceed 50
    assert (band[0] <= share).all()
    assert (share <= band[1]).all()
    assert band[:, 0].tolist() == [1, 1]
    assert np.isnan(stats.profile([scores[:2]], np.array([0.0]))[1]).all()


def test_correlation_agrees_with_scipy_and_needs_three_points():
    x, y = [0.1, 0.2, 0.5, 0.9], [1.0, 3.0, 2.0, 6.0]
    found = stats.pearson(x, y)
    expected = scipy_stats.pearsonr(x, y)
    assert (found.r, found.p, found.n) == pytest.approx((expected.statistic, expected.pvalue, 4))
    assert stats.pearson([0.1, 0.2], [1.0, 2.0]) is None
    assert stats.pearson([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None


# --- when does the objective help ---


def material(distance, style=0.0):
    collector = {"config": {"style": style}}
    if distance is not None:
        collector["policy_distance"] = {"mean": distance}
    dataset = SimpleNamespace(manifest={"collector": collector})
    return Material(TaskAxis("task", np.array(TASKS, float)), dataset)


def pair(root, family, gain, seeds=2):
    runs = []
    for seed in range(seeds):
        better = {p: 50.0 + gain + seed for p in ("offline", "online")}
        runs.append(fake_run(root, "er-trl", seed, family=family, scores=better))
        plain = {p: 50.0 + 2 * seed for p in ("offline", "online")}
        runs.append(fake_run(root, "focal", seed, family=family, scores=plain))
    return runs


def test_gain_against_distance(tmp_path):
    gains, distances = {"a": 0.0, "b": 4.0, "c": 20.0}, {"a": 0.1, "b": 0.3, "c": 0.4}
    results = gather([run for name, gain in gains.items() for run in pair(tmp_path, name, gain)])
    found = benefits.benefit(results, [material(distances[f.family]) for f in results.families])
    online = [p for p in found.with_distance if (p.group, p.protocol) == ("test-id", "online")]
    assert [(p.distance, p.gain) for p in online] == [
        (distances[f], pytest.approx(gain - 0.5)) for f, gain in gains.items()
    ]
    assert all(p.low < p.gain < p.high for p in online)
    expected = scipy_stats.pearsonr(list(distances.values()), list(gains.values()))
    text = str(benefits.content(found, "picture", None))
    assert f"{expected.statistic:.2f}" in text
    assert f"{expected.pvalue:.3f}" in text
    assert set(draw_shared(found)) == {"distance"}
    trend = next(t for t in found.trends if (t.group, t.protocol) == ("test-id", "online"))
    assert (trend.r, trend.p) == pytest.approx((expected.statistic, expected.pvalue))
    # All groups and protocols of these runs have the same gains: Holm multiplies by their number.
    assert trend.p_holm == pytest.approx(min(1.0, len(found.trends) * trend.p))
    table = benefits.markdown(found)
    gain = next(p for p in online if p.family == "c")
    assert f"| c | 0.400 | Held-out tasks | 19.5 [{gain.low:.1f}, {gain.high:.1f}]" in table
    assert (
        f"| Held-out tasks | online | {trend.r:.2f} | {trend.p:.3f} | {trend.p_holm:.3f} | 3 |"
        in table
    )
    stored = json.loads(json.dumps(raw_numbers(results, found)))["benefit"]
    assert stored["trends"][0]["families"] == 3
    assert len(stored["points"]) == len(found.points)


def test_what_is_missing_is_named(tmp_path):
    runs = [*pair(tmp_path, "a", 1.0), fake_run(tmp_path, "focal", family="b")]
    results = gather(runs)
    found = benefits.benefit(results, [material(None), material(0.2)])
    text = str(benefits.content(found, None, None))
    for words in ("a: its dataset does not say", "b: no run of ER-TRL", "here there are 0"):
        assert words in text
    assert not draw_shared(found)
    alone = gather([fake_run(tmp_path, "focal", family="b")])
    assert benefits.benefit(alone, [material(0.2)]) is None


def test_strengths_of_style_are_doses_of_one_family(tmp_path):
    runs = []
    for style, gain in ((0.0, 1.0), (2.0, 9.0)):
        place = tmp_path / f"data-{style}"
        write_dataset(place, tasks=4 if style else 3)
        manifest = store.read_json(place / "manifest.json")
        manifest["collector"] |= {"config": {"style": style}}
        store.write_json(place / "manifest.json", manifest)
        from ertrl.data import Dataset

        content = Dataset(place).fingerprint
        for method, score in (("er-trl", 50.0 + gain), ("focal", 50.0)):
            runs.append(
                fake_run(
                    *(tmp_path, method),
                    name=f"{method}-{style}",
                    scores={"online": score},
                    dataset=content,
                    dataset_path=place,
                )
            )
    results = gather(runs)
    assert [f.family for f in results.families] == [
        "point-robot (style=0)",
        "point-robot (style=2)",
    ]
    found = benefits.benefit(results, [material(0.1, 0.0), material(0.5, 2.0)])
    doses = [(p.style, p.gain) for p in found.doses if p.group == "test-ood"]
    assert doses == [(0.0, pytest.approx(1.0)), (2.0, pytest.approx(9.0))]
    assert {p.family for p in found.with_distance} == {"point-robot (style=0)"}
    assert set(draw_shared(found)) == {"dose"}
    assert summarise_family(results.families[1]).family == "point-robot (style=2)"


def test_other_datasets_of_one_family_are_still_not_mixed(tmp_path):
    runs = [fake_run(tmp_path), fake_run(tmp_path, "focal", dataset="bbbbbbbbbb")]
    with pytest.raises(ReportError, match="their dataset differ"):
        gather(runs)


def test_probes_that_looked_at_unequally_much_are_not_averaged(tmp_path):
    runs = [enrich(fake_run(tmp_path, seed=seed)) for seed in range(2)]
    file = runs[1] / "probes" / "00002000.json"
    content = store.read_json(file)
    content["settings"]["transitions"] = 200
    store.write_json(file, content)
    with pytest.raises(ReportError, match=r"probe settings differ \(in transitions\)"):
        gather(runs)


def test_context_below_a_curve_is_that_of_its_tasks_and_all_methods(tmp_path):
    for method, size in (("er-trl", 1.0), ("focal", 3.0)):
        path = enrich(fake_run(tmp_path, method))
        file = path / "evaluations" / "00002000.json"
        content = store.read_json(file)
        for measured in content["protocols"].values():
            counts = np.broadcast_to([20.0, 40.0, 60.0], (len(TASKS), 2, 3)).copy() * size
            counts[GROUPS["test-ood"]] *= 10
            measured["curve_context"] = counts.tolist()
        store.write_json(file, content)
    family = gather(tmp_path).families[0]
    figure = adaptation_curves(family, [v.label for v in family.variants])
    for panel in figure.axes:
        ends = panel.get_xticklabels()[-1].get_text()
        assert ends == ("3\n1,200" if "Out of" in panel.get_title() else "3\n120")


def test_every_protocol_is_explained(tmp_path):
    scores = dict.fromkeys(PROTOCOLS, 50.0)
    family = gather(fake_run(tmp_path, scores=scores)).families[0]
    lines = protocol_lines(family)
    assert lines.keys() == PROTOCOLS.keys()
    assert all(len(line) > 60 for line in lines.values())
    assert "Episode 10 counts" in lines["idaq"]
    assert "Episode 3 counts" in lines["online"]
