"""Where a number comes from: versions, machine, commit, command."""

import os
import platform
import shlex
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("ertrl", "jax", "jaxlib", "numpy", "equinox", "optax", "mujoco", "gymnasium")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


@cache
def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration, IndexError):
        return platform.processor() or "unknown"


def _git(here: Path, *words: str) -> str | None:
    """What git answers, or None where it fails."""
    done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True)
    return None if done.returncode else done.stdout.strip()


@cache
def _commit() -> str:
    here = Path(__file__).parent
    try:
        # Installed into somebody's project, this lies in their checkout, but is no file of it.
        if _git(here, "ls-files", "--error-unmatch", Path(__file__).name) is None:
            return "not a checkout"
        head, changes = _git(here, "rev-parse", "HEAD"), _git(here, "status", "--porcelain", ".")
        return (head or "unknown") + (" with changes" if changes else "")
    except OSError:
        return "unknown"


def command() -> str:
    """The command line; it names no folder of this machine. Notebooks and prompts have none."""
    if "ipykernel" in sys.argv[0]:
        return "Python, in a notebook"
    if not sys.argv[0]:
        return "Python, at its prompt"
    return shlex.join([Path(sys.argv[0]).name, *map(_without_folders, sys.argv[1:])])


def _without_folders(word: str) -> str:
    """An absolute path as seen from the working directory; one outside of that by its name."""
    option, equals, value = word.rpartition("=")
    if not value.startswith("/"):
        return word
    path, here = Path(value), Path.cwd()
    told = path.relative_to(here) if path.is_relative_to(here) else path.name
    return f"{option}{equals}{told}"


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_bounded = False


def bound_threads(count: int = 1) -> None:
    """One XLA thread unless NPROC says otherwise, in Python as on the command line.

    A program runs in the thread that calls it, so that a simulation can act while updates run.
    XLA reads both when it starts. If it has started already, it has what it has.
    """
    global _bounded
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and bridge.backends_are_initialized():
        return
    if _bounded or not os.environ.get("NPROC"):
        os.environ["NPROC"], _bounded = str(count), True
    import jax  # late: what only asks for versions does not need it

    jax.config.update("jax_cpu_enable_async_dispatch", False)


def threads() -> int:
    """How many threads XLA uses: what NPROC says, or all cores."""
    return int(os.environ.get("NPROC") or 0) or available_cores()


def devices() -> list[str]:
    """What JAX computes on, one entry per device: 'cpu', or the name of an accelerator."""
    import jax  # late: what only asks for versions does not need it

    return [d.platform if d.platform == "cpu" else d.device_kind for d in jax.devices()]


def device_text() -> str:
    """The same for a person: 'cpu (1 thread)', '8 x NVIDIA A100'."""
    found = devices()
    if set(found) == {"cpu"}:
        many = f"{len(found)} x " if len(found) > 1 else ""
        return f"{many}cpu ({threads()} thread{'s' if threads() > 1 else ''})"
    return f"{len(found)} x {found[0]}" if len(found) > 1 else found[0]


def machine() -> dict[str, Any]:
    return {"cpu": _cpu(), "cores": os.cpu_count(), "system": platform.platform()}


def simulation_threads() -> int:
    """How many threads the physics uses: no bits change, so all cores unless NPROC is given."""
    return available_cores() if _bounded else threads()


def provenance() -> dict[str, Any]:
    """What to store next to every result."""
    return {
        "command": command(),
        "commit": _commit(),
        "versions": versions(),
        "machine": machine(),
        "threads": threads(),
        "devices": devices(),
    }
