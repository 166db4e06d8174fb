"""Settings of a run."""

import math
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from ertrl.config import UNSAID, Count, CountOrZero, Seed, Share, check
from ertrl.data.sampler import SamplingConfig
from ertrl.errors import ConfigError
from ertrl.evaluation.trial import EvaluationConfig
from ertrl.learners import Learner
from ertrl.methods import Method

M = TypeVar("M", bound=Method)
L = TypeVar("L", bound=Learner)


@dataclass(frozen=True)
class Schedule:
    """When the encoder learns. A policy that learns on a z that moves learns on other tasks."""

    encoder_updates: Count = field(default=1, metadata=UNSAID)
    """Encoder updates in a turn, each on contexts of its own: N_k of arXiv 2405.12001."""
    policy_updates: Count = field(default=1, metadata=UNSAID)
    """Policy updates from one turn of the encoder to the next: N_acc of arXiv 2405.12001."""
    stop: CountOrZero = field(default=0, metadata=UNSAID)
    """Updates after which the encoder stays as it is; 0: it never stops."""


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
    schedule: Schedule = field(default=Schedule(), metadata=UNSAID)
    """When the encoder learns."""
    standardise: bool = False
    """Show networks observations with mean 0 and deviation 1 over the training tasks, and rewards
    of deviation 1. The run keeps the statistics, and its agent takes and gives unscaled numbers."""
    seed: Seed = 0
    """All randomness of the run is addressed by this."""
    updates: Count = 100_000
    """Meta-training steps, a multiple of updates_per_call."""
    decay: Share = field(default=0.0, metadata=UNSAID)
    """Over this last share of the updates the learner's `learning_rate` falls linearly to zero."""
    updates_per_call: Count = 100
    """Steps per compiled call and per line of metrics.jsonl; the weights do not depend on it. It
    divides updates, evaluate_every and checkpoint_every."""
    evaluate_every: Count = 5_000
    """Updates between evaluations on all tasks; one more follows the last update."""
    checkpoint_every: Count = 1_000
    """Updates between checkpoints; a killed run loses at most this much."""

    @property
    def drawn(self) -> SamplingConfig:
        """Data of one step, with contexts of its own for each encoder update."""
        contexts = self.sampling.contexts_per_task * self.schedule.encoder_updates
        return replace(self.sampling, contexts_per_task=contexts)

    def validate(self) -> None:
        check(self)
        if self.method.hears_critic and self.schedule.encoder_updates > 1:
            raise ConfigError(
                f"{self.method.name} follows the critic's gradient, of which there is one in a "
                f"step: schedule.encoder_updates is {self.schedule.encoder_updates}, not 1"
            )
        if self.method.hears_critic and not self.learner.has_critic:
            raise ConfigError(
                f"{self.method.name} trains its encoder with the critic's gradient, but "
                f"{self.learner.name} has no critic; choose another learner (--use-learner)"
            )
        if self.decay and not hasattr(self.learner, "learning_rate"):
            raise ConfigError(
                f"decay is {self.decay}, but {self.learner.name} has no setting learning_rate "
                "that could fall: give --decay 0"
            )
        call, multiples = self.updates_per_call, ("updates", "evaluate_every", "checkpoint_every")
        divisor = math.gcd(call, *(getattr(self, name) for name in multiples))
        for name in multiples:
            if (value := getattr(self, name)) % call:
                raise ConfigError(
                    f"{name} ({value}) must be a multiple of updates_per_call ({call}), so that "
                    f"one compiled program serves the whole run: give --{name.replace('_', '-')} "
                    f"{-(-value // call) * call}, or --updates-per-call {divisor}"
                )
        if self.evaluation.prior_episodes >= self.evaluation.episodes:
            raise ConfigError(
                "evaluation.prior_episodes must be smaller than evaluation.episodes, or no "
                f"episode would use an inferred z; got {self.evaluation}"
            )
