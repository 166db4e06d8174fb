"""What is known of agents without a simulator, over seeds: estimates from logs."""

from ertrl.evaluation.on_logs import log_scores
from ertrl.reporting.measure.comparison import Column, Row, row_of
from ertrl.reporting.measure.statistics import estimate_of
from ertrl.reporting.read.results import FamilyResults, Variant

VALUES = {"adapted": "value of policy", "z = 0": "value of blind", "data": "value of behaviour"}
ERRORS = {
    "reward": "reward unexplained",
    "reward, no z": "reward unexplained without z",
    "next state": "next state unexplained",
    "next state, no z": "next state unexplained without z",
}
Grid = tuple[list[Column], list[Row]]


def value_rows(family: FamilyResults) -> Grid:
    """Discounted value of policy, blind policy and behaviour."""
    return _rows(family, VALUES, 1.0)


def error_rows(family: FamilyResults) -> Grid:
    """Percent of variance that is left unexplained."""
    return _rows(family, ERRORS, 100.0)


def _rows(family: FamilyResults, names: dict[str, str], factor: float) -> Grid:
    columns = [Column(group, title) for group in family.groups for title in names]

    def cells(variant: Variant):
        found = [run.evaluations.get(variant.step) for run in variant.runs]
        scores = [log_scores(evaluation) for evaluation in found if evaluation]
        for group, title in columns:
            key = f"{names[title]}/{group}"
            yield estimate_of([factor * found[key] for found in scores if key in found])

    return columns, [row_of(variant, list(cells(variant))) for variant in family.variants]
