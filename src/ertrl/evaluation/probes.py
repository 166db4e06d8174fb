"""What z knows: of the task, which it should, and of the policy that logged the data, which not.

- Regression: from z to the task's true parameters, by linear regression and by support vector
  regression, on held-out tasks; beside it, predicting the same mean for all.
- Leak: from z to the checkpoint of the behaviour policy that collected the context, within a task.
- Projection: z of single transitions of a few tasks in the plane, by PCA and by t-SNE.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ertrl import rng
from ertrl.config import to_json
from ertrl.data import Dataset
from ertrl.errors import ConfigError
from ertrl.evaluation.agent import Agent
from ertrl.evaluation.evaluate import EVALUATION_SEED
from ertrl.evaluation.protocols import steps_of_checkpoint
from ertrl.types import Context

POOL = ("test-id", "test-ood")
"""Groups whose tasks are regressed."""
PROJECTED = {"train": (0, 4, 9, 15, 18), "test-ood": (0, 5, 9)}
"""The paper's selection of tasks to look at: places within a group."""
ANGLES = frozenset({"direction"})
"""Parameters whose two ends are neighbours."""
TEST_SHARE = 0.2
ENCODED_AT_ONCE = 64_000
"""Transitions per call of the encoder, for the sake of memory."""


@dataclass(frozen=True)
class ProbeSettings:
    """How much data the probes take."""

    transitions: int = 1000
    """Single transitions per task for the regression, as in the paper; a fifth of them tests."""
    contexts: int = 100
    """Contexts per task for the regression on whole contexts, of the size used in training."""
    leak_contexts: int = 10
    """Contexts per task, checkpoint and half of its episodes for the leak."""
    leak_checkpoints: int = 10
    """Behaviour policies to tell apart, evenly from first to last; neighbours hardly differ."""
    projected: int = 128
    """Single transitions per task in the projection (the paper: 256; t-SNE takes its time)."""

    def validate(self) -> None:
        """Too few would leave nothing to test on."""
        least = {"transitions": 5, "contexts": 5, "projected": 8}
        least |= {"leak_contexts": 2, "leak_checkpoints": 2}
        for name, number in least.items():
            if getattr(self, name) < number:
                raise ConfigError(
                    f"{name} must be at least {number}, got {getattr(self, name)}: probes need "
                    "something to learn from and something to be tested on"
                )


def probe_agent(
    agent: Agent, dataset: Dataset, *, step: int, run: str, settings: ProbeSettings | None = None
) -> dict[str, Any]:
    """Run all probes; the result is plain JSON."""
    from threadpoolctl import threadpool_limits

    settings = settings or ProbeSettings()
    settings.validate()
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
            "projection": projection(agent, dataset, settings),
        }


def codes_of(agent: Agent, dataset: Dataset, task: int, which: np.ndarray) -> np.ndarray:
    """Codes [contexts, Z] of contexts that consist of these transitions [contexts, size]."""
    found = []
    for part in np.array_split(which, -(-which.size // ENCODED_AT_ONCE)):
        found.append(agent.encode(Context.of(dataset.task(task).transitions(part))))
    return np.concatenate(found).astype(np.float64)


# --- regression ---


def regression(agent: Agent, dataset: Dataset, settings: ProbeSettings) -> list[dict[str, Any]]:
    """Errors of every model, for z of single transitions and of whole contexts."""
    tasks = [task for group in POOL for task in dataset.group(group)] or list(dataset.tasks)
    parameters = np.stack([dataset.task(task).parameters for task in tasks]).astype(np.float64)
    names = tuple(dataset.manifest["parameter_names"])
    if not names:
        return []  # logs of tasks that nobody could put into numbers
    sizes = {
        "transition": (settings.transitions, 1),
        "context": (settings.contexts, agent.config.sampling.context_size),
    }
    found = []
    for context, shape in sizes.items():
        codes = []
        for task in tasks:
            draw = rng.generator(EVALUATION_SEED, f"probe-{context}", task)
            which = draw.integers(len(dataset.task(task).steps), size=shape)
            codes.append(codes_of(agent, dataset, task, which))
        for angular in (False, True) if set(names) <= ANGLES else (False,):
            for model in ("constant", "linear", "svr"):
                train, test = regress(np.stack(codes), parameters, model, angular=angular)
                found.append(
                    {
                        "context": context,
                        "target": "angle" if angular else "parameters",
                        "model": model,
                        "train_rmse": train,
                        "test_rmse": test,
                    }
                )
    return found


def regress(
    codes: np.ndarray, parameters: np.ndarray, model: str, *, angular: bool = False
) -> tuple[float, float]:
    """Root mean square error on training and on test samples.

    `codes` is [tasks, samples, Z], `parameters` [tasks, P]. The first fifth of each task's samples
    tests. `angular` regresses cosine and sine of an angle and measures the error along the circle.
    """
    tests = max(1, round(TEST_SHARE * codes.shape[1]))
    goals = np.concatenate([np.cos(parameters), np.sin(parameters)], 1) if angular else parameters
    halves = []
    for part in (codes[:, tests:], codes[:, :tests]):
        repeated = (np.repeat(values, part.shape[1], axis=0) for values in (goals, parameters))
        halves.append((part.reshape(-1, codes.shape[-1]), *repeated))
    predict = _fitted(model, halves[0][0], halves[0][1])

    def error(x: np.ndarray, _, truth: np.ndarray) -> float:
        guess = predict(x)
        if angular:
            guess = np.arctan2(guess[:, 1:], guess[:, :1])
            off = np.angle(np.exp(1j * (guess - truth)))
        else:
            off = guess - truth
        return float(np.sqrt(np.square(off).mean()))

    return error(*halves[0]), error(*halves[1])


def _fitted(model: str, x: np.ndarray, y: np.ndarray):
    if model == "constant":
        mean = y.mean(axis=0)
        return lambda new: np.tile(mean, (len(new), 1))
    if model == "linear":
        from sklearn.linear_model import LinearRegression

        return LinearRegression().fit(x, y).predict
    from sklearn.svm import SVR

    # On the targets' own scale: the tube of width 0.1 would swallow families whose parameters
    # differ by less.
    middle, scale = y.mean(axis=0), np.maximum(y.std(axis=0), 1e-12)
    machines = [SVR(cache_size=500).fit(x, column) for column in ((y - middle) / scale).T]
    return lambda new: middle + scale * np.stack([m.predict(new) for m in machines], axis=1)


# --- leak ---


def leak(agent: Agent, dataset: Dataset, settings: ProbeSettings) -> dict[str, Any]:
    """How well z tells, within a task, which checkpoint collected the context.

    Contexts to learn from and contexts to test on come from different episodes. `raw` is the same
    question to the mean transition of the context, that is to what the encoder was shown.
    """
    size = agent.config.sampling.context_size
    scores: dict[int, tuple[float, float]] = {}
    every = []
    for task in dataset.tasks:
        known = np.unique(dataset.task(task).checkpoints)
        count = min(settings.leak_checkpoints, len(known))
        chosen = known[np.linspace(0, len(known) - 1, count).round().astype(int)]
        halves = [_halves(dataset, task, checkpoint) for checkpoint in chosen]
        if len(halves) < 2 or any(len(half) == 0 for pair in halves for half in pair):
            return {
                "missing": f"task {task} has fewer than two checkpoints, or a checkpoint with "
                "fewer than two episodes: there is nothing to tell apart, or nothing to test on"
            }
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
    return {
        "checkpoints": len(every[0]),
        "context_size": size,
        "chance": 1 / len(every[0]),
        "accuracy": {
            group: float(np.mean([scores[t][0] for t in tasks]))
            for group, tasks in dataset.groups.items()
        },
        "raw_accuracy": {
            group: float(np.mean([scores[t][1] for t in tasks]))
            for group, tasks in dataset.groups.items()
        },
        "variance": variance_shares(np.stack([c.reshape(len(c), -1, c.shape[-1]) for c in every])),
    }


def _halves(dataset: Dataset, task: int, checkpoint: int) -> tuple[np.ndarray, np.ndarray]:
    """The transitions of a checkpoint's even and of its odd episodes."""
    data = dataset.task(task)
    steps = steps_of_checkpoint(data, dataset.horizon, checkpoint)
    _, place = np.unique(data.steps[steps] // dataset.horizon, return_inverse=True)
    return steps[place % 2 == 0], steps[place % 2 == 1]


def tell_apart(features: np.ndarray) -> float:
    """Accuracy of logistic regression over features [classes, 2 halves, samples, F].

    Each half is predicted by a model of the other one.
    """
    from sklearn.linear_model import LogisticRegression

    classes, _, samples, width = features.shape
    label = np.repeat(np.arange(classes), samples)
    halves = [features[:, i].reshape(-1, width).astype(np.float64) for i in (0, 1)]
    right = []
    for learned, tested in (halves, halves[::-1]):
        middle, scale = learned.mean(axis=0), learned.std(axis=0)
        scale = np.where(scale > 1e-9, scale, 1.0)
        model = LogisticRegression(max_iter=2000, tol=1e-3).fit((learned - middle) / scale, label)
        right.append((model.predict((tested - middle) / scale) == label).mean())
    return float(np.mean(right))


def variance_shares(codes: np.ndarray) -> dict[str, float]:
    """Shares of z's variance due to task, to checkpoint within task, and to the drawn context.

    `codes` is [tasks, checkpoints, contexts, Z]. Means of few contexts vary by themselves; what
    they vary by is taken off.
    """
    contexts = codes.shape[2]
    by_checkpoint = codes.mean(axis=2)
    by_task = by_checkpoint.mean(axis=1)

    def squares(differences: np.ndarray) -> float:
        return float(np.square(differences).sum(axis=-1).mean())

    rest = squares(codes - by_checkpoint[:, :, None]) * contexts / (contexts - 1)
    checkpoint = max(squares(by_checkpoint - by_task[:, None]) - rest / contexts, 0.0)
    task = squares(by_task - by_task.mean(axis=0))
    total = max(task + checkpoint + rest, 1e-12)
    return {"task": task / total, "checkpoint": checkpoint / total, "context": rest / total}


# --- projection ---


def projection(agent: Agent, dataset: Dataset, settings: ProbeSettings) -> dict[str, Any]:
    """Single transitions of the paper's selection of tasks, in the plane."""
    from sklearn.manifold import TSNE

    tasks = [
        dataset.group(group)[place]
        for group, places in PROJECTED.items()
        for place in places
        if place < len(dataset.group(group))
    ] or list(dataset.tasks)[:8]
    codes = []
    for task in tasks:
        draw = rng.generator(EVALUATION_SEED, "probe-projection", task)
        which = draw.integers(len(dataset.task(task).steps), size=(settings.projected, 1))
        codes.append(codes_of(agent, dataset, task, which))
    points = np.concatenate(codes)
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
    centre = codes.mean(axis=0)
    _, singular, axes = np.linalg.svd(codes - centre, full_matrices=False)
    axes = axes[:2]
    # A singular vector's sign is arbitrary; fix it, so that equal data give equal pictures.
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    axes = axes * np.where(largest < 0, -1.0, 1.0)
    total = max(float((singular**2).sum()), 1e-12)
    return centre, axes, singular[:2] ** 2 / total
