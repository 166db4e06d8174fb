"""What z knows: of the task, which it should, and of the policy that logged the data, which not.

- Regression: from z to the task's true parameters, by linear regression and by support vector
  regression, in tasks that the agent was not trained on; beside it, predicting the same mean for
  all. Models learn and are tested on samples of the same tasks, but of different episodes.
- Leak: from z to the checkpoint of the behaviour policy that collected the context, within a task.
- Swap: whether z follows the task or the behaviour, where an agent acts another task (swap.py).
- Projection: z of single transitions of a few tasks in the plane, by PCA and by t-SNE.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

import numpy as np
from annotated_types import Interval
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.manifold import TSNE
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from threadpoolctl import threadpool_limits

from ertrl import rng
from ertrl.config import check, to_json
from ertrl.data import Dataset
from ertrl.evaluation.agent import Agent
from ertrl.evaluation.context import EVALUATION_SEED, codes_of, held_back, random_codes
from ertrl.evaluation.protocols import steps_of_checkpoint
from ertrl.evaluation.swap import swap
from ertrl.text import Described

POOL = ("test-id", "test-ood")
"""Groups whose tasks are regressed."""
PROJECTED = {"train": (0, 4, 9, 15, 18), "test-ood": (0, 5, 9)}
"""The paper's selection of tasks to look at: places within a group."""
ANGLES = frozenset({"direction"})
"""Parameters whose two ends are neighbours."""
TEST_SHARE = 0.2
"""Of the samples of the regression."""


@dataclass(frozen=True)
class ProbeSettings:
    """How much data the probes take."""

    transitions: Annotated[int, Interval(ge=5, le=1_000_000)] = 1000
    """Single transitions per task for the regression, as in the paper; a fifth of them, of episodes
    of their own, tests."""
    contexts: Annotated[int, Interval(ge=5, le=1_000_000)] = 100
    """Contexts per task for the regression on whole contexts, of the size used in training."""
    leak_contexts: Annotated[int, Interval(ge=2, le=1_000_000)] = 10
    """Contexts per task, checkpoint and half of its episodes for the leak."""
    leak_checkpoints: Annotated[int, Interval(ge=2, le=1_000_000)] = 10
    """Behaviour policies to tell apart, evenly from first to last; neighbours hardly differ."""
    swap_partners: Annotated[int, Interval(ge=1, le=1_000_000)] = 4
    """Training tasks that an agent acts in every task, an episode each."""
    projected: Annotated[int, Interval(ge=8, le=1_000_000)] = 128
    """Single transitions per task in the projection (the paper: 256; t-SNE takes its time)."""


class Probes(Described, dict):
    """What z was found to know: plain JSON."""

    def _facts(self) -> dict[str, Any]:
        errors = {
            f"{e['target']} from one {e['context']}, {e['model']}": f"{e['test_rmse']:.3f}"
            for e in self["regression"]
        }
        return {"run": self["run"], "step": self["step"], **errors}


def probe_agent(
    agent: Agent, dataset: Dataset, *, step: int, run: str, settings: ProbeSettings | None = None
) -> dict[str, Any]:
    """Run all probes; the result is plain JSON."""
    settings = settings or ProbeSettings()
    check(settings)
    # Several threads make sums in another order, and small problems slower.
    with threadpool_limits(1):
        return {
            "kind": "ertrl-probes",
            "run": run,
            "step": step,
            "family": dataset.family,
            "dataset": dataset.fingerprint,
            "settings": to_json(settings),
            "regression": regression(agent, dataset, settings),
            "leak": leak(agent, dataset, settings),
            "swap": swap(agent, dataset, settings.swap_partners),
            "projection": projection(agent, dataset, settings),
        }


# --- regression ---


def regression(agent: Agent, dataset: Dataset, settings: ProbeSettings) -> list[dict[str, Any]]:
    """Errors of every model, for z of single transitions and of whole contexts.

    None where there is nothing to ask: logs without held-out tasks, or of tasks that nobody could
    put into numbers.
    """
    tasks = [task for group in POOL for task in dataset.group(group)]
    names = tuple(dataset.manifest["parameter_names"])
    if not tasks or not names:
        return []
    parameters = np.stack([dataset.task(task).parameters for task in tasks]).astype(np.float64)
    sizes = {
        "transition": (settings.transitions, 1),
        "context": (settings.contexts, agent.config.sampling.context_size),
    }
    targets = {"parameters": False} | ({"angle": True} if set(names) <= ANGLES else {})
    found = []
    for context, shape in sizes.items():
        codes = np.stack([_samples(agent, dataset, t, shape, f"probe-{context}") for t in tasks])
        for target, model in product(targets, MODELS):
            train, test = regress(codes, parameters, model, angular=targets[target])
            errors = {"train_rmse": train, "test_rmse": test}
            found.append({"context": context, "target": target, "model": model, **errors})
    return found


def _samples(
    agent: Agent, dataset: Dataset, task: int, shape: tuple[int, int], stream: str
) -> np.ndarray:
    """Codes [contexts, Z] as `regress` takes them: the first ones are of other episodes."""
    data, (count, size) = dataset.task(task), shape
    odd = held_back(data.steps // dataset.horizon)
    learned, tested = np.flatnonzero(~odd), np.flatnonzero(odd)
    draw, tests = rng.generator(EVALUATION_SEED, stream, task), _tests(count)
    which = [
        draw.choice(tested if tested.size else learned, (tests, size)),
        draw.choice(learned, (count - tests, size)),
    ]
    return codes_of(agent, dataset, task, np.concatenate(which))


def _tests(samples: int) -> int:
    return max(1, round(TEST_SHARE * samples))


def regress(
    codes: np.ndarray, parameters: np.ndarray, model: str, *, angular: bool = False
) -> tuple[float, float]:
    """Root mean square error on training and on test samples.

    `codes` is [tasks, samples, Z], `parameters` [tasks, P]. The first fifth of each task's samples
    tests. `angular` regresses cosine and sine of an angle and measures the error along the circle.
    """
    tests = _tests(codes.shape[1])
    goals = np.concatenate([np.cos(parameters), np.sin(parameters)], 1) if angular else parameters
    parts = [codes[:, tests:], codes[:, :tests]]
    learned = parts[0].reshape(-1, codes.shape[-1])
    fitted = MODELS[model]().fit(learned, np.repeat(goals, parts[0].shape[1], axis=0))
    errors = []
    for part in parts:
        guess = fitted.predict(part.reshape(-1, codes.shape[-1])).reshape(-1, goals.shape[1])
        truth = np.repeat(parameters, part.shape[1], axis=0)
        if angular:
            guess = np.arctan2(guess[:, 1:], guess[:, :1])
        off = np.angle(np.exp(1j * (guess - truth))) if angular else guess - truth
        errors.append(float(np.sqrt(np.square(off).mean())))
    return errors[0], errors[1]


def _support_vectors() -> Any:
    # On the targets' own scale: the tube of width 0.1 would swallow families whose parameters
    # differ by less.
    machines = MultiOutputRegressor(SVR(cache_size=500))
    return TransformedTargetRegressor(machines, transformer=StandardScaler())


MODELS: dict[str, Callable[[], Any]] = {
    "constant": DummyRegressor,
    "linear": LinearRegression,
    "svr": _support_vectors,
}
"""From z to parameters; the first says the same of all."""


# --- leak ---


def leak(agent: Agent, dataset: Dataset, settings: ProbeSettings) -> dict[str, Any]:
    """How well z tells, within a task, which checkpoint collected the context.

    Contexts to learn from and contexts to test on come from different episodes. `raw` is the same
    question to the mean transition of the context, that is to what the encoder was shown.
    """
    size = agent.config.sampling.context_size
    scores: dict[int, tuple[float, float]] = {}
    every = []
    checkpoints = {task: np.unique(dataset.task(task).checkpoints) for task in dataset.tasks}
    count = min(settings.leak_checkpoints, *map(len, checkpoints.values()))
    for task, known in checkpoints.items():
        chosen = known[np.linspace(0, len(known) - 1, count).round().astype(int)]
        episodes = [(dataset.task(task).checkpoints == checkpoint).sum() for checkpoint in chosen]
        if len(chosen) < 2 or min(episodes) < 2:
            return {
                "missing": f"task {task} has fewer than two checkpoints, or a checkpoint with "
                "fewer than two episodes: there is nothing to tell apart, or nothing to test on"
            }
        halves = [_halves(dataset, task, checkpoint) for checkpoint in chosen]
        draw = rng.generator(EVALUATION_SEED, "probe-leak", task)
        which = np.stack(
            [[draw.choice(half, (settings.leak_contexts, size)) for half in p] for p in halves]
        )
        flat = which.reshape(-1, size)
        codes = codes_of(agent, dataset, task, flat).reshape(*which.shape[:3], -1)
        s, a, r, _, _ = dataset.task(task).transitions(flat)
        raw = np.concatenate([s.mean(1), a.mean(1), r.mean(1)[:, None]], axis=1)
        scores[task] = tell_apart(codes), tell_apart(raw.reshape(*which.shape[:3], -1))
        every.append(codes)

    def mean(group: str, which: int) -> float:
        return float(np.mean([scores[task][which] for task in dataset.group(group)]))

    return {
        "checkpoints": len(every[0]),
        "context_size": size,
        "chance": 1 / len(every[0]),
        "accuracy": {group: mean(group, 0) for group in dataset.groups},
        "raw_accuracy": {group: mean(group, 1) for group in dataset.groups},
        "variance": variance_shares(np.stack(every)),
    }


def _halves(dataset: Dataset, task: int, checkpoint: int) -> tuple[np.ndarray, np.ndarray]:
    """The transitions of a checkpoint's even and of its odd episodes."""
    data = dataset.task(task)
    steps = steps_of_checkpoint(data, dataset.horizon, checkpoint)
    odd = held_back(data.steps[steps] // dataset.horizon)
    return steps[~odd], steps[odd]


def tell_apart(features: np.ndarray) -> float:
    """Accuracy of logistic regression over features [classes, 2 halves, samples, F].

    Each half is predicted by a model of the other one.
    """
    classes, _, samples, width = features.shape
    label = np.repeat(np.arange(classes), samples)
    halves = [features[:, i].reshape(-1, width).astype(np.float64) for i in (0, 1)]
    right = []
    for learned, tested in (halves, halves[::-1]):
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, tol=1e-3))
        right.append(model.fit(learned, label).score(tested, label))
    return float(np.mean(right))


def variance_shares(codes: np.ndarray) -> dict[str, float]:
    """Shares of z's variance due to task, to checkpoint within task, and to the drawn context.

    `codes` is as `variance_components` has it. An estimate below zero counts as zero.
    """
    parts = {name: max(part, 0.0) for name, part in variance_components(codes).items()}
    total = max(sum(parts.values()), 1e-12)
    return {name: part / total for name, part in parts.items()}


def variance_components(codes: np.ndarray) -> dict[str, float]:
    """Variance of z at each level of codes [tasks, checkpoints, 2 halves, contexts, Z].

    The halves are of different episodes, so what their means share is neither luck of the draw
    nor a mark of episodes: covariances of both are right in expectation. What a checkpoint does to
    z in all tasks alike does not make tasks differ; of what it does in one task alone, the mean
    over K checkpoints still varies, by 1/K. That is taken off.
    """
    first, second = codes.mean(axis=3)[:, :, 0], codes.mean(axis=3)[:, :, 1]
    tasks, checkpoints = first.shape[:2]
    checkpoint = _covariance(first, second, axis=1)
    task = 0.0
    if tasks > 1:
        own = _covariance(first - first.mean(axis=0), second - second.mean(axis=0), axis=1)
        alone = own * tasks / (tasks - 1) / checkpoints
        task = _covariance(first.mean(axis=1), second.mean(axis=1), axis=0) - alone
    drawn = codes.reshape(tasks, checkpoints, -1, codes.shape[-1])
    context = float(drawn.var(axis=2, ddof=1).sum(axis=-1).mean())
    return {"task": task, "checkpoint": checkpoint, "context": context}


def _covariance(one: np.ndarray, other: np.ndarray, axis: int) -> float:
    """Along an axis, summed over dimensions of z, mean over the rest."""
    apart = [x - x.mean(axis=axis, keepdims=True) for x in (one, other)]
    products = (apart[0] * apart[1]).sum(axis=axis) / (one.shape[axis] - 1)
    return float(products.sum(axis=-1).mean())


# --- projection ---


def projection(agent: Agent, dataset: Dataset, settings: ProbeSettings) -> dict[str, Any]:
    """Single transitions of the paper's selection of tasks, in the plane."""
    tasks = [
        dataset.group(group)[place]
        for group, places in PROJECTED.items()
        for place in places
        if place < len(dataset.group(group))
    ] or list(dataset.tasks)[:8]
    codes = random_codes(agent, dataset, tasks, (settings.projected, 1), "probe-projection")
    points = codes.reshape(-1, codes.shape[-1])
    embedded = TSNE(
        init="pca", perplexity=min(30.0, len(points) / 4), random_state=EVALUATION_SEED
    ).fit_transform(points)
    centre, axes, share = principal_plane(points)

    def plain(plane: np.ndarray) -> list[Any]:
        return (np.round(plane.astype(np.float64), 4) + 0.0).reshape(len(tasks), -1, 2).tolist()

    return {
        "tasks": tasks,
        "tsne": plain(embedded),
        "pca": plain((points - centre) @ axes.T),
        "pca_share": share.tolist(),
    }


def principal_plane(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centre, two axes [2, Z] and the share of variance of each, from points [N, Z]."""
    with np.errstate(invalid="ignore"):  # points that are all the same have no variance to share
        plane = PCA(2, svd_solver="full").fit(codes)
    return plane.mean_, plane.components_, np.nan_to_num(plane.explained_variance_ratio_)
