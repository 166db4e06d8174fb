import json
import re
from html.parser import HTMLParser

import matplotlib
import pytest

from ertrl.errors import ReportError
from ertrl.reporting import report
from ertrl.reporting.report import compose
from fake_runs import fake_run, two_by_three

VOID = {"meta", "br", "hr", "img"}


class Page(HTMLParser):
    """Checks that tags are balanced, and notes links, ids, references and text."""

    def __init__(self, html: str):
        super().__init__()
        self.stack, self.links, self.loaded, self.ids, self.tags = [], [], [], [], []
        self.text = ""
        self.feed(html)
        self.close()
        assert not self.stack

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "a":
            self.links.append(found["href"])
        else:
            self.loaded += [v for k, v in attrs if k in ("src", "href", "xlink:href", "srcset")]
        assert not any(k.startswith("on") for k, _ in attrs), "no inline event handlers"
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] not in ("style", "script"):
            self.text += data


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    return report(two_by_three(root), tmp_path_factory.mktemp("out"))


@pytest.fixture(scope="module")
def page(made):
    return Page(made.read_text())


def test_the_folder_is_complete(made):
    names = {str(p.relative_to(made.parent)) for p in made.parent.rglob("*") if p.is_file()}
    figures = {
        f"figures/point-robot-{kind}.{end}"
        for kind in ("curves", "shift", "tasks")
        for end in ("png", "pdf")
    }
    tables = {"tables/summary.md", "tables/summary.tex", "tables/summary.csv"}
    assert names == {"report.html", "results.json"} | figures | tables
    assert made.stat().st_size < 1_000_000


def test_the_page_is_self_contained(made, page):
    assert all(link.startswith("#") for link in page.loaded)
    outside = [x for x in page.links if ":" in x]
    assert all(x.startswith("https://arxiv.org/") for x in outside)
    local = [x for x in page.links if ":" not in x and not x.startswith("#")]
    assert local
    assert all((made.parent / x).is_file() for x in local)
    html = made.read_text()
    for word in ("@import", "url(http", "<link", "<iframe", "fetch(", "http://"):
        assert word not in html


def test_ids_are_unique_and_every_reference_leads_somewhere(made, page):
    assert len(page.ids) == len(set(page.ids))
    referred = re.findall(r"url\(#([^)]+)\)", made.read_text())
    inner = [x[1:] for x in page.links + page.loaded if x.startswith("#")]
    assert set(referred + inner) <= set(page.ids)


def test_the_page_says_what_it_should(page):
    for words in (
        "zero action",
        "random",
        "expert",
        "81.0",
        "± 2.5",
        "offline context",
        "Holm",
        "The dataset of point-robot is not where it was",
        "point-robot-er-trl-td3bc-s0",
        "ertrl report",
    ):
        assert words in page.text, words
    assert "Beside the paper" not in page.text


def test_figures_follow_the_colour_scheme(made):
    html = made.read_text()
    assert "prefers-color-scheme: dark" in html
    svg = html[html.index("<svg") : html.index("</svg>")]
    assert "var(--ink)" in svg
    assert "var(--c0)" in svg
    assert "DejaVu" not in svg
    assert "#1d2433" not in svg


def test_the_same_runs_give_the_same_bytes(made, tmp_path):
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        again = report(two_by_three(tmp_path / "elsewhere"), tmp_path / "out")
    for file in made.parent.rglob("*"):
        if file.is_file() and file.name != "results.json":
            assert (again.parent / file.relative_to(made.parent)).read_bytes() == file.read_bytes()


def test_no_place_on_this_machine_is_named(made):
    html = made.read_text()
    assert str(made.parent.parent) not in html
    assert "/tmp/" not in html


def test_results_json_holds_every_seed(made):
    family = json.loads((made.parent / "results.json").read_text())["families"]["point-robot"]
    er_trl = family["variants"][0]
    assert [run["seed"] for run in er_trl["runs"]] == [0, 1, 2]
    online = er_trl["runs"][1]["protocols"]["online"]
    assert online["normalised"]["mean"]["test-id"] == pytest.approx(81.0)
    assert online["returns"]["per_task"] == pytest.approx([-25 + 20 * 0.81] * 8)


def test_malicious_names_are_text(tmp_path):
    evil = "<img src=x onerror=alert(1)>\"&'"
    bad = '"><script>alert(2)</script>'
    run = fake_run(tmp_path, name=evil, profile=bad)
    parsed = Page(compose([run]).html)
    assert "img" not in parsed.tags
    assert parsed.tags.count("script") == 1
    assert evil in parsed.text
    assert bad in parsed.text


def test_a_family_name_cannot_leave_the_folder(tmp_path):
    run = fake_run(tmp_path, family="../../<b>evil</b>", name="run")
    made = report([run], tmp_path / "out")
    written = {p.name for p in (made.parent / "figures").iterdir()}
    assert "b-evil-b-curves.png" in written
    assert not list(tmp_path.parent.glob("*evil*"))
    assert "b" not in Page(made.read_text()).tags


def test_missing_cells_are_shown_as_missing(tmp_path):
    runs = [fake_run(tmp_path, "er-trl"), fake_run(tmp_path, "focal", scores={"offline": 70.0})]
    html = compose(runs).html
    assert html.count('title="not measured"') == 12  # 6 cells, normalised and not
    assert "nan" not in Page(html).text.lower().split()


def test_the_papers_numbers_stand_beside_ours_where_it_has_them(tmp_path):
    runs = two_by_three(tmp_path, family="cheetah-vel")
    text = Page(compose(runs).html).text
    assert "Beside the paper" in text
    assert "96.4 ± 0.2" in text
    assert "\N{MINUS SIGN}5.4" in text  # 91.0 against 96.36


def test_several_families_get_an_overview(tmp_path):
    runs = two_by_three(tmp_path)
    runs.append(fake_run(tmp_path, "er-trl", 0, family="ant-dir"))
    text = Page(compose(runs).html).text
    overview = text[text.index("All families") : text.index("Interquartile mean")]
    assert overview.count("\N{EM DASH}") == 9  # FOCAL was not measured on ant-dir
    assert "2 families, 2 methods" in text


def test_data_of_no_run_is_refused(tmp_path, tiny_dataset):
    with pytest.raises(ReportError, match="is not the dataset of any of these runs"):
        compose([fake_run(tmp_path)], data=tiny_dataset.path)


# --- with a dataset and an agent, both as small as they come ---


@pytest.fixture(scope="module")
def tiny_dataset(tmp_path_factory):
    from ertrl.collection import collect
    from ertrl.config import CollectConfig
    from ertrl.envs import make_family

    config = CollectConfig(
        hidden=(8,),
        batch_size=8,
        steps=40,
        updates_per_step=1,
        checkpoints=2,
        episodes_per_checkpoint=2,
        reference_episodes=2,
    )
    folder = tmp_path_factory.mktemp("data") / "point-robot"
    dataset = collect(make_family("point-robot"), config, folder, "none")
    # So little training makes no expert; a report needs one to normalise by.
    for entry in dataset.manifest["tasks"]:
        entry["reference"]["expert"] = entry["reference"]["random"] + 10
    from ertrl import store
    from ertrl.data import Dataset

    store.write_json(dataset.path / "manifest.json", dataset.manifest)
    return Dataset(dataset.path)


def test_pictures_of_replayed_agents(tmp_path, tiny_dataset):
    from ertrl.config import TrainConfig, replace_from_json
    from ertrl.learners import get_learner
    from ertrl.methods import get_method
    from ertrl.training import Run, train_run

    config = replace_from_json(
        TrainConfig(method=get_method("focal").config(), learner=get_learner("td3bc").config()),
        {
            "method": {"encoder": {"latent_dim": 3, "hidden": [8]}},
            "learner": {"hidden": [8]},
            "sampling": {"batch_size": 4, "context_size": 4},
            "updates": 2,
            "updates_per_call": 1,
            "evaluate_every": 1,
            "checkpoint_every": 1,
        },
    )
    run = Run.create(tmp_path / "runs", tiny_dataset, "focal", "td3bc", config, "test")
    train_run(run, tiny_dataset, "none")
    one = compose([run])
    text = Page(one.html).text
    assert len(one.html) < 1_000_000
    for title in ("Adaptation", "Latent space", "Behaviour data", "shift of z"):
        assert title in text
    moved = tmp_path / "moved"
    tiny_dataset.path.rename(moved)
    try:
        assert "is not where it was" in compose([run]).html
        again = compose([run.path], data=moved)
    finally:
        moved.rename(tiny_dataset.path)
    assert again.html == one.html
