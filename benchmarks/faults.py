"""Is anything lost, is anything believed? Kills, damage, hostile files and hostile words.

    .venv/bin/python benchmarks/faults.py        # or: make fault; under 15 minutes on two cores

Runs every attack of tests/fault in full, two at a time, in a folder in memory where there is one.
`--only PART` runs one of them. What a part found stays in build/fault until all are done (killed,
it goes on there) or the code changes; then all figures, one line of JSON, are kept in
results/fault.json and in the table of docs/reliability.md. Whatever must not be is an error.
"""

import argparse
import json
import os
import resource
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import run

os.environ["NPROC"] = "1"
os.environ["SHOW_PROGRESS"] = "1"
ROOT = Path(__file__).parent.parent
WORK = ROOT / "build" / "fault"
MEMORY = Path("/dev/shm")
sys.path.insert(0, str(ROOT / "tests"))

import fault  # noqa: E402, F401  first: it says how programs are compiled


def world_in(folder: Path) -> Path:
    """A dataset, a run on it, its probes and its agent."""
    from fault import small

    world = folder / "world"
    world.mkdir()
    with small.small_world():
        for stage in (small.do_collect, small.do_train, small.do_probe, small.do_export):
            stage(world)
    return world


def kills(folder: Path) -> dict:
    from fault import crashes

    return crashes.kill_everywhere(folder, for_real=30)


def disks(folder: Path) -> dict:
    from fault import trouble

    return trouble.refuse(folder, every=6)


def mutations(folder: Path) -> dict:
    from fault import damage, small

    world = world_in(folder)
    with small.small_world():
        return {
            "dataset": damage.attack(world / "data", folder, 240, seed=1),
            "run": damage.attack(small.run_of(world).path, folder, 260, seed=2),
            "agent": damage.attack(world / "agent", folder, 60, seed=6),
            "collection": damage.attack_savepoint(folder / "savepoint", 60, seed=3),
        }


def hostile(folder: Path) -> dict:
    from fault import hostile

    return hostile.attack(world_in(folder), folder, 1000, seed=4, reports=5)


def words(folder: Path) -> dict:
    from fault import words

    return words.attack(world_in(folder), folder, 1000, seed=5)


def neighbours(folder: Path) -> dict:
    from fault import trouble

    return trouble.two_processes(world_in(folder), folder)


def divergence(folder: Path) -> dict:
    from fault import trouble

    return trouble.diverge(world_in(folder), folder)


def memory(folder: Path) -> dict:
    from fault import trouble

    return trouble.memory_over(world_in(folder), folder, 20_000, (0.2, 0.4, 0.6, 0.8, 1.0))


PARTS = (kills, hostile, disks, mutations, memory, neighbours, divergence, words)
"""The longest first: two at a time, they end together."""


def code() -> str:
    """A checksum of what is attacked and of the attacks."""
    from ertrl import store

    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("tests/fault/*.py"), Path(__file__)]
    return store.sha256(b"".join(path.read_bytes() for path in sorted(files)))


def known(part: str) -> dict | None:
    """What was found by a part, if with this code."""
    from ertrl import store

    path = WORK / f"{part}.json"
    found = store.read_json(path) if path.exists() else {}
    return found if found.get("code") == code() else None


def attack(part: str) -> None:
    """Run a part in this process and keep what it found."""
    from ertrl import store

    before = code()
    here = store.sha256(str(ROOT).encode())[:8]
    folder = (MEMORY if MEMORY.is_dir() else WORK) / f"ertrl-fault-{here}-{part}"
    shutil.rmtree(folder, ignore_errors=True)  # of one that was killed
    folder.mkdir(parents=True)
    try:
        figures = {p.__name__: p for p in PARTS}[part](folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if figures.get("tracebacks"):
        raise SystemExit(f"{part}: {figures['tracebacks']} tracebacks")
    used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    minutes = sum(usage.ru_utime + usage.ru_stime for usage in used) / 60
    found = {"code": before, "figures": figures, "core_minutes": round(minutes, 1)}
    store.write_json(WORK / f"{part}.json", found)
    print(f"{part}, {found['core_minutes']} core minutes: {json.dumps(figures)}", file=sys.stderr)


def everything() -> None:
    """All parts in processes of their own, as they patch what they attack; then keep the result."""
    from ertrl import store
    from ertrl.provenance import provenance
    from fault.figures import BEGIN, END, table

    begun, names = time.monotonic(), [part.__name__ for part in PARTS]
    with ThreadPoolExecutor(2) as pool:
        command = [sys.executable, "-W", "ignore", __file__, "--only"]
        todo = [name for name in names if known(name) is None]
        ends = list(pool.map(lambda name: run([*command, name]).returncode, todo))
    if any(ends):
        broken = [name for name, end in zip(todo, ends, strict=True) if end]
        raise SystemExit(f"does not hold: {', '.join(broken)}; see above")
    print(f"{(time.monotonic() - begun) / 60:.1f} minutes", file=sys.stderr)
    parts = {name: found for name in names if (found := known(name))}
    if parts.keys() != set(names):
        raise SystemExit("the code has changed meanwhile; start again")
    figures = {name: found["figures"] for name, found in parts.items()}
    figures["core_minutes"] = round(sum(found["core_minutes"] for found in parts.values()), 1)
    told = {"kind": "ertrl-fault", "figures": figures, "provenance": provenance()}
    store.write_json(ROOT / "results" / "fault.json", told)
    page = ROOT / "docs" / "reliability.md"
    before, _, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{table(figures)}\n{END}{after}")
    shutil.rmtree(WORK)
    print(json.dumps(figures))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=[part.__name__ for part in PARTS], help="one part")
    only = parser.parse_args().only
    attack(only) if only else everything()
