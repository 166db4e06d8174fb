"""The files of an exported agent: agent.json, sealed, and the weights it names.

They may come from anywhere. Whatever is in them, reading them runs no code, takes no more memory
than their size, and ends in an agent that fits together or in an error that names the file.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from ertrl.errors import CorruptFileError, DataError
from ertrl.runtime.actions import ActionRange
from ertrl.runtime.agent import Agent
from ertrl.runtime.inference import KINDS
from ertrl.runtime.layers import MLP, Arrays
from ertrl.sealed import read_bytes, read_sealed, sha256

KIND, FORMAT = "ertrl-agent", 1
DESCRIPTION, WEIGHTS = "agent.json", "agent.safetensors"
MOST_BYTES = {DESCRIPTION: 2**20, WEIGHTS: 2**30}
"""No agent of ours is larger."""


def describe(agent: Agent) -> dict[str, Any]:
    """What agent.json holds of the agent itself."""
    return {
        "kind": KIND,
        "format": FORMAT,
        "observation_dim": agent.observation_dim,
        "action_dim": agent.action_dim,
        "latent_dim": agent.inference.latent_dim,
        "action_low": agent.actions.low.tolist(),
        "action_high": agent.actions.high.tolist(),
        "inference": {"kind": agent.inference.kind, **agent.inference.settings()},
        "policy": {"layer_norm": agent.policy.layer_norm},
    }


def load(folder: str | Path) -> Agent:
    """Load an exported agent; every byte is checked."""
    path = Path(folder)
    if not (path / DESCRIPTION).is_file():
        raise DataError(f"{path} holds no agent: it has no {DESCRIPTION}; `ertrl export` makes one")
    about = read_sealed(path / DESCRIPTION, MOST_BYTES[DESCRIPTION])
    found = about.get("kind"), about.get("format")
    if found != (KIND, FORMAT):
        raise CorruptFileError(
            f"{path / DESCRIPTION} is of kind and format {found}, this version reads "
            f"{(KIND, FORMAT)}"
        )
    weights = read_bytes(path / WEIGHTS, MOST_BYTES[WEIGHTS])
    try:
        found, expected = sha256(weights), about["files"][WEIGHTS]
        if found != expected:
            raise CorruptFileError(
                f"{path / WEIGHTS} is damaged: its SHA-256 is {found[:12]}..., {DESCRIPTION} says "
                f"{expected[:12]}..."
            )
        if not all(isinstance(checksum, str) for checksum in about["files"].values()):
            raise DataError(f"files must have checksums, got {about['files']}")
        arrays = _arrays(weights, path / WEIGHTS)
        settings = dict(about["inference"])
        low, high = (np.array(about[f"action_{end}"], float) for end in ("low", "high"))
        return Agent(
            observation_dim=int(about["observation_dim"]),
            action_dim=int(about["action_dim"]),
            inference=KINDS[settings["kind"]].of(settings, arrays),
            policy=MLP.of_arrays(arrays, "policy", bool(about["policy"]["layer_norm"])),
            actions=ActionRange(low, high),
            about=about,
        )
    except DataError as problem:
        raise CorruptFileError(f"{path} holds no agent that works: {problem}") from None
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as problem:
        what = f"{type(problem).__name__}: {problem}"
        raise CorruptFileError(f"{path} does not hold an agent of this format ({what})") from None


def _arrays(data: bytes, origin: Path) -> Arrays:
    """Safetensors of 32-bit floats: length of a JSON header, the header, the numbers."""
    try:
        start = 8 + int.from_bytes(data[:8], "little")
        if start > len(data):
            raise ValueError("its header is longer than the file")
        header = json.loads(data[8:start])
        header.pop("__metadata__", None)
        arrays = {}
        for name, entry in header.items():
            first, last = entry["data_offsets"]
            shape = tuple(entry["shape"])
            if entry["dtype"] != "F32" or not all(type(n) is int and n > 0 for n in shape):
                raise ValueError(f"{name} is {entry['dtype']} {shape}")
            if not 0 <= first <= last <= len(data) - start or last - first != 4 * math.prod(shape):
                raise ValueError(f"{name} does not lie in the file as its shape says")
            flat = np.frombuffer(data, "<f4", math.prod(shape), start + first)
            arrays[name] = flat.reshape(shape)
        return arrays
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise CorruptFileError(f"{origin} is no array file of an agent: {problem}") from None
