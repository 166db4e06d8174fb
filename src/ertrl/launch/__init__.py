"""Many runs at once."""

from ertrl.launch.jobs import Job
from ertrl.launch.schedule import run_jobs
from ertrl.launch.seeds import parse_seeds, train_seeds

__all__ = ["Job", "parse_seeds", "run_jobs", "train_seeds"]
