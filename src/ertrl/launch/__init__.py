"""Many runs at once."""

from ertrl.launch.local import Job, run_jobs

__all__ = ["Job", "run_jobs"]
