"""Declared shapes of evaluations and probes."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from ertrl.shape import Measured, Name, Real, Shape, Steps, Text, Whole, distinct, rectangle

SMALLEST_RANGE = 1e-6
"""From random to expert; returns are divided by it."""

Tasks = Annotated[list[Whole], Meta(min_length=1, max_length=100_000)]
Plane = list[list[Measured]]
Solid = list[list[list[Measured]]]
Few = Annotated[int, Meta(ge=1, le=1_000_000)]


class Numbered(Shape, kw_only=True):
    """A file of a run that is named by its number of updates."""

    format: Literal[1] = 1
    run: Name
    step: Steps


class EvaluationSettings(Shape):
    """How it was measured."""

    episodes: Few
    prior_episodes: Annotated[int, Meta(ge=0, le=1_000_000)]
    repeats: Few


class References(Shape):
    """The ends of the scale, per task; without a simulator there are none."""

    expert: list[Real] | UnsetType = UNSET
    random: list[Real] | UnsetType = UNSET
    zero: list[Real] | UnsetType = UNSET
    success: list[Real] | UnsetType = UNSET
    """Not an end of the scale: how often the expert fulfils the task."""


class ProtocolNumbers(Shape):
    """What a protocol measured; axes [task, repeat, ...]."""

    returns: Plane
    success: Plane | UnsetType = UNSET
    interaction_steps: list[list[Whole]] | UnsetType = UNSET
    curve_returns: Solid | UnsetType = UNSET
    curve_context: Solid | UnsetType = UNSET
    z: Solid | UnsetType = UNSET
    step_context: list[Whole] | UnsetType = UNSET
    step_returns: Solid | UnsetType = UNSET


class FromLogs(Shape):
    """What logs alone can tell, where there is no simulator."""

    discount: Annotated[float, Meta(ge=0, le=1)]
    prediction: dict[Name, dict[Name, Annotated[list[Real], Meta(min_length=2, max_length=2)]]]
    value: dict[Name, list[Measured]]


class Oracle(Shape):
    """Returns with the best logged context."""

    returns: Plane


class Evaluation(Numbered, kw_only=True):
    """evaluations/NNNNNNNN.json of a run."""

    kind: Literal["ertrl-evaluation"]
    family: Name
    dataset: Text
    evaluation: EvaluationSettings
    tasks: Tasks
    groups: Annotated[dict[Name, Tasks], Meta(min_length=1)]
    references: References
    protocols: Annotated[dict[Name, ProtocolNumbers], Meta(max_length=100)]
    oracle: Oracle | UnsetType = UNSET
    logs: FromLogs | UnsetType = UNSET

    def __post_init__(self):
        distinct("tasks", self.tasks)
        known = set(self.tasks)
        for name, group in self.groups.items():
            distinct(f"tasks of {name}", group)
            if not set(group) <= known:
                raise ValueError(f"Expected tasks of the list in group {name}, got {group}")
        count, repeats = len(self.tasks), self.evaluation.repeats
        if self.logs:
            for name, values in self.logs.value.items():
                rectangle(f"logs.value.{name}", values, count)
            if self.protocols:
                raise ValueError("Expected either protocols or logs, got both")
            return
        if not self.protocols:
            raise ValueError("Expected at least one protocol, or what logs alone can tell")
        for name in References.__struct_fields__:
            if name != "success" or self.references.success is not UNSET:
                rectangle(f"references.{name}", getattr(self.references, name) or [], count)
        measured = dict(self.protocols) | ({"oracle": self.oracle} if self.oracle else {})
        for protocol, numbers in measured.items():
            for name in numbers.__struct_fields__:
                if (values := getattr(numbers, name)) is not UNSET and name != "step_context":
                    plane = name in ("returns", "success", "interaction_steps")
                    axes = (count, repeats) if plane else (count, repeats, None)
                    rectangle(f"{protocol}.{name}", values, *axes)


class Regression(Shape):
    """Error of one model that predicts the task from z."""

    context: Name
    target: Name
    model: Name
    train_rmse: Real
    test_rmse: Real


class VarianceShares(Shape):
    """Of z: due to the task, to the checkpoint, to the drawn context."""

    task: Real
    checkpoint: Real
    context: Real


Shares = dict[Name, Annotated[float, Meta(ge=0, le=1)]]


class OrMissing(Shape):
    """All that was measured, or why that is missing."""

    missing: Text | UnsetType = UNSET

    def __post_init__(self):
        measured = [n for n in self.__struct_fields__[1:] if getattr(self, n) is not UNSET]
        if len(measured) != (len(self.__struct_fields__) - 1) * (self.missing is UNSET):
            raise ValueError(f"Expected all measurements, or what is missing; got {measured}")


class Leak(OrMissing):
    """How well z tells the behaviour policy."""

    checkpoints: Whole | UnsetType = UNSET
    context_size: Whole | UnsetType = UNSET
    chance: Real | UnsetType = UNSET
    accuracy: Shares | UnsetType = UNSET
    raw_accuracy: Shares | UnsetType = UNSET
    variance: VarianceShares | UnsetType = UNSET

    def __post_init__(self):
        super().__post_init__()
        both = self.accuracy, self.raw_accuracy
        if UNSET not in both and set(both[0]) != set(both[1]):  # ty: ignore
            raise ValueError("Expected the same groups in accuracy and raw_accuracy")


class Swap(OrMissing):
    """Whether z follows the task or the behaviour."""

    episodes: Whole | UnsetType = UNSET
    followed_task: Shares | UnsetType = UNSET
    way: dict[Name, Real] | UnsetType = UNSET
    control: Shares | UnsetType = UNSET


class Projection(Shape):
    """Single transitions in the plane [task, transition, 2]."""

    tasks: Tasks
    tsne: list[list[list[Real]]]
    pca: list[list[list[Real]]]
    pca_share: list[Real]

    def __post_init__(self):
        rectangle("tsne", self.tsne, len(self.tasks), None, 2)
        rectangle("pca", self.pca, len(self.tasks), None, 2)
        rectangle("pca_share", self.pca_share, 2)


class ProbeSizes(Shape):
    """How much was probed."""

    transitions: Few
    contexts: Few
    leak_contexts: Few | UnsetType = UNSET
    leak_checkpoints: Few | UnsetType = UNSET
    swap_partners: Few | UnsetType = UNSET
    projected: Few | UnsetType = UNSET


class Probes(Numbered, kw_only=True):
    """probes/NNNNNNNN.json of a run."""

    kind: Literal["ertrl-probes"]
    family: Name
    dataset: Text
    settings: ProbeSizes
    regression: list[Regression]
    leak: Leak
    swap: Swap | UnsetType = UNSET
    """Probes from before it was measured have none."""
    projection: Projection

    def __post_init__(self):
        said = [(entry.context, entry.target, entry.model) for entry in self.regression]
        distinct("models of regression", said)


KEPT_PROBES = ("settings", "regression", "leak", "swap")
"""What small files keep of probes: all but the projection."""
RECORDS: dict[str, Any] = {"evaluations": Evaluation, "probes": Probes}
