"""Offline meta-reinforcement learning on a laptop.

    data = ertrl.collect("point-robot")
    run = ertrl.train("er-trl", data)
    result = ertrl.evaluate(run)
    ertrl.report([run])

Importing this package is cheap; JAX is loaded by the first function that needs it.
"""

import sys

if sys.argv[0].endswith(("/ertrl", "-m")):
    # The command line: Control-C while it loads, when nothing is under way yet, ends it at once.
    # (The module `signal` would take its time; this is what it is made of.)
    import os
    from _signal import SIGINT, signal  # ty: ignore

    signal(SIGINT, lambda *_: (os.write(2, b"stopped\n"), os._exit(130)))

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ertrl import envs, runtime
    from ertrl.api import (
        collect,
        evaluate,
        export,
        load_agent,
        probe,
        register,
        render,
        resume,
        train,
        verify,
    )
    from ertrl.data import Dataset, import_logs
    from ertrl.envs import make_family, register_family
    from ertrl.evaluation import AdaptedAgent, Agent, Evaluation
    from ertrl.launch.demo import demo
    from ertrl.reporting import report
    from ertrl.training import Run

__version__ = "0.1.0"
__all__ = [
    "AdaptedAgent",
    "Agent",
    "Dataset",
    "Evaluation",
    "Run",
    "collect",
    "demo",
    "envs",
    "evaluate",
    "export",
    "import_logs",
    "load_agent",
    "make_family",
    "probe",
    "register",
    "register_family",
    "render",
    "report",
    "resume",
    "runtime",
    "train",
    "verify",
]

_HOMES = {
    "AdaptedAgent": "ertrl.evaluation",
    "Agent": "ertrl.evaluation",
    "Evaluation": "ertrl.evaluation",
    "Dataset": "ertrl.data",
    "import_logs": "ertrl.data",
    "make_family": "ertrl.envs",
    "register_family": "ertrl.envs",
    "Run": "ertrl.training",
    "report": "ertrl.reporting",
    "demo": "ertrl.launch.demo",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ertrl' has no attribute {name!r}")
    from importlib import import_module

    try:
        if name in ("envs", "runtime"):
            return import_module(f"ertrl.{name}")
        value = getattr(import_module(_HOMES.get(name, "ertrl.api")), name)
    except ModuleNotFoundError as missing:
        from ertrl.plugins import only_runtime

        raise only_runtime(f"ertrl.{name}", missing) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
