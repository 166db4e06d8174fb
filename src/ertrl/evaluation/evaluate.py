"""Evaluate an agent under all protocols and put the returns on a common scale."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ertrl.config import to_json
from ertrl.data import Dataset
from ertrl.errors import ConfigError, DataError, unknown
from ertrl.evaluation.agent import Agent
from ertrl.evaluation.idaq import idaq
from ertrl.evaluation.protocols import PAPER_PROTOCOLS, Trial, oracle
from ertrl.evaluation.shapes import SMALLEST_RANGE
from ertrl.memory import require_memory

EVALUATION_SEED = 20_250
"""Evaluation draws do not depend on the run's seed: every run faces the same contexts."""
PROTOCOLS = {**PAPER_PROTOCOLS, "idaq": idaq}
"""All protocols by name; the paper's are evaluated unless others are asked for."""


def evaluate_agent(
    agent: Agent,
    dataset: Dataset,
    *,
    step: int,
    run: str,
    protocols: Sequence[str] = tuple(PAPER_PROTOCOLS),
) -> dict[str, Any]:
    """Run the protocols and the oracle on all tasks of the dataset; the result is plain JSON.

    What a diverged simulation left unmeasured is null.
    """
    for name in protocols:
        if name not in PROTOCOLS:
            raise ConfigError(unknown("protocol", name, PROTOCOLS))
    family = dataset.make_family()
    config = agent.config.evaluation
    measured = {}
    rows = len(dataset.tasks) * config.repeats
    width = 2 * dataset.dims.observation + dataset.dims.action + 4
    require_memory(
        8 * rows * (config.episodes + 1) * dataset.horizon * width,
        "contexts and episodes",
        "evaluation.repeats or evaluation.episodes",
    )

    def trial_of(name: str) -> Trial:
        return Trial(name, agent, family, dataset, config, EVALUATION_SEED)

    for name in protocols:
        trial = trial_of(name)
        PROTOCOLS[name](trial)
        measured[name] = {k: _plain(v) for k, v in trial.result()._asdict().items()}
    return {
        "kind": "ertrl-evaluation",
        "run": run,
        "step": step,
        "family": dataset.family,
        "dataset": dataset.fingerprint,
        "evaluation": to_json(config),
        "tasks": list(dataset.tasks),
        "groups": dataset.groups,
        "references": references(dataset),
        "protocols": measured,
        "oracle": {"returns": _plain(oracle(trial_of("oracle")))},
    }


def _plain(values: np.ndarray) -> list[Any]:
    """Lists for JSON; float32 in as many digits as it has, NaN and what overflowed as null."""
    if values.dtype == np.float32:
        values = np.array([float(str(v)) for v in values.ravel()]).reshape(values.shape)
    plain = values.astype(object)
    plain[~np.isfinite(values)] = None
    return plain.tolist()


def references(dataset: Dataset) -> dict[str, list[float]]:
    """Returns of expert, random and idle policies per task, checked: they are the scale's ends."""
    for task, data in dataset.tasks.items():
        expert, random = data.reference["expert"], data.reference["random"]
        if expert - random < SMALLEST_RANGE:
            raise DataError(
                f"{dataset.path}: task {task}'s expert return {expert:.4g} is not above its random "
                f"return {random:.4g}, so returns cannot be normalised; collect with more steps"
            )
    tasks = dataset.tasks.values()
    return {kind: [t.reference[kind] for t in tasks] for kind in ("expert", "random", "zero")}


def normalise(returns: np.ndarray, references: dict[str, Sequence[float]]) -> np.ndarray:
    """Per task, axis 0: 0 is a uniformly random policy, 100 the behaviour policies' expert."""
    shape = (-1,) + (1,) * (np.ndim(returns) - 1)
    random = np.reshape(references["random"], shape)
    expert = np.reshape(references["expert"], shape)
    return 100 * (np.asarray(returns) - random) / (expert - random)


def mean_of_measured(values: np.ndarray, axis: int | None = None) -> Any:
    """Mean over what is not NaN; NaN where nothing is left."""
    known = ~np.isnan(values)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)[()]


def missing_repeats(result: dict[str, Any]) -> dict[str, int]:
    """Protocol -> repeats that a diverged simulation left unmeasured, where there are any."""
    counts = {
        name: sum(value is None for repeats in measured["returns"] for value in repeats)
        for name, measured in result.get("protocols", {}).items()
    }
    return {name: count for name, count in counts.items() if count}


def summarise(result: dict[str, Any]) -> dict[str, float]:
    """Mean normalised return per 'protocol/group', over the repeats that were measured.

    A group of which nothing was measured is left out.
    """
    place = {task: i for i, task in enumerate(result["tasks"])}
    scores = {}
    for protocol, measured in result["protocols"].items():
        returns = np.array(measured["returns"], np.float64)
        normalised = mean_of_measured(normalise(returns, result["references"]), axis=1)
        for group, tasks in result["groups"].items():
            rows = [place[t] for t in tasks]
            scores[f"{protocol}/{group}"] = float(mean_of_measured(normalised[rows]))
    return {name: score for name, score in scores.items() if not np.isnan(score)}
