"""Commands that make things: collect and train."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from ertrl.cli.common import first_word, output, parse, peek, peek_number, use_threads
from ertrl.errors import ConfigError

M = TypeVar("M")
L = TypeVar("L")


def collect(argv: Sequence[str]) -> None:
    """`ertrl collect`."""
    import tyro

    from ertrl.config import CollectConfig
    from ertrl.envs import make_family
    from ertrl.progress import ProgressStyle

    family, profile = first_word(argv), peek(argv, "--profile", "laptop")

    @dataclass
    class CollectCommand:
        """Train behaviour policies for all tasks of a family and record them, poor to expert."""

        config: Annotated[CollectConfig, tyro.conf.arg(name="")]
        profile: str = "laptop"
        """Where the defaults below come from: laptop or paper."""
        variant: str = "paper"
        """The paper's text, or what the released code does where that differs: released."""
        option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
        """Variant of the family as NAME=VALUE, for example split=released; may be repeated."""
        out: Path | None = None
        """Dataset folder; data/FAMILY if not given."""
        progress: ProgressStyle = "auto"
        """Bars or lines (auto), JSON lines, or none."""
        json: bool = False
        """Print the result as JSON."""

    if family is None:
        parse(CollectCommand, "collect FAMILY", argv, default=CollectCommand(CollectConfig()))
        raise ConfigError("say which FAMILY first: ertrl collect FAMILY [options]")
    from ertrl.profiles import collect_config

    options = make_family(family).options
    variant = peek(argv, "--variant", "paper")
    default = CollectCommand(collect_config(profile, family, variant), profile, variant)
    command = parse(CollectCommand, f"collect {family}", argv[1:], default=default)
    from ertrl import api

    dataset = api.collect(
        family,
        command.out,
        profile=profile,
        variant=variant,
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
        variant: str = "paper"
        """The paper's text, or what the released code does where that differs: released."""
        use_learner: str = ""
        """Learner in place of the profile's: td3bc or brac."""
        config: Annotated[TrainConfig[M, L], tyro.conf.arg(name="")] = field(default=None)  # ty: ignore

    from ertrl import api

    what = first_word(argv)
    if what is None or Path(what, "config.json").exists():
        command = parse(Resume, "train", argv)
        if what is None:
            raise ConfigError("say first which METHOD to train or which RUN to resume; see --help")
        run = api.resume(command.what, data=command.data, progress=command.progress)
    else:
        from ertrl.data import Dataset
        from ertrl.learners import get_learner
        from ertrl.methods import get_method
        from ertrl.profiles import profile_label, train_config

        method = get_method(what)
        profile = peek(argv, "--profile", "laptop")
        data = peek(argv, "--data", "")
        asked_for_help = {"-h", "--help"} & set(argv)
        if not data and not asked_for_help:
            raise ConfigError("train needs --data DIR, a dataset made by `ertrl collect FAMILY`")
        dataset = Dataset(data) if data else None
        family = dataset.family if dataset else "point-robot"
        chosen = peek(argv, "--use-learner", "") or None
        variant = peek(argv, "--variant", "paper")
        simulated = dataset is None or dataset.has_simulator
        learner, config = train_config(
            profile, family, what, chosen, variant, has_simulator=simulated
        )
        default = Start(profile=profile, variant=variant, use_learner=learner, config=config)
        kinds = (method.config, get_learner(learner).config)
        command = parse(Start[kinds], f"train {what}", argv[1:], default=default)  # ty: ignore
        assert dataset is not None
        run = api.start(
            what,
            learner,
            command.config,
            dataset,
            profile=profile_label(profile, variant),
            out=command.out,
            progress=command.progress,
        )
    from ertrl.evaluation import summarise

    # A dataset of logs has no simulator to measure returns in.
    scores = summarise(run.evaluation()) if run.evaluation_steps() else {}
    value = {"run": str(run.path), "updates": run.config.updates, "scores": scores}
    lines = [f"{k:22} {v:6.1f}" for k, v in scores.items()]
    what = "normalised return (random 0, expert 100)" if scores else "trained; no simulator"
    text = "\n".join([f"{run.path}: {what}", *lines])
    output(value, command.json, text)
