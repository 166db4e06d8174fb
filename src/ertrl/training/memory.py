"""What training takes of memory, known before anything is allocated or compiled."""

import math

import equinox as eqx
import jax

from ertrl.memory import require_memory
from ertrl.training.config import TrainConfig
from ertrl.training.update import init
from ertrl.types import Context, Dims, TaskBatch, Transitions


def blank_batch(config: TrainConfig, dims: Dims) -> TaskBatch:
    """The shapes of one batch."""
    sizes, real = config.drawn, "float32"
    many = (sizes.meta_batch, sizes.batch_size)
    contexts = (sizes.meta_batch, sizes.contexts_per_task, sizes.context_size)
    length = config.method.window
    windows = (sizes.meta_batch, sizes.windows(length), length) if length else ()

    def rows(kind, *axes):
        return kind(*(jax.ShapeDtypeStruct((*axes, *width), real) for width in dims.widths))

    return TaskBatch(
        task=jax.ShapeDtypeStruct((sizes.meta_batch,), "int32"),
        context=rows(Context, *contexts),
        rl=rows(Transitions, *many),
        more_rl=rows(Transitions, config.learner.extra_batches, *many),
        windows=rows(Context, *windows) if length else None,
    )


def _bytes(tree: object) -> int:
    leaves = jax.tree.leaves(eqx.filter(tree, lambda x: hasattr(x, "dtype")))
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)


def check_memory(config: TrainConfig, dims: Dims, runs: int = 1) -> None:
    """Refuse sizes that this machine cannot hold, for so many runs in one program."""
    # Batches are gathered while those before are on the device; places are drawn in double.
    batches = runs * 3 * config.updates_per_call * _bytes(blank_batch(config, dims))
    require_memory(batches, "batches of a call", "sampling.* or updates_per_call")
    # The state before and after a call, gradients and temporaries.
    state = runs * 4 * _bytes(eqx.filter_eval_shape(init, config, dims))
    require_memory(batches + state, "networks and batches", "hidden widths or latent_dim")
