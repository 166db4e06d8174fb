"""The command line: parse, call, print. Everything else lives behind the functions it calls."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from ertrl import __version__
from ertrl.errors import ConfigError, ErtrlError, Interrupted, unknown

M = TypeVar("M")
L = TypeVar("L")

USAGE = """\
usage: ertrl COMMAND [options]

Offline meta-reinforcement learning: from logged data of many tasks to an agent that adapts.

  demo      the whole way on Point-Robot in a few minutes, with a report at the end
  list      families, methods, learners, protocols and profiles
  collect   make behaviour data of a task family
  train     meta-train a method on a dataset, or resume a run
  evaluate  adapt a trained agent to all tasks under the context protocols
  report    tables, figures and one self-contained page from runs
  render    film an agent before and after adaptation
  verify    check every file of a dataset or run against its checksum
  bench     measure speed: bench train, bench env

`ertrl COMMAND --help` explains every option of a command. `ertrl --version` prints the version.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the return value is the exit code, 0 only on success."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0 if argv else 2
    if argv[0] == "--version":
        print(__version__)
        return 0
    try:
        if argv[0] not in COMMANDS:
            raise ConfigError(unknown("command", argv[0], COMMANDS))
        COMMANDS[argv[0]](argv[1:])
        return 0
    except Interrupted as stop:
        print(stop, file=sys.stderr)
        return stop.exit_code
    except ErtrlError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 141
    except OSError as error:
        print(f"error: {error}. Nothing that was complete before is lost.", file=sys.stderr)
        return 1


def _parse(command: Any, name: str, argv: Sequence[str], **options: Any) -> Any:
    import tyro

    return tyro.cli(command, prog=f"ertrl {name}", args=argv, **options)


def _peek(argv: Sequence[str], option: str, default: str) -> str:
    """Value of an option that decides what the other options are."""
    for i, word in enumerate(argv):
        if word == option and i + 1 < len(argv):
            return argv[i + 1]
        if word.startswith(f"{option}="):
            return word.split("=", 1)[1]
    return default


def _first_word(argv: Sequence[str]) -> str | None:
    return argv[0] if argv and not argv[0].startswith("-") else None


def _output(value: dict[str, Any], as_json: bool, text: str) -> None:
    print(json.dumps(value) if as_json else text)


def _use_threads(threads: int) -> None:
    """Must run before JAX is imported: XLA reads NPROC once."""
    if threads > 0:
        os.environ.setdefault("NPROC", str(threads))


# --- list ---


@dataclass
class ListCommand:
    """Show families, methods, learners, protocols and profiles."""

    json: bool = False
    """Print one JSON document with all details."""


def list_parts(argv: Sequence[str]) -> None:
    """`ertrl list`."""
    command = _parse(ListCommand, "list", argv)
    from ertrl.catalogue import catalogue

    parts = catalogue()
    if command.json:
        print(json.dumps(parts))
        return
    for kind, entries in parts.items():
        print(f"{kind}:")
        for name, entry in entries.items():
            print(f"  {name:18} {entry['summary']}")


# --- collect ---


def collect(argv: Sequence[str]) -> None:
    """`ertrl collect`."""
    import tyro

    from ertrl.config import CollectConfig
    from ertrl.envs import make_family
    from ertrl.progress import ProgressStyle

    family, profile = _first_word(argv), _peek(argv, "--profile", "laptop")

    @dataclass
    class CollectCommand:
        """Train behaviour policies for all tasks of a family and record them, poor to expert."""

        config: Annotated[CollectConfig, tyro.conf.arg(name="")]
        profile: str = "laptop"
        """Where the defaults below come from: laptop or paper."""
        option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
        """Variant of the family as NAME=VALUE, for example split=released; may be repeated."""
        out: Path | None = None
        """Dataset folder; data/FAMILY if not given."""
        progress: ProgressStyle = "auto"
        """Bars or lines (auto), JSON lines, or none."""
        json: bool = False
        """Print the result as JSON."""

    if family is None:
        _parse(CollectCommand, "collect FAMILY", argv, default=CollectCommand(CollectConfig()))
        raise ConfigError("say which FAMILY first: ertrl collect FAMILY [options]")
    from ertrl.profiles import collect_config

    options = make_family(family).options
    default = CollectCommand(collect_config(profile, family), profile)
    command = _parse(CollectCommand, f"collect {family}", argv[1:], default=default)
    from ertrl import api

    dataset = api.collect(
        family,
        command.out,
        config=command.config,
        options=_family_options(command.option, options),
        progress=command.progress,
    )
    value = {
        "dataset": str(dataset.path),
        "fingerprint": dataset.fingerprint,
        "tasks": len(dataset.tasks),
        "transitions": sum(len(task.steps) for task in dataset.tasks.values()),
    }
    text = f"{value['dataset']}: {value['tasks']} tasks, {value['transitions']} transitions"
    _output(value, command.json, text)


def _family_options(words: Sequence[str], defaults: dict[str, Any]) -> dict[str, Any]:
    chosen = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(f"--option takes NAME=VALUE, got '{word}'")
        wanted = type(defaults.get(name, ""))
        try:
            chosen[name] = value == "true" if wanted is bool else wanted(value)
        except ValueError:
            raise ConfigError(
                f"option {name} must be of type {wanted.__name__}, got '{value}'"
            ) from None
    return chosen


# --- train ---


def train(argv: Sequence[str]) -> None:
    """`ertrl train`."""
    _use_threads(int(_peek(argv, "--threads", "1")))
    import tyro

    from ertrl.config import TrainConfig
    from ertrl.progress import ProgressStyle

    @dataclass
    class Common:
        data: Path | None = None
        """Dataset folder, made by `ertrl collect`. A resumed run knows its own."""
        out: Path = Path("runs")
        """Where runs live. A run of the same configuration is resumed."""
        threads: int = 1
        """CPU threads of this run; 0 takes all. With 1, results repeat bit for bit."""
        progress: ProgressStyle = "auto"
        """Bars or lines (auto), JSON lines, or none."""
        json: bool = False
        """Print the result as JSON."""

    @dataclass
    class Resume(Common):
        """Meta-train METHOD on a dataset, or resume a run.

        `ertrl train METHOD --help` lists every setting of a method with its default.
        """

        what: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="METHOD|RUN")] = ""
        """A method (`ertrl list` shows them) or the folder of a run to resume."""

    @dataclass
    class Start(Common, Generic[M, L]):
        """Meta-train a method on a dataset. A run of the same configuration is resumed."""

        profile: str = "laptop"
        """Where the defaults below come from: laptop or paper."""
        use_learner: str = ""
        """Learner in place of the profile's: td3bc or brac."""
        config: Annotated[TrainConfig[M, L], tyro.conf.arg(name="")] = field(default=None)  # ty: ignore

    from ertrl import api

    what = _first_word(argv)
    if what is None or Path(what, "config.json").exists():
        command = _parse(Resume, "train", argv)
        if what is None:
            raise ConfigError("say first which METHOD to train or which RUN to resume; see --help")
        run = api.resume(command.what, data=command.data, progress=command.progress)
    else:
        from ertrl.data import Dataset
        from ertrl.learners import get_learner
        from ertrl.methods import get_method
        from ertrl.profiles import train_config

        method = get_method(what)
        profile = _peek(argv, "--profile", "laptop")
        data = _peek(argv, "--data", "")
        asked_for_help = {"-h", "--help"} & set(argv)
        if not data and not asked_for_help:
            raise ConfigError("train needs --data DIR, a dataset made by `ertrl collect FAMILY`")
        dataset = Dataset(data) if data else None
        family = dataset.family if dataset else "point-robot"
        learner, config = train_config(
            profile, family, what, _peek(argv, "--use-learner", "") or None
        )
        default = Start(profile=profile, use_learner=learner, config=config)
        kinds = (method.config, get_learner(learner).config)
        command = _parse(Start[kinds], f"train {what}", argv[1:], default=default)  # ty: ignore
        assert dataset is not None
        run = api.start(
            what,
            learner,
            command.config,
            dataset,
            profile=profile,
            out=command.out,
            progress=command.progress,
        )
    from ertrl.evaluation import summarise

    scores = summarise(run.evaluation())
    value = {"run": str(run.path), "updates": run.config.updates, "scores": scores}
    lines = [f"{k:22} {v:6.1f}" for k, v in scores.items()]
    text = "\n".join([f"{run.path}: normalised return (random 0, expert 100)", *lines])
    _output(value, command.json, text)


# --- evaluate, report, verify ---


@dataclass
class EvaluateCommand:
    """Adapt a trained agent to all tasks of its dataset and measure its return."""

    run: Path
    """Folder of the run."""
    protocol: tuple[str, ...] = ("offline", "online", "non-prior")
    """Where contexts come from; several may be given."""
    data: Path | None = None
    """Dataset folder, if it has moved since training."""
    step: int | None = None
    """Which checkpoint, by its number of updates; the newest if not given."""
    json: bool = False
    """Print the evaluation as JSON."""


def evaluate(argv: Sequence[str]) -> None:
    """`ertrl evaluate`."""
    _use_threads(1)
    import tyro

    command = _parse(EvaluateCommand, "evaluate", argv, config=(tyro.conf.PositionalRequiredArgs,))
    from ertrl import api
    from ertrl.evaluation import summarise

    result = api.evaluate(command.run, command.protocol, data=command.data, step=command.step)
    scores = summarise(result)
    text = "\n".join(f"{k:22} {v:6.1f}" for k, v in scores.items())
    _output({**result, "scores": scores}, command.json, text)


@dataclass
class ReportCommand:
    """Write report.html, tables and figures from runs."""

    runs: tuple[Path, ...]
    """Folders of runs, or folders that hold runs."""
    out: Path = Path("report")
    """Where to write."""
    data: tuple[Path, ...] = ()
    """Dataset folders, if they have moved since training."""
    json: bool = False
    """Print where the report is as JSON."""


def report(argv: Sequence[str]) -> None:
    """`ertrl report`."""
    _use_threads(1)
    import tyro

    command = _parse(ReportCommand, "report", argv, config=(tyro.conf.PositionalRequiredArgs,))
    from ertrl.reporting import print_summary
    from ertrl.reporting import report as write_report

    page = write_report(command.runs, command.out, command.data)
    if not command.json:
        print_summary(command.runs)
    _output({"report": str(page)}, command.json, f"wrote {page}")


@dataclass
class VerifyCommand:
    """Check every file of a dataset or run against its checksum."""

    paths: tuple[Path, ...]
    """Dataset or run folders."""
    json: bool = False
    """Print the result as JSON."""


def verify(argv: Sequence[str]) -> None:
    """`ertrl verify`."""
    import tyro

    command = _parse(VerifyCommand, "verify", argv, config=(tyro.conf.PositionalRequiredArgs,))
    if not command.paths:
        raise ConfigError("say which dataset or run to verify")
    from ertrl import api

    results = [api.verify(path) for path in command.paths]
    text = "\n".join(f"{r['path']}: {r['kind']}, {r['files']} files are whole" for r in results)
    _output({"verified": results}, command.json, text)


# --- demo, bench, render ---


@dataclass
class DemoCommand:
    """Collect data, meta-train ER-TRL and FOCAL, evaluate and report, in a few minutes."""

    family: str = "point-robot"
    """Which family; the MuJoCo ones take longer."""
    seeds: int = 2
    """Runs per method."""
    out: Path = Path("demo")
    """Where everything goes. Run again, it continues where it was."""
    json: bool = False
    """Print the result as JSON."""


def demo(argv: Sequence[str]) -> None:
    """`ertrl demo`."""
    command = _parse(DemoCommand, "demo", argv)
    from ertrl.launch.demo import demo as run_demo

    value = run_demo(command.family, command.seeds, command.out)
    if command.json:
        print(json.dumps(value))


@dataclass
class RenderCommand:
    """Film an agent before and after adaptation, side by side (MuJoCo families)."""

    run: Path
    """Folder of the run."""
    task: int = 20
    """Which task; 20 to 29 are held out and in distribution."""
    out: Path = Path("clip.mp4")
    """Where to write: .mp4 or .gif."""
    data: Path | None = None
    """Dataset folder, if it has moved since training."""
    json: bool = False
    """Print where the clip is as JSON."""


def render(argv: Sequence[str]) -> None:
    """`ertrl render`."""
    import tyro

    command = _parse(RenderCommand, "render", argv, config=(tyro.conf.PositionalRequiredArgs,))
    from ertrl import api

    path = api.render(command.run, command.task, command.out, data=command.data)
    _output({"clip": str(path)}, command.json, f"wrote {path}")


@dataclass
class BenchCommand:
    """Measure speed on this machine."""

    what: Literal["train", "env"]
    """Training updates against the machine's matrix-product peak, or simulation steps."""
    profile: str = "paper"
    """(train) Sizes of this profile."""
    family: str = "cheetah-vel"
    """(train) Sizes of this family. (env) Measure only this family, if given."""
    method: tuple[str, ...] = ("er-trl", "focal")
    """(train) Which methods."""
    seconds: float = 20.0
    """(train) Time to measure each method for."""
    threads: int = 0
    """CPU threads; 0 takes all."""
    json: bool = False
    """Print the result as JSON."""


def bench(argv: Sequence[str]) -> None:
    """`ertrl bench`."""
    _use_threads(int(_peek(argv, "--threads", "0")))
    import tyro

    command = _parse(BenchCommand, "bench", argv, config=(tyro.conf.PositionalRequiredArgs,))
    if command.what == "train":
        from ertrl.training.benchmark import benchmark, describe

        value = benchmark(command.method, command.profile, command.family, command.seconds)
    else:
        from ertrl.envs.benchmark import benchmark as benchmark_envs
        from ertrl.envs.benchmark import describe

        chosen = [command.family] if "--family" in argv else None
        value = benchmark_envs(chosen, threads=command.threads or None)
    _output(value, command.json, describe(value))


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "demo": demo,
    "list": list_parts,
    "collect": collect,
    "train": train,
    "evaluate": evaluate,
    "report": report,
    "render": render,
    "verify": verify,
    "bench": bench,
}
