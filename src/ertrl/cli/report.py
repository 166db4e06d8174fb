"""`ertrl report`."""

from pathlib import Path

from ertrl.cli.common import output, require_runs
from ertrl.cli.options import Json, Runs, command


@command("report")
def run(
    runs: Runs,
    out: Path = Path("report"),
    data: tuple[Path, ...] = (),
    beside: tuple[Path, ...] = (),
    json: Json = False,
) -> None:
    """Write report.html, tables and figures from runs.

    Args:
        out: Where to write.
        data: Dataset folders, if they have moved since training.
        beside: results.json files of other reports on the same data: their numbers join the tables.
    """
    if not beside:
        require_runs(runs, "report")
    from ertrl.reporting import print_summary, report

    page = report(runs, out, data, beside=beside)
    if not json:
        print_summary(runs, data, beside)
    output({"report": str(page)}, None if json else f"wrote {page}")
