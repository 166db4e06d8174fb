import csv
import io

import pytest
from rich.console import Console

from ertrl.errors import ReportError, RunError
from ertrl.reporting import print_summary, tables
from ertrl.reporting.gather import gather
from ertrl.reporting.summary import summarise_family
from fake_runs import fake_run, two_by_three


def summary_of(runs, **options):
    return summarise_family(gather(runs).families[0], **options)


def test_seeds_are_averaged_and_anchors_are_there(tmp_path):
    summary = summary_of(two_by_three(tmp_path))
    assert [row.label for row in summary.rows] == [
        "ER-TRL",
        "FOCAL",
        "expert",
        "zero action",
        "random",
    ]
    cell = summary.cell("ER-TRL", "test-id", "online")
    assert cell.estimate.value == pytest.approx(81.0)
    assert cell.estimate.n == 3
    assert cell.estimate.half_width == pytest.approx(4.302653 / 3**0.5, rel=1e-5)
    for anchor, score in {"expert": 100, "zero action": 25, "random": 0}.items():
        assert summary.cell(anchor, "train", "offline").estimate.value == pytest.approx(score)


def test_groups_come_in_reading_order(tmp_path):
    columns = summary_of(two_by_three(tmp_path)).columns
    assert [c.group for c in columns[::3]] == ["train", "test-id", "test-ood"]
    assert [c.protocol for c in columns[:3]] == ["offline", "online", "non-prior"]


def test_only_clear_differences_are_marked(tmp_path):
    summary = summary_of(two_by_three(tmp_path))
    online = summary.cell("ER-TRL", "test-id", "online")
    offline = summary.cell("ER-TRL", "test-id", "offline")
    assert (online.best, online.significant) == (True, True)
    assert (offline.best, offline.significant) == (True, False)
    assert not summary.cell("FOCAL", "test-id", "online").best


def test_unnormalised_returns(tmp_path):
    cell = summary_of(two_by_three(tmp_path), normalised=False).cell("expert", "train", "offline")
    assert cell.estimate.value == pytest.approx(-5.0)


def test_one_seed_shows_no_uncertainty(tmp_path):
    text = tables.markdown(summary_of([fake_run(tmp_path)]))
    line = next(line for line in text.splitlines() if line.startswith("| ER-TRL"))
    assert "±" not in line
    assert "| 1 |" in line


def test_a_missing_protocol_is_missing(tmp_path):
    runs = [fake_run(tmp_path, "er-trl"), fake_run(tmp_path, "focal", scores={"offline": 70.0})]
    summary = summary_of(runs)
    assert summary.cell("FOCAL", "train", "online").estimate is None
    for text in (tables.markdown(summary), tables.latex(summary)):
        focal = next(line for line in text.splitlines() if "FOCAL" in line)
        assert focal.count(tables.MISSING) + focal.count("--") == 6
        assert "nan" not in text


def test_a_seed_that_lags_behind_is_left_out_and_named(tmp_path):
    runs = [fake_run(tmp_path, seed=0), fake_run(tmp_path, seed=1, steps=(500, 1000))]
    results = gather(runs)
    cell = summarise_family(results.families[0]).cell("ER-TRL", "train", "offline")
    assert (cell.estimate.n, cell.expected) == (1, 2)
    assert "(n=1)" in tables.uncertainty(cell)
    assert any("seed 1 was evaluated only up to update 1000" in note for note in results.notes)


def test_a_run_without_evaluation_is_missing_and_named(tmp_path):
    runs = [fake_run(tmp_path, "er-trl"), fake_run(tmp_path, "focal", steps=())]
    results = gather(runs)
    assert summarise_family(results.families[0]).cell("FOCAL", "train", "offline").estimate is None
    assert any("FOCAL has not been evaluated yet" in note for note in results.notes)


def test_nothing_evaluated_is_an_error(tmp_path):
    with pytest.raises(ReportError, match="no run of point-robot has an evaluation"):
        gather([fake_run(tmp_path, steps=())])


def test_runs_on_logs_have_nothing_to_report(tmp_path):
    with pytest.raises(ReportError, match="my-logs are logs without a simulator"):
        gather([fake_run(tmp_path, steps=(), family="my-logs")])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"dataset": "bbbbbbbbbb"}, "dataset differ .aaaaaaaaaa and bbbbbbbbbb"),
        ({"settings": {"evaluation": {"episodes": 4}}}, "evaluation settings differ .in episodes"),
        ({"settings": {"evaluation": {"prior": "mean"}}}, "evaluation settings differ .in prior"),
        (
            {"groups": {"train": [0, 1, 2], "test-id": [3, 4, 5], "test-ood": [6, 7]}},
            "split of tasks into groups differ .in test-id, train",
        ),
    ],
)
def test_what_differs_is_not_mixed(tmp_path, change, complaint):
    runs = [fake_run(tmp_path, "er-trl"), fake_run(tmp_path, "focal", **change)]
    with pytest.raises(ReportError, match=complaint) as error:
        gather(runs)
    assert all(run.name in str(error.value) for run in runs)


def test_configurations_are_not_averaged_but_told_apart(tmp_path):
    runs = [
        fake_run(tmp_path, settings={"method": {"mi_weight": weight}}, name=f"run-{weight}")
        for weight in (0.0, 0.5)
    ]
    labels = gather(runs).labels
    assert labels == ["ER-TRL (mi_weight=0.0)", "ER-TRL (mi_weight=0.5)"]


def test_logging_settings_do_not_split_a_variant(tmp_path):
    runs = [
        fake_run(tmp_path, seed=0),
        fake_run(tmp_path, seed=1, settings={"checkpoint_every": 500}),
    ]
    assert gather(runs).labels == ["ER-TRL"]


def test_a_copy_of_a_run_is_refused_and_a_repetition_is_not(tmp_path):
    run = fake_run(tmp_path)
    assert len(gather([run, run]).families[0].variants[0].runs) == 1
    with pytest.raises(ReportError, match="are the same run"):
        gather([run, fake_run(tmp_path, name="copy")])


def test_a_folder_of_runs_stands_for_its_runs(tmp_path):
    two_by_three(tmp_path)
    assert len(gather([tmp_path]).families[0].variants) == 2


def test_a_folder_without_runs_is_an_error(tmp_path):
    with pytest.raises(RunError, match="is not a run"):
        gather([tmp_path])
    with pytest.raises(RunError, match="no run to look at"):
        gather([])


def test_latex_and_markdown_escape(tmp_path):
    assert tables.latex_escape(r"a_b & 5% \x") == r"a\_b \& 5\% \textbackslash{}x"
    summary = summary_of(two_by_three(tmp_path))
    text = tables.latex(summary)
    rows = [
        line for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line
    ]
    assert all(line.count("&") == 10 for line in rows)
    assert r"\underline{\mathbf{81.0}}" in text
    assert len({line.count("|") for line in tables.markdown(summary).splitlines()[:7]}) == 1


def test_csv_has_a_line_per_seed_and_cell(tmp_path):
    lines = list(csv.DictReader(io.StringIO(tables.csv_table(gather(two_by_three(tmp_path))))))
    assert len(lines) == 2 * 3 * 9
    assert float(lines[0]["normalised_return"]) == pytest.approx(90.0)
    assert float(lines[0]["return"]) == pytest.approx(-7.0)


def test_the_terminal_table_fits_eighty_columns(tmp_path):
    console = Console(width=80, file=io.StringIO(), color_system=None)
    print_summary(two_by_three(tmp_path), console=console)
    text = console.file.getvalue()
    for word in ("ER-TRL", "FOCAL", "n=3", "81.0 ± 2.5", "expert", "random", "zero"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 80
