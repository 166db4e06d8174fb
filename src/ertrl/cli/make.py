"""Commands that make things: collect and train."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from ertrl.cli.common import first_word, output, parse, peek, peek_number, use_threads
from ertrl.errors import ConfigError

M = TypeVar("M")
L = TypeVar("L")


def collect(argv: Sequence[str]) -> None:
    """`ertrl collect`."""
    use_threads(peek_number(argv, "--threads", 0))
    import tyro

    from ertrl.collection.config import CollectConfig
    from ertrl.envs import make_family
    from ertrl.progress import ProgressStyle

    family, profile = first_word(argv), peek(argv, "--profile", "laptop")

    @dataclass
    class CollectCommand:
        """Train behaviour policies for all tasks of a family and record them, poor to expert.

        A collection that was stopped or killed goes on when the same command is given again.
        """

        config: Annotated[CollectConfig, tyro.conf.arg(name="")]
        profile: str = "laptop"
        """Where the defaults below come from: laptop or paper."""
        variant: str = "paper"
        """The paper's text, or what the released code does where that differs: released."""
        option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
        """Variant of the family as NAME=VALUE, for example split=released; may be repeated."""
        split: str = ""
        """Short for --option split=...: the tasks of the paper's text, or of the released code."""
        out: Path | None = None
        """Dataset folder; data/FAMILY if not given."""
        references: Path | None = None
        """Dataset of the same tasks whose expert returns are to be the upper end of this one's
        scale, too; for comparing several --style."""
        dry_run: bool = False
        """Measure for some seconds and print the time, memory and disk that all of it would take;
        nothing is written."""
        threads: int = 0
        """CPU threads; 0 takes all. With 1, data repeat bit for bit."""
        progress: ProgressStyle = "auto"
        """Bars or lines (auto), JSON lines, or none."""
        json: bool = False
        """Print the result as JSON."""

    if family is None:
        parse(CollectCommand, "collect FAMILY", argv, default=CollectCommand(CollectConfig()))
        raise ConfigError("say which FAMILY first: ertrl collect FAMILY [options]")
    from ertrl.profiles import collect_config, family_options

    options = make_family(family).options
    variant = peek(argv, "--variant", "paper")
    default = CollectCommand(collect_config(profile, family, variant), profile, variant)
    command = parse(CollectCommand, f"collect {family}", argv[1:], default=default)
    from ertrl import api

    chosen = {
        **family_options(profile, family, variant),
        **_family_options(command.option, options),
        **({"split": command.split} if command.split else {}),
    }
    if command.dry_run:
        from ertrl.collection import describe_estimate

        value = api.estimate_collection(family, command.out, config=command.config, options=chosen)
        output(value, command.json, describe_estimate(value))
        return
    dataset = api.collect(
        family,
        command.out,
        config=command.config,
        options=chosen,
        references=command.references,
        progress=command.progress,
    )
    value = {
        "dataset": str(dataset.path),
        "fingerprint": dataset.fingerprint,
        "tasks": len(dataset.tasks),
        "transitions": sum(len(task.steps) for task in dataset.tasks.values()),
    }
    text = f"{value['dataset']}: {value['tasks']} tasks, {value['transitions']} transitions"
    output(value, command.json, text)


def _family_options(words: Sequence[str], defaults: dict[str, Any]) -> dict[str, Any]:
    chosen = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(f"--option takes NAME=VALUE, got '{word}'")
        wanted = type(defaults.get(name, ""))
        try:
            truth = {"true": True, "false": False}
            chosen[name] = truth[value.lower()] if wanted is bool else wanted(value)
        except (ValueError, KeyError):
            kind = "true or false" if wanted is bool else f"of type {wanted.__name__}"
            raise ConfigError(f"option {name} must be {kind}, got '{value}'") from None
    return chosen


def train(argv: Sequence[str]) -> None:
    """`ertrl train`."""
    use_threads(peek_number(argv, "--threads", 1))
    import tyro

    from ertrl.progress import ProgressStyle
    from ertrl.training.config import TrainConfig

    @dataclass
    class Common:
        data: Path | None = None
        """Dataset folder, made by `ertrl collect`. A resumed run knows its own."""
        out: Path = Path("runs")
        """Where runs live. A run of the same configuration is resumed."""
        sink: tuple[Literal["tensorboard", "wandb"], ...] = ()
        """Send metrics to TensorBoard files or Weights & Biases, too (extras of the package)."""
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
        updates: int | None = None
        """For a run: train it further, to so many updates; that is a new run beside it."""

    @dataclass
    class Start(Common, Generic[M, L]):
        """Meta-train a method on a dataset. A run of the same configuration is resumed.

        Defaults depend on profile, variant and family: --help shows those of the words before it.
        """

        profile: str = "laptop"
        """Where the defaults below come from: laptop or paper."""
        variant: str = "paper"
        """The paper's text, or what the released code does where that differs: released."""
        family: str = "point-robot"
        """Whose defaults --help shows where no --data says so."""
        use_learner: str = ""
        """Learner in place of the profile's: td3bc or brac."""
        seeds: str = ""
        """Several runs instead of one, for example 0-4 or 0,2,7; each is a run of its own."""
        seeds_in: Literal["auto", "processes", "program"] = "auto"
        """Seeds as processes of one thread each, as many at once as there are cores (auto: on
        CPUs), or in one program (auto: elsewhere)."""
        config: Annotated[TrainConfig[M, L], tyro.conf.arg(name="")] = field(default=None)  # ty: ignore

    from ertrl import api

    what = first_word(argv)
    if what is None or Path(what, "config.json").exists():
        command = parse(Resume, "train", argv)
        if what is None:
            raise ConfigError("say first which METHOD to train or which RUN to resume; see --help")
        run = api.resume(
            command.what,
            data=command.data,
            updates=command.updates,
            progress=command.progress,
            sinks=command.sink,
        )
    else:
        from ertrl.data import Dataset
        from ertrl.learners import get_learner
        from ertrl.methods import get_method, methods
        from ertrl.profiles import profile_label, train_config

        if what not in methods() and (Path(what).exists() or Path(what).name != what):
            raise ConfigError(f"{what} is neither a method nor a run: it has no config.json")
        method = get_method(what)
        profile = peek(argv, "--profile", "laptop")
        data = peek(argv, "--data", "")
        asked_for_help = {"-h", "--help"} & set(argv)
        if not data and not asked_for_help:
            raise ConfigError("train needs --data DIR, a dataset made by `ertrl collect FAMILY`")
        dataset = Dataset(data) if data else None
        family = dataset.family if dataset else peek(argv, "--family", "point-robot")
        if dataset and peek(argv, "--family", family) != family:
            raise ConfigError(f"{data} holds {family}; --family is for --help without --data")
        chosen = peek(argv, "--use-learner", "") or None
        variant = peek(argv, "--variant", "paper")
        simulated = dataset is None or dataset.has_simulator
        learner, config = train_config(
            profile, family, what, chosen, variant, has_simulator=simulated
        )
        default = Start(
            profile=profile, variant=variant, family=family, use_learner=learner, config=config
        )
        kinds = (method.config, get_learner(learner).config)
        command = parse(Start[kinds], f"train {what}", argv[1:], default=default)  # ty: ignore
        assert dataset is not None
        options = {
            "profile": profile_label(profile, variant),
            "out": command.out,
            "progress": command.progress,
            "sinks": command.sink,
        }
        if command.seeds:
            from ertrl.launch import parse_seeds, train_seeds

            taken = ["--seed"] if command.seeds_in == "program" else ["--seed", "--threads"]
            given = [option for option in taken if peek(argv, option, "")]
            if given:
                raise ConfigError(
                    f"--seeds and {' and '.join(given)} do not go together: each run has a seed "
                    "and a thread of its own"
                )
            seeds = parse_seeds(command.seeds)
            runs = train_seeds(
                what, learner, command.config, dataset, seeds, how=command.seeds_in, **options
            )
            _print_several(runs, command.json)
            return
        run = api.start(what, learner, command.config, dataset, **options)
    from ertrl.evaluation import summarise

    # A dataset of logs has no simulator to measure returns in.
    scores = summarise(run.evaluation()) if run.evaluation_steps() else {}
    value = {"run": str(run.path), "updates": run.config.updates, "scores": scores}
    lines = [f"{k:22} {v:6.1f}" for k, v in scores.items()]
    what = "normalised return (random 0, expert 100)" if scores else "trained; no simulator"
    text = "\n".join([f"{run.path}: {what}", *lines])
    output(value, command.json, text)


def _print_several(runs: Sequence[Any], as_json: bool) -> None:
    from ertrl.evaluation import summarise

    # A dataset of logs has no simulator to measure returns in.
    scores = [summarise(run.evaluation()) if run.evaluation_steps() else {} for run in runs]
    value = {"runs": [str(run.path) for run in runs], "scores": scores}
    what = "normalised return (random 0, expert 100)" if scores[0] else "trained; no simulator"
    lines = [*value["runs"], f"{what}, {len(runs)} seeds{': mean, min, max' if scores[0] else ''}"]
    for name in scores[0]:
        of_seeds = [s[name] for s in scores if name in s]
        mean = sum(of_seeds) / len(of_seeds)
        lines.append(f"{name:22} {mean:6.1f} {min(of_seeds):6.1f} {max(of_seeds):6.1f}")
    output(value, as_json, "\n".join(lines))
