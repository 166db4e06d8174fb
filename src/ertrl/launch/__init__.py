"""Many runs at once."""

from ertrl.launch.grid import Contender, compare, parse_seeds, train_seeds
from ertrl.launch.jobs import Job
from ertrl.launch.processes import run_jobs

__all__ = ["Contender", "Job", "compare", "parse_seeds", "run_jobs", "train_seeds"]
