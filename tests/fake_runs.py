"""Run folders with made-up evaluations, and a dataset: what a report reads, without training."""

from pathlib import Path

import numpy as np

from ertrl import store
from ertrl.config import TrainConfig, replace_from_json, to_json
from ertrl.data import Dataset, layout
from ertrl.envs import anchor_returns, make_family, rollout
from ertrl.learners import get_learner
from ertrl.methods import get_method

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
    scores: dict[str, float] | None = None,
    family: str = "point-robot",
    dataset: str = "aaaaaaaaaa",
    steps: tuple[int, ...] = (1000, 2000),
    settings: dict | None = None,
    groups: dict | None = None,
    name: str | None = None,
    profile: str = "test",
) -> Path:
    """Write one run; `scores` gives the normalised return per protocol, the same on all tasks."""
    blank = TrainConfig(method=get_method(method).config(), learner=get_learner("td3bc").config())
    config = replace_from_json(blank, {"seed": seed, "updates": 2000, **(settings or {})})
    path = root / (name or f"{family}-{method}-td3bc-s{seed}")
    store.write_json(
        path / "config.json",
        {
            "family": family,
            "dims": {"observation": 2, "action": 2},
            "dataset": dataset,
            "method": method,
            "learner": "td3bc",
            "config": to_json(config),
            "dataset_path": str(root / "no-such-dataset"),
            "profile": profile,
            "provenance": PROVENANCE,
        },
    )
    scores = {"offline": 90.0, "online": 50.0, "non-prior": 60.0} if scores is None else scores
    for step in steps:
        protocols = {
            protocol: {
                "returns": np.full((len(TASKS), 2), returns_of(score * step / steps[-1])).tolist()
            }
            for protocol, score in scores.items()
        }
        store.write_json(
            path / "evaluations" / f"{step:08d}.json",
            {
                "run": path.name,
                "step": step,
                "family": family,
                "dataset": dataset,
                "evaluation": to_json(config.evaluation),
                "tasks": TASKS,
                "groups": groups or GROUPS,
                "references": REFERENCES,
                "protocols": protocols,
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


def fake_dataset(path: Path, checkpoints: int = 3) -> Dataset:
    """Point-Robot data of a random policy that is said to have been an expert at times."""
    family = make_family("point-robot")
    draw = np.random.default_rng(0)
    anchors = anchor_returns(family, range(family.n_tasks), 2, seed=0)
    tasks = []
    for task in range(family.n_tasks):
        parameters = np.tile(family.parameters[task], (checkpoints, 1))
        actions = draw.uniform(-1, 1, (family.horizon, checkpoints, 2))
        episodes = rollout(
            family, parameters, lambda _, t, a=actions: a[t], list(range(checkpoints))
        )
        arrays = {
            "observations": episodes.observation,
            "actions": episodes.action,
            "rewards": episodes.reward,
            "lengths": episodes.length,
            "terminated": episodes.terminated,
            "truncated": episodes.truncated,
            "checkpoints": np.arange(checkpoints),
        }
        files = {}
        for field, array in arrays.items():
            file = path / layout.file_of(task, field)
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, array.astype(layout.dtype_of(field)))
            files[field] = {
                "path": layout.file_of(task, field),
                "sha256": store.sha256_file(file),
            }
        reference = {name: float(returns[task]) for name, returns in anchors.items()}
        tasks.append(
            {
                "task": task,
                "group": family.split.group_of(task),
                "parameters": family.parameters[task].tolist(),
                "reference": reference | {"expert": reference["random"] + 10},
                "episodes": checkpoints,
                "files": files,
            }
        )
    store.write_json(
        path / layout.MANIFEST,
        {
            "kind": layout.KIND,
            "format": layout.FORMAT,
            "family": family.name,
            "family_options": family.options,
            "parameter_names": list(family.parameter_names),
            "horizon": family.horizon,
            "observation_dim": family.observation_dim,
            "action_dim": family.action_dim,
            "tasks": tasks,
            "collector": {"name": "random", "config": {"seed": 0}, "curve": []},
            "provenance": PROVENANCE,
        },
    )
    return Dataset(path)
