"""Figures: each function takes data and returns a Matplotlib figure."""

from ertrl.reporting.figures.adaptation import adaptation_curves, paths
from ertrl.reporting.figures.behaviour import behaviour_data
from ertrl.reporting.figures.benefit import gain_figure
from ertrl.reporting.figures.latent import latent_space
from ertrl.reporting.figures.probes import probe_bars, projections
from ertrl.reporting.figures.profiles import performance_profiles
from ertrl.reporting.figures.returns import context_shift, learning_curves, task_returns

__all__ = [
    "adaptation_curves",
    "behaviour_data",
    "context_shift",
    "gain_figure",
    "latent_space",
    "learning_curves",
    "paths",
    "performance_profiles",
    "probe_bars",
    "projections",
    "task_returns",
]
