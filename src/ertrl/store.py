"""Files that are either whole or not there.

Everything the program keeps is written to a temporary file, flushed to the disk and renamed into
place, so a killed process or a full disk leaves the previous version intact. Everything carries a
SHA-256, and reading checks it. Nothing is pickled: JSON, `.npy` and safetensors hold only data.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import socket
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any, Literal

import equinox as eqx
import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as safetensors_load
from safetensors.numpy import save as safetensors_save

from ertrl.errors import CorruptFileError, DataError, RunError
from ertrl.sealed import read_bytes as read_bytes
from ertrl.sealed import read_sealed, sealed
from ertrl.sealed import sha256 as sha256
from ertrl.shape import fit

HOST = socket.gethostname().replace(".", "-")
MAX_JSON_BYTES = 64 * 2**20
"""No manifest of ours is larger; a larger file is not one."""


def sha256_file(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the file as a whole, or leave it as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(temporary_name(path.name, os.getpid()))
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # of a full disk, Python does not say which file it was
        raise
    sync_directory(path.parent)


def temporary_name(name: str, process: int) -> str:
    """Of a file while it is written: it says who writes, also to other hosts that share a disk."""
    return f".{name}.{HOST}-{process}.tmp"


def sweep(folder: Path) -> None:
    """Remove temporary files of writers on this host that were killed."""
    for file in folder.glob(".*.tmp"):
        host, _, process = file.name.split(".")[-2].rpartition("-")
        if host == HOST and process.isdecimal() and not _alive(int(process)):
            file.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def sync_directory(path: Path) -> None:
    """Make renames in this directory survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON sealed with the checksum of its content."""
    write_bytes(path, sealed(content))


def read_json(path: Path, shape: type[Any] | None = None) -> dict[str, Any]:
    """Read sealed JSON of this shape."""
    content = read_sealed(path, MAX_JSON_BYTES)
    if shape is not None:
        fit(content, shape, path)
    return content


def check_file(path: Path, expected_sha256: str) -> None:
    """Raise unless the file is there and is the one that was written."""
    try:
        found = sha256_file(path)
    except FileNotFoundError:
        raise CorruptFileError(f"{path} is missing") from None
    if found != expected_sha256:
        raise CorruptFileError(
            f"{path} is damaged: its SHA-256 is {found[:12]}..., "
            f"the manifest says {expected_sha256[:12]}..."
        )


# --- arrays ---


def map_array(path: Path, dtype: np.dtype | str, shape: tuple[int, ...]) -> np.memmap:
    """A new .npy file of this shape as writable memory, its space claimed now.

    A full disk is an error here, but would be a crash when writing to the map later.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    array = np.lib.format.open_memmap(path, "w+", dtype, shape)
    with open(path, "r+b") as file:
        if hasattr(os, "posix_fallocate"):  # macOS has none: there the map stays as it is
            os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
    return array


def map_again(
    path: Path, dtype: np.dtype | str, shape: tuple[int, ...], mode: Literal["r", "r+"] = "r+"
) -> np.memmap:
    """A file of `map_array` with what was written to it.

    To be written to ("r+"), it may since have lost rows at its end.
    """
    try:
        array = np.lib.format.open_memmap(path, mode)
    except FileNotFoundError:
        raise CorruptFileError(f"{path} is missing") from None
    except Exception as error:  # a header may hold anything, and fail in as many ways
        raise CorruptFileError(f"{path} is not a readable .npy file: {error}") from None
    shorter = mode == "r+" and array.shape[1:] == shape[1:] and len(array) < shape[0]
    fits = array.shape == shape or shorter
    if array.dtype != dtype or not fits:
        raise CorruptFileError(
            f"{path} holds {array.dtype} {array.shape}, expected {np.dtype(dtype)} {shape}"
        )
    return array


def arrays_to_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    """Serialise named arrays with their dtypes."""
    return safetensors_save({name: np.asarray(x, order="C") for name, x in arrays.items()})


def arrays_from_bytes(data: bytes, origin: Path) -> dict[str, np.ndarray]:
    """Read what `arrays_to_bytes` wrote."""
    try:
        return safetensors_load(data)
    except SafetensorError as error:
        raise CorruptFileError(f"{origin} is not a safetensors file: {error}") from None


# --- pytrees of arrays ---


def _is_array(leaf: Any) -> bool:
    """An array, or the promise of one."""
    return eqx.is_array(leaf) or isinstance(leaf, (jax.ShapeDtypeStruct, np.ndarray))


def _named_leaves(tree: Any) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(tree, _is_array))
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def tree_to_bytes(tree: Any) -> bytes:
    """Serialise every array of a pytree under its path in the tree."""
    return arrays_to_bytes(_named_leaves(tree))


def tree_from_bytes(data: bytes, like: Any, origin: Path) -> Any:
    """Fill the pytree `like`, of arrays or their shapes, with those stored under the same paths."""
    stored = arrays_from_bytes(data, origin)
    expected = _named_leaves(like)
    if stored.keys() != expected.keys():
        differing = sorted(stored.keys() ^ expected.keys())
        raise RunError(
            f"{origin} does not fit this configuration: {len(differing)} arrays differ, "
            f"the first is {differing[0]}"
        )
    for name, leaf in expected.items():
        if stored[name].shape != leaf.shape or stored[name].dtype != leaf.dtype:
            raise RunError(
                f"{origin}: {name} has shape {stored[name].shape} {stored[name].dtype}, "
                f"this configuration needs {leaf.shape} {leaf.dtype}"
            )
    arrays, static = eqx.partition(like, _is_array)
    filled = jax.tree_util.tree_map_with_path(
        lambda path, _: jax.numpy.asarray(stored[jax.tree_util.keystr(path)]), arrays
    )
    return eqx.combine(filled, static)


@contextlib.contextmanager
def claim(path: Path) -> Generator[None]:
    """Hold the place of a folder that is being made; an empty folder gives its place to it.

    The lock is a hidden folder beside it, which is gone afterwards.
    """

    def free() -> None:
        with contextlib.suppress(OSError):  # not there, no folder, or not empty
            path.rmdir()
        if path.exists():
            raise DataError(f"{path} already exists. Choose another place, or remove it.")

    free()
    lock = path.with_name(f".{path.name}.lock")
    with exclusive(lock):
        try:
            free()  # another process may have completed it meanwhile
            yield
        finally:
            shutil.rmtree(lock, ignore_errors=True)


@contextlib.contextmanager
def exclusive(directory: Path, *, wait: bool = False) -> Generator[None]:
    """Hold a directory for this process. The system releases it when the process dies.

    Where another one holds it, `wait` for that one (for work that takes moments) or raise.
    """
    with _locked(directory, wait=wait) as file:
        file.truncate(0)
        file.write(f"{os.getpid()} {_began(os.getpid())} {HOST}")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)  # who reads it learns that nobody holds the directory


def _locked(directory: Path, *, wait: bool) -> IO[str]:
    """The open lock of a directory, held."""
    while True:
        directory.mkdir(parents=True, exist_ok=True)
        file = open(directory / ".lock", "a+")  # noqa: SIM115 (whoever asked closes it)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.seek(0)
            process, *more = file.read().split() or "?"
            file.close()
            elsewhere = f" on {more[-1]}" if more and more[-1] != HOST else ""
            raise RunError(
                f"{directory} is in use by process {process}{elsewhere}. "
                "Wait for it to end, or stop it."
            ) from None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(directory / ".lock")):
                return file
        file.close()  # its holder removed it just then: what is locked is nobody's


def in_use(directory: Path) -> bool:
    """Whether the process that last held the directory is alive.

    Trying its lock would be more exact, but could turn away a process that starts just then. It is
    tried where the file does not tell: on another host, whose processes nobody here knows.
    """
    try:
        with open(directory / ".lock") as file:
            holder = file.read().split()
            if not holder:
                return False
            if len(holder) == 3 and holder[2] == HOST:
                process, began, _ = holder
                return _alive(int(process)) and _began(int(process)) == began
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, ValueError):
        pass
    return False


def _began(process: int) -> str:
    """When it started, where the system says so: the number of a dead one is given again."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "?"
