"""A grid of experiments as a graph of jobs: collect, then train, then probe.

A job is named by what it is made from: all settings, and the jobs before it. Asked for again, with
more seeds, methods or families, a grid therefore has the old jobs under their old names.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ertrl.collection.config import BehaviourConfig
from ertrl.config import fingerprint, flat, replace_from_json, to_json
from ertrl.envs import Family, make_family, parse_options
from ertrl.errors import ConfigError
from ertrl.launch.jobs import RUN, Job
from ertrl.profiles import DEFAULT_VARIANT, collect_config, family_options, train_config
from ertrl.training.beforehand import own_code
from ertrl.training.config import TrainConfig

S = TypeVar("S", bound=tuple)
R = TypeVar("R")


class Data(NamedTuple):
    """Behaviour data of a family, with what differs from its profile."""

    family: str
    options: Mapping[str, Any] = {}
    """Of the family itself."""
    settings: Mapping[str, Any] = {}
    """Of the collection."""
    references: "Data | None" = None
    """Data whose expert returns are the upper end of this one's scale, too."""

    @property
    def label(self) -> str:
        changes = {**self.options, **self.settings}
        return " ".join([self.family, *(f"{k}={v}" for k, v in changes.items())])

    @property
    def folder(self) -> str:
        """Name of a folder for results on it: "cheetah-vel", or "cheetah-vel-released"."""
        return "-".join([self.family, *map(str, self.options.values())])


class Contender(NamedTuple):
    """A method of a comparison, with what differs from its profile."""

    method: str
    learner: str | None = None
    """None: the profile's."""
    settings: Mapping[str, Any] = {}

    @property
    def label(self) -> str:
        method = self.method + (f"+{self.learner}" if self.learner else "")
        return " ".join([method, *(f"{k}={v}" for k, v in flat(self.settings))])


class Cell(NamedTuple):
    """One run of a grid."""

    data: Data
    contender: Contender
    seed: int

    @property
    def label(self) -> str:
        return f"{self.data.label} {self.contender.label} seed {self.seed}"


@contextmanager
def told_of(job: str) -> Generator[None]:
    """Settings of a grid suit some of its jobs and others not: a mistake names the job."""
    try:
        yield
    except ConfigError as mistake:
        raise ConfigError(f"{job}: {mistake}") from None


def once(method: Callable[["Grid", S], R]) -> Callable[["Grid", S], R]:
    """Let a grid answer each question once: every cell asks again for its data's settings."""

    @wraps(method)
    def answer(grid: "Grid", subject: S) -> R:
        question = method, repr(subject)
        if question not in grid.answers:
            grid.answers[question] = method(grid, subject)
        return grid.answers[question]

    return answer


@dataclass(frozen=True)
class Grid:
    """Runs side by side; family by family, and seed by seed within."""

    cells: tuple[Cell, ...]
    profile: str = "laptop"
    variant: str = DEFAULT_VARIANT
    probe_transitions: int = 0
    """Transitions per task for the probes of every run; 0: no probes."""
    threads: int = 1
    gpus: float = 0.0
    """GPUs of each training."""
    collect_settings: Mapping[str, Any] = field(default_factory=dict)
    """Of all collections, where they differ from the profile's."""
    train_settings: Mapping[str, Any] = field(default_factory=dict)
    answers: dict[tuple[Callable, str], Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """What `once` remembers."""

    @once
    def family(self, data: Data) -> Family:
        options = family_options(self.profile, data.family, self.variant)
        return make_family(data.family, **{**options, **data.options})

    @once
    def collect_config(self, data: Data) -> BehaviourConfig:
        config = collect_config(self.profile, data.family, self.variant)
        with told_of(f"collect {data.label}"):
            for settings in (self.collect_settings, data.settings):
                config = replace_from_json(config, dict(settings))
            config.validate()
        return config

    def train_config(self, cell: Cell) -> TrainConfig:
        of_all_seeds = self._train_config(cell._replace(seed=0))
        return replace_from_json(of_all_seeds, {"seed": cell.seed})

    @once
    def _train_config(self, cell: Cell) -> TrainConfig:
        method, learner, settings = cell.contender
        config = train_config(self.profile, cell.data.family, method, learner, self.variant)
        with told_of(f"train {cell.contender.label} on {cell.data.label}"):
            for changes in (self.train_settings, settings):
                config = replace_from_json(config, dict(changes))
            config.validate()
        return config

    @property
    def _threads(self) -> dict[str, int]:
        """Their number changes bits, so it is part of what a job is made from; 1 goes unsaid."""
        return {} if self.threads == 1 else {"threads": self.threads}

    @once
    def collection(self, data: Data) -> Job:
        """The job that makes a dataset."""
        scale = self.collection(data.references) if data.references else None
        made = {
            "family": data.family,
            "options": self.family(data).options,
            "config": to_json(self.collect_config(data)),
            "references": scale and scale.name,
            **self._threads,
        }
        name = f"{data.family}-{fingerprint(made)}"
        words = ["collect", data.family, *self._origin]
        words += words_of(self.collect_settings) + words_of(data.settings)
        for option, value in data.options.items():
            words += ["--option", f"{option}={value}"]
        words += ["--out", f"data/{name}", "--threads", str(self.threads), "--json"]
        return Job(
            label=f"collect {data.label}",
            arguments=(*words, *(("--references", scale.makes) if scale else ())),
            log=Path("jobs") / f"collect-{name}.log",
            name=f"collect-{name}",
            after=(scale.name,) if scale else (),
            needs=(scale.makes,) if scale else (),
            makes=f"data/{name}",
            threads=self.threads,
        )

    @once
    def training(self, cell: Cell) -> Job:
        """The job that trains and evaluates a run."""
        config, collection = self.train_config(cell), self.collection(cell.data)
        method, learner = config.method.name, config.learner.name
        made = {"method": method, "learner": learner, "config": to_json(config), **self._threads}
        if code := own_code(config):
            made["code"] = code
        digits = fingerprint({**made, "data": collection.name})
        name = f"train-{cell.data.family}-{method}-{learner}-s{cell.seed}-{digits}"
        words = ["train", method, "--data", collection.makes, *self._origin]
        words += ["--use-learner", learner]
        words += words_of(self.train_settings) + words_of(cell.contender.settings)
        words += ["--seed", str(cell.seed), "--out", "runs", "--threads", str(self.threads)]
        return Job(
            label=cell.label,
            arguments=(*words, "--json"),
            log=Path("jobs") / f"{name}.log",
            name=name,
            after=(collection.name,),
            needs=(collection.makes,),
            threads=self.threads,
            gpus=self.gpus,
        )

    def probing(self, cell: Cell) -> Job:
        """The job that asks what a run's z knows."""
        training, collection = self.training(cell), self.collection(cell.data)
        amount = str(self.probe_transitions)
        words = ["evaluate", RUN, "--probes", "--probe-transitions", amount]
        name = training.name.replace("train-", "probe-", 1) + f"-{amount}"
        return Job(
            label=f"probe {cell.label}",
            arguments=(*words, "--data", collection.makes, "--json"),
            log=Path("jobs") / f"{name}.log",
            name=name,
            after=(training.name,),
            needs=(RUN, collection.makes),
            silent=True,
        )

    def subjects(self) -> dict[str, tuple[Job, Data | Cell]]:
        """Jobs by name and what they are for, in the order in which they are worth doing.

        A job that two cells need is one.
        """
        found: dict[str, tuple[Job, Data | Cell]] = {}

        def add(job: Job, what: Data | Cell) -> None:
            found.setdefault(job.name, (job, what))

        for cell in self.cells:
            for data in filter(None, (cell.data.references, cell.data)):
                add(self.collection(data), data)
            add(self.training(cell), cell)
            if self.probe_transitions:
                add(self.probing(cell), cell)
        return found

    def jobs(self) -> list[Job]:
        return [job for job, _ in self.subjects().values()]

    @property
    def _origin(self) -> tuple[str, ...]:
        return ("--profile", self.profile, "--variant", self.variant)


def cells(
    datasets: Sequence[Data], contenders: Sequence[Contender], seeds: Sequence[int]
) -> tuple[Cell, ...]:
    """Every contender on every dataset with every seed."""
    ordered = product(datasets, seeds, contenders)
    return tuple(Cell(data, contender, seed) for data, seed, contender in ordered)


def words_of(settings: Mapping[str, Any]) -> list[str]:
    """Nested settings as options of the command line."""
    words = []
    for name, value in flat(settings):
        option = name.replace("_", "-")
        if isinstance(value, bool):
            head, dot, last = option.rpartition(".")
            words.append(f"--{head}{dot}{'' if value else 'no-'}{last}")
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        words += [f"--{option}", *map(str, values)]
    return words


def parse_data(word: str) -> Data:
    """'cheetah-vel', or 'cheetah-vel:split=released' with options of the family."""
    family, colon, options = word.partition(":")
    known = make_family(family).options
    return Data(family, parse_options(options.split(",") if colon else [], known))


def parse_contender(word: str) -> Contender:
    """'focal', or 'focal+brac' with another learner than the profile's."""
    method, plus, learner = word.partition("+")
    if plus and not learner:
        raise ConfigError(f"after + comes a learner, as in {method}+brac; got '{word}'")
    return Contender(method, learner or None)
