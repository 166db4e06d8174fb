"""Run folders with made-up evaluations: what a report reads, without any training."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from ertrl import store
from ertrl.config import replace_from_json, to_json
from ertrl.data import Dataset
from ertrl.learners import get_learner
from ertrl.methods import get_method
from ertrl.reporting.read.dataset import Material, TaskAxis
from ertrl.training.config import TrainConfig
from toys import write_dataset

TASKS = list(range(8))
GROUPS = {"train": [0, 1, 2, 3], "test-id": [4, 5], "test-ood": [6, 7]}
REFERENCES = {"expert": [-5.0] * 8, "random": [-25.0] * 8, "zero": [-20.0] * 8}
PROVENANCE = {
    "command": "ertrl train",
    "commit": "0" * 40,
    "versions": {"python": "3.11.0", "jax": "0.0.0"},
    "machine": {"cpu": "abacus", "cores": 2, "system": "test"},
    "threads": 1,
}


def returns_of(score: float) -> float:
    """The raw return that normalises to `score`."""
    return -25.0 + 20.0 * score / 100


def fake_run(
    root: Path,
    method: str = "er-trl",
    seed: int = 0,
    *,
    learner: str = "td3bc",
    scores: dict[str, float] | None = None,
    family: str = "point-robot",
    dataset: str = "aaaaaaaaaa",
    steps: tuple[int, ...] = (1000, 2000),
    settings: dict | None = None,
    groups: dict | None = None,
    name: str | None = None,
    profile: str = "test",
    variant: str = "",
    dataset_path: Path | None = None,
) -> Path:
    """Write one run; `scores` gives the normalised return per protocol, the same on all tasks.

    `enrich` adds probes.
    """
    blank = TrainConfig(method=get_method(method)(), learner=get_learner(learner)())
    config = replace_from_json(blank, {"seed": seed, "updates": 2000, **(settings or {})})
    path = root / (name or f"{family}-{method}-{learner}-s{seed}")
    store.write_json(
        path / "config.json",
        {
            "kind": "ertrl-run",
            "name": path.name,
            "family": family,
            "dims": {"observation": 2, "action": 2},
            "dataset": dataset,
            "method": method,
            "learner": learner,
            "config": to_json(config),
            "dataset_path": str(dataset_path or root / "no-such-dataset"),
            "profile": profile,
            "variant": variant,
            "provenance": PROVENANCE,
        },
    )
    scores = {"offline": 90.0, "online": 50.0, "non-prior": 60.0} if scores is None else scores
    repeats = config.evaluation.repeats
    for step in steps:
        protocols = {
            protocol: measured(place, returns_of(score * step / steps[-1]), repeats)
            for place, (protocol, score) in enumerate(scores.items())
        }
        store.write_json(
            path / "evaluations" / f"{step:08d}.json",
            {
                "kind": "ertrl-evaluation",
                "run": path.name,
                "step": step,
                "family": family,
                "dataset": dataset,
                "evaluation": to_json(config.evaluation),
                "tasks": TASKS,
                "groups": groups or GROUPS,
                "references": REFERENCES,
                "protocols": protocols,
                "oracle": {"returns": np.full((len(TASKS), repeats), returns_of(95.0)).tolist()},
            },
        )
    return path


def measured(place: int, level: float, repeats: int = 2) -> dict:
    """What a protocol measures: returns, adaptation curves and z."""
    last = np.full((len(TASKS), repeats), level)
    z = np.stack([np.arange(8.0), np.full(8, place * 2.0)], axis=-1)
    return {
        "returns": last.tolist(),
        "curve_returns": np.stack([last - 8, last - 4, last], axis=-1).tolist(),
        "curve_context": np.broadcast_to([20, 40, 60], (*last.shape, 3)).tolist(),
        "z": np.repeat(z[:, None], repeats, axis=1).tolist(),
    }


def enrich(path: Path, step: int = 2000) -> Path:
    """Add probes."""
    content = store.read_json(path / "evaluations" / f"{step:08d}.json")
    errors = {"constant": 0.5, "linear": 0.25, "svr": 0.2}
    store.write_json(
        path / "probes" / f"{step:08d}.json",
        {
            "kind": "ertrl-probes",
            "run": path.name,
            "step": step,
            "family": content["family"],
            "dataset": content["dataset"],
            "settings": {"transitions": 1000, "contexts": 100},
            "regression": [
                {"context": context, "target": "parameters", "model": model}
                | {"train_rmse": error / 2, "test_rmse": error}
                for context in ("transition", "context")
                for model, error in errors.items()
            ],
            "leak": {
                "checkpoints": 10,
                "context_size": 64,
                "chance": 0.1,
                "accuracy": {"train": 0.31, "test-id": 0.32, "test-ood": 0.33},
                "raw_accuracy": {"train": 0.71, "test-id": 0.72, "test-ood": 0.73},
                "variance": {"task": 0.6, "checkpoint": 0.3, "context": 0.1},
            },
            "swap": {
                "episodes": 40,
                "followed_task": {"train": 0.25, "test-id": 0.5, "test-ood": 0.75},
                "way": {"train": 0.1, "test-id": -0.2, "test-ood": 1.3},
                "control": {"train": 0.9, "test-id": 0.8, "test-ood": 0.7},
            },
            "projection": {
                "tasks": [0, 6],
                "tsne": [[[0, 1], [1, 0]], [[2, 2], [3, 1]]],
                "pca": [[[0, 1], [1, 0]], [[2, 2], [3, 1]]],
                "pca_share": [0.5, 0.25],
            },
        },
    )
    return path


def two_by_three(root: Path, family: str = "point-robot") -> list[Path]:
    """ER-TRL far above FOCAL online, level offline; three seeds each."""
    runs = []
    for seed in range(3):
        er_trl = {"offline": 90.0 + seed, "online": 80.0 + seed, "non-prior": 60.0 + seed}
        focal = {"offline": 91.0 - seed, "online": 20.0 - seed, "non-prior": 60.5 - seed}
        runs.append(fake_run(root, "er-trl", seed, scores=er_trl, family=family))
        runs.append(fake_run(root, "focal", seed, scores=focal, family=family))
    return runs


def pair(root: Path, family: str, gain: float, seeds: int = 2) -> list[Path]:
    """ER-TRL and FOCAL, so far apart."""
    runs = []
    for seed in range(seeds):
        better = {p: 50.0 + gain + seed for p in ("offline", "online")}
        runs.append(fake_run(root, "er-trl", seed, family=family, scores=better))
        plain = {p: 50.0 + 2 * seed for p in ("offline", "online")}
        runs.append(fake_run(root, "focal", seed, family=family, scores=plain))
    return runs


def lose(path, protocol, task, repeats=(0,), step=2000):
    """Make repeats of a task missing, as a diverged simulation does."""
    file = path / "evaluations" / f"{step:08d}.json"
    content = store.read_json(file)
    for repeat in repeats:
        content["protocols"][protocol]["returns"][task][repeat] = None
    store.write_json(file, content)


def styled(root: Path) -> list[Path]:
    """ER-TRL and FOCAL on two datasets of one family, the second with a style."""
    runs = []
    for style, gain in ((0.0, 1.0), (2.0, 9.0)):
        place = root / f"data-{style}"
        write_dataset(place, tasks=4 if style else 3)
        manifest = store.read_json(place / "manifest.json")
        manifest["collector"] |= {"config": {"style": style}}
        store.write_json(place / "manifest.json", manifest)
        content = Dataset(place).fingerprint
        for method, score in (("er-trl", 50.0 + gain), ("focal", 50.0)):
            runs.append(
                fake_run(
                    *(root, method),
                    name=f"{method}-{style}",
                    scores={"online": score},
                    dataset=content,
                    dataset_path=place,
                )
            )
    return runs


def material(distance, style=0.0):
    """What a dataset tells whose behaviour policies lie this far apart."""
    axis = TaskAxis("task", np.array(TASKS, float))
    return Material(axis, SimpleNamespace(), style=style, policy_distance=distance)
