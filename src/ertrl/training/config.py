"""Settings of a run."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ertrl.config import check_numbers
from ertrl.data.sampler import SamplingConfig
from ertrl.errors import ConfigError
from ertrl.evaluation.protocols import EvaluationConfig

M = TypeVar("M")
L = TypeVar("L")


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
