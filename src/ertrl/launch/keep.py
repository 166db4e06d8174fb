"""What is worth keeping of a grid: one small file per dataset and per run, for a repository."""

from pathlib import Path
from typing import Any

import numpy as np

from ertrl import store
from ertrl.config import to_json
from ertrl.data import Dataset
from ertrl.data.layout import SCALE
from ertrl.errors import RunError
from ertrl.evaluation import mean_of_measured, normalise, summarise
from ertrl.evaluation.shapes import KEPT_PROBES
from ertrl.launch.place import Place, record_of
from ertrl.launch.plan import Cell, Data, Grid
from ertrl.training import Run

RUN_KIND, DATA_KIND = "ertrl-kept-run", "ertrl-kept-dataset"


def keep_run(grid: Grid, cell: Cell, place: Place, folder: Path) -> None:
    """Scores, returns per task, wall-clock and provenance of a finished run."""
    job = grid.training(cell)
    record = record_of(place, job.name)
    if record is None:
        raise RunError(f"{cell.label}: its record in jobs/ is gone; start again to make it anew")
    run = Run(place.fetch(record["made"]))
    result = run.evaluations.read()
    returns = {
        name: mean_of_measured(np.array(measured["returns"], np.float64), axis=1)
        for name, measured in result["protocols"].items()
    }
    probes = run.probes.read() if run.probes.steps() else None
    content = {
        "kind": RUN_KIND,
        "run": run.name,
        "family": run.family,
        "data": Path(grid.collection(cell.data).makes).name,
        "dataset": run.spec["dataset"],
        "method": run.method.name,
        "learner": run.learner.name,
        "profile": run.spec["profile"],
        "variant": run.spec["variant"],
        "settings": dict(cell.contender.settings),
        "seed": cell.seed,
        "updates": run.config.updates,
        "step": result["step"],
        "scores": summarise(result),
        "returns": {name: _rounded(values) for name, values in returns.items()},
        "normalised": {
            name: _rounded(normalise(values, result["references"]))
            for name, values in returns.items()
        },
        "tasks": result["tasks"],
        "groups": result["groups"],
        "probes": probes and {k: probes[k] for k in KEPT_PROBES if k in probes},
        # Of one that was gone on with, only the last process's are known.
        "seconds": None if record["began_at"] else round(record["seconds"], 1),
        "threads": record["threads"],
        "provenance": run.spec["provenance"],
    }
    store.write_json(folder / cell.data.folder / f"{run.name}.json", content)


def keep_dataset(grid: Grid, data: Data, place: Place, folder: Path) -> None:
    """What a collection took and reached: of the same data, what was kept first stays."""
    job = grid.collection(data)
    dataset = Dataset(place.fetch(job.makes), verify=False)
    file = folder / data.folder / f"data-{Path(job.makes).name}.json"
    if file.exists() and store.read_json(file)["dataset"] == dataset.fingerprint:
        return
    manifest, tasks = dataset.manifest, dataset.tasks.values()
    collector = manifest["collector"]
    content = {
        "kind": DATA_KIND,
        "family": dataset.family,
        "family_options": dataset.family_options,
        "dataset": dataset.fingerprint,
        "config": to_json(grid.collect_config(data)),
        "groups": dataset.groups,
        "references": {kind: _rounded([t.reference[kind] for t in tasks]) for kind in SCALE},
        "policy_distance": (collector["policy_distance"] or {}).get("mean"),
        "curve": collector["curve"],
        "seconds": collector["seconds"],
        "provenance": manifest["provenance"],
    }
    store.write_json(file, content)


def _rounded(values: Any) -> list[float | None]:
    return [None if np.isnan(v) else round(float(v), 3) for v in np.asarray(values, np.float64)]
