"""Commands that look at things: list, evaluate, report, render and verify."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ertrl.cli.common import output, parse, use_threads
from ertrl.errors import ConfigError


@dataclass
class ListCommand:
    """Show families, methods, learners, protocols and profiles."""

    json: bool = False
    """Print one JSON document with all details."""


def list_parts(argv: Sequence[str]) -> None:
    """`ertrl list`."""
    command = parse(ListCommand, "list", argv)
    from ertrl.catalogue import catalogue

    parts = catalogue()
    if command.json:
        print(json.dumps(parts))
        return
    for kind, entries in parts.items():
        print(f"{kind}:")
        for name, entry in entries.items():
            print(f"  {name:18} {entry['summary']}{_choices(entry)}")


def _choices(entry: dict[str, Any]) -> str:
    """The options of a family, as `--option` takes them."""
    options = [f"{k}={'|'.join(map(str, v))}" for k, v in entry.get("choices", {}).items()]
    return f" [{', '.join(options)}]" if options else ""


@dataclass
class EvaluateCommand:
    """Adapt trained agents to all tasks of their dataset and measure their returns."""

    runs: tuple[Path, ...]
    """Folders of runs, or folders that hold runs."""
    protocol: tuple[str, ...] = ("offline", "online", "non-prior")
    """Where contexts come from; several may be given. `ertrl list` shows all."""
    adapt: Literal["all", "idaq"] = "all"
    """Online contexts hold all of an agent's own episodes, or (idaq, measured in addition) only
    the best ones, first found with the representations of training tasks."""
    data: Path | None = None
    """Dataset folder, if it has moved since training."""
    step: int | None = None
    """Which checkpoint, by its number of updates; the newest if not given."""
    probes: bool = False
    """Also measure what z knows of the task and of the behaviour policy (a minute or two)."""
    probe_transitions: int = 1000
    """Transitions per task for the probes; fewer are faster."""
    json: bool = False
    """Print the evaluation as JSON."""


def evaluate(argv: Sequence[str]) -> None:
    """`ertrl evaluate`."""
    use_threads(1)
    import tyro

    command = parse(EvaluateCommand, "evaluate", argv, config=(tyro.conf.PositionalRequiredArgs,))
    if not command.protocol:
        raise ConfigError("--protocol needs at least one of offline, online, non-prior")
    from ertrl import api
    from ertrl.evaluation import missing_repeats, summarise
    from ertrl.evaluation.probes import ProbeSettings
    from ertrl.training import open_runs

    most = ProbeSettings().projected
    settings = ProbeSettings(
        transitions=command.probe_transitions, projected=min(most, command.probe_transitions)
    )
    settings.validate()
    chosen = (*command.protocol, "idaq") if command.adapt == "idaq" else command.protocol
    runs = open_runs(command.runs)
    values = []
    for run in runs:
        result = api.evaluate(run, chosen, data=command.data, step=command.step)
        scores = summarise(result)
        lines = [f"{run.path}:"] if len(runs) > 1 else []
        lines += [f"{k:22} {v:6.1f}" for k, v in scores.items()]
        for protocol, count in missing_repeats(result).items():
            lines.append(f"{protocol}: {count} repeats are missing, their simulation diverged")
        values.append({**result, "scores": scores})
        if command.probes:
            probes = api.probe(run, data=command.data, step=command.step, settings=settings)
            values[-1]["probes"] = probes
            lines += probe_lines(probes)
        if not command.json:  # each as soon as it is there
            print("\n".join(lines), flush=True)
    if command.json:
        print(json.dumps(values[0] if len(runs) == 1 else {"evaluations": values}))


def probe_lines(probes: dict[str, Any]) -> list[str]:
    """The probes in a few words."""
    lines = ["", "error of predicting the task from z (held-out tasks, root mean square):"]
    for entry in probes["regression"]:
        what = f"{entry['target']} from one {entry['context']}, {entry['model']}"
        lines.append(f"  {what:40} {entry['test_rmse']:8.4f}")
    found = probes["leak"]
    if "missing" in found:
        return [*lines, f"behaviour leak not measured: {found['missing']}"]
    lines.append(
        f"telling the behaviour policy's checkpoint from z (chance {found['chance']:.3f}):"
    )
    lines += [f"  {group:40} {value:8.3f}" for group, value in found["accuracy"].items()]
    return lines


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
    use_threads(1)
    import tyro

    command = parse(ReportCommand, "report", argv, config=(tyro.conf.PositionalRequiredArgs,))
    from ertrl.reporting import print_summary
    from ertrl.reporting import report as write_report

    page = write_report(command.runs, command.out, command.data)
    if not command.json:
        print_summary(command.runs, command.data)
    output({"report": str(page)}, command.json, f"wrote {page}")


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

    command = parse(VerifyCommand, "verify", argv, config=(tyro.conf.PositionalRequiredArgs,))
    if not command.paths:
        raise ConfigError("say which dataset or run to verify")
    from ertrl import api

    results = [api.verify(path) for path in command.paths]
    text = "\n".join(f"{r['path']}: {r['kind']}, {r['files']} files are whole" for r in results)
    output({"verified": results}, command.json, text)


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

    command = parse(RenderCommand, "render", argv, config=(tyro.conf.PositionalRequiredArgs,))
    from ertrl import api

    path = api.render(command.run, command.task, command.out, data=command.data)
    output({"clip": str(path)}, command.json, f"wrote {path}")
