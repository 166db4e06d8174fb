"""What context costs: returns with the best of it, points lost and z shifted with one's own."""

import numpy as np

from ertrl.reporting.measure.comparison import Row, row_of
from ertrl.reporting.measure.statistics import Estimate, estimate_of
from ertrl.reporting.read.results import FamilyResults, SeedRun


def oracle_rows(family: FamilyResults) -> list[Row]:
    """Return with z of the best logged policy's data, a column per group."""
    return [
        row_of(v, [estimate_of(family.scores(v, "oracle", g).values()) for g in family.groups])
        for v in family.variants
    ]


def shift_rows(family: FamilyResults) -> list[Row]:
    """Two columns per group: points lost from offline to online context, and shift of z."""
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
    return rows


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
