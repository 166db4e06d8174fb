"""What a person does, as functions: collect, train, evaluate, probe, render, export, verify."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from ertrl import rng
from ertrl.collection.collect import collect as collect_dataset
from ertrl.collection.config import BehaviourConfig
from ertrl.collection.cost import estimate
from ertrl.collection.savepoints import sweep
from ertrl.config import replace_from_json, to_json
from ertrl.data import Dataset, write_card
from ertrl.data.card import CARD
from ertrl.data.dataset import unfinished
from ertrl.envs import Family, group_title, make_family
from ertrl.envs.families import own_family
from ertrl.errors import ConfigError, DataError
from ertrl.evaluation import PAPER_PROTOCOLS, Agent, Evaluation, evaluate_agent, warn_of_scale
from ertrl.evaluation.context import EVALUATION_SEED
from ertrl.evaluation.evaluate import check_protocols
from ertrl.learners import Learner, own_learner
from ertrl.methods import Method, own_method
from ertrl.profiles import (
    DEFAULT_VARIANT,
    collect_config,
    default_profile,
    family_options,
    train_config,
)
from ertrl.progress import ProgressStyle, say
from ertrl.provenance import bound_threads, device_text
from ertrl.training import Run, SinkName, check_sinks, lengthen, train_run
from ertrl.training.beforehand import warn_of_other_code
from ertrl.training.config import TrainConfig
from ertrl.training.records import settle

bound_threads()

REPLAY_TOLERANCE = 0.1
"""How far a replayed episode's return may be from the logged one, as a share of what it gained."""

if TYPE_CHECKING:
    from ertrl.evaluation.probes import Probes, ProbeSettings


def collect(
    family: str | Family | type[Family],
    out: str | Path | None = None,
    *,
    profile: str = "laptop",
    variant: str = DEFAULT_VARIANT,
    config: BehaviourConfig | None = None,
    settings: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    references: str | Path | Dataset | None = None,
    progress: ProgressStyle = "auto",
) -> Dataset:
    """Collect behaviour data of a family into the folder `out` (data/FAMILY by default).

    The family is a name, or a class or object of one's own, for example of `register_family`.
    Settings come from the profile and its variant unless `config` gives them all; `settings`
    overrides some of them: `{"steps": 2000, "checkpoints": 10}`. `options` choose a variant of the
    family and win over the profile's. `references` is a dataset of the same tasks
    whose expert returns are to be the upper end of this one's scale, too. A collection with the
    same settings that was stopped goes on; a dataset that is already there with the same settings
    is opened instead.
    """
    made, config, path = _plan(family, out, profile, variant, config, options)
    config = replace_from_json(config, settings or {})
    scale = None if references is None else _scale(Dataset.of(references), made)
    if path.is_dir() and not any(path.iterdir()):
        path.rmdir()  # somebody made room; the dataset takes its place when it is complete
    if path.exists():
        dataset = _collected(path, made, config, scale)
        say(f"{path} was finished before; it is only opened", progress)
        return dataset
    dataset = collect_dataset(made, config, path, progress, scale)
    try:
        warn_of_scale(dataset)
    except DataError as problem:
        warnings.warn(str(problem), stacklevel=2)
    return dataset


def estimate_collection(
    family: str | Family | type[Family],
    out: str | Path | None = None,
    *,
    profile: str = "laptop",
    variant: str = DEFAULT_VARIANT,
    config: BehaviourConfig | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Time, memory and disk that `collect` would take here, measured in a few seconds."""
    return estimate(*_plan(family, out, profile, variant, config, options))


def register(part: type[Method] | type[Learner]) -> None:
    """Make a method or learner of one's own known by its name, for runs that were trained with it.

    `train` does so by itself.
    """
    if isinstance(part, type) and issubclass(part, Learner):
        own_learner(part)
    else:
        own_method(part)


def train(
    method: str | Method | type[Method],
    data: str | Path | Dataset,
    *,
    profile: str | None = None,
    variant: str = DEFAULT_VARIANT,
    learner: str | Learner | type[Learner] | None = None,
    seed: int | None = None,
    updates: int | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path = "runs",
    progress: ProgressStyle = "auto",
    sinks: Sequence[SinkName] = (),
) -> Run:
    """Meta-train on a dataset; a run of the same configuration is resumed.

    Method and learner are names, or classes or objects of one's own; an object keeps its settings.
    `settings` overrides parts of the profile, as nested dictionaries:
    `{"decay": 0.5, "method": {"mi_weight": 0.25}}`. The seed is 0 unless given. `sinks` get the
    metrics, too: "tensorboard", "wandb". The profile is laptop, or logs if there is no simulator.
    """
    dataset = Dataset.of(data)
    profile = profile or default_profile(dataset)
    named = method if isinstance(method, str) else own_method(method).name
    by = learner if isinstance(learner, (str, NoneType)) else own_learner(learner).name
    config = train_config(profile, dataset.family, named, by, variant, dataset=dataset)
    if isinstance(method, Method):
        config = replace(config, method=method)
    if isinstance(learner, Learner):
        config = replace(config, learner=learner)
    chosen = dict(settings or {})
    for name, value in (("seed", seed), ("updates", updates)):
        if value is not None and chosen.setdefault(name, value) != value:
            told = f"{name} is {value} and settings say {chosen[name]}"
            raise ConfigError(f"{told}; give one of them")
    config = replace_from_json(config, chosen)
    origin = {"profile": profile, "variant": variant}
    return start(config, dataset, **origin, out=out, progress=progress, sinks=sinks)


def start(
    config: TrainConfig,
    dataset: Dataset,
    *,
    profile: str = "custom",
    variant: str = "",
    out: str | Path = "runs",
    progress: ProgressStyle = "auto",
    sinks: Sequence[SinkName] = (),
) -> Run:
    """Train with a complete configuration; `profile` is a note of where it comes from."""
    check_sinks(sinks)
    run = Run.create(out, dataset, config, profile, variant)
    return train_run(run, dataset, progress, sinks)


def resume(
    run: str | Path | Run,
    *,
    data: str | Path | None = None,
    updates: int | None = None,
    progress: ProgressStyle = "auto",
    sinks: Sequence[SinkName] = (),
) -> Run:
    """Continue a run where it stands.

    With more `updates` than it has, a longer run beside it goes on from its newest checkpoint.
    """
    run = Run.of(run)
    dataset = run.open_dataset(data)
    if updates is not None and updates != run.config.updates:
        run = lengthen(run, dataset, updates)
    return train_run(run, dataset, progress, sinks)


def load_agent(run: str | Path | Run, step: int | None = None) -> Agent:
    """Load the agent of a run's checkpoint (the newest by default)."""
    run = Run.of(run)
    state, _ = run.load(step)
    warn_of_other_code(run.path, run.spec, run.config)
    return run.agent(state)


def evaluate(
    run: str | Path | Run,
    protocols: str | Sequence[str] | None = None,
    *,
    data: str | Path | None = None,
    step: int | None = None,
    progress: ProgressStyle = "auto",
) -> Evaluation:
    """Evaluate a run's checkpoint on all tasks and keep the result with the run.

    The result's `scores` are the mean normalised returns. The protocols are the paper's three
    unless some are named; where there is no simulator, none can be. What was measured before at
    this step is not measured again.
    """
    run = Run.of(run)
    protocols = [protocols] if isinstance(protocols, str) else protocols
    if protocols is not None and len(protocols) == 0:
        raise ConfigError(
            "an evaluation needs at least one protocol, got an empty list; leave protocols out for "
            f"{', '.join(PAPER_PROTOCOLS)}"
        )
    check_protocols(protocols or ())
    step = run.checkpoints.chosen(step)
    dataset = None if data is None else run.open_dataset(data)
    settle(run)
    oracle = None
    if step in run.evaluations:
        known = run.evaluations.read(step)
        missing = tuple(PAPER_PROTOCOLS if protocols is None else protocols)
        if known["evaluation"] == to_json(run.config.evaluation):
            oracle = known.get("oracle")
            missing = tuple(name for name in missing if name not in known["protocols"])
        if not missing or ("logs" in known and protocols is None):
            say(f"evaluate: {run.path} was measured before, opened as it is", progress)
            return Evaluation(known)
        protocols = missing
    dataset, agent = dataset or run.open_dataset(), load_agent(run, step)
    say(f"evaluate: on {device_text()}", progress)
    result = evaluate_agent(
        agent, dataset, step=step, run=run.name, protocols=protocols, known_oracle=oracle
    )
    return Evaluation(run.add_evaluation(result))


def probe(
    run: str | Path | Run,
    *,
    data: str | Path | None = None,
    step: int | None = None,
    settings: "ProbeSettings | None" = None,
    progress: ProgressStyle = "auto",
) -> "Probes":
    """Probe what a checkpoint's z knows of task and behaviour policy; kept with the run.

    Probes that are already there with the same settings are returned as they are.
    """
    from ertrl.evaluation import probes  # scikit-learn takes a second

    run = Run.of(run)
    step = run.checkpoints.chosen(step)
    settings = settings or probes.ProbeSettings()
    dataset = None if data is None else run.open_dataset(data)
    settle(run)
    if step in run.probes:
        known = run.probes.read(step)
        if known["settings"] == to_json(settings):
            say(f"probes: {run.path} was probed before, opened as it is", progress)
            return probes.Probes(known)
    dataset, agent = dataset or run.open_dataset(), load_agent(run, step)
    say(f"probes: on {device_text()}", progress)
    result = probes.probe_agent(agent, dataset, step=step, run=run.name, settings=settings)
    run.add_probes(result)
    return probes.Probes(result)


def render(
    run: str | Path | Run, task: int, out: str | Path, *, data: str | Path | None = None
) -> Path:
    """Film an agent in a task before (z0) and after adaptation (offline context), side by side.

    A third panel replays the best logged episode, where its actions lead to the same return again;
    episodes of a few seconds are shown in slow motion.
    """
    from ertrl.envs import render as film  # it needs the graphics packages

    film.check_suffix(out)
    run = Run.of(run)
    dataset, agent = run.open_dataset(data), load_agent(run)
    family, logged = dataset.make_family(), dataset.task(task)
    size = run.config.evaluation.episodes * family.horizon
    rows = rng.generator(EVALUATION_SEED, "render", task).integers(len(logged.steps), size=size)
    adapted = agent.adapt(logged.transitions(rows))
    best = int(np.argmax(logged.returns))
    plan = np.concatenate([logged.actions[best], np.zeros_like(logged.actions[best, :1])])
    panels = {
        "before adaptation": lambda s, t: agent.act(s, agent.z0[None]),
        "adapted": lambda s, t: agent.act(s, adapted.z[None]),
        "best logged episode": lambda s, t: plan[None, t],
    }
    clips = {
        label: film.render_rollout(family, task, act, width=480, height=360)
        for label, act in panels.items()
    }
    known, again = logged.returns[best], clips["best logged episode"].reward
    if abs(again - known) > REPLAY_TOLERANCE * abs(known - logged.reference["random"]):
        del clips["best logged episode"]  # it started elsewhere, and actions alone do not show it
    images = film.render_side_by_side(
        *(film.caption(c.images, f"{label}: return {c.reward:.1f}") for label, c in clips.items())
    )
    fps = clips["adapted"].fps
    shown = film.watchable(len(images), fps)
    names = zip(family.parameter_names, logged.parameters, strict=True)
    title = [
        f"{run.method.name}, seed {run.config.seed}",
        f"{dataset.family} task {task} ({group_title(logged.group).lower()})",
        *(f"{name} {value:.3g}" for name, value in names),
        f"expert return {logged.reference['expert']:.1f}",
    ]
    title += [f"slow motion 1/{fps / shown:.1f}"] if shown < fps else []
    return film.write_video(out, film.caption(images, ", ".join(title)), shown)


def export(
    run: str | Path | Run,
    out: str | Path = "agent",
    *,
    onnx: bool = False,
    data: str | Path | None = None,
    step: int | None = None,
) -> dict[str, Any]:
    """Write a run's agent for machines without JAX into the new folder `out`.

    `ertrl.runtime.load` reads it; with `onnx`, encoder and policy are there as ONNX graphs, too.
    Both are compared with the agent in JAX, on random and on logged data, before they appear.
    """
    from ertrl.deploy import export_agent

    run = Run.of(run)
    step = run.checkpoints.chosen(step)
    about = {
        "run": run.name,
        "step": step,
        "family": run.family,
        "method": run.method.name,
        "learner": run.learner.name,
    }
    agent, dataset = load_agent(run, step), run.open_dataset(data)
    return export_agent(agent, Path(out), about, dataset, onnx=onnx)


def verify(path: str | Path) -> dict[str, Any]:
    """Check every file of a dataset, a run or an exported agent against its checksum."""
    from ertrl.deploy import verify_agent

    path = Path(path)
    if (path / "manifest.json").exists():
        dataset = Dataset(path, verify=False)
        return {"path": str(path), "kind": "dataset", "files": dataset.verify()}
    if (path / "agent.json").exists():
        return {"path": str(path), "kind": "agent", "files": verify_agent(path)}
    if not (path / "config.json").exists():
        if told := unfinished(path):
            raise DataError(told)
        if not path.exists():
            raise DataError(f"{path} does not exist")
        raise DataError(
            f"{path} is neither a dataset nor a run, nor an exported agent: it has no "
            "manifest.json, config.json or agent.json"
        )
    return {"path": str(path), "kind": "run", "files": Run(path).verify()}


def _plan(
    family: str | Family | type[Family],
    out: str | Path | None,
    profile: str,
    variant: str,
    config: BehaviourConfig | None,
    options: Mapping[str, Any] | None,
) -> tuple[Family, BehaviourConfig, Path]:
    """What is collected, how, and where to."""
    chosen = dict(options or {})
    if not isinstance(family, str):
        given = own_family(family)
        if not isinstance(family, type):
            chosen = {**given.options, **chosen}  # an object has made its choice
        family = given.name
    made = make_family(family, **{**family_options(profile, family, variant), **chosen})
    path = Path("data") / family if out is None else Path(out)
    return made, config or collect_config(profile, family, variant), path


def _scale(references: Dataset, family: Family) -> Dataset:
    """The dataset that expert returns are taken from, if it has the same tasks."""
    found = references.family, references.family_options
    if found != (family.name, family.options) or sorted(references.tasks) != list(
        range(family.n_tasks)
    ):
        raise DataError(
            f"{references.path} holds tasks of {references.family} {references.family_options}; "
            f"references must come from the same tasks, those of {family.name} {family.options}"
        )
    references.check_family(family)
    return references


def _collected(
    path: Path, family: Family, config: BehaviourConfig, scale: Dataset | None
) -> Dataset:
    """The dataset that is already there, if it was collected with the same settings."""
    if not (path / "manifest.json").exists():
        raise DataError(
            f"{path} exists and holds no dataset, so nothing is collected into it. Choose another "
            "place with --out, or remove it."
        )
    dataset = Dataset(path)
    collector = dataset.manifest["collector"]
    stored = collector.get("config")
    if stored is not None and stored.keys() <= to_json(config).keys():
        # A setting that is newer than the dataset has its default there.
        stored = to_json(replace_from_json(type(config)(), stored))
    found = dataset.family, dataset.family_options, stored, collector.get("references")
    if found != (family.name, family.options, to_json(config), scale and scale.fingerprint):
        raise DataError(
            f"{path} already holds another dataset ({dataset.family}, collected with other "
            "settings). Choose another place with --out, or remove it to collect again."
        )
    dataset.check_family(family)
    if len(dataset.tasks) != family.n_tasks:
        raise DataError(
            f"{path} holds {len(dataset.tasks)} tasks of {family.name}, which now has "
            f"{family.n_tasks}. Choose another place with --out to collect all of them."
        )
    if not (path / CARD).exists():
        write_card(dataset)
    sweep(path)
    return dataset
