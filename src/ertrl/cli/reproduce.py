"""`ertrl reproduce`."""

from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import arg

from ertrl.cli.common import output
from ertrl.cli.options import Json, Profile, Progress, Variant, command
from ertrl.errors import ConfigError, RunError
from ertrl.plugins import names_file

Settings = Annotated[str, arg(metavar="JSON")]
MOST_AT_ONCE = 4096
MOST_GPUS = 64
"""More would have to be a mistake."""


@command("reproduce")
def run(
    families: tuple[str, ...] = (),
    methods: tuple[str, ...] = (),
    seeds: tuple[str, ...] = ("0-4",),
    profile: Profile = "laptop",
    variant: Variant = "paper",
    executor: Literal["local", "ray"] = "local",
    address: str = "",
    processes: int = 0,
    threads: int = 1,
    gpus: float = 0.0,
    probe_transitions: int = 200,
    collect_settings: Settings = "{}",
    train_settings: Settings = "{}",
    out: str = "reproduction",
    work: Path | None = None,
    keep: Path | None = None,
    dry_run: bool = False,
    report: bool = True,
    progress: Progress = "auto",
    json: Json = False,
) -> None:
    """Collect, train, evaluate, probe and report the paper's whole grid, or a part of it.

    Prints the plan with its time, memory and disk, then does what is missing. Killed, or asked for
    more seeds, methods or families, it goes on with the same command and runs only what is new.

    Args:
        families: Which; the paper's and point-robot if not given. With options of a family:
            cheetah-vel:split=released.
        methods: Which; the paper's and bayes-linear if not given, or all there are: all. With
            another learner: focal+brac.
        seeds: Seeds of every method, for example 0-4 or 0 2 7.
        executor: Processes of this machine, or tasks of a Ray cluster (`pip install '.[ray]'`).
        address: (ray) An existing cluster: auto, or HOST:PORT. One is started here if not given.
        processes: (local) How many at once; 0: as many as there are cores for their threads.
        threads: CPU threads of each job. With 1, results repeat bit for bit.
        gpus: (ray) GPUs of each training; 0.25 puts four on one.
        probe_transitions: Transitions per task for the probes of z; 0 leaves them out.
        collect_settings: Settings of every collection that differ from the profile's, as JSON.
        train_settings: The same of every training: '{"updates": 2000}'.
        out: Where everything goes: a folder (with Ray, one that all machines share), or an address
            that fsspec knows, like s3://bucket/folder.
        work: Where machines work on things that live at an address; a temporary folder if not
            given.
        keep: Folder for one small JSON file per run, written as runs finish.
        dry_run: Print the plan and stop.
        report: Whether to end in a report.
    """
    from ertrl.launch import parse_seeds
    from ertrl.launch.estimates import describe_plan
    from ertrl.launch.ray import load_ray
    from ertrl.launch.reproduce import LOOKING, paper_grid, plan, reproduce, slots_here
    from ertrl.progress import say

    _check_number("--threads", threads, 1, MOST_AT_ONCE)
    _check_number("--processes", processes, 0, MOST_AT_ONCE)
    _check_number("--gpus", gpus, 0, MOST_GPUS)
    if gpus > 1 and gpus % 1:
        raise ConfigError(f"--gpus is a share of one, or a whole number; got {gpus}")
    if probe_transitions:
        _check_number("--probe-transitions", probe_transitions, 5, 1_000_000)
    if executor == "ray":
        load_ray()
        _check_unused("--processes", processes, "--executor local; Ray counts CPUs itself")
    else:
        _check_unused("--address", address, "--executor ray")
        _check_unused("--gpus", gpus, "--executor ray, which shares them out")
    if "://" not in out:
        _check_unused("--work", work, "an address as --out; in a folder jobs work in place")
    if files := [word for word in (*families, *methods) if names_file(word)]:
        raise ConfigError(
            f"'{files[0]}' is a file: give it with --plugin, and here its part's name"
        )
    grid = paper_grid(
        families,
        methods,
        parse_seeds(",".join(seeds)),
        profile=profile,
        variant=variant,
        probe_transitions=probe_transitions,
        collect_settings=_settings("--collect-settings", collect_settings),
        train_settings=_settings("--train-settings", train_settings),
        threads=threads,
        gpus=gpus,
    )
    if dry_run:
        say(LOOKING, progress)
        jobs, missing = plan(grid, out, work)
        slots = slots_here(grid, processes)
        to_do = {job.name for job in missing}
        entries = [
            {
                "job": job.name,
                "after": job.after,
                "command": job.command,
                "done": job.name not in to_do,
                "seconds": job.seconds,
                "memory": job.memory,
                "disk": job.disk,
            }
            for job in jobs
        ]
        output({"jobs": entries}, None if json else describe_plan(jobs, missing, slots))
        return
    done = reproduce(
        grid,
        out,
        executor=executor,
        processes=processes,
        address=address or None,
        work=work,
        keep=keep,
        reporting=report,
        progress=progress,
    )
    value = {
        "runs": {label: str(path) for label, path in done.runs.items()},
        "reports": [str(path) for path in done.reports],
        "failures": done.failures,
    }
    lines = [f"{len(done.runs)} of {len(grid.cells)} runs are there", *value["reports"]]
    output(value, None if json else "\n".join(lines))
    if done.failures:
        told = "\n".join(done.failures)
        raise RunError(f"{len(done.failures)} jobs are missing:\n{told}\nStart again to try again.")


def _check_number(option: str, value: float, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ConfigError(f"{option} must lie between {least} and {most}, got {value}")


def _check_unused(option: str, value: Any, purpose: str) -> None:
    if value:
        raise ConfigError(f"{option} is {value}, but it is only for {purpose}")


def _settings(option: str, text: str) -> dict[str, Any]:
    import json

    try:
        value = json.loads(text)
    except ValueError as problem:
        raise ConfigError(f"{option} takes a JSON object, got '{text}' ({problem})") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{option} takes a JSON object, got '{text}'")
    return value
