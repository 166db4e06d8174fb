"""How often a task was fulfilled, over seeds: a second measure, where tasks can be."""

from collections.abc import Iterator

import numpy as np

from ertrl.evaluation import success_percentages
from ertrl.reporting.measure.comparison import Column, Row, anchor_row, row_of
from ertrl.reporting.measure.statistics import Estimate, estimate_of
from ertrl.reporting.read.results import FamilyResults, SeedRun, Variant


def success_of(run: SeedRun, step: int) -> dict[str, float]:
    """Percentage of fulfilled tasks per 'protocol/group'; empty where tasks cannot be."""
    evaluation = run.evaluations.get(step)
    return success_percentages(evaluation) if evaluation else {}


def success_rows(family: FamilyResults) -> tuple[list[Column], list[Row]] | None:
    """A column per group and protocol, the expert that data was recorded from at the end."""
    columns = [Column(g, p) for g in family.groups for p in family.protocols]

    def cells(variant: Variant) -> Iterator[Estimate | None]:
        found = [success_of(run, variant.step) for run in variant.runs]
        for group, protocol in columns:
            key = f"{protocol}/{group}"
            yield estimate_of([rates[key] for rates in found if key in rates])

    rows = [row_of(variant, list(cells(variant))) for variant in family.variants]
    if not any(cell for row in rows for cell in row.cells):
        return None
    if "success" in family.references:
        expert = 100 * np.asarray(family.references["success"], np.float64)
        means = [Estimate(float(expert[family.rows[c.group]].mean()), 0) for c in columns]
        rows.append(anchor_row("expert", "expert", means))
    return columns, rows
