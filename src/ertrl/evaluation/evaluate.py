"""Evaluate an agent under all protocols and put the returns on a common scale."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ertrl import rng
from ertrl.config import to_json
from ertrl.data import Dataset
from ertrl.errors import ConfigError, DataError, unknown
from ertrl.evaluation.agent import Agent
from ertrl.evaluation.protocols import PROTOCOLS, Trial
from ertrl.types import Context

EVALUATION_SEED = 20_250
"""Evaluation draws do not depend on the run's seed: every run faces the same contexts."""


def prior(agent: Agent, dataset: Dataset) -> np.ndarray:
    """z0: what the agent believes before it has seen anything."""
    if agent.config.evaluation.prior == "zero":
        return np.zeros(agent.latent_dim, np.float32)
    size = agent.config.sampling.context_size
    contexts = []
    for task in dataset.group("train"):
        data = dataset.task(task)
        draw = rng.generator(EVALUATION_SEED, "prior", task)
        contexts.append(data.transitions(draw.integers(len(data.steps), size=size))[:4])
    stacked = [np.stack(field) for field in zip(*contexts, strict=True)]
    return agent.encode(Context(*stacked, mask=np.ones_like(stacked[2]))).mean(axis=0)


def evaluate_agent(
    agent: Agent,
    dataset: Dataset,
    *,
    step: int,
    run: str,
    protocols: Sequence[str] = tuple(PROTOCOLS),
) -> dict[str, Any]:
    """Run the protocols on all tasks of the dataset; the result is plain JSON."""
    for name in protocols:
        if name not in PROTOCOLS:
            raise ConfigError(unknown("protocol", name, PROTOCOLS))
    family = dataset.make_family()
    config = agent.config.evaluation
    z0 = prior(agent, dataset)
    measured = {}
    for name in protocols:
        trial = Trial(name, agent, family, dataset, config, z0, EVALUATION_SEED)
        PROTOCOLS[name](trial)
        measured[name] = {k: v.tolist() for k, v in trial.result()._asdict().items()}
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
    }


def references(dataset: Dataset) -> dict[str, list[float]]:
    """Returns of expert, random and idle policies per task, checked: they are the scale's ends."""
    for task, data in dataset.tasks.items():
        expert, random = data.reference["expert"], data.reference["random"]
        if not expert > random:
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


def summarise(result: dict[str, Any]) -> dict[str, float]:
    """Mean normalised return per 'protocol/group'."""
    place = {task: i for i, task in enumerate(result["tasks"])}
    scores = {}
    for protocol, measured in result["protocols"].items():
        normalised = normalise(np.array(measured["returns"]), result["references"])
        for group, tasks in result["groups"].items():
            rows = [place[t] for t in tasks]
            scores[f"{protocol}/{group}"] = float(normalised[rows].mean())
    return scores
