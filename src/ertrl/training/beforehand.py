"""What would stop a run is found out before the first update, not after hours."""

import inspect
import math
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax

from ertrl import store
from ertrl.errors import ErtrlError, PluginError, RunError
from ertrl.learners import LearnerStep
from ertrl.memory import require_memory
from ertrl.plugins import is_ours, raised_at
from ertrl.training.config import TrainConfig
from ertrl.training.update import (
    blank_batch,
    blank_state,
    changed_types,
    init,
    run_key,
    update,
)
from ertrl.types import Dims


def check_memory(config: TrainConfig, dims: Dims, runs: int = 1) -> None:
    """Refuse sizes that this machine cannot hold, for so many runs in one program."""
    # Batches are gathered while those before are on the device; places are drawn in double.
    batches = runs * 3 * config.updates_per_call * _bytes(blank_batch(config, dims))
    require_memory(batches, "batches of a call", "sampling.* or updates_per_call")
    # The state before and after a call, gradients and temporaries.
    state = runs * 4 * _bytes(blank_state(config, dims))
    require_memory(batches + state, "networks and batches", "hidden widths or latent_dim")


def _bytes(tree: object) -> int:
    leaves = jax.tree.leaves(eqx.filter(tree, lambda x: hasattr(x, "dtype")))
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)


# --- methods and learners of one's own ---


def own_code(config: TrainConfig) -> dict[str, str]:
    """Checksums of the code of parts that are no part of ertrl, by kind."""
    found = {}
    for what, part in (("method", config.method), ("learner", config.learner)):
        if written := [text for kind in type(part).__mro__ if (text := _source(kind))]:
            found[what] = store.sha256(b"\0".join(written))
    return found


def check_own_code(path: Path, spec: Mapping[str, Any], config: TrainConfig) -> None:
    """A run is known by its settings; that the code behind them is the same is asked here."""
    if names := _changed(spec, config):
        raise RunError(
            f"{path} was begun with other code of {names} than there is now. Remove it to "
            "train anew, or give another --out"
        )


def warn_of_other_code(path: Path, spec: Mapping[str, Any], config: TrainConfig) -> None:
    """An agent may be looked at with other code than it was trained with, but not unknowingly."""
    if names := _changed(spec, config):
        warnings.warn(
            f"{path} was begun with other code of {names} than there is now, which reads its "
            "weights all the same: the agent may act otherwise than it did in training",
            stacklevel=3,
        )


def _changed(spec: Mapping[str, Any], config: TrainConfig) -> str:
    """The parts whose code is not what it was when the run began."""
    now, then = own_code(config), spec.get("code", {})
    changed = [what for what in then if now.get(what, then[what]) != then[what]]
    return " and ".join(f"'{getattr(config, what).name}'" for what in changed)


def _source(kind: type) -> bytes:
    """The file of a class that is not ours; of a script, which does more, the class alone."""
    if is_ours(kind) or kind.__module__.split(".")[0] in sys.stdlib_module_names:
        return b""
    try:
        if kind.__module__ == "__main__":
            return inspect.getsource(kind).encode()
        return Path(inspect.getsourcefile(kind) or "").read_bytes()
    except (TypeError, OSError):  # typed at a prompt
        return b""


def try_own_parts(config: TrainConfig, dims: Dims) -> None:
    """Trace one update and one action; what cannot work is said in the words of the contract."""
    own = [part for part in (config.method, config.learner) if not is_ours(type(part))]
    if not own:
        return
    try:
        _try(config, dims)
    except Exception as error:
        told = str(error)
        if not isinstance(error, ErtrlError):
            at = raised_at(error)
            where = f"{at}: " if at else ""
            told = f"{where}{type(error).__name__}: {' '.join(told.split())[:300]}"
        names = " and ".join(f"'{part.name}'" for part in own)
        raise PluginError(
            f"{names} cannot be trained: {told}. `ertrl check-plugin FILE.py` looks at all that "
            f"{own[0].name} has to keep"
        ) from error


def _try(config: TrainConfig, dims: Dims) -> None:
    method, learner = config.method, config.learner
    batch, key = blank_batch(config, dims), run_key(0)
    state = jax.eval_shape(lambda: init(config, dims))
    codes = jax.eval_shape(lambda s, c: method.encode(s, c.first()), state.method, batch.context)
    wanted = (config.drawn.meta_batch, method.latent_dim)
    if codes.shape != wanted:
        raise PluginError(f"encode gives z of the shape {codes.shape}, not {wanted}")
    step = jax.eval_shape(
        lambda s, b, z: learner.update(s, b.rl, b.more_rl, z, key), state.learner, batch, codes
    )
    if not isinstance(step, LearnerStep):
        raise PluginError(f"update of the learner gives a {type(step).__name__}, no LearnerStep")
    seen = jax.ShapeDtypeStruct((wanted[0], dims.observation), "float32")
    action = jax.eval_shape(lambda s, o, z: learner.act(s, o, z), state.learner, seen, codes)
    if action.shape != (wanted[0], dims.action):
        raise PluginError(f"act gives actions of the shape {action.shape}, not [N, {dims.action}]")
    gradient = jax.ShapeDtypeStruct(wanted, "float32")
    made = jax.eval_shape(
        lambda s, b, g: method.update(s, b, g, key), state.method, batch, gradient
    )
    if not isinstance(made, tuple) or len(made) != 2 or not isinstance(made[1], dict):
        raise PluginError("update of the method gives something else than (state, metrics)")
    after, _ = jax.eval_shape(lambda s, b: update(config, s, b, key), state, batch)
    for problem in changed_types(state, after):
        raise PluginError(problem)
