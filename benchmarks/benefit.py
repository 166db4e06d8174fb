"""Where does hiding the behaviour policy help? ER-TRL against FOCAL on all eight MuJoCo families.

    .venv/bin/python benchmarks/benefit.py        # or: make results-benefit; hours on two cores

Trains both methods with three seeds and sets the gain against the distance between behaviour
policies. Works in build/grid (killed, it goes on where it was) and keeps numbers, tables and figure
in results/benefit.
"""

from collect import TARGETS
from ertrl.launch.plan import parse_data
from ertrl.reporting import report
from shared import COMPARISON, KEEP, PAIR, WORK, done, grid_of, keep


def main() -> None:
    # The paper's numbers of Cheetah-Vel are of the other split.
    families = [word for word in TARGETS if word != "cheetah-vel"]
    runs = done(grid_of([*map(parse_data, families)], PAIR)).runs
    work = WORK / "benefit" / "report"
    report(list(runs.values()), work)
    keep(work, KEEP / "benefit", COMPARISON | {"distance.png": "figures/benefit-distance.png"})


if __name__ == "__main__":
    main()
