"""Many runs at once: seeds, grids, the whole paper, here or on a Ray cluster.

plan.py            a grid as a graph of jobs, each named by what it is made from
estimates.py       what the jobs take
reproduce.py       plan, do what is missing, report
schedule.py        run a graph: what is ready starts, what crashed is tried again
jobs.py ray.py     a job as a local process, or as a task of a Ray cluster
place.py           where a grid lives: a folder, or an address
keep.py            small files of its results
seeds.py           one configuration with several seeds
watch.py demo.py   follow training; the demo
"""

from ertrl.launch.jobs import Job
from ertrl.launch.schedule import run_jobs
from ertrl.launch.seeds import parse_seeds, train_seeds

__all__ = ["Job", "parse_seeds", "run_jobs", "train_seeds"]
