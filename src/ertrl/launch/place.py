"""Where a grid lives: a folder, or a place that several machines reach by its address.

    data/FAMILY-ID      datasets
    runs/NAME           runs
    jobs/NAME.json      what a finished job made and took, sealed; with it the job counts as done
    jobs/NAME.log       what it said
    partial/NAME        (addresses only) the run of a job under way, for whoever goes on with it

Jobs name files relative to it. On a folder they work in place. For an address (s3://, gs://,
file://: whatever fsspec knows) they work in a folder of their machine: what they need is fetched,
what they made is published, and the record comes last.
"""

import shutil
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from msgspec import Meta

from ertrl import store
from ertrl.errors import ConfigError, CorruptFileError
from ertrl.launch.jobs import Hear, Job, Started, call
from ertrl.plugins import require
from ertrl.progress import show_line
from ertrl.provenance import machine
from ertrl.shape import Machine, Name, Real, Shape, Text
from ertrl.training.records import CONTENTS
from ertrl.training.shapes import Contents

KIND = "ertrl-job"


class Record(Shape, kw_only=True):
    """jobs/NAME.json of a grid: what a finished job made."""

    kind: Literal["ertrl-job"]
    name: Name
    command: Text
    made: Annotated[str, Meta(pattern=r"^(data|runs|report)(/[^/\\\x00-\x1f]{1,200})?$")]
    seconds: Real
    began_at: Annotated[float, Meta(ge=0, le=1)]
    threads: Annotated[int, Meta(ge=1, le=4096)]
    machine: Machine


SECONDS_BETWEEN_UPLOADS = 60.0


def place_of(out: str | Path, work: str | Path | None = None) -> "Place":
    """The place that `out` names; `work` is where this machine works on those of an address."""
    if not str(out):
        raise ConfigError("there is no place without a name: give a folder or an address")
    if "://" not in str(out):
        return Folder(possible_folder(out))
    here = Path(work or tempfile.gettempdir()) / "ertrl-work"
    return Address(str(out).rstrip("/"), here, SECONDS_BETWEEN_UPLOADS)


def possible_folder(name: str | Path) -> Path:
    """The folder of that name, or an error if there cannot be one."""
    path = Path(name).absolute()
    try:
        there = next(p for p in (path, *path.parents) if p.exists())
    except OSError as problem:  # too long a name, or a folder that may not be looked into
        raise ConfigError(f"{path} cannot be a folder: {problem.strerror}") from None
    if not there.is_dir():
        raise ConfigError(f"{path} cannot be a folder: {there} is a file; choose another place")
    return path


def record_of(place: "Place", name: str) -> dict[str, Any] | None:
    """What the finished job of this name left; None if it has to be done, for whatever reason."""
    try:
        record = store.read_json(place.fetch(f"jobs/{name}.json"), Record)
    except CorruptFileError:
        return None
    folder, _, made = record["made"].rpartition("/")
    return record if made in place.names(folder) else None


def records(place: "Place", jobs: Sequence[Job]) -> dict[str, dict[str, Any]]:
    """By name, what those jobs left that need not be done again."""
    place.forget()
    written = place.names("jobs")
    there = {j.name: record_of(place, j.name) for j in jobs if f"{j.name}.json" in written}
    return {name: record for name, record in there.items() if record is not None}


def perform(job: Job, hear: Hear, started: Started, *, place: "Place") -> dict[str, Any]:
    """Do a job of a grid where it belongs, and leave its record."""
    begun, began_at = time.monotonic(), []

    def listen(done: int, total: int, note: str) -> None:
        began_at.append(done / total)  # the first one counts
        hear(done, total, note)

    place.forget()
    job = job.in_the_light_of(lambda name: record_of(place, name))
    with place.desk(job) as folder:
        result = call(job, listen, started, folder)
    record = {
        "kind": KIND,
        "name": job.name,
        "command": job.command,
        "made": job.makes or f"runs/{Path(result['run']).name}",
        "seconds": round(time.monotonic() - begun, 2),
        # A finished run that is opened again says nothing of its progress.
        "began_at": 0.0 if job.silent else began_at[0] if began_at else 1.0,
        "threads": job.threads,
        "machine": machine(),
    }
    store.write_json(place.home / "jobs" / f"{job.name}.json", record)
    place.publish(f"jobs/{job.name}.json")
    return record


@dataclass(frozen=True)
class Folder:
    """A folder that all machines share, or the only machine's."""

    home: Path

    def fetch(self, name: str) -> Path:
        """A file or folder, on this machine."""
        return self.home / name

    def publish(self, name: str) -> None:
        """Make a file or folder of this machine known to all: here it is."""

    def forget(self) -> None:
        """What was listed before, others may have added to."""

    def names(self, folder: str) -> set[str]:
        """What is in a folder."""
        path = self.home / folder
        return {entry.name for entry in path.iterdir()} if path.is_dir() else set()

    @contextmanager
    def desk(self, job: Job) -> Generator[Path]:
        """The folder in which a job works; what it makes there is published when it ends well."""
        self.home.mkdir(parents=True, exist_ok=True)
        yield self.home


@dataclass(frozen=True)
class Address:
    """A place behind an fsspec address, and the folder for it on each machine."""

    url: str
    work: Path
    every: float
    """Seconds between two uploads of a run under way: a lost machine costs so much work."""

    @property
    def home(self) -> Path:
        return self.work / store.sha256(self.url.encode())[:10]

    def _files(self) -> tuple[Any, str]:
        try:
            files, root = require("fsspec.core", "ray").url_to_fs(self.url)
        except (ImportError, ValueError) as problem:  # of a protocol
            raise ConfigError(
                f"{self.url} cannot be reached: {problem}; give a folder, or an address that "
                "fsspec knows: s3:// with the package s3fs installed, gs:// with gcsfs"
            ) from None
        return files, root

    def fetch(self, name: str) -> Path:
        """Data once per machine; runs and records, which others may have added to, each time."""
        here = self.home / name
        known = name.startswith("data/") and here.is_dir()
        return here if known else self._fetch(name, here)

    def _fetch(self, name: str, here: Path) -> Path:
        files, root = self._files()
        with store.exclusive(self.home / ".fetching", wait=True):
            if files.exists(f"{root}/{name}"):
                arriving = here.with_name(f".{here.name}.arriving")
                shutil.rmtree(arriving, ignore_errors=True)
                here.parent.mkdir(parents=True, exist_ok=True)
                files.get(f"{root}/{name}", str(arriving), recursive=True)
                if here.is_dir():
                    shutil.rmtree(here)
                arriving.replace(here)
        return here

    def publish(self, name: str) -> None:
        self._put(self.home / name, name)

    def _put(self, here: Path, name: str) -> None:
        files, root = self._files()
        sources = [here] if here.is_file() else [p for p in here.rglob("*") if p.is_file()]
        for source in sources:
            self._put_file(files, source, f"{root}/{PurePosixPath(name, source.relative_to(here))}")

    def _put_file(self, files: Any, source: Path, target: str) -> None:
        files.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
        files.put_file(str(source), target)

    def forget(self) -> None:
        self._files()[0].invalidate_cache()

    def names(self, folder: str) -> set[str]:
        files, root = self._files()
        if not files.exists(f"{root}/{folder}"):
            return set()
        return {path.rsplit("/", 1)[-1] for path in files.ls(f"{root}/{folder}", detail=False)}

    @contextmanager
    def desk(self, job: Job) -> Generator[Path]:
        """A folder of its own, with the data of all; its run is uploaded now and then."""
        desk, partial = self.home / "desks" / job.name, f"partial/{job.name}"
        (self.home / "data").mkdir(parents=True, exist_ok=True)
        desk.mkdir(parents=True, exist_ok=True)
        if not (desk / "data").exists():
            (desk / "data").symlink_to(self.home / "data")
        for name in job.needs:
            self.fetch(name) if name.startswith("data/") else self._fetch(name, desk / name)
        if not (desk / "runs").exists():
            self._fetch(partial, desk / "runs")
            for run in (desk / "runs").glob("*"):
                _keep_what_is_listed(run)
        over = threading.Event()
        uploads = threading.Thread(target=self._keep_uploading, args=(over, desk, partial))
        uploads.start()
        ended_well = False
        try:
            yield desk
            ended_well = True
        finally:
            over.set()
            uploads.join()
            if not ended_well:
                self._try_to_upload(desk, partial)  # what it saved when it was stopped
        self._put(desk / "runs", "runs")
        if job.makes:
            self._put(self.home / job.makes, job.makes)
        shutil.rmtree(desk)
        files, root = self._files()
        if files.exists(f"{root}/{partial}"):
            files.rm(f"{root}/{partial}", recursive=True)

    def _keep_uploading(self, over: threading.Event, desk: Path, partial: str) -> None:
        while not over.wait(self.every):
            self._try_to_upload(desk, partial)

    def _try_to_upload(self, desk: Path, partial: str) -> None:
        try:
            self._upload(desk, partial)
        except Exception as problem:  # of whatever kind the address's package has
            show_line(f"{self.url}: an upload failed, the next one tries again: {problem}")

    def _upload(self, desk: Path, partial: str) -> None:
        files, root = self._files()
        for run in (desk / "runs").glob("*"):
            contents = run / CONTENTS
            before = contents.read_bytes() if contents.exists() else b""
            for source in [*_in_safe_order(run), contents]:
                if source == contents and (not before or contents.read_bytes() != before):
                    break  # it lists files that came or went meanwhile: the next time
                inner = source.relative_to(desk / "runs")
                target = f"{root}/{PurePosixPath(partial, inner)}"
                with suppress(FileNotFoundError):  # an old checkpoint that was dropped
                    self._put_file(files, source, target)


Place = Folder | Address


def _keep_what_is_listed(run: Path) -> None:
    """Of a run that was being uploaded: what its list names; without a list, nothing."""
    if not (run / CONTENTS).exists():
        shutil.rmtree(run)
        return
    listed = store.read_json(run / CONTENTS, Contents)
    for folder in ("checkpoints", "evaluations", "probes", "divergences"):
        for path in (run / folder).glob("[0-9]*"):
            if int(path.stem) not in listed[folder]:
                path.unlink()


def _in_safe_order(run: Path) -> Iterator[Path]:
    """Files of a run so that whatever part of them arrives can be gone on with.

    A checkpoint vouches for the beginning of the log and for its own weights: these go first. It is
    looked up before the log is read, which only grows.
    """
    checkpoints = sorted((run / "checkpoints").glob("[0-9]*.json"))
    yield from (run / name for name in ("config.json", "metrics.jsonl"))
    for folder in ("evaluations", "probes", "divergences"):
        yield from (run / folder).glob("[0-9]*")
    for description in checkpoints:
        yield description.with_suffix(".safetensors")
        yield description
