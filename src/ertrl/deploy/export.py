"""Write an agent for machines without JAX, and compare it with the original.

agent/agent.json           what it is, sealed: sizes, parity, origin, checksums of the others
agent/agent.safetensors    weights, for `ertrl.runtime.load`
agent/encoder.onnx         transitions -> z, if asked for
agent/policy.onnx          observation, z -> action, if asked for

The folder appears when all of it is written and the written files have proved to do what the agent
in JAX does.
"""

import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from ertrl import runtime, store
from ertrl.data import Dataset
from ertrl.deploy import graphs
from ertrl.errors import ConfigError, DataError
from ertrl.evaluation import Agent
from ertrl.evaluation.agent import in_double
from ertrl.plugins import require
from ertrl.provenance import provenance
from ertrl.runtime.files import DESCRIPTION, WEIGHTS, describe
from ertrl.types import Context

TOLERANCE = 1e-5
"""Largest difference of z and of actions to those of the agent in JAX."""
SIZES = (1, 2, 10, 100)
"""Transitions of the contexts that are compared."""


class Sample(NamedTuple):
    """Contexts to compare on, and observations to act on."""

    contexts: list[Context]
    observations: np.ndarray


def export_agent(
    agent: Agent, out: Path, about: dict[str, Any], dataset: Dataset | None, *, onnx: bool
) -> dict[str, Any]:
    """Write the agent into the new folder `out`; returns what agent.json says."""
    plain = agent.plain
    if not out.name:
        raise ConfigError(f"an agent is written into a new folder: name one, got '{out}'")
    for package in ("onnx", "onnxruntime") if onnx else ():
        require(package, "onnx")  # says now what is missing
    samples = {"random": random_sample(agent)}
    if dataset is not None:
        samples["logged"] = logged_sample(dataset)
    work = out.with_name(f".{out.name}.exporting")
    with store.claim(out):
        shutil.rmtree(work, ignore_errors=True)  # of a process that was killed
        try:
            files = {WEIGHTS: store.arrays_to_bytes(plain.arrays())}
            if onnx:
                files |= {
                    "encoder.onnx": graphs.encoder(plain),
                    "policy.onnx": graphs.policy(plain),
                }
            for name, blob in files.items():
                store.write_bytes(work / name, blob)
            checksums = {name: store.sha256(blob) for name, blob in files.items()}
            description = {**describe(plain), **about, "files": checksums}
            store.write_json(work / DESCRIPTION, description)
            parity = measure_parity(agent, work, samples, onnx=onnx)
            description |= {"parity": parity, "provenance": provenance()}
            store.write_json(work / DESCRIPTION, description)
            os.rename(work, out)
            store.sync_directory(out.parent)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return description


def verify_agent(folder: Path) -> int:
    """Check every file of an exported agent; returns how many files are whole."""
    files = runtime.load(folder).about["files"]
    for name, checksum in files.items():
        store.check_file(folder / Path(name).name, checksum)
    return 1 + len(files)


def measure_parity(
    agent: Agent, folder: Path, samples: dict[str, Sample], *, onnx: bool
) -> dict[str, Any]:
    """Largest differences to JAX of what the files in this folder compute; large ones are refused.

    JAX computes in double precision here, so that they show what the files do and not how it
    rounds; `jax_rounding` says how far its usual 32 bits are from that.
    """
    others = {"numpy": NumpyAgent(folder)} | ({"onnx": graphs.OnnxAgent(folder)} if onnx else {})
    found: dict[str, Any] = {}
    rounding = 0.0
    for kind, sample in samples.items():
        for context in sample.contexts:
            with jax.enable_x64(True):
                z = agent.doubled.encode(in_double(context))[0]
                every_z = np.tile(z, (len(sample.observations), 1))
                actions = agent.doubled.act(*in_double((sample.observations, every_z)))
            rounding = max(rounding, _apart(agent.encode(context)[0], z))
            # The others take and give actions in the units of whoever acts.
            own = context._replace(action=agent.action_range.outward(context.action))
            for name, other in others.items():
                theirs = other.encode(own)
                acted = agent.action_range.inward(other.act(sample.observations, z))
                apart = found.setdefault(f"{name}-{kind}", {"z": 0.0, "action": 0.0})
                apart["z"] = max(apart["z"], _apart(theirs, z))
                apart["action"] = max(apart["action"], _apart(acted, actions))
    for name, apart in found.items():
        for what, size in apart.items():
            if not size <= TOLERANCE:
                raise DataError(
                    f"the exported agent is not the one in JAX: {what} differs by {size:.2g} on "
                    f"{name} data, at most {TOLERANCE:.0e} is allowed; nothing was written"
                )
    return {"tolerance": TOLERANCE, "largest": found, "jax_rounding": rounding}


class NumpyAgent:
    """What the NumPy runtime makes of the files."""

    def __init__(self, folder: Path):
        self._agent = runtime.load(folder)

    def encode(self, context: Context) -> np.ndarray:
        adapted = self._agent.begin()
        for step in zip(*(x[0] for x in context[:4]), strict=True):
            adapted.observe(*step)
        return adapted.z

    def act(self, observations: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.stack([self._agent.act(s, z) for s in observations])


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(np.asarray(one, np.float64) - other).max())


def random_sample(agent: Agent) -> Sample:
    """Normal observations and rewards of the size that the agent knows, uniform actions."""
    draw, (observation, action) = np.random.default_rng(0), agent.dims[:2]
    centre, width, reward, spread = agent.scaling or (0.0, 1.0, 0.0, 1.0)

    def observations(*shape: int) -> np.ndarray:
        return centre + width * draw.normal(size=(*shape, observation))

    def context(size: int) -> Context:
        s, s2 = observations(2, 1, size)
        a, r = draw.uniform(-1, 1, (1, size, action)), draw.normal(size=(1, size))
        rows = (s, a, reward + spread * r, s2)
        return Context.of([np.asarray(x, np.float32) for x in rows])

    return Sample([context(size) for size in SIZES], np.asarray(observations(20), np.float32))


def logged_sample(dataset: Dataset) -> Sample:
    """Transitions of a few tasks, drawn from their logs."""
    draw, contexts = np.random.default_rng(0), []
    tasks = list(dataset.tasks.values())
    for size, place in zip(SIZES, np.linspace(0, len(tasks) - 1, len(SIZES)), strict=True):
        data = tasks[int(place)]
        rows = data.transitions(draw.integers(len(data.steps), size=size))
        contexts.append(Context.of([np.asarray(x, np.float32)[None] for x in rows[:4]]))
    return Sample(contexts, contexts[-1].observation[0][:20])
