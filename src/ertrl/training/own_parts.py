"""Methods and learners of one's own: found out before the first update, not after hours."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
from jax.tree_util import keystr, tree_leaves_with_path

from ertrl import store
from ertrl.errors import ErtrlError, PluginError
from ertrl.learners import LearnerStep
from ertrl.plugins import raised_at
from ertrl.training.config import TrainConfig
from ertrl.training.memory import blank_batch
from ertrl.training.update import init, run_key, update
from ertrl.types import Dims


def own_code(config: TrainConfig) -> dict[str, str]:
    """Checksums of the files of parts that are no part of ertrl, by kind."""
    return {what: store.sha256(file.read_bytes()) for what, file in own_files(config)}


def own_files(config: TrainConfig) -> Iterator[tuple[str, Path]]:
    """What, and the file it is written in; a class of a notebook has none."""
    for what, part in (("method", config.method), ("learner", config.learner)):
        if _is_ours(part):
            continue
        try:
            file = Path(inspect.getsourcefile(type(part)) or "")
        except TypeError:
            continue
        if file.is_file():
            yield what, file


def try_own_parts(config: TrainConfig, dims: Dims) -> None:
    """Trace one update and one action; what cannot work is said in the words of the contract."""
    own = [part for part in (config.method, config.learner) if not _is_ours(part)]
    if not own:
        return
    names = " and ".join(f"'{part.name}'" for part in own)
    try:
        _try(config, dims)
    except ErtrlError as error:
        raise PluginError(f"{names} cannot be trained: {error}. {_advice(own)}") from error
    except Exception as error:
        at = raised_at(error)
        told = " ".join(str(error).split())[:300]
        where = f"{at}: " if at else ""
        raise PluginError(
            f"{names} cannot be trained: {where}{type(error).__name__}: {told}. {_advice(own)}"
        ) from error


def _is_ours(part: Any) -> bool:
    return type(part).__module__.split(".")[0] == "ertrl"


def _advice(own: list[Any]) -> str:
    return f"`ertrl check-plugin FILE.py` looks at all that {own[0].name} has to keep"


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
    _check_same_types(state, after)


def _check_same_types(before: Any, after: Any) -> None:
    if jax.tree.structure(before) != jax.tree.structure(after):
        raise PluginError("an update gives a state of other parts than the one it was given")
    for (path, one), other in zip(
        tree_leaves_with_path(before), jax.tree.leaves(after), strict=True
    ):
        types = [(x.shape, str(x.dtype), x.weak_type) for x in (one, other)]
        if types[0] != types[1]:
            raise PluginError(f"in an update {keystr(path)} went from {types[0]} to {types[1]}")
