"""Strict configuration: frozen dataclasses that round-trip through JSON.

An unknown key, a missing file or a value of the wrong type is an error that names the nearest valid
key; nothing is ignored. Every field has a docstring, which is also its text in `--help`.
"""

import dataclasses
import hashlib
import json
import math
import types
import typing
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Generic, Literal, TypeVar

from ertrl.errors import ConfigError, unknown

M = TypeVar("M")
L = TypeVar("L")
C = TypeVar("C")


@dataclass(frozen=True)
class EncoderConfig:
    """The context encoder e_theta: an MLP per transition, tanh, mean over the context."""

    latent_dim: int = 20
    """Size of the task representation z."""
    hidden: tuple[int, ...] = (200, 200, 200)
    """Widths of the hidden layers."""
    next_observation: bool = False
    """Show the encoder (s, a, r, s') instead of (s, a, r). Needed where the dynamics differ."""
    learning_rate: float = 3e-4
    """Adam step size of the encoder."""


@dataclass(frozen=True)
class DmlConfig:
    """The distance-metric loss shared by FOCAL, ER-TRL and others."""

    positive_epsilon: float = 1e-3
    """Inside the square root of a positive pair's distance; keeps its gradient finite at 0."""
    negative_epsilon: float = 0.1
    """epsilon_0: added to a negative pair's squared distance before it is inverted."""
    beta: float = 1.0
    """Weight of negative pairs against positive ones."""


@dataclass(frozen=True)
class SamplingConfig:
    """What one meta-training step sees."""

    meta_batch: int = 16
    """Training tasks per step, drawn without replacement."""
    batch_size: int = 256
    """Transitions per task for actor, critic and GAN."""
    context_size: int = 256
    """Transitions per context, drawn i.i.d. with replacement."""
    contexts_per_task: int = 2
    """Independent contexts per task; two give DML real positive pairs (the released code has 1)."""
    timeouts_terminate: bool = False
    """Treat the time limit as a terminal state, as the released code does; wrong, but published."""


@dataclass(frozen=True)
class EvaluationConfig:
    """The adaptation protocols, in units of full-length episodes, so that they fit any horizon."""

    episodes: int = 3
    """Evaluation lasts this many horizons; the return of its last episode is reported."""
    prior_episodes: int = 2
    """Online and non-prior protocols infer z for the first time after this many horizons."""
    repeats: int = 2
    """Independent repeats per task."""
    prior: Literal["zero", "mean"] = "zero"
    """z0 before anything is known: the zero vector or the mean z of the training tasks."""


@dataclass(frozen=True)
class TrainConfig(Generic[M, L]):
    """Everything that determines a run, next to its dataset."""

    method: M
    """How z is learned."""
    learner: L
    """How actor and critic are learned, given z."""
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    """Data of one step."""
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    """Adaptation protocols."""
    seed: int = 0
    """All randomness of the run is addressed by this."""
    updates: int = 100_000
    """Meta-training steps."""
    updates_per_call: int = 100
    """Steps per compiled call and per line of metrics.jsonl; the weights do not depend on it."""
    evaluate_every: int = 5_000
    """Updates between evaluations on all tasks; one more follows the last update."""
    checkpoint_every: int = 1_000
    """Updates between checkpoints; a killed run loses at most this much."""

    def validate(self) -> None:
        """Reject what cannot be run."""
        check_numbers(self)
        if self.sampling.meta_batch < 2:
            raise ConfigError(
                "sampling.meta_batch must be at least 2: one task has no other to "
                "be told apart from"
            )
        if self.sampling.batch_size < 2:
            raise ConfigError("sampling.batch_size must be at least 2: one row has no covariance")
        for name in ("updates", "evaluate_every", "checkpoint_every"):
            if getattr(self, name) % self.updates_per_call:
                raise ConfigError(
                    f"{name} ({getattr(self, name)}) must be a multiple of updates_per_call "
                    f"({self.updates_per_call}), so that one compiled program serves the whole run"
                )
        if not 0 <= self.evaluation.prior_episodes < self.evaluation.episodes:
            raise ConfigError(
                "evaluation.prior_episodes must be smaller than evaluation.episodes, or no "
                f"episode would use an inferred z; got {self.evaluation}"
            )


@dataclass(frozen=True)
class CollectConfig:
    """Behaviour data: how SAC is trained and what is recorded of it."""

    policy: Literal["conditioned", "independent"] = "conditioned"
    """One network for all tasks with the task as input, or (as the paper) one network per task."""
    hidden: tuple[int, ...] = (256, 256)
    """Widths of actor and critics."""
    layer_norm: bool = True
    """Layer normalisation in actor and critics: stable at several updates per step."""
    learning_rate: float = 1e-3
    """Adam step size of actor, critics and temperature."""
    warmup: float = 0.0
    """Share of training over which that step size rises from 0; gives poor policies more room."""
    decay: float = 0.0
    """Share of training, at its end, over which that step size falls to 0; steadies the expert."""
    batch_size: int = 512
    """Transitions per update (per task, if policies are independent)."""
    discount: float = 0.99
    """gamma."""
    n_step: int = 1
    """Rewards summed before the critic takes over: more learn faster, from somewhat wrong targets
    (actions in between are the behaviour's, their entropy does not count). Transitions that another
    task rewards look one step ahead."""
    tau: float = 0.005
    """Step of the target critics towards the critics."""
    initial_temperature: float = 0.1
    """SAC's alpha at the start; learned from there."""
    relabel_fraction: float = 0.5
    """Share of a batch that other tasks reward (conditioned policy, reward families only)."""
    style: float = 0.0
    """K: a bonus of K (u . a) / sqrt(action size) per step to the collector, u a random direction
    of its task. Makes behaviour differ beyond what tasks demand; recorded rewards are the true
    ones. 0: off."""
    tasks_at_once: int = 1
    """Independent policies that one product updates. 1 is fastest on a CPU; more need memory."""
    simulations_per_task: int = 2
    """Parallel simulations of each task."""
    random_steps: int = 20
    """Control steps per simulation with uniformly random actions before learning starts."""
    steps: int = 600
    """Control steps per simulation while learning."""
    steps_per_block: int = 20
    """Control steps between two calls of the update program."""
    updates_per_step: int = 2
    """Gradient updates per control step of the whole batch of simulations."""
    checkpoints: int = 18
    """Behaviour-policy checkpoints that episodes are recorded from, evenly spaced."""
    first_checkpoint: int = 0
    """Control step, random ones included, of the first of them; 0: after the first updates."""
    last_checkpoint: int = 0
    """Control step, random ones included, of the last of them; 0: at the end."""
    episodes_per_checkpoint: int = 50
    """Stochastic episodes per task and checkpoint."""
    reference_episodes: int = 20
    """Episodes per task behind each reference return (expert, random, zero action)."""
    seed: int = 0
    """All randomness of the collection is addressed by this."""

    def validate(self) -> None:
        """Reject what cannot be run."""
        check_numbers(self)
        if self.steps % self.steps_per_block or self.random_steps % self.steps_per_block:
            raise ConfigError(
                f"steps ({self.steps}) and random_steps ({self.random_steps}) must be multiples of "
                f"steps_per_block ({self.steps_per_block})"
            )
        if self.initial_temperature == 0:
            raise ConfigError("initial_temperature must be above 0: its logarithm is learned")
        first, last = self._recording_range()
        if not 1 <= first <= last <= self.steps // self.steps_per_block:
            raise ConfigError(
                f"first_checkpoint ({self.first_checkpoint}) and last_checkpoint "
                f"({self.last_checkpoint}) must be control steps in this order, behind the first "
                f"block of updates ({self.random_steps + self.steps_per_block}) and not behind "
                f"the end ({self.random_steps + self.steps}); 0 stands for these two"
            )
        if not 1 <= self.checkpoints <= last - first + 1:
            raise ConfigError(
                f"checkpoints must lie between 1 and the number of blocks they are spread over "
                f"({last - first + 1}), got {self.checkpoints}"
            )

    def _recording_range(self) -> tuple[int, int]:
        """First and last block of updates behind which episodes are recorded."""
        first, last = (
            (step - self.random_steps) // self.steps_per_block
            for step in (self.first_checkpoint, self.last_checkpoint)
        )
        end = self.steps // self.steps_per_block
        return first if self.first_checkpoint else 1, last if self.last_checkpoint else end

    def recorded_blocks(self) -> list[int]:
        """Numbers (from 1) of the blocks of updates behind which episodes are recorded."""
        first, last = self._recording_range()
        step = (last - first) / max(self.checkpoints - 1, 1)
        return [round(first + i * step) for i in range(self.checkpoints)]


MAY_BE_ZERO = {
    "seed",
    "prior_episodes",
    "random_steps",
    "warm_start",
    "first_checkpoint",
    "last_checkpoint",
}

AT_MOST_ONE = {"discount", "tau", "warmup", "decay", "relabel_fraction"}


def check_numbers(config: Any, where: str = "") -> None:
    """Sizes and counts are at least 1, rates and weights at least 0, all the way down."""
    for f in fields(config):
        value, path = getattr(config, f.name), f"{where}{f.name}"
        least = 0 if f.name in MAY_BE_ZERO or isinstance(value, float) else 1
        if is_dataclass(value):
            check_numbers(value, f"{path}.")
        elif isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{path} must be a finite number, got {value}")
        elif f.name == "seed" and not 0 <= value < 2**63:
            raise ConfigError(f"{path} must lie between 0 and 2^63 - 1, got {value}")
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and value < least:
            raise ConfigError(f"{path} must be at least {least}, got {value}")
        elif f.name in AT_MOST_ONE and value > 1:
            raise ConfigError(f"{path} must be at most 1, got {value}")
        elif f.name.endswith("_range") and value[0] >= value[1]:
            raise ConfigError(f"{path} must rise, got {list(value)}")
        elif isinstance(value, tuple) and any(isinstance(v, int) and v < 1 for v in value):
            raise ConfigError(f"{path} must hold numbers of at least 1, got {list(value)}")


# --- JSON ---


def to_json(config: Any) -> Any:
    """Turn a tree of dataclasses into plain JSON values."""
    if is_dataclass(config):
        return {f.name: to_json(getattr(config, f.name)) for f in fields(config)}
    return list(config) if isinstance(config, tuple) else config


def replace_from_json(config: C, values: Any, where: str = "") -> C:
    """Overwrite some fields, deeply, with strict keys and types."""
    if not isinstance(values, dict):
        raise ConfigError(f"{where or 'configuration'} must be an object, got {values!r}")
    known = {f.name: f for f in fields(config)}  # ty: ignore[invalid-argument-type]
    changes = {}
    for name, value in values.items():
        path = f"{where}.{name}" if where else name
        if name not in known:
            raise ConfigError(unknown(f"setting '{where}.'" if where else "setting", name, known))
        current = getattr(config, name)
        if is_dataclass(current):
            changes[name] = replace_from_json(current, value, path)
        else:
            annotation = typing.get_type_hints(type(config))[name]
            changes[name] = _checked(value, annotation, path)
    return dataclasses.replace(config, **changes)  # ty: ignore[invalid-argument-type]


def _checked(value: Any, annotation: Any, path: str) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        if value not in arguments:
            raise ConfigError(f"{path} must be one of {', '.join(arguments)}; got {value!r}")
        return value
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise ConfigError(f"{path} must be a list, got {value!r}")
        if arguments[-1] is not ... and len(value) != len(arguments):
            raise ConfigError(f"{path} must be a list of {len(arguments)}, got {value!r}")
        return tuple(_checked(v, arguments[0], f"{path}[{i}]") for i, v in enumerate(value))
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _checked(value, next(a for a in arguments if a is not type(None)), path)
    if annotation is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise ConfigError(f"{path} must be a finite number, got {value!r}")
        return float(value)
    if not isinstance(value, annotation) or (isinstance(value, bool) and annotation is not bool):
        raise ConfigError(f"{path} must be of type {annotation.__name__}, got {value!r}")
    return value


def fingerprint(content: Any) -> str:
    """Ten hex digits that name this content."""
    canonical = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:10]
