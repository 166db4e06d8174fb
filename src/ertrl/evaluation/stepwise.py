"""Protocols of agents that use what they know at once: z within the episode, and draws of z.

Both interact as much as the online protocol does.
"""

import numpy as np

from ertrl.evaluation.protocols import StepCurve, Trial

POINTS = (1, 2, 5, 10, 20, 50, 100, 200, 400, 600, 1000, 2000, 5000)
"""Transitions after which z is looked at, as far as the evaluation lasts."""


def continual(trial: Trial) -> None:
    """Contexts from the agent's own steps: z is inferred anew after each, from the first one on.

    How good z is after so many transitions is measured apart: by an episode with that z, which is
    no part of the interaction.
    """
    known = trial.agent.running(len(trial.rows))
    points = [n for n in POINTS if n < trial.budget] + [trial.budget]
    kept = np.tile(trial.z, (len(points), 1, 1))
    count = np.zeros(len(trial.rows), int)

    def watch(s, a, r, s2, alive: np.ndarray) -> None:
        known.add((s, a, r.astype(np.float32), s2), alive)
        count[alive] += 1
        trial.take_over(alive, known.z[alive], count[alive])
        for place, point in enumerate(points):
            reached = alive & (count == point)
            kept[place, reached] = trial.z[reached]

    while trial.active().size:
        trial.evaluate(watch)
    returns = np.stack([trial.rehearse(z) for z in kept], axis=1)
    by_task = returns.reshape(-1, trial.config.repeats, len(points))
    trial.step_curve = StepCurve(np.array(points), by_task)


def thompson(trial: Trial) -> None:
    """Contexts from own episodes, each with a z drawn from the posterior until z is inferred."""
    while (rows := trial.active()).size:
        belief = trial.agent.believe(trial.buffer.context())
        covariance = belief.covariance
        assert covariance is not None, "believe refuses a method without a posterior"
        for row in rows:
            z = belief.z[row]
            if trial.steps[row] < trial.inference_after:
                spread = np.linalg.cholesky(covariance[row].astype(np.float64))
                z = z + spread @ trial.draw("posterior", row).normal(size=len(z))
            trial.take_over(np.array([row]), z, trial.buffer.count[row])
        episodes = trial.evaluate()
        trial.buffer.add_episodes(episodes, trial.sound(rows))
