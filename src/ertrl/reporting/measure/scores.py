"""What was measured besides returns, over seeds: success, what logs tell, what context costs."""

from collections.abc import Callable, Sequence

import numpy as np

from ertrl.evaluation.on_logs import log_scores
from ertrl.reporting.measure.comparison import Column, Grid, Row, anchor_row, row_of
from ertrl.reporting.measure.statistics import Estimate, estimate_of
from ertrl.reporting.read.results import FamilyResults, SeedRun

VALUES = {
    "adapted": "value of policy",
    "no context": "value of blind",
    "data": "value of behaviour",
}
"""Without a simulator: discounted value of policy, blind policy and behaviour."""
ERRORS = {
    "reward": "reward unexplained",
    "reward, no z": "reward unexplained without z",
    "next state": "next state unexplained",
    "next state, no z": "next state unexplained without z",
}
"""What is left of the training tasks' variance. Title of a column -> name of the score."""


def success_rows(family: FamilyResults) -> Grid | None:
    """A column per group and protocol, the expert that data was recorded from at the end."""
    columns = [Column(g, p) for g in family.groups for p in family.protocols]
    rows = _rows(family, SeedRun.success, [f"{c.protocol}/{c.group}" for c in columns])
    if not any(cell for row in rows for cell in row.cells):
        return None
    if "success" in family.references:
        expert = 100 * np.asarray(family.references["success"], np.float64)
        means = [Estimate(float(expert[family.rows[c.group]].mean()), 0) for c in columns]
        rows.append(anchor_row("expert", "expert", means))
    return Grid(columns, rows)


def log_rows(family: FamilyResults, names: dict[str, str]) -> Grid:
    """A column per group and name: one of VALUES, or of ERRORS."""
    columns = [Column(group, title) for group in family.groups for title in names]
    keys = [f"{names[c.protocol]}/{c.group}" for c in columns]
    return Grid(columns, _rows(family, _log_scores, keys))


def _log_scores(run: SeedRun, step: int) -> dict[str, float]:
    return log_scores(found) if (found := run.evaluations.get(step)) else {}


def _rows(
    family: FamilyResults,
    scores_of: Callable[[SeedRun, int], dict[str, float]],
    keys: Sequence[str],
) -> list[Row]:
    """Of every variant, the scores of these names."""
    rows = []
    for variant in family.variants:
        scores = [scores_of(run, variant.step) for run in variant.runs]
        cells = [estimate_of([s[key] for s in scores if key in s]) for key in keys]
        rows.append(row_of(variant, cells))
    return rows


def oracle_rows(family: FamilyResults) -> list[Row]:
    """Return with z of the best logged policy's data, a column per group."""
    return [
        row_of(v, [estimate_of(family.scores(v, "oracle", g).values()) for g in family.groups])
        for v in family.variants
    ]


def shift_rows(family: FamilyResults) -> Grid:
    """Two columns per group: points lost from offline to online context, and shift of z."""
    columns = [Column(g, what) for g in family.groups for what in ("points lost", "shift of z")]
    rows = []
    for variant in family.variants:
        cells: list[Estimate | None] = []
        moved = [m for run in variant.runs if (m := _moved(family, run, variant.step)) is not None]
        for group in family.groups:
            offline, online = (family.scores(variant, p, group) for p in ("offline", "online"))
            lost = [offline[seed] - online[seed] for seed in offline if seed in online]
            far = [float(m[family.rows[group]].mean()) for m in moved]
            cells += [estimate_of(lost), estimate_of(far)]
        rows.append(row_of(variant, cells))
    return Grid(columns, rows)


def _moved(family: FamilyResults, run: SeedRun, step: int) -> np.ndarray | None:
    offline, online = (family.measured(run, p, "z", step) for p in ("offline", "online"))
    return None if offline is None or online is None else latent_shift(offline, online)


def latent_shift(offline: np.ndarray, online: np.ndarray) -> np.ndarray:
    """Distance [T] between a task's z from offline [T, C, Z] and from online [T, R, Z] context.

    In units of the spread between tasks (root mean square distance of the tasks' mean z from
    their centre): at 1, the context shift moves z as far as the tasks lie apart.
    """
    centres = offline.mean(axis=1)
    spread = np.sqrt(((centres - centres.mean(axis=0)) ** 2).sum(axis=-1).mean())
    moved = np.linalg.norm(online - centres[:, None], axis=-1).mean(axis=1)
    return moved / max(spread, 1e-12)
