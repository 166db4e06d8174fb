"""Where does hiding the behaviour policy help? ER-TRL against FOCAL on all eight MuJoCo families.

    .venv/bin/python benchmarks/benefit.py        # or: make results-benefit; half a minute

Sets the gain against the distance between behaviour policies. All numbers are those of
results/laptop, which `make results-laptop` makes; nothing is trained. Keeps tables and figure in
results/benefit.
"""

from pathlib import Path

from collect import TARGETS
from ertrl import store
from ertrl.launch.plan import parse_data
from ertrl.reporting import report
from shared import KEEP, PAIR, WORK, keep


def main() -> None:
    # The paper's numbers of Cheetah-Vel are of the other split.
    folders = [parse_data(word).folder for word in TARGETS if word != "cheetah-vel"]
    files = [pair_of(folder) for folder in folders]
    work = WORK / "benefit" / "report"
    report([], work, beside=files)
    made = {"benefit.md": "tables/benefit.md", "distance.png": "figures/benefit-distance.png"}
    keep(work, KEEP / "benefit", made)


def pair_of(folder: str) -> Path:
    """Numbers of the two methods on a family."""
    content = store.read_json(KEEP / "laptop" / folder / "results.json")
    both = {contender.method for contender in PAIR}
    for family in content["families"].values():
        family["variants"] = [v for v in family["variants"] if v["method"] in both]
    file = WORK / "benefit" / folder / "results.json"
    store.write_json(file, content)
    return file


if __name__ == "__main__":
    main()
