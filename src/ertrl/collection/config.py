"""Settings of a collection."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval

from ertrl.config import (
    UNSAID,
    Amount,
    Count,
    CountOrZero,
    Positive,
    Seed,
    Share,
    Widths,
    check,
)
from ertrl.errors import ConfigError


@dataclass(frozen=True)
class CollectConfig:
    """Behaviour data: how SAC is trained and what is recorded of it."""

    policy: Literal["conditioned", "independent"] = "conditioned"
    """One network for all tasks with the task as input, or (as the paper) one network per task."""
    symmetry: bool = False
    """Show a shared network state and task in the task's own frame, where the family knows one."""
    hidden: Widths = (256, 256)
    """Widths of actor and critics."""
    layer_norm: bool = True
    """Layer normalisation in actor and critics: stable at several updates per step."""
    standardise: bool = field(default=False, metadata=UNSAID)
    """Show actor and critics observations less their mean so far, divided by their deviation."""
    learning_rate: Amount = 1e-3
    """Adam step size of actor, critics and temperature."""
    warmup: Share = 0.0
    """Share of training over which that step size rises from 0; gives poor policies more room."""
    decay: Share = 0.0
    """Share of training, at its end, over which that step size falls to 0; steadies the expert."""
    batch_size: Count = 512
    """Transitions per update (per task, if policies are independent)."""
    discount: Share = 0.99
    """gamma."""
    n_step: Count = 1
    """Rewards summed before the critic takes over: more learn faster, from somewhat wrong targets
    (actions in between are the behaviour's, their entropy does not count). Transitions that another
    task rewards look one step ahead."""
    tau: Share = 0.005
    """Step of the target critics towards the critics."""
    initial_temperature: Positive = 0.1
    """SAC's alpha at the start; its logarithm is learned from there."""
    relabel_fraction: Share = 0.5
    """Share of a batch that other tasks reward (conditioned policy, reward families only)."""
    style: Amount = 0.0
    """K: a bonus of K (u . a) / sqrt(action size) per step to the collector, u a random direction
    of its task. Makes behaviour differ beyond what tasks demand; recorded rewards are the true
    ones. 0: off."""
    tasks_at_once: Count = 1
    """Independent policies that one product updates. 1 is fastest on a CPU; more need memory."""
    simulations_per_task: Count = 2
    """Parallel simulations of each task."""
    random_steps: CountOrZero = 20
    """Control steps per simulation with uniformly random actions before learning starts."""
    steps: Count = 600
    """Control steps per simulation while learning."""
    steps_per_block: Count = 20
    """Control steps between two calls of the update program."""
    side_by_side: bool = field(default=False, metadata=UNSAID)
    """Simulate the next block while the updates of one are computed, with the policies as they
    were before: two cores have work to do."""
    updates_per_step: Count = 2
    """Gradient updates per control step of the whole batch of simulations."""
    checkpoints: Count = 18
    """Behaviour-policy checkpoints that episodes are recorded from, evenly spaced."""
    first_checkpoint: CountOrZero = 0
    """Control step, random ones included, of the first of them; 0: after the first updates."""
    last_checkpoint: CountOrZero = 0
    """Control step, random ones included, of the last of them; 0: at the end."""
    spacing: Annotated[float, Interval(ge=1, le=10)] = field(default=1.0, metadata=UNSAID)
    """How checkpoints lie in training. 1: evenly. 3: after shares 0, (1/n)^3, (2/n)^3, ..., 1, most
    of them early, while policies still learn; else policies that learn fast are mostly recorded
    as experts."""
    episodes_per_checkpoint: Count = 50
    """Stochastic episodes per task and checkpoint."""
    reference_episodes: Count = 20
    """Episodes per task behind each reference return (expert, random, zero action)."""
    seed: Seed = 0
    """All randomness of the collection is addressed by this."""

    def validate(self) -> None:
        """Raise if settings are wrong, or do not fit together."""
        check(self)
        if self.style and self.symmetry:
            raise ConfigError(
                "style and symmetry do not fit together: a style is a direction of the task's own "
                "actions, which a view from the task turns with every state; leave one of them off"
            )
        if self.steps % self.steps_per_block or self.random_steps % self.steps_per_block:
            raise ConfigError(
                f"steps ({self.steps}) and random_steps ({self.random_steps}) must be multiples of "
                f"steps_per_block ({self.steps_per_block})"
            )
        first, last = self._recording_range()
        if not 1 <= first <= last <= self.steps // self.steps_per_block:
            raise ConfigError(
                f"first_checkpoint ({self.first_checkpoint}) and last_checkpoint "
                f"({self.last_checkpoint}) must be control steps in this order, behind the first "
                f"block of updates ({self.random_steps + self.steps_per_block}) and not behind "
                f"the end ({self.random_steps + self.steps}); 0 stands for these two"
            )
        if self.checkpoints > last - first + 1:
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
        order = np.arange(self.checkpoints)
        step = (last - first) / max(self.checkpoints - 1, 1) ** self.spacing
        blocks = np.round(first + order**self.spacing * step).astype(int)
        # Early ones may lie so dense that they fall together: the later one moves on by a block.
        return (np.maximum.accumulate(blocks - order) + order).tolist()


@dataclass(frozen=True)
class ScriptedConfig:
    """Behaviour data of a scripted expert: how noisy it is and what is recorded of it."""

    checkpoints: Count = 10
    """Strengths of noise that episodes are recorded with, evenly spaced."""
    most_noise: Share = 1.0
    """The first of them. With s, an action is 1 - s of the expert's and s of a random one."""
    least_noise: Share = 0.0
    """The last of them."""
    episodes_per_checkpoint: Count = 10
    """Episodes per task and strength."""
    reference_episodes: Count = 20
    """Episodes per task behind each reference return (expert, random, zero action)."""
    seed: Seed = 0
    """All randomness of the collection is addressed by this."""

    def validate(self) -> None:
        """Raise if settings are wrong, or do not fit together."""
        check(self)
        if self.least_noise > self.most_noise:
            raise ConfigError(
                f"least_noise ({self.least_noise}) must not be above most_noise "
                f"({self.most_noise}): checkpoints go from poor to expert"
            )


BehaviourConfig = CollectConfig | ScriptedConfig
"""How behaviour data comes about."""
