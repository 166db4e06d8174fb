"""`ertrl train`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal

from tyro.conf import Positional, arg

from ertrl.cli.common import ESTIMATED, first_word, output, own_part, peek, score_lines
from ertrl.cli.options import Json, Progress, Variant, parse, plainly, unset
from ertrl.errors import ConfigError
from ertrl.training.config import L, M, TrainConfig


@plainly
@dataclass(kw_only=True)
class Train:
    """What starting and resuming have in common."""

    data: Annotated[Path | None, unset("DIR")] = None
    """Dataset folder, of `ertrl collect` or `ertrl data import`. A resumed run knows its own."""
    out: Path = Path("runs")
    """Where runs live. A run of the same configuration is resumed."""
    sink: tuple[Literal["tensorboard", "wandb"], ...] = ()
    """Send metrics to TensorBoard files or Weights & Biases, too (extras of the package)."""
    threads: int = 1
    """CPU threads of this run; 0 takes all. With 1, results repeat bit for bit."""
    progress: Progress = "auto"
    json: Json = False


@plainly
@dataclass(kw_only=True)
class Resume(Train):
    """Meta-train METHOD on a dataset, or resume a run.

    Every setting of a method and its default: `ertrl train METHOD --help`.
    """

    what: Annotated[Positional[str], unset("METHOD|RUN")] = ""
    """A method (`ertrl list` shows them) or the folder of a run to resume."""
    updates: Annotated[int | None, unset("N")] = None
    """For a run: train it further, to so many updates; that is a new run beside it."""


@dataclass(kw_only=True)
class Start(Train, Generic[M, L]):
    """Meta-train a method on a dataset. A run of the same configuration is resumed.

    Defaults depend on profile, variant and family: --help shows those of the words before it.
    """

    profile: Annotated[
        str, arg(help="Where the defaults below come from: laptop, paper, or logs (from the data).")
    ] = "laptop"
    variant: Variant = "paper"
    family: str = "point-robot"
    """Whose defaults --help shows where no --data says so."""
    use_learner: str = ""
    """Learner in place of the profile's; `ertrl list` shows them. FILE.py is one of your own."""
    seeds: Annotated[str, unset("SEEDS")] = ""
    """Several runs instead of one, for example 0-4 or 0,2,7; each is a run of its own."""
    seeds_in: Literal["auto", "processes", "program"] = "auto"
    """Seeds as processes of one thread each, as many at once as there are cores (auto: on
    CPUs), or in one program (auto: elsewhere)."""
    config: Annotated[TrainConfig[M, L], arg(name="")]


def run(argv: Sequence[str]) -> None:
    """Resume the run that is named, or start one of the method that is named."""
    what = first_word(argv)
    if what is None or Path(what, "config.json").exists():
        _resume(argv)
    else:
        _start(what, argv)


def _resume(argv: Sequence[str]) -> None:
    command = parse(Resume, "train", argv)
    if first_word(argv) is None:
        raise ConfigError("say first which METHOD to train or which RUN to resume; see --help")
    from ertrl import api

    run = api.resume(
        command.what,
        data=command.data,
        updates=command.updates,
        progress=command.progress,
        sinks=command.sink,
    )
    _print(run, command.json)


def _start(method: str, argv: Sequence[str]) -> None:
    from ertrl import api
    from ertrl.data import Dataset
    from ertrl.envs import family_names
    from ertrl.launch import parse_seeds, train_seeds
    from ertrl.learners import learners
    from ertrl.methods import get_method, methods
    from ertrl.profiles import default_profile, train_config
    from ertrl.progress import say

    method = own_part(method)
    if method in learners() and method not in methods():
        raise ConfigError(f"{method} is a learner, no method: give it with --use-learner")
    if method not in methods() and (Path(method).exists() or Path(method).name != method):
        raise ConfigError(f"{method} is neither a method nor a run: it has no config.json")
    get_method(method)  # a wrong name is the first thing to hear of
    data, asks_for_help = peek(argv, "--data", ""), {"-h", "--help"} & set(argv)
    if not data and not asks_for_help:
        raise ConfigError(
            "train needs --data DIR, a dataset made by `ertrl collect FAMILY`, or of your logs by "
            "`ertrl data import`"
        )
    dataset = Dataset(data) if data else None
    known = not dataset or not dataset.has_simulator or dataset.family in family_names()
    if asks_for_help and not known:
        say(
            f"{data} holds {dataset.family}, a family that this process does not know: name its "
            "file (--plugin FILE.py:NAME) to see its defaults; these are those of --family"
        )
        dataset = None
    family = dataset.family if dataset else peek(argv, "--family", "point-robot")
    if peek(argv, "--family", family) != family:
        raise ConfigError(f"{data} holds {family}; --family is for --help without --data")
    profile = peek(argv, "--profile", default_profile(dataset))
    variant = peek(argv, "--variant", "paper")
    config = train_config(
        profile,
        family,
        method,
        own_part(peek(argv, "--use-learner", "")) or None,
        variant,
        dataset=dataset,
    )
    learner = config.learner.name
    default = Start(
        profile=profile, variant=variant, family=family, use_learner=learner, config=config
    )
    kinds = type(config.method), type(config.learner)
    command = parse(Start[kinds], f"train {method}", argv[1:], default=default)  # ty: ignore
    assert dataset is not None  # without one, it was help that was asked for
    options = {
        "profile": profile,
        "variant": variant,
        "out": command.out,
        "progress": command.progress,
        "sinks": command.sink,
    }
    if not command.seeds:
        run = api.start(command.config, dataset, **options)
        _print(run, command.json)
        return
    taken = ["--seed"] if command.seeds_in == "program" else ["--seed", "--threads"]
    given = [option for option in taken if peek(argv, option, "")]
    if given:
        raise ConfigError(
            f"--seeds and {' and '.join(given)} do not go together: each run has a seed and a "
            "thread of its own"
        )
    seeds, how = parse_seeds(command.seeds), command.seeds_in
    runs = train_seeds(command.config, dataset, seeds, how=how, **options)
    _print_several(runs, command.json)


def _scores(run: Any) -> dict[str, float]:
    """Of the last evaluation."""
    from ertrl.evaluation import summarise

    return summarise(run.evaluations.read()) if run.evaluations.steps() else {}


def _title(scores: dict[str, float]) -> str:
    measured = any(name.startswith("offline/") for name in scores)
    return "normalised return (random 0, expert 100)" if measured else ESTIMATED


def _print(run: Any, as_json: bool) -> None:
    scores = _scores(run)
    value = {"run": str(run.path), "updates": run.config.updates, "scores": scores}
    text = "\n".join([f"{run.path}: {_title(scores)}", *score_lines(scores)])
    output(value, None if as_json else text)


def _print_several(runs: Sequence[Any], as_json: bool) -> None:
    scores = [_scores(run) for run in runs]
    value = {"runs": [str(run.path) for run in runs], "scores": scores}
    what = ": mean, min, max" if scores[0] and len(runs) > 1 else ""
    lines = [*value["runs"], f"{_title(scores[0])}, {len(runs)} seeds{what}", *score_lines(*scores)]
    output(value, None if as_json else "\n".join(lines))
