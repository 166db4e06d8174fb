"""Declared shapes of the files of a run; evaluations and probes have theirs in `evaluation`."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from ertrl.data.layout import check_range
from ertrl.evaluation.shapes import RECORDS as MEASURED
from ertrl.evaluation.shapes import Numbered
from ertrl.shape import (
    Digest,
    Name,
    Open,
    Provenance,
    Real,
    Shape,
    Size,
    Steps,
    Text,
    Whole,
    rectangle,
)

Positive = Annotated[float, Meta(gt=0, le=10**15)]
Folder = Literal["checkpoints", "evaluations", "probes", "divergences"]


class DimsShape(Shape):
    """Sizes of the data."""

    observation: Size
    action: Size
    training_tasks: Annotated[int, Meta(ge=0, le=100_000)] = 0


class ScalingShape(Shape):
    """What observations and rewards are standardised with."""

    observation_mean: list[Real]
    observation_deviation: list[Positive]
    reward_mean: Real
    reward_deviation: Positive


class RunSpec(Shape, kw_only=True):
    """config.json. Format 1 has no contents.json."""

    kind: Literal["ertrl-run"]
    format: Literal[1, 2] = 1
    name: Annotated[str, Meta(pattern=r"^[^/\\\x00-\x1f]{1,200}$")]
    family: Name
    dims: DimsShape
    dataset: Text
    method: Name
    learner: Name
    config: dict[str, Any]
    threads: Annotated[int, Meta(ge=1, le=4096)] = 1
    code: dict[Literal["method", "learner"], Digest] | UnsetType = UNSET
    dataset_path: Annotated[str, Meta(pattern=r"^[^\x00]{1,4096}$")]
    profile: Text
    variant: Text
    provenance: Provenance
    scaling: ScalingShape | UnsetType = UNSET
    action_low: list[Real] | UnsetType = UNSET
    action_high: list[Real] | UnsetType = UNSET

    def __post_init__(self):
        check_range(self.action_low, self.action_high, self.dims.action)
        if self.scaling:
            rectangle("observation_mean", self.scaling.observation_mean, self.dims.observation)
            rectangle(
                "observation_deviation", self.scaling.observation_deviation, self.dims.observation
            )


class Contents(Shape, kw_only=True):
    """contents.json: what the run holds, by number of updates."""

    kind: Literal["ertrl-contents"]
    format: Literal[1] = 1
    run: Name
    checkpoints: list[Steps]
    evaluations: list[Steps]
    probes: list[Steps]
    divergences: list[Steps]
    changing: dict[Folder, list[Steps]] | UnsetType = UNSET


class Checkpoint(Numbered, kw_only=True):
    """checkpoints/NNNNNNNN.json, beside the weights."""

    kind: Literal["ertrl-checkpoint"]
    weights_sha256: Digest
    metrics_bytes: Whole
    metrics_sha256: Digest
    runs_in_program: Annotated[int, Meta(ge=1, le=100_000)] | UnsetType = UNSET


class Divergence(Numbered, kw_only=True):
    """divergences/NNNNNNNN.json, beside the state, batch and key of the update that failed."""

    kind: Literal["ertrl-divergence"]
    what: Text
    arrays_sha256: Digest
    provenance: Provenance


class MetricsLine(Open):
    """A line of metrics.jsonl: numbers by name, next to these."""

    kind: Literal["train", "evaluation"]
    step: Steps


RECORDS: dict[str, Any] = {**MEASURED, "checkpoints": Checkpoint, "divergences": Divergence}
"""Folder -> shape of its descriptions."""
