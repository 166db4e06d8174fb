"""Settings of a run."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ertrl.config import Count, Seed, check
from ertrl.data.sampler import SamplingConfig
from ertrl.errors import ConfigError
from ertrl.evaluation.protocols import EvaluationConfig
from ertrl.learners import Learner
from ertrl.methods import Method

M = TypeVar("M", bound=Method)
L = TypeVar("L", bound=Learner)


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
    standardise: bool = False
    """Show networks observations with mean 0 and deviation 1 over the training tasks, and rewards
    of deviation 1. The run keeps the statistics, and its agent takes and gives unscaled numbers."""
    seed: Seed = 0
    """All randomness of the run is addressed by this."""
    updates: Count = 100_000
    """Meta-training steps."""
    updates_per_call: Count = 100
    """Steps per compiled call and per line of metrics.jsonl; the weights do not depend on it."""
    evaluate_every: Count = 5_000
    """Updates between evaluations on all tasks; one more follows the last update."""
    checkpoint_every: Count = 1_000
    """Updates between checkpoints; a killed run loses at most this much."""

    def validate(self) -> None:
        check(self)
        if self.method.hears_critic and not self.learner.has_critic:
            raise ConfigError(
                f"{self.method.name} trains its encoder with the critic's gradient, but "
                f"{self.learner.name} has no critic; choose another learner (--use-learner)"
            )
        for name in ("updates", "evaluate_every", "checkpoint_every"):
            if getattr(self, name) % self.updates_per_call:
                raise ConfigError(
                    f"{name} ({getattr(self, name)}) must be a multiple of updates_per_call "
                    f"({self.updates_per_call}), so that one compiled program serves the whole run"
                )
        if self.evaluation.prior_episodes >= self.evaluation.episodes:
            raise ConfigError(
                "evaluation.prior_episodes must be smaller than evaluation.episodes, or no "
                f"episode would use an inferred z; got {self.evaluation}"
            )
