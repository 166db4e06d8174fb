"""Evaluate an agent under all protocols and put the returns on a common scale."""

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ertrl.config import to_json
from ertrl.data import Dataset
from ertrl.data.layout import SCALE
from ertrl.errors import ConfigError, DataError, unknown
from ertrl.evaluation.agent import Agent
from ertrl.evaluation.context import EVALUATION_SEED
from ertrl.evaluation.on_logs import log_scores, measure_on_logs
from ertrl.evaluation.protocols import PAPER_PROTOCOLS, PROTOCOLS, oracle
from ertrl.evaluation.shapes import SMALLEST_RANGE
from ertrl.evaluation.trial import Trial
from ertrl.memory import require_memory
from ertrl.text import Described

NARROW = 0.05
"""Share of the usual distance from random to expert below which a task is named."""


class Evaluation(Described, dict):
    """What an evaluation measured: plain JSON, with `scores` on top.

    `result["protocols"]["online"]["returns"]` has a list of repeats for each of the tasks
    `result["tasks"]`, in that order.
    """

    @cached_property
    def scores(self) -> dict[str, float]:
        """Mean normalised return (random 0, expert 100) per 'protocol/group'."""
        return summarise(self)

    @cached_property
    def success(self) -> dict[str, float]:
        """Percentage of fulfilled tasks per 'protocol/group', where tasks can be fulfilled."""
        return success_percentages(self)

    def _facts(self) -> dict[str, Any]:
        rounded = {name: f"{score:.1f}" for name, score in self.scores.items()}
        fulfilled = {f"success {name}": f"{rate:.0f} %" for name, rate in self.success.items()}
        return {"run": self["run"], "step": self["step"], **rounded, **fulfilled}


def check_protocols(names: Sequence[str]) -> None:
    """Refuse names that no protocol has."""
    for name in names:
        if name not in PROTOCOLS:
            raise ConfigError(unknown("protocol", name, PROTOCOLS))


def evaluate_agent(
    agent: Agent,
    dataset: Dataset,
    *,
    step: int,
    run: str,
    protocols: Sequence[str] | None = None,
    known_oracle: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Run the protocols and the oracle on all tasks of the dataset; the result is plain JSON.

    What a diverged simulation left unmeasured is null. Where there is no simulator, the result is
    what logs alone can tell, and protocols that are named are refused. `known_oracle` is that of
    an earlier evaluation of the same agent.
    """
    check_protocols(protocols or ())
    if protocols and not dataset.has_simulator:
        raise DataError(
            f"{dataset.path} has no simulator: its transitions were imported from logs, and there "
            f"is nothing to act in under the protocol {' or '.join(protocols)}. Name no protocol "
            "(`ertrl evaluate RUN`) for what logs alone can tell."
        )
    protocols = tuple(PAPER_PROTOCOLS) if protocols is None else protocols
    if "thompson" in protocols:
        agent.believe(agent.nothing(1))  # refuses a method that has no posterior
    config = agent.config.evaluation
    about = {
        "kind": "ertrl-evaluation",
        "run": run,
        "step": step,
        "family": dataset.family,
        "dataset": dataset.fingerprint,
        "evaluation": to_json(config),
        "tasks": list(dataset.tasks),
        "groups": dataset.groups,
    }
    if not dataset.has_simulator:
        return {**about, "references": {}, "protocols": {}, "logs": measure_on_logs(agent, dataset)}
    family, measured = dataset.make_family(), {}
    rows = len(dataset.tasks) * config.repeats
    width = 2 * dataset.dims.observation + dataset.dims.action + 4
    require_memory(
        8 * rows * (config.episodes + 1) * dataset.horizon * width,
        "contexts and episodes",
        "evaluation.repeats or evaluation.episodes",
    )

    simulation = None

    def trial_of(name: str) -> Trial:
        nonlocal simulation
        trial = Trial(name, agent, family, dataset, config, EVALUATION_SEED, simulation)
        simulation = trial.simulation  # one for all
        return trial

    for name in protocols:
        trial = trial_of(name)
        PROTOCOLS[name](trial)
        found = trial.result()._asdict()
        if np.isnan(found["success"]).all():
            del found["success"]
        measured[name] = {k: _plain(v) for k, v in (found | trial.step_curve).items()}
    return {
        **about,
        "references": references(dataset),
        "protocols": measured,
        "oracle": known_oracle or {"returns": _plain(oracle(trial_of("oracle")))},
    }


def _plain(values: np.ndarray) -> list[Any]:
    """Lists for JSON; float32 in as many digits as it has, NaN and what overflowed as null."""
    if values.dtype == np.float32:
        values = np.array([float(str(v)) for v in values.ravel()]).reshape(values.shape)
    plain = values.astype(object)
    plain[~np.isfinite(values)] = None
    return plain.tolist()


def references(dataset: Dataset) -> dict[str, list[float]]:
    """Returns of expert, random and idle policies per task: the ends of the scale.

    Where tasks can be fulfilled, also how often the expert does that.
    """
    tasks = dataset.tasks.values()
    kinds = [*SCALE, *(["success"] if all("success" in t.reference for t in tasks) else [])]
    return {kind: [t.reference[kind] for t in tasks] for kind in kinds}


def warn_of_scale(dataset: Dataset) -> None:
    """Name the tasks that normalised returns leave out, or in which they are mostly noise."""
    ends = {task: data.reference for task, data in dataset.tasks.items()}
    widths = {task: e["expert"] - e["random"] for task, e in ends.items()}
    lost = {task for task, width in widths.items() if width < SMALLEST_RANGE}
    scripted = dataset.manifest.get("collector", {}).get("name") == "scripted"
    advice = "write a better expert" if scripted else "collect with more steps"
    if len(lost) == len(ends):
        raise DataError(
            f"{dataset.path}: in no task is the expert's return above that of random actions, so "
            f"returns cannot be normalised; {advice}"
        )
    usual = float(np.median([width for task, width in widths.items() if task not in lost]))
    narrow = {t for t, w in widths.items() if t not in lost and w < NARROW * usual}
    for tasks, what, so in (
        (lost, "is not above", "leave it out"),
        (narrow, "is hardly above", "are mostly noise there, and weigh heavily in means"),
    ):
        named = [f"{t} ({ends[t]['expert']:.4g}, {ends[t]['random']:.4g})" for t in sorted(tasks)]
        if named:
            warnings.warn(
                f"{dataset.path}: the expert {what} random actions in task {', '.join(named)}. "
                f"Normalised returns {so}; {advice}.",
                stacklevel=3,
            )


def normalise(returns: np.ndarray, references: dict[str, Sequence[float]]) -> np.ndarray:
    """Per task, axis 0: 0 is a uniformly random policy, 100 the behaviour policies' expert.

    NaN where the expert is no better than random: such a task has no scale.
    """
    shape = (-1,) + (1,) * (np.ndim(returns) - 1)
    random = np.reshape(references["random"], shape)
    expert = np.reshape(references["expert"], shape)
    width = np.where(expert - random >= SMALLEST_RANGE, expert - random, np.nan)
    return 100 * (np.asarray(returns) - random) / width


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

    A group of which nothing was measured is left out. Without a simulator: estimates from logs.
    """
    if "logs" in result:
        return log_scores(result)
    return _means(result, "returns", lambda returns: normalise(returns, result["references"]))


def success_percentages(result: dict[str, Any]) -> dict[str, float]:
    """Percentage of last episodes that fulfilled their task, per 'protocol/group'."""
    return _means(result, "success", lambda success: 100 * success)


def _means(
    result: dict[str, Any], what: str, scaled: Callable[[np.ndarray], np.ndarray]
) -> dict[str, float]:
    """Mean per 'protocol/group', over the repeats and the tasks that were measured."""
    place = {task: i for i, task in enumerate(result["tasks"])}
    means = {}
    for protocol, measured in result["protocols"].items():
        if what in measured:
            values = scaled(np.array(measured[what], np.float64))
            of_task = mean_of_measured(values, axis=1)
            for group, tasks in result["groups"].items():
                rows = [place[t] for t in tasks]
                means[f"{protocol}/{group}"] = float(mean_of_measured(of_task[rows]))
    return {name: mean for name, mean in means.items() if not np.isnan(mean)}
