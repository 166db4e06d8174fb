"""Is anything lost, is anything believed? Crashes, damage, hostile files and hostile words.

    .venv/bin/python benchmarks/faults.py        # or: make fault; under 15 minutes on two cores

Runs every attack of tests/fault in full, in a folder in memory where there is one, and keeps the
figures, one line of JSON, in results/fault.json and in the table of docs/reliability.md. Any figure
that must be zero and is not is an error.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import run

os.environ["NPROC"] = "1"
ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

PARTS = ("crashes", "rest")
MEMORY = Path("/dev/shm")


def crashes(folder: Path) -> dict:
    """Crashes at every operation, real kills at some, and disks that refuse."""
    from fault import crashes, trouble

    figures: dict = {"crashes": crashes.crash_everywhere(folder)}
    some = {
        name: range(7, found["operations"], max(found["operations"] // 3, 1))
        for name, found in figures["crashes"].items()
        if name != "report"
    }
    figures["killed_processes"] = crashes.kill_for_real(folder, some)
    figures["refused"] = trouble.refuse(folder, every=5)
    return figures


def rest(folder: Path) -> dict:
    """Damage, hostile files, hostile words, neighbours, divergence, memory."""
    from fault import damage, hostile, small, trouble, words

    world = folder / "world"
    world.mkdir(parents=True)
    with small.small_world():
        for stage in (small.do_collect, small.do_train, small.do_probe):
            stage(world)
        named = {
            "dataset": damage.attack(world / "data", folder, 200, seed=1),
            "run": damage.attack(small.run_of(world).path, folder, 240, seed=2),
            "collection": damage.attack_savepoint(folder / "savepoint", 60, seed=3),
        }
    return {
        "mutations": named,
        "hostile": hostile.attack(world, folder, 1000, seed=4, reports=10),
        "words": words.attack(world, folder, 1000, seed=5),
        "two_processes": trouble.two_processes(world, folder),
        "divergence": trouble.diverge(world, folder),
        "memory": trouble.memory_over(world, folder, 20_000, (0.2, 0.6, 1.0)),
    }


def main(part: str | None) -> None:
    work = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
    try:
        if part:
            print(json.dumps(globals()[part](work / part)))
            return
        begun = time.monotonic()
        with ThreadPoolExecutor(len(PARTS)) as pool:  # a process each: they patch what they attack
            command = [sys.executable, "-W", "ignore", __file__, "--part"]
            halves = [
                pool.submit(run, [*command, p], capture_output=True, text=True) for p in PARTS
            ]
        figures: dict = {}
        for half in halves:
            done = half.result()
            if done.returncode:
                raise SystemExit(done.stderr)
            figures |= json.loads(done.stdout.splitlines()[-1])
        figures["minutes"] = round((time.monotonic() - begun) / 60, 1)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    from ertrl import store
    from ertrl.provenance import provenance
    from fault.figures import BEGIN, END, table

    told = {"kind": "ertrl-fault", "figures": figures, "provenance": provenance()}
    store.write_json(ROOT / "results" / "fault.json", told)
    page = ROOT / "docs" / "reliability.md"
    before, _, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{table(figures)}\n{END}{after}")
    print(json.dumps(figures))
    if figures["hostile"]["tracebacks"] or figures["words"]["tracebacks"]:
        raise SystemExit("there are tracebacks")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, help="only this half; nothing is kept")
    main(parser.parse_args().part)
