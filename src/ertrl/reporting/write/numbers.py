"""results.json: every number behind the page, per seed and per task, and where it comes from."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ertrl.evaluation.shapes import KEPT_PROBES
from ertrl.provenance import provenance
from ertrl.reporting.measure.gain import Gains
from ertrl.reporting.read.dataset import Material
from ertrl.reporting.read.published import identity_numbers
from ertrl.reporting.read.results import FamilyResults, Results, SeedRun, Variant


def raw_numbers(
    results: Results, materials: Sequence[Material] = (), found: Gains | None = None
) -> dict[str, Any]:
    """All of it; `materials` are those of the families."""
    behaviour = dict(zip((f.label for f in results.families), materials, strict=False))
    return {
        "kind": "ertrl-results",
        "format": 1,
        "families": {f.label: _family(f, behaviour.get(f.label)) for f in results.families},
        "benefit": found
        and {
            "points": [point._asdict() for point in found.points],
            "trends": [trend._asdict() for trend in found.trends],
            "missing": found.missing,
        },
        "notes": list(results.notes),
        "provenance": provenance(),
    }


def _family(family: FamilyResults, material: Material | None) -> dict[str, Any]:
    return {
        "family": family.family,
        "style": material and material.style,
        "policy_distance": material and material.policy_distance,
        "dataset": family.dataset,
        "evaluation": family.settings,
        "tasks": family.tasks,
        "groups": family.groups,
        "references": family.references,
        "variants": [
            {name: getattr(v, name) for name in ("label", "method", "learner", "updates", "step")}
            | {
                "identity": identity_numbers(v.identity),
                "configuration": v.runs[0].configuration,
                "runs": [_run(family, v, run) for run in v.runs],
            }
            for v in family.variants
        ],
    }


def _run(family: FamilyResults, variant: Variant, run: SeedRun) -> dict[str, Any]:
    scales = {"normalised": family, "returns": replace(family, normalised=False)}
    oracle = family.task_returns(run, "oracle", variant.step)
    probes = run.published.numbers["probes"] if run.published else run.probes.get(variant.step)
    return {
        "run": run.name,
        "seed": run.seed,
        "protocols": {
            protocol: {
                name: {
                    "per_task": _nulls(scaled.task_returns(run, protocol, variant.step)),
                    "mean": {
                        group: scaled.score(run, protocol, group, variant.step)
                        for group in family.groups
                    },
                }
                for name, scaled in scales.items()
            }
            for protocol in family.protocols
        },
        **({"success_percent": rates} if (rates := run.success(variant.step)) else {}),
        "logs": run.evaluations.get(variant.step, {}).get("logs"),
        "oracle_normalised_per_task": _nulls(oracle),
        "missing_repeats": run.missing_repeats(variant.step),
        "probes": probes and {k: probes[k] for k in KEPT_PROBES if k in probes},
        "provenance": run.provenance,
    }


def _nulls(values: np.ndarray | None) -> list[float | None] | None:
    """NaN, where all repeats of a task diverged, as JSON has it."""
    return None if values is None else [None if np.isnan(v) else float(v) for v in values]
