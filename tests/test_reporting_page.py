import json
import re
import shutil
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest

from ertrl.errors import ReportError
from ertrl.evaluation.probes import principal_plane
from ertrl.reporting import report
from ertrl.reporting.replay import (
    LATENT_CONTEXTS,
    adaptation,
    agent_of,
    latent_shift,
)
from ertrl.reporting.report import compose
from ertrl.reporting.taskaxis import task_axis
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
        for kind in ("curves", "shift", "tasks", "profiles")
        for end in ("png", "pdf")
    }
    tables = {f"tables/{t}" for t in ("summary.md", "summary.tex", "summary.csv", "benefit.md")}
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
    run = fake_run(tmp_path, name=evil, profile=bad, scores={"offline": 50.0})
    parsed = Page(compose([run]).html)
    assert "img" not in parsed.tags
    assert parsed.tags.count("script") == 1
    assert evil in parsed.text
    assert bad in parsed.text


def test_a_family_name_cannot_leave_the_folder(tmp_path):
    scores = {"offline": 50.0}
    run = fake_run(tmp_path, family="../../<b>evil</b>", name="run", scores=scores)
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


# --- the arithmetic of pictures ---


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


def test_principal_plane_finds_the_plane():
    draw = np.random.default_rng(0)
    points = draw.normal(size=(200, 2)) * [5, 2] @ np.eye(4)[[1, 3]] + 7
    centre, axes, share = principal_plane(points)
    assert centre == pytest.approx(points.mean(axis=0))
    assert np.abs(axes) == pytest.approx(np.eye(4)[[1, 3]], abs=0.1)
    assert (axes.max(axis=1) > 0.9).all()
    assert share.sum() == pytest.approx(1.0)


def test_latent_shift_by_hand():
    offline = np.array([[[1.0, 0.0]], [[-1.0, 0.0]]])  # two tasks, spread 1
    online = np.array([[[1.0, 2.0], [1.0, 1.0]], [[-1.0, 0.0], [-1.0, 0.0]]])
    assert latent_shift(offline, online) == pytest.approx([1.5, 0.0])
    assert latent_shift(offline, offline).tolist() == [0.0, 0.0]


# --- with a dataset and an agent, both as small as they come ---


def test_data_of_no_run_is_refused(tmp_path, tiny_dataset):
    with pytest.raises(ReportError, match="is not the dataset of any of these runs"):
        compose([fake_run(tmp_path)], data=tiny_dataset.path)


def test_pictures_of_replayed_agents(tmp_path, tiny_run, tiny_dataset):
    one = compose([tiny_run])
    text = Page(one.html).text
    assert len(one.html) < 1_000_000
    for title in ("Adaptation", "Latent space", "Behaviour data", "shift of z"):
        assert title in text
    points = json.loads(re.search(r'<script type="application/json">(.*?)</script>', one.html)[1])
    assert [task["task"] for task in points["tasks"]] == list(range(40))
    assert np.shape(points["runs"][0]["offline"]) == (40, LATENT_CONTEXTS, 2)
    assert np.shape(points["runs"][0]["online"]) == (40, 2)
    copy = shutil.copytree(tiny_dataset.path, tmp_path / "moved")
    again = compose([tiny_run.path], data=copy)
    assert again.html == one.html


def test_the_replay_is_the_evaluation(tiny_run, tiny_dataset):
    """The pictures show the very episodes that the tables count."""
    stored = tiny_run.evaluation()["protocols"]
    agent = agent_of(tiny_run, tiny_run.config.updates)
    for protocol in ("offline", "online", "non-prior"):
        seen = adaptation(agent, tiny_dataset, protocol)
        goals = np.stack([data.parameters for data in tiny_dataset.tasks.values()])
        distances = np.linalg.norm(seen.last[:, 1:] - goals[:, None], axis=-1)
        expected = np.array(stored[protocol]["returns"])[:, 0]
        np.testing.assert_allclose(-distances.sum(axis=1), expected, rtol=1e-4)
