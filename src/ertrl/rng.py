"""Randomness is addressed, not carried.

Every draw is a function of (seed, name of the stream, index), never of how many draws came before
it. So a resumed run continues with the very numbers of an uninterrupted one, and the order in
which tasks or episodes are processed changes nothing.
"""

import hashlib
import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import jax


def generator(seed: int, name: str, *index: int) -> np.random.Generator:
    """Make the NumPy generator at the address (seed, name, *index)."""
    address = "/".join([str(seed), name, *map(str, index)])
    key = hashlib.blake2b(address.encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(key, np.uint64)))


def key(seed: int, name: str) -> "jax.Array":
    """Make the JAX key at the address (seed, name); fold in a step to go on."""
    import jax  # here, so that simulating needs no JAX

    return jax.random.fold_in(jax.random.key(seed), zlib.crc32(name.encode()))
