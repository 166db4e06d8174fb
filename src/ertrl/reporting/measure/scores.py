"""What was measured besides returns, over seeds: how often tasks were fulfilled, what logs tell."""

from collections.abc import Callable, Sequence

import numpy as np

from ertrl.evaluation import success_percentages
from ertrl.evaluation.on_logs import log_scores
from ertrl.reporting.measure.comparison import Column, Row, anchor_row, row_of
from ertrl.reporting.measure.statistics import Estimate, estimate_of
from ertrl.reporting.read.results import Evaluation, FamilyResults, SeedRun

VALUES = {"adapted": "value of policy", "z = 0": "value of blind", "data": "value of behaviour"}
ERRORS = {
    "reward": "reward unexplained",
    "reward, no z": "reward unexplained without z",
    "next state": "next state unexplained",
    "next state, no z": "next state unexplained without z",
}
"""Title of a column -> name of the score in an evaluation from logs."""
Grid = tuple[list[Column], list[Row]]


def success_of(run: SeedRun, step: int) -> dict[str, float]:
    """Percentage of fulfilled tasks per 'protocol/group'; empty where tasks cannot be."""
    evaluation = run.evaluations.get(step)
    return success_percentages(evaluation) if evaluation else {}


def success_rows(family: FamilyResults) -> Grid | None:
    """A column per group and protocol, the expert that data was recorded from at the end."""
    columns = [Column(g, p) for g in family.groups for p in family.protocols]
    rows = _rows(family, success_percentages, [f"{c.protocol}/{c.group}" for c in columns])
    if not any(cell for row in rows for cell in row.cells):
        return None
    if "success" in family.references:
        expert = 100 * np.asarray(family.references["success"], np.float64)
        means = [Estimate(float(expert[family.rows[c.group]].mean()), 0) for c in columns]
        rows.append(anchor_row("expert", "expert", means))
    return columns, rows


def value_rows(family: FamilyResults) -> Grid:
    """Without a simulator: discounted value of policy, blind policy and behaviour."""
    return _from_logs(family, VALUES, 1.0)


def error_rows(family: FamilyResults) -> Grid:
    """Without a simulator: percent of variance that is left unexplained."""
    return _from_logs(family, ERRORS, 100.0)


def _from_logs(family: FamilyResults, names: dict[str, str], factor: float) -> Grid:
    columns = [Column(group, title) for group in family.groups for title in names]
    keys = [f"{names[c.protocol]}/{c.group}" for c in columns]
    return columns, _rows(family, log_scores, keys, factor)


def _rows(
    family: FamilyResults,
    scores_of: Callable[[Evaluation], dict[str, float]],
    keys: Sequence[str],
    factor: float = 1.0,
) -> list[Row]:
    """Of every variant, the scores of these names."""
    rows = []
    for variant in family.variants:
        found = [run.evaluations.get(variant.step) for run in variant.runs]
        scores = [scores_of(evaluation) for evaluation in found if evaluation]
        cells = [estimate_of([factor * s[key] for s in scores if key in s]) for key in keys]
        rows.append(row_of(variant, cells))
    return rows
