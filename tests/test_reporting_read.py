"""Reading: runs sorted into what may be compared, who a variant is, the paper's numbers."""

import json

import numpy as np
import pytest

from ertrl import store
from ertrl.config import to_json
from ertrl.errors import DataError, ReportError, RunError
from ertrl.profiles import train_config
from ertrl.reporting import print_summary
from ertrl.reporting.read.dataset import read_material, task_axis
from ertrl.reporting.read.identity import Identity
from ertrl.reporting.read.paper import in_paper, paper_results, published
from ertrl.reporting.read.runs import read_runs
from ertrl.reporting.write.numbers import raw_numbers
from fake_runs import (
    TASKS,
    enrich,
    fake_run,
    lose,
    material,
    returns_of,
    styled,
    two_by_three,
)
from toys import write_dataset


def identities_of(runs):
    return [v.identity for family in read_runs(runs).families for v in family.variants]


def labels_of(runs):
    return [identity.label for identity in identities_of(runs)]


# --- what may stand in one table ---


def test_a_method_is_titled_as_it_says_or_in_capitals():
    labels = [Identity(method).label for method in ("offline-pearl", "er-trl", "not-installed")]
    assert labels == ["OfflinePEARL", "ER-TRL", "NOT-INSTALLED"]


def test_nothing_evaluated_is_an_error(tmp_path):
    with pytest.raises(ReportError, match="no run of point-robot has an evaluation"):
        read_runs([fake_run(tmp_path, steps=())])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"dataset": "bbbbbbbbbb"}, "dataset differ .aaaaaaaaaa and bbbbbbbbbb"),
        ({"settings": {"evaluation": {"episodes": 4}}}, "evaluation settings differ .in episodes"),
        ({"settings": {"evaluation": {"repeats": 3}}}, "evaluation settings differ .in repeats"),
        (
            {"groups": {"train": [0, 1, 2], "test-id": [3, 4, 5], "test-ood": [6, 7]}},
            "split of tasks into groups differ .in test-id, train",
        ),
    ],
)
def test_what_differs_is_not_mixed(tmp_path, change, complaint):
    runs = [fake_run(tmp_path, "er-trl"), fake_run(tmp_path, "focal", **change)]
    with pytest.raises(ReportError, match=complaint) as error:
        read_runs(runs)
    assert all(run.name in str(error.value) for run in runs)


def test_a_copy_of_a_run_is_refused_and_a_repetition_is_not(tmp_path):
    run = fake_run(tmp_path)
    assert len(read_runs([run, run]).families[0].variants[0].runs) == 1
    with pytest.raises(ReportError, match="are the same run"):
        read_runs([run, fake_run(tmp_path, name="copy")])


def test_a_folder_of_runs_stands_for_its_runs(tmp_path):
    two_by_three(tmp_path)
    assert len(read_runs([tmp_path]).families[0].variants) == 2


def test_a_run_of_nobody_knows_which_method_does_not_hide_others_of_its_folder(tmp_path, capsys):
    two_by_three(tmp_path / "runs")
    foreign = fake_run(tmp_path / "runs", name="foreign") / "config.json"
    store.write_json(foreign, store.read_json(foreign) | {"method": "theirs"})
    with pytest.warns(UserWarning, match="a run is left out. .*foreign: unknown method 'theirs'"):
        results = read_runs(tmp_path / "runs")
    assert len(results.families[0].variants) == 2
    assert "foreign: unknown method 'theirs'" in results.notes[0]
    print_summary(tmp_path / "runs")  # says it below its tables
    assert "Note: A run is left out." in capsys.readouterr().out
    for named in (foreign.parent, [tmp_path / "runs", foreign.parent]):
        with pytest.raises(RunError, match="name its file with --plugin"):
            read_runs(named)


def test_a_folder_without_runs_is_an_error(tmp_path):
    with pytest.raises(RunError, match="is not a run"):
        read_runs([tmp_path])
    with pytest.raises(RunError, match="no run to look at"):
        read_runs([])


def test_probes_that_looked_at_unequally_much_are_not_averaged(tmp_path):
    runs = [enrich(fake_run(tmp_path, seed=seed)) for seed in range(2)]
    file = runs[1] / "probes" / "00002000.json"
    content = store.read_json(file)
    content["settings"]["transitions"] = 200
    store.write_json(file, content)
    with pytest.raises(ReportError, match=r"probe settings differ \(in transitions\)"):
        read_runs(runs)


def test_strengths_of_style_stand_apart(tmp_path):
    families = read_runs(styled(tmp_path)).families
    assert [(f.family, f.style) for f in families] == [("point-robot", 0), ("point-robot", 2)]
    assert families[1].label == "point-robot (style=2)"
    one, other = (f.variants[0] for f in families)
    assert (one.identity, one.place) == (other.identity, other.place)


# --- what is missing ---


def test_a_missing_repeat_is_counted_and_not_averaged_in(tmp_path):
    runs = two_by_three(tmp_path)
    file = runs[0] / "evaluations" / "00002000.json"
    content = store.read_json(file)
    content["protocols"]["online"]["returns"][4] = [None, returns_of(40.0)]
    store.write_json(file, content)
    results = read_runs(runs)
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
    family = read_runs(runs).families[0]
    for variant in family.variants:
        assert family.seeds_by_tasks(variant, "offline", "test-id").shape == (3, 1)
    assert family.score(family.variants[0].runs[0], "offline", "test-id", 2000) == 90.0


def test_the_curve_ends_at_the_number_of_the_table(tmp_path):
    family = read_runs(enrich(fake_run(tmp_path))).families[0]
    run = family.variants[0].runs[0]
    returns, context = family.curve(run, "online", 2000)
    assert context.tolist() == [[20, 40, 60]] * len(TASKS)
    np.testing.assert_allclose(returns[:, -1], family.task_returns(run, "online", 2000))
    np.testing.assert_allclose(returns[:, -1] - returns[:, 0], 40)  # 8 of 20 raw points


def test_data_of_no_run_is_refused(tmp_path):
    results = read_runs(fake_run(tmp_path))
    write_dataset(tmp_path / "data")
    with pytest.raises(ReportError, match="is not the dataset of any of these runs"):
        read_material(results, [tmp_path / "data"])


# --- who a variant is ---


def test_configurations_are_not_averaged_but_told_apart(tmp_path):
    runs = [
        fake_run(tmp_path, settings={"method": {"mi_weight": weight}}, name=f"run-{weight}")
        for weight in (0.0, 0.5)
    ]
    assert labels_of(runs) == ["ER-TRL (mi_weight=0.0)", "ER-TRL (mi_weight=0.5)"]
    told = Identity("er-trl", settings=(("method.mi_weight", "0.0"),))
    assert identities_of(runs)[0] == told
    assert not told.plain


def test_settings_of_one_name_are_told_in_full(tmp_path):
    widths = [{"method": {"encoder": {"hidden": [8]}}}, {"learner": {"hidden": [8]}}]
    runs = [fake_run(tmp_path, settings=s, name=f"run-{i}") for i, s in enumerate(widths)]
    told = "ER-TRL (method.encoder.hidden=[8], learner.hidden=[256, 256, 256])"
    assert labels_of(runs)[0] == told


def test_logging_settings_do_not_split_a_variant(tmp_path):
    runs = [
        fake_run(tmp_path, seed=0),
        fake_run(tmp_path, seed=1, settings={"checkpoint_every": 500}),
    ]
    assert labels_of(runs) == ["ER-TRL"]


def test_the_variant_of_the_profile_needs_no_more_than_its_name(tmp_path):
    config = train_config("laptop", "point-robot", "er-trl", "td3bc")
    usual = {k: v for k, v in to_json(config).items() if k != "seed"}
    without = {**usual, "method": {**usual["method"], "mi_weight": 0.0}}
    runs = [
        fake_run(tmp_path, settings=settings, name=name, profile="laptop")
        for name, settings in (("a", usual), ("b", without))
    ]
    assert labels_of(runs) == ["ER-TRL", "ER-TRL (mi_weight=0.0)"]
    assert [identity.plain for identity in identities_of(runs)] == [True, False]


def test_a_setting_that_goes_unsaid_may_be_what_differs_from_the_profile(tmp_path):
    config = train_config("laptop", "cheetah-vel", "focal", "td3bc")
    usual = {k: v for k, v in to_json(config).items() if k != "seed"}
    assert usual["decay"] == 1
    runs = [
        fake_run(
            tmp_path, "focal", family="cheetah-vel", settings=settings, name=name, profile="laptop"
        )
        for name, settings in (("a", usual), ("b", {**usual, "decay": 0.0}))
    ]
    assert labels_of(runs) == ["FOCAL", "FOCAL (decay=0.0)"]


def test_profiles_are_named_where_two_have_their_own(tmp_path):
    runs = []
    for profile, variant in (("laptop", "paper"), ("paper", "paper"), ("paper", "released")):
        config = train_config(profile, "point-robot", "focal", "td3bc", variant)
        settings = {k: v for k, v in to_json(config).items() if k != "seed"}
        settings["evaluation"] = {}
        origin = {"name": f"{profile}-{variant}", "profile": profile, "variant": variant}
        runs.append(fake_run(tmp_path, "focal", settings=settings, **origin))
    labels = labels_of(runs)
    assert labels == ["FOCAL (laptop)", "FOCAL (paper)", "FOCAL (paper, released)"]


# --- one number per task ---


def test_angles_are_cut_open_opposite_to_the_training_tasks():
    angles = np.radians([0, 90, 180, -45, 225])
    parameters = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    axis = task_axis(("goal_x", "goal_y"), parameters, np.arange(3))
    assert axis.label == "goal angle (degrees)"
    assert axis.values == pytest.approx([0, 90, 180, -45, 225])
    assert not axis.circular


def test_directions_all_around_are_circular():
    angles = np.radians(np.arange(0, 360, 10))
    parameters = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    axis = task_axis(("drift_x", "drift_y"), parameters, np.arange(36))
    assert axis.circular
    assert (axis.values.min(), axis.values.max()) == pytest.approx((0, 350), abs=1e-6)


def test_one_parameter_is_its_own_axis():
    axis = task_axis(("mass_factor",), np.array([[0.5], [2.0]]), np.arange(2))
    assert (axis.label, axis.values.tolist()) == ("mass factor", [0.5, 2.0])


# --- the paper's numbers ---

ER_TRL = {
    # family: ID offline, online, non-prior; OOD offline, online, non-prior; normalised
    "cheetah-vel": (96.4, 92.5, 94.2, 72.6, 61.8, 70.4),
    "ant-goal": (107.7, 93.1, 102.2, 79.1, 49.2, 67.3),
    "ant-dir": (69.1, 53.6, 62.3, 54.9, 27.6, 32.3),
    "humanoid-dir": (70.5, 61.4, 60.7, 59.9, 53.4, 51.1),
    "hopper-mass": (98.7, 99.7, 100.9, 99.7, 99.6, 96.6),
    "hopper-friction": (86.7, 92.9, 91.0, 67.4, 66.4, 65.7),
    "walker-mass": (77.5, 70.7, 68.6, 61.7, 65.2, 63.9),
    "walker-friction": (64.2, 55.6, 49.9, 62.8, 58.8, 54.8),
}
COLUMNS = [(g, p) for g in ("train", "test-ood") for p in ("offline", "online", "non-prior")]


@pytest.mark.parametrize("family", ER_TRL)
def test_er_trl_as_printed(family):
    found = [published(family, "er-trl", *column)[0] for column in COLUMNS]
    assert found == pytest.approx(ER_TRL[family], abs=0.0501)


@pytest.mark.parametrize(
    ("family", "method", "column", "mean"),
    [
        ("cheetah-vel", "csro", ("train", "offline"), 94.0),
        ("cheetah-vel", "offline-pearl", ("test-ood", "online"), 56.2),
        ("ant-goal", "focal", ("test-ood", "non-prior"), 48.3),
        ("ant-dir", "csro", ("test-ood", "online"), 8.5),
        ("hopper-mass", "unicorn", ("test-ood", "non-prior"), 86.7),
        ("walker-friction", "offline-pearl", ("train", "offline"), 56.5),
    ],
)
def test_best_baselines_as_printed(family, method, column, mean):
    assert published(family, method, *column)[0] == pytest.approx(mean, abs=0.0501)


def test_unnormalised_id_offline():
    expected = [-35.5, -134.2, 680.9, 745.5, 614.7, 546.0, 618.8, 541.3]
    table = paper_results()["unnormalised"]["ID"]["offline"]
    assert [table[family]["er-trl"][0] for family in ER_TRL] == expected


def test_every_table_is_complete():
    results = paper_results()
    methods = {"offline-pearl", "focal", "csro", "unicorn", "er-trl"}
    blocks = [
        block
        for scale in ("normalised", "unnormalised")
        for group in results[scale].values()
        for block in group.values()
    ]
    assert len(blocks) == 12
    for block in [*blocks, *results["rmse"].values()]:
        assert block.keys() == ER_TRL.keys()
        for entries in block.values():
            assert entries.keys() == methods
            assert all(len(entry) == 2 and entry[1] >= 0 for entry in entries.values())


def test_rmse_as_printed():
    rmse = paper_results()["rmse"]
    assert rmse["linear"]["cheetah-vel"]["csro"] == [0.1586, 0.0009]
    assert rmse["svr"]["humanoid-dir"]["offline-pearl"] == [1.3596, 0.0]


def test_what_the_paper_does_not_have():
    assert not in_paper("point-robot")
    assert in_paper("ant-dir")
    assert published("point-robot", "er-trl", "train", "offline") is None
    assert published("ant-dir", "er-trl", "test-id", "offline") is None


# --- numbers of runs that are not here ---


def published_by(runs, place):
    """The results.json of a report on these runs."""
    store.write_json(place, raw_numbers(read_runs(runs)))
    return place


def scores_of(results):
    """(label, seed) -> score of every cell of the only family."""
    (family,) = results.families
    return {
        (variant.label, run.seed): {
            (protocol, group): family.score(run, protocol, group, variant.step)
            for protocol in (*family.protocols, "oracle")
            for group in family.groups
        }
        for variant in family.variants
        for run in variant.runs
    }


def test_published_numbers_are_those_of_the_runs(tmp_path):
    runs = two_by_three(tmp_path / "runs")
    file = published_by(runs, tmp_path / "results.json")
    here, there = scores_of(read_runs(runs)), scores_of(read_runs([], beside=[file]))
    assert here.keys() == there.keys()
    for key in here:
        assert there[key] == pytest.approx(here[key], rel=1e-12)
    assert scores_of(read_runs([], beside=[tmp_path])) == there  # a folder stands for its file


def test_own_seeds_join_the_published_ones_of_the_same_configuration(tmp_path):
    runs = two_by_three(tmp_path / "runs")  # seeds 0 to 2, of each ER-TRL and FOCAL
    file = published_by(runs[:4], tmp_path / "results.json")
    results = read_runs([*runs[3:], fake_run(tmp_path / "more", "csro")], beside=[file])
    (family,) = results.families
    seeds = {v.label: [(r.seed, r.run is None) for r in v.runs] for v in family.variants}
    assert seeds["ER-TRL"] == [(0, True), (1, True), (2, False)]
    assert seeds["FOCAL"] == [(0, True), (1, False), (2, False)]  # 1 is both: the one here is taken
    assert seeds["CSRO"] == [(0, False)]


def test_another_configuration_of_the_same_name_is_told_from_the_published_one(tmp_path):
    file = published_by([fake_run(tmp_path / "theirs")], tmp_path / "results.json")
    mine = fake_run(tmp_path / "mine", settings={"sampling": {"context_size": 7}}, name="mine")
    (family,) = read_runs([mine], beside=[file]).families
    assert [v.label for v in family.variants] == ["ER-TRL", "ER-TRL (published)"]


def test_another_learner_is_told_from_the_published_one(tmp_path):
    theirs = [fake_run(tmp_path / "theirs", method) for method in ("er-trl", "focal")]
    file = published_by(theirs, tmp_path / "results.json")
    mine = fake_run(tmp_path / "mine", learner="brac")
    (family,) = read_runs([mine], beside=[file]).families
    assert [v.label for v in family.variants] == ["ER-TRL + brac", "ER-TRL", "FOCAL"]
    file = published_by([*theirs, mine], tmp_path / "all.json")
    (family,) = read_runs([], beside=[file]).families
    assert {v.label for v in family.variants} == {"ER-TRL + brac", "ER-TRL", "FOCAL"}


def test_published_variants_keep_their_names(tmp_path):
    settings = {"method": {"mi_weight": 0.0}}
    runs = [fake_run(tmp_path), fake_run(tmp_path, settings=settings, name="without")]
    file = published_by(runs, tmp_path / "results.json")
    (family,) = read_runs([fake_run(tmp_path / "more", "focal")], beside=[file]).families
    assert {v.label for v in family.variants} == {*labels_of(runs), "FOCAL"}


def test_numbers_on_other_data_are_refused(tmp_path):
    file = published_by([fake_run(tmp_path / "theirs")], tmp_path / "results.json")
    mine = fake_run(tmp_path / "mine", "focal", dataset="bbbbbbbbbb")
    with pytest.raises(ReportError, match=r"same data only. .They are from .*results.json"):
        read_runs([mine], beside=[file])
    other = {"evaluation": {"repeats": 3}}
    mine = fake_run(tmp_path / "again", "focal", settings=other)
    with pytest.raises(ReportError, match=r"differ .in repeats.. Report them apart, or evaluate"):
        read_runs([mine], beside=file)


WITHOUT = {"method": {"mi_weight": 0.0}}


def test_a_configuration_that_two_files_name_differently_is_one_row(tmp_path):
    plain, without = (
        [fake_run(tmp_path, seed=s, settings=x, name=f"{i}-{s}") for s in range(2)]
        for i, x in enumerate(({"method": {"mi_weight": 0.5}}, WITHOUT))
    )
    alone = published_by(without[:1], tmp_path / "a.json")  # there it is just ER-TRL
    beside = published_by([without[1], plain[0]], tmp_path / "b.json")
    (family,) = read_runs([], beside=[alone, beside]).families
    counts = {v.label: len(v.runs) for v in family.variants}
    assert counts == {"ER-TRL (mi_weight=0.0)": 2, "ER-TRL (mi_weight=0.5)": 1}


def test_configurations_that_two_files_name_alike_are_two_rows(tmp_path):
    small = fake_run(tmp_path / "b", settings={"sampling": {"context_size": 7}}, name="small")
    files = [
        published_by([fake_run(tmp_path / "a", name="usual")], tmp_path / "a.json"),
        published_by([small], tmp_path / "b.json"),
    ]
    assert labels_of_published(files[0]) == labels_of_published(files[1]) == ["ER-TRL"]
    (family,) = read_runs([], beside=files).families
    assert [v.label for v in family.variants] == ["ER-TRL", "ER-TRL (published)"]
    own = fake_run(tmp_path / "c", settings={"sampling": {"context_size": 9}}, name="own")
    (family,) = read_runs([own], beside=files).families
    labels = ["ER-TRL", "ER-TRL (published)", f"ER-TRL (published in {files[1]})"]
    assert [v.label for v in family.variants] == labels
    assert len({v.place for v in family.variants}) == 3


def test_a_run_is_counted_once_however_often_it_is_given(tmp_path):
    runs = two_by_three(tmp_path / "runs")
    file, copy = (published_by(runs, tmp_path / x / "results.json") for x in ("one", "two"))
    (family,) = read_runs(runs[:1], beside=[file, copy, file]).families
    assert {v.label: len(v.runs) for v in family.variants} == {"ER-TRL": 3, "FOCAL": 3}


def test_what_is_missing_from_published_runs_is_said(tmp_path):
    runs = two_by_three(tmp_path / "runs")
    lose(runs[0], "online", task=4, repeats=(0,))
    late = fake_run(tmp_path / "runs", "csro", steps=(1000,))
    early = fake_run(tmp_path / "runs", "csro", 1)
    file = published_by([*runs, late, early], tmp_path / "results.json")
    notes = read_runs([], beside=[file]).notes
    assert any("seed 0: 1 of 16 repeats with online context are missing" in n for n in notes)
    assert any("CSRO, seed 0 was evaluated never" in n for n in notes)


def test_published_strengths_of_style_stand_apart(tmp_path):
    results = read_runs(styled(tmp_path))
    known = [material(0.1, 0.0), material(0.5, 2.0)]
    store.write_json(tmp_path / "results.json", raw_numbers(results, known))
    alone = read_runs([], beside=tmp_path)
    assert [(f.family, f.style) for f in alone.families] == [("point-robot", 0), ("point-robot", 2)]


def test_nothing_is_lost_when_numbers_are_read_and_written_again(tmp_path):
    runs = [enrich(fake_run(tmp_path, seed=seed)) for seed in range(2)]
    lose(runs[0], "online", task=4, repeats=(0,))
    first = raw_numbers(read_runs(runs), [material(0.2)])
    (numbers,) = first["families"].values()
    for run in numbers["variants"][0]["runs"]:
        run["success_percent"] = {"online/train": 25.0}
    store.write_json(tmp_path / "results.json", first)
    alone = read_runs([], beside=tmp_path)
    again = raw_numbers(alone, read_material(alone, []))
    (one,), (other,) = (x["families"].values() for x in (first, again))
    for before, after in zip(one["variants"][0]["runs"], other["variants"][0]["runs"], strict=True):
        oracle = "oracle_normalised_per_task"
        assert after.pop(oracle) == pytest.approx(before.pop(oracle))
        assert after == before
    assert {k: v for k, v in one.items() if k != "variants"} == {
        k: v for k, v in other.items() if k != "variants"
    }


def test_what_is_no_results_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"nowhere.json is missing .wanted: the results.json"):
        read_runs([], beside=[tmp_path / "nowhere.json"])
    file = published_by([fake_run(tmp_path)], tmp_path / "results.json")
    file.write_text(file.read_text().replace("ER-TRL", "ER-TRI"))
    with pytest.raises(DataError, match="does not match its checksum"):
        read_runs([], beside=[file])
    store.write_json(file, {"kind": "ertrl-results", "format": 1, "families": {"a": {}}})
    with pytest.raises(DataError, match="says what cannot be"):
        read_runs([], beside=[file])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda family: family["tasks"].pop(), "tasks of the list in group test-ood"),
        (lambda family: family["references"]["expert"].pop(), "axis 0 of references.expert"),
        (lambda family: family["variants"].clear(), "length >= 1"),
        (lambda family: family["variants"][0]["runs"].clear(), "length >= 1"),
        (lambda family: family["variants"][0].update(step="last"), "Expected `int`"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(tmp_path, change, complaint):
    content = raw_numbers(read_runs([fake_run(tmp_path)]))
    (family,) = json.loads(json.dumps(content["families"])).values()
    change(family)
    store.write_json(tmp_path / "results.json", content | {"families": {"point-robot": family}})
    with pytest.raises(DataError, match=complaint):
        read_runs([], beside=tmp_path)


def test_an_older_file_has_plain_methods_only(tmp_path):
    runs = [fake_run(tmp_path), fake_run(tmp_path, "focal")]
    content = raw_numbers(read_runs(runs))
    for variant in content["families"]["point-robot"]["variants"]:
        del variant["identity"], variant["configuration"]
    store.write_json(tmp_path / "old.json", content)
    assert labels_of_published(tmp_path / "old.json") == ["ER-TRL", "FOCAL"]
    content["families"]["point-robot"]["variants"][0]["label"] = "ER-TRL (mi_weight=0.0)"
    store.write_json(tmp_path / "old.json", content)
    with pytest.raises(DataError, match=r"'ER-TRL .mi_weight=0.0.' is a variant"):
        read_runs([], beside=[tmp_path / "old.json"])


def labels_of_published(file):
    return [v.label for family in read_runs([], beside=[file]).families for v in family.variants]


def test_a_method_has_one_colour_in_all_reports(tmp_path):
    def places(*runs):
        found = read_runs(list(runs)).families
        return {v.label: v.place for family in found for v in family.variants}

    er_trl, focal = (fake_run(tmp_path / "one", method) for method in ("er-trl", "focal"))
    both = places(focal, er_trl)
    assert both == places(er_trl) | places(focal)
    assert len(set(both.values())) == 2
    settings = {"method": {"mi_weight": 3.0}}
    other = fake_run(tmp_path / "two", "er-trl", settings=settings, name="other")
    three = places(other, focal, er_trl)
    assert {label: three[label] for label in both if label in three}["FOCAL"] == both["FOCAL"]
    assert len(set(three.values())) == 3, "a variant has a place that no known method has"
    many = [
        fake_run(tmp_path / "many", settings={"method": {"mi_weight": float(i)}}, name=f"run{i}")
        for i in range(30)
    ]
    assert len(set(places(*many).values())) == 30


def test_numbers_of_other_families_only_are_refused(tmp_path):
    run = fake_run(tmp_path / "one", "focal")
    other = fake_run(tmp_path / "two", "csro", family="ant-dir")
    file = published_by([other], tmp_path / "other.json")
    with pytest.raises(ReportError, match="of point-robot, and what --beside names holds ant-dir"):
        read_runs([run], beside=[file])
