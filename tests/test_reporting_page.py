"""Drawing and writing: tables, figures, and one page that holds them all."""

import csv
import io
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

import ertrl.reporting
import fake_runs
from conftest import tiny_config
from ertrl import api, store
from ertrl.api import load_agent
from ertrl.evaluation import PROTOCOLS
from ertrl.reporting import print_summary, report
from ertrl.reporting.compose import compose
from ertrl.reporting.draw import Picture, panels, planes, slug
from ertrl.reporting.draw.look import house_style, settle
from ertrl.reporting.draw.returns import (
    adaptation_curves,
    behaviour_data,
    context_shift,
    step_curves,
)
from ertrl.reporting.measure.comparison import returns_table
from ertrl.reporting.measure.gain import gains
from ertrl.reporting.read.dataset import (
    LATENT_CONTEXTS,
    TaskAxis,
    Watched,
    adaptation,
    read_material,
)
from ertrl.reporting.read.runs import read_runs
from ertrl.reporting.write import sentences, tables, words
from ertrl.reporting.write.numbers import raw_numbers
from ertrl.reporting.write.page import render
from fake_runs import GROUPS, TASKS, enrich, fake_run, lose, material, pair, two_by_three

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
    """A report of two methods, three seeds, with everything that needs no dataset."""
    runs = [enrich(run) for run in two_by_three(tmp_path_factory.mktemp("runs"))]
    return report(runs, tmp_path_factory.mktemp("out"))


@pytest.fixture(scope="module")
def page(made):
    return Page(made.read_text())


@pytest.fixture
def sketched(monkeypatch):
    """Reports with blank figures, for tests that look at words."""

    def draw(family, material):
        kinds = ("curves", "shift", "profiles", "tasks", "adaptation", "probes", "swap")
        prefix = slug(family.label)
        return {kind: Picture(f"{prefix}-{kind}", Figure((1, 1))) for kind in kinds}

    monkeypatch.setattr("ertrl.reporting.compose.draw_family", draw)


def only_logs(run):
    """Turn a run without protocols into one of a family without a simulator."""
    file = run / "evaluations" / "00002000.json"
    logs = {"discount": 0.9, "value": {}, "prediction": {}}
    store.write_json(file, {**store.read_json(file), "references": {}, "logs": logs})
    return run


def table_of(runs):
    return returns_table(read_runs(runs).families[0])


def test_a_number_goes_through_the_rooms_in_order():
    rooms = ["read", "measure", "draw", "write"]
    home = Path(ertrl.reporting.__file__).parent
    for i, room in enumerate(rooms):
        for file in (home / room).glob("*.py"):
            used = set(re.findall(r"ertrl\.reporting\.(\w+)", file.read_text()))
            assert used <= {*rooms[: i + 1]}, file


# --- the folder ---


def test_the_folder_is_complete(made):
    names = {str(p.relative_to(made.parent)) for p in made.parent.rglob("*") if p.is_file()}
    figures = {
        f"figures/point-robot-{kind}.{end}"
        for kind in ("curves", "shift", "tasks", "profiles", "adaptation", "probes", "swap")
        for end in ("png", "pdf")
    }
    tables = {f"tables/{t}" for t in ("summary.md", "summary.tex", "summary.csv", "benefit.md")}
    assert names == {"report.html", "results.json"} | figures | tables
    assert made.stat().st_size < 1_000_000


@pytest.mark.usefixtures("sketched")
def test_a_report_leaves_nothing_of_the_one_before_and_all_that_is_not_a_reports(tmp_path):
    out = tmp_path / "out"
    report([enrich(run) for run in pair(tmp_path, "ant-dir", 1.0)], out)
    assert (out / "tables" / "benefit.md").exists()
    own = [out / "figures" / f"{name}.png" for name in ("mine", "ant-dir-mine", "mine-tasks")]
    own += [out / "tables" / "mine.md", out / "figures" / "ant-dir-tasks.svg"]
    for file in own:
        file.write_text("kept")
    run = enrich(fake_run(tmp_path))
    report(run, out)
    report(run, tmp_path / "alone")
    found, expected = (
        {file.relative_to(made) for file in made.rglob("*.*")} for made in (out, tmp_path / "alone")
    )
    assert found == expected | {file.relative_to(out) for file in own}
    assert all(file.read_text() == "kept" for file in own)


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
    for said in (
        *("zero action", "random", "expert", "81.0", "± 2.5", "offline context", "Holm"),
        "The dataset of point-robot is not where it was",
        "point-robot-er-trl-td3bc-s0",
        "ertrl report",
        "here there are 0",  # families with a distance between behaviour policies
        "a dose-response curve needs one family",
        "3 seeds are too few to tell which method is best with logged data as context "
        "(90.0 to 91.0)",
        "ER-TRL is best when the agent gathers its own (81.0)",
    ):
        assert said in page.text, said
    assert "Beside the paper" not in page.text
    assert "95.0" in page.text[page.text.index("z from expert data") :]
    probes = page.text[page.text.index("Does z tell the task?") :]
    for said in ("0.250", "0.200", "0.500", "31%", "71%", "10%", "30%", "follows the task", "−20%"):
        assert said in probes, said


def test_figures_follow_the_colour_scheme(made):
    html = made.read_text()
    assert "prefers-color-scheme: dark" in html
    svg = html[html.index("<svg") : html.index("</svg>")]
    assert "var(--ink)" in svg
    assert "var(--c1)" in svg, "ER-TRL's place in every report"
    assert "DejaVu" not in svg
    assert "#1d2433" not in svg


def test_the_same_runs_give_the_same_bytes(made, tmp_path):
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        runs = [enrich(run) for run in two_by_three(tmp_path / "elsewhere")]
        again = report(runs, tmp_path / "out")
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


def test_what_diverged_is_null_in_results_json(tmp_path):
    runs = two_by_three(tmp_path)
    lose(runs[0], "offline", task=5, repeats=(0, 1))
    found = raw_numbers(read_runs(runs))["families"]["point-robot"]["variants"][0]["runs"][0]
    assert found["protocols"]["offline"]["normalised"]["per_task"][5] is None
    assert found["missing_repeats"] == {"offline": 2}


# --- what is on the page ---


@pytest.mark.usefixtures("sketched")
def test_malicious_names_are_text(tmp_path):
    evil = "<img src=x onerror=alert(1)>\"&'"
    bad = '"><script>alert(2)</script>'
    run = fake_run(tmp_path, name=evil, profile=bad, scores={"offline": 50.0})
    parsed = Page(render(compose([run])))
    assert "img" not in parsed.tags
    assert parsed.tags.count("script") == 1
    assert evil in parsed.text
    assert bad in parsed.text


def test_a_family_name_cannot_leave_the_folder_nor_break_a_figure(tmp_path):
    scores, name = {"offline": 50.0}, "../../<b>$evil_$</b>"
    made = report([fake_run(tmp_path, family=name, name="run", scores=scores)], tmp_path / "out")
    written = {p.name for p in (made.parent / "figures").iterdir()}
    assert "b-evil-b-curves.png" in written
    linked = [Path(link).name for link in Page(made.read_text()).links if "figures/" in link]
    assert written == set(linked), "what is drawn is shown"
    assert not list(tmp_path.parent.glob("*evil*"))
    assert "b" not in Page(made.read_text()).tags


@pytest.mark.usefixtures("sketched")
def test_missing_cells_are_shown_as_missing(tmp_path):
    runs = [fake_run(tmp_path, "er-trl"), fake_run(tmp_path, "focal", scores={"offline": 70.0})]
    lose(runs[0], "offline", task=5, repeats=(0, 1))
    html = render(compose(runs))
    assert html.count('title="not measured"') == 12  # 6 cells, normalised and not
    text = Page(html).text
    assert "nan" not in text.lower().split()
    assert "Not measured yet: ertrl evaluate RUN --probes" in text


def test_tasks_without_a_scale_are_named_and_no_number_is_nan(tmp_path, monkeypatch):
    """Of out-of-distribution tasks the expert is below random, and of one held-out task."""
    expert = [-5.0, -5.0, -5.0, -5.0, -5.0, -30.0, -30.0, -30.0]
    monkeypatch.setitem(fake_runs.REFERENCES, "expert", expert)
    runs = two_by_three(tmp_path / "runs")
    made = report(runs, tmp_path / "out")
    html = made.read_text()
    told = "leave out task 5, 6, 7, where the expert is not above random actions"
    console = Console(width=200, file=io.StringIO(), color_system=None)
    print_summary(runs, console=console)
    assert told in html
    assert told in console.file.getvalue()
    written = [file.read_text() for file in (made.parent / "tables").iterdir()]
    for text in (html, console.file.getvalue(), *written):
        assert not re.search(r"\bnan\b", text.lower())
    assert "Worse than doing nothing (▼) in 2 of 12 cells" in html, "six cells have no number"


def test_recorded_episodes_of_tasks_without_a_scale_hide_no_others(tmp_path, monkeypatch):
    """Held-out tasks are 4 and 5, out-of-distribution ones 6 and 7."""
    expert = [-5.0, -5.0, -5.0, -5.0, -5.0, -30.0, -30.0, -30.0]
    monkeypatch.setitem(fake_runs.REFERENCES, "expert", expert)
    (family,) = read_runs(fake_run(tmp_path)).families
    episodes = {"checkpoints": np.array([0, 1]), "returns": np.array([-25.0, -15.0])}
    tasks = [SimpleNamespace(reference={"expert": e, "random": -25.0}, **episodes) for e in expert]
    figure = behaviour_data(family, SimpleNamespace(task=tasks.__getitem__))
    drawn = [[list(line.get_ydata()) for line in panel.lines] for panel in figure.axes]
    assert [[0, 50] in lines for lines in drawn] == [True, True, False]


@pytest.mark.usefixtures("sketched")
def test_several_families_get_an_overview_and_the_papers_numbers_a_place(tmp_path):
    runs = two_by_three(tmp_path, family="cheetah-vel")
    enrich(runs[0])
    runs.append(fake_run(tmp_path, "er-trl", 0, family="ant-dir"))
    text = Page(render(compose(runs))).text
    overview = text[text.index("All families") : text.index("Interquartile mean of the")]
    assert overview.count("90.5") == 3  # ER-TRL, offline; FOCAL was not measured on ant-dir
    assert "not here, because not all families have them: FOCAL." in text
    assert "FOCAL" not in overview
    assert "2 families, 2 methods" in text
    assert "96.4 ± 0.2" in text[text.index("Beside the paper") :]
    assert "\N{MINUS SIGN}5.4" in text  # 91.0 against 96.36
    assert "SVR column is the error on the transitions that the SVR was trained on" in text
    assert "Not measured: ER-TRL, seed 1; ER-TRL, seed 2; FOCAL" in text


@pytest.mark.usefixtures("sketched")
def test_a_family_from_logs_does_not_hide_the_overview_of_the_others(tmp_path):
    runs = [*pair(tmp_path, "ant-dir", 1.0), *pair(tmp_path, "cheetah-vel", 1.0)]
    runs.append(only_logs(fake_run(tmp_path, "csro", family="pump", scores={}, steps=(2000,))))
    text = Page(render(compose(runs))).text
    overview = text[text.index("All families") : text.index("Brackets")]
    assert "FOCAL" in overview
    assert "of all families but pump, where there is no simulator" in overview
    assert "not all families have them" not in text
    assert "All families" not in Page(render(compose([runs[0], runs[-1]]))).text


@pytest.mark.usefixtures("sketched")
def test_every_protocol_is_explained(tmp_path):
    run = fake_run(tmp_path, scores=dict.fromkeys(PROTOCOLS, 50.0))
    html = render(compose(run))
    terms = html[html.index('<dl class="protocols">') :].split("</dl>")[0]
    lines = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", terms, re.DOTALL))
    assert lines.keys() == PROTOCOLS.keys()
    assert all(len(line) > 80 for line in lines.values())
    assert "Episode 10 counts" in lines["idaq"]
    assert "Episode 3 counts" in lines["online"]


def test_tables_and_links_can_be_told_apart_by_ear(made):
    html = made.read_text()
    for table in re.findall(r"<table.*?</table>", html, re.DOTALL):
        assert re.search(r"<caption[^>]*>[^<]+</caption>", table)
        assert not re.search(r"<th(?! scope=)[ >]", table)
        assert table.count("<tr") - table.count('scope="row"') == table.split("</thead>")[0].count(
            "<tr"
        ), "every row has a head"
    found = re.findall(r'<a [^>]*href="([^"]+)"[^>]*>(.*?)</a>', html, re.DOTALL)
    texts = dict((re.sub(r"<.*?>", "", text), href) for href, text in found)
    assert len(texts) == len({href for href, _ in found}), "one text, one target"


@pytest.mark.usefixtures("sketched")
def test_what_was_not_measured_stays_folded(tmp_path):
    html = render(compose([fake_run(tmp_path)]))
    section = html[html.index('<section id="point-robot-probes">') :].split("</section>")[0]
    assert section.index("<details><summary>") < section.index("Not measured yet")
    assert "<details>" not in html[html.index('id="point-robot-curves"') :].split("</section>")[0]


@pytest.mark.usefixtures("sketched")
def test_ablations_are_on_the_page(tmp_path):
    runs = []
    for seed, (weight, online) in product(range(3), ((0.5, 80.0), (0.0, 30.0))):
        made = {"seed": seed, "scores": {"offline": 90.0 + seed, "online": online + seed}}
        settings = {"method": {"mi_weight": weight}}
        runs.append(fake_run(tmp_path, settings=settings, name=f"run-{weight}-{seed}", **made))
    text = Page(render(compose(runs))).text
    part = text[text.index("Compared with ER-TRL (mi_weight=0.5)") :]
    assert "\N{MINUS SIGN}50.0" in part[: part.index("Statistics")]


@pytest.mark.usefixtures("sketched")
def test_gains_are_on_the_page_and_what_is_missing(tmp_path):
    gained = {"a": 0.0, "b": 4.0, "c": 20.0}
    runs = [run for name, points in gained.items() for run in pair(tmp_path, name, points)]
    runs.append(fake_run(tmp_path, "focal", family="d"))
    found = gains(read_runs(runs), [material(d) for d in (0.1, 0.3, 0.4, 0.5)])
    trend = next(t for t in found.trends if (t.group, t.protocol) == ("test-id", "online"))
    text = Page(render(replace(compose(runs), gains=found))).text
    assert f"{trend.r:.2f}" in text
    assert words.chance(trend.p) in text
    assert "d: no run of ER-TRL" in text


# --- the first paragraph ---


@pytest.mark.usefixtures("sketched")
def test_worse_than_doing_nothing_is_marked_and_said_first(tmp_path):
    """Zero action is at 25 points."""
    below = {"offline": 24.9, "online": 25.0, "non-prior": 60.0}
    runs = [fake_run(tmp_path, scores=below), fake_run(tmp_path, "focal")]
    made = compose(runs)
    html = render(made)
    lead = html[html.index("<h1>") :].split("</p>")[0]
    told = "Worse than doing nothing (▼) in 3 of 18 cells"
    assert f"{told} (ER-TRL: training offline, held-out offline, OOD offline)." in lead
    assert html.count('aria-label="below zero action"') == 6, "normalised and not"
    table = made.families[0].table
    assert tables.markdown(table).count("24.9 ▼") == 3
    assert tables.latex(table).count(r"$24.9$$\downarrow$") == 3
    console = Console(width=80, file=io.StringIO(), color_system=None)
    print_summary(runs, console=console)
    assert told in console.file.getvalue()
    assert "doing nothing" not in render(compose([runs[1]])).split("</header>")[0]


def test_the_headline_names_a_winner_only_where_there_is_one(tmp_path):
    (one,) = (fake_run(tmp_path / "one"),)
    assert sentences.headline(table_of([one])) == (
        "On held-out point-robot tasks: ER-TRL reaches 90.0 with logged data as context, 50.0 when "
        "the agent gathers its own"
    )
    two = [one, fake_run(tmp_path / "two", "focal", scores={"online": 10.0})]
    assert "differences between methods cannot be tested yet" in sentences.headline(table_of(two))
    three = two_by_three(tmp_path / "three")
    for seed in range(3):
        scores = {"offline": 90.0 - seed, "online": 80.5 + seed}
        three.append(fake_run(tmp_path / "three", "csro", seed, scores=scores))
    told = sentences.headline(table_of(three))
    assert told.count("3 seeds are too few to tell which method is best") == 1
    assert "corrects over the 8 comparisons" in sentences.corrections(table_of(three))


def test_variants_without_a_simulator_have_no_ablation_of_returns(tmp_path):
    for weight in (0.0, 0.5):
        settings = {"method": {"mi_weight": weight}}
        made = {"name": f"run-{weight}", "scores": {}, "steps": (2000,)}
        only_logs(fake_run(tmp_path, settings=settings, **made))
    text = Page(render(compose(tmp_path))).text
    assert "How good, as far as logs can tell" in text
    assert "Ablation" not in text


# --- tables ---


def test_one_seed_shows_no_uncertainty(tmp_path):
    text = tables.markdown(table_of([fake_run(tmp_path)]))
    line = next(line for line in text.splitlines() if line.startswith("| ER-TRL"))
    assert "±" not in line
    assert "| 1 |" in line


def test_tables_show_what_is_missing(tmp_path):
    late = fake_run(tmp_path, "er-trl", 1, steps=(1000,))
    focal = fake_run(tmp_path, "focal", scores={"offline": 70.0})
    table = table_of([fake_run(tmp_path, "er-trl"), late, focal])
    for text in (tables.markdown(table), tables.latex(table)):
        line = next(line for line in text.splitlines() if "FOCAL" in line)
        assert line.count(words.MISSING) + line.count("--") == 6
        assert "(n=1)" in next(line for line in text.splitlines() if "ER-TRL" in line)
        assert "nan" not in text


def test_latex_and_markdown_escape(tmp_path):
    assert tables.latex_escape(r"a_b & 5% \x") == r"a\_b \& 5\% \textbackslash{}x"
    table = table_of(two_by_three(tmp_path))
    text = tables.latex(table)
    rows = [
        line for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line
    ]
    assert all(line.count("&") == 10 for line in rows)
    assert r"\underline{\mathbf{81.0}}" in text
    assert len({line.count("|") for line in tables.markdown(table).splitlines()[:7]}) == 1


def test_csv_has_a_line_per_seed_and_cell(tmp_path):
    lines = list(csv.DictReader(io.StringIO(tables.csv_table(read_runs(two_by_three(tmp_path))))))
    assert len(lines) == 2 * 3 * 9
    assert float(lines[0]["normalised_return"]) == pytest.approx(90.0)
    assert float(lines[0]["return"]) == pytest.approx(-7.0)


def test_the_terminal_table_fits_eighty_columns(tmp_path):
    console = Console(width=80, file=io.StringIO(), color_system=None)
    settings = [{"method": {"mi_weight": float(weight)}} for weight in range(2, 7)]
    many = [fake_run(tmp_path, settings=one, name=f"run{i}") for i, one in enumerate(settings)]
    print_summary([*two_by_three(tmp_path), *many], console=console)
    text = console.file.getvalue()
    for word in ("ER-TRL", "mi_weight=6", "FOCAL", "81.0 ± 2.5", "expert", "random", "zero"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 80


# --- figures ---


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
    family = read_runs(tmp_path).families[0]
    figure = adaptation_curves(family)
    for panel in figure.axes:
        ends = panel.get_xticklabels()[-1].get_text()
        assert ends == ("3\n1,200" if "Out of" in panel.get_title() else "3\n120")


def test_step_curves_are_drawn_where_they_were_measured(tmp_path):
    paths = [fake_run(tmp_path, m, scores={"continual": 50.0}) for m in ("focal", "er-trl")]
    assert step_curves(read_runs(tmp_path).families[0]) is None
    file = paths[0] / "evaluations" / "00002000.json"
    content = store.read_json(file)
    returns = np.broadcast_to([-25.0, -15.0, -5.0], (len(TASKS), 2, 3))
    content["protocols"]["continual"] |= {
        "step_context": [1, 10, 100],
        "step_returns": returns.tolist(),
    }
    store.write_json(file, content)
    figure = step_curves(read_runs(tmp_path).families[0])
    assert len(figure.axes) == len(GROUPS)
    for panel in figure.axes:
        drawn = [line.get_xydata().tolist() for line in panel.lines]
        assert [[1, 0], [10, 50], [100, 100]] in drawn
        assert panel.get_xscale() == "log"
    text = Page(render(compose(tmp_path))).text
    assert "Step by step" in text


MACHADO = {
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
"""Machado, Oliveira and Fernandes 2009, severity 1: linear RGB as such a person sees it."""


@pytest.mark.parametrize("eye", MACHADO)
def test_colours_of_tasks_are_told_apart_by_every_eye(eye):
    def seen(colours):
        rgb = np.asarray(colours)[:, :3]
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return np.clip(linear @ np.array(MACHADO[eye]).T, 0, 1)

    def lightness(linear):
        return 116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16

    line = lightness(seen(panels.LINE_COLOURS(np.linspace(0, 1, 9))))
    assert np.diff(line).min() > 3, "the order of tasks shows in lightness alone"
    if eye != "tritanopia":  # the ring is a way through blue and yellow, which those confuse
        ring = np.cbrt(seen(panels.RING_COLOURS(np.linspace(0, 1, 9)[:-1])))
        apart = np.linalg.norm(ring[:, None] - ring, axis=-1) + np.eye(8)
        assert apart.min() > 0.08


def long_settings(i):
    encoder = {"latent_dim": 8 + i, "hidden": [64 + i, 64, 64]}
    return {"method": {"encoder": encoder}, "learner": {"hidden": [64 + i, 64, 64]}}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", [2, 4])
def test_long_names_leave_room_for_the_panels(tmp_path, count):
    runs = [
        fake_run(tmp_path, "focal", settings=long_settings(i), name=f"focal-{i}")
        for i in range(count)
    ]
    (family,) = read_runs(runs).families
    assert min(len(v.label) for v in family.variants) > 60
    axis = TaskAxis("stiffness", np.linspace(0, 1, len(TASKS)))
    codes = np.random.default_rng(0).normal(size=(len(TASKS), 4, 3))
    seen = {v.identity: Watched(0, None, codes, {}) for v in family.variants}
    points = {"tasks": [0], "pca": [[[0, 1], [1, 0]]], "tsne": [[[0, 1], [1, 0]]]}
    points["pca_share"] = [0.5, 0.25]
    with house_style():
        figures = [
            context_shift(family),
            planes.latent_space(family, axis, seen),
            planes.projections(family, axis, {v.identity: points for v in family.variants}),
        ]
        for figure in map(settle, figures):
            for panel in filter(lambda panel: panel.axison, figure.axes):
                assert panel.get_position().height > 0.25
                box = panel.title.get_window_extent()
                assert box.x1 <= figure.bbox.x1
                assert box.y1 <= figure.bbox.y1


def test_slanted_names_end_below_their_bars(tmp_path):
    names = ("focal", "er-trl", "offline-pearl", "unicorn", "csro")
    (family,) = read_runs([fake_run(tmp_path, name) for name in names]).families
    with house_style():
        figure = settle(context_shift(family))
        labels = figure.axes[0].get_xticklabels()
    assert [label.get_text() for label in labels] == [v.label for v in family.variants]
    assert {(x.get_rotation(), x.get_ha(), x.get_rotation_mode()) for x in labels} == {
        (30.0, "right", "anchor")
    }


# --- with a dataset and an agent, both as small as they come ---


def test_pictures_of_replayed_agents(tmp_path, tiny_run, tiny_dataset):
    html = render(compose([tiny_run]))
    text = Page(html).text
    assert len(html) < 1_000_000
    for title in ("Adaptation", "Latent space", "Behaviour data", "shift of z"):
        assert title in text
    points = json.loads(re.search(r'<script type="application/json">(.*?)</script>', html)[1])
    assert [task["task"] for task in points["tasks"]] == list(range(40))
    assert np.shape(points["runs"][0]["offline"]) == (40, LATENT_CONTEXTS, 2)
    assert np.shape(points["runs"][0]["online"]) == (40, 2)


def test_a_method_without_a_posterior_stands_beside_one_that_explores_with_it(
    tiny_run, tiny_dataset, tmp_path
):
    explorer = api.start(
        tiny_config("bayes-linear"), tiny_dataset, out=tmp_path / "runs", progress="none"
    )
    api.evaluate(explorer, ("offline", "thompson"))
    (material,) = read_material(read_runs([tiny_run, explorer]), [])
    protocols = {one.label: [*seen[0].adapted] for one, seen in material.watched.items()}
    assert protocols["Bayes-linear"] == ["offline", "online", "non-prior", "thompson"]
    assert protocols["ER-TRL"] == ["offline", "online", "non-prior"]
    assert "thompson" in Page(render(compose([tiny_run, explorer]))).text


def test_a_dataset_that_has_moved_is_taken_from_its_new_place(tmp_path, tiny_run, tiny_dataset):
    results = read_runs(tiny_run)
    copy = shutil.copytree(tiny_dataset.path, tmp_path / "moved")
    (here,), (there,) = read_material(results, []), read_material(results, [copy])
    assert there.dataset.path == copy
    (one,), (other,) = here.watched.values(), there.watched.values()
    np.testing.assert_array_equal(one[0].codes, other[0].codes)


def test_the_replay_is_the_evaluation(tiny_run, tiny_dataset):
    """The pictures show the very episodes that the tables count."""
    stored = tiny_run.evaluations.read()["protocols"]
    agent = load_agent(tiny_run, tiny_run.config.updates)
    for protocol in ("offline", "online", "non-prior"):
        seen = adaptation(agent, tiny_dataset, protocol, slice(0, 2))
        goals = np.stack([data.parameters for data in tiny_dataset.tasks.values()])
        distances = np.linalg.norm(seen.last[:, 1:] - goals[:, None], axis=-1)
        expected = np.array(stored[protocol]["returns"])[:, 0]
        np.testing.assert_allclose(-distances.sum(axis=1), expected, rtol=1e-4)
