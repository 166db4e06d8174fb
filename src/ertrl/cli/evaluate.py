"""`ertrl evaluate`."""

from typing import Annotated, Any

from ertrl.cli.common import ESTIMATED, output, require_runs, score_lines
from ertrl.cli.options import Json, MovedData, Runs, Step, command, unset
from ertrl.errors import ConfigError


@command("evaluate")
def run(
    runs: Runs,
    protocol: Annotated[tuple[str, ...] | None, unset("NAME ...")] = None,
    data: MovedData = None,
    step: Step = None,
    probes: bool = False,
    probe_transitions: int = 1000,
    json: Json = False,
) -> None:
    """Adapt trained agents to all tasks of their dataset and measure their returns.

    Args:
        protocol: Where contexts come from; several may be given. If none is, where there is a
            simulator: offline, online and non-prior. `ertrl list` shows all: also continual (z
            after every step), thompson (episodes with draws of z) and idaq (only the best of the
            agent's own episodes, first found with z of training tasks).
        probes: Also measure what z knows of the task and of the behaviour policy, and which of the
            two it follows where they disagree (a minute or two).
        probe_transitions: Transitions per task for the probes; fewer are faster.
    """
    require_runs(runs, "evaluate")
    if protocol == ():
        raise ConfigError("--protocol needs at least one of offline, online, non-prior")
    from ertrl import api
    from ertrl.evaluation import missing_repeats
    from ertrl.evaluation.evaluate import check_protocols
    from ertrl.training import open_runs

    check_protocols(protocol or ())  # before a folder of runs is opened
    settings = None
    if probes:
        from ertrl.config import check
        from ertrl.evaluation.probes import ProbeSettings

        fewer = max(8, min(ProbeSettings().projected, probe_transitions))
        settings = ProbeSettings(probe_transitions, projected=fewer)
        check(settings)
    opened, _ = open_runs(runs)
    values = []
    for run in opened:
        result = api.evaluate(run, protocol, data=data, step=step)
        success = {"success": result.success} if result.success else {}
        updates = run.config.updates
        values.append({**result, "updates": updates, "scores": result.scores, **success})
        lines = [f"{run.path}:"] if len(opened) > 1 else []
        lines += [f"update {result['step']:,} of {updates:,}"] * (result["step"] < updates)
        lines += [f"{ESTIMATED}:"] if "logs" in result else []
        lines += score_lines(result.scores)
        lines += score_lines({f"success % {name}": rate for name, rate in result.success.items()})
        for name, count in missing_repeats(result).items():
            lines.append(f"{name}: {count} repeats are missing, their simulation diverged")
        if probes:
            values[-1]["probes"] = api.probe(run, data=data, step=step, settings=settings)
            lines += _probe_lines(values[-1]["probes"])
        if not json:  # each as soon as it is there
            print("\n".join(lines), flush=True)
    if json:
        output(values[0] if len(opened) == 1 else {"evaluations": values})


def _probe_lines(probes: dict[str, Any]) -> list[str]:
    lines = [""]
    if probes["regression"]:  # of logs, a task's numbers may be unknown
        lines.append("error of predicting the task from z (root mean square, on samples of tasks")
        lines.append("that the agent was not trained on, of episodes that the model has not seen):")
    for entry in probes["regression"]:
        what = f"{entry['target']} from one {entry['context']}, {entry['model']}"
        lines.append(f"  {what:40} {entry['test_rmse']:8.4f}")
    leak, swap = probes["leak"], probes["swap"]
    if "missing" in leak:
        lines.append(f"behaviour leak not measured: {leak['missing']}")
    else:
        chance = f"(chance {leak['chance']:.3f})"
        lines.append(f"telling the behaviour policy's checkpoint from z {chance}:")
        lines += [f"  {group:40} {value:8.3f}" for group, value in leak["accuracy"].items()]
    if "missing" in swap:
        return [*lines, f"whether z follows task or behaviour not measured: {swap['missing']}"]
    lines.append("z follows the task when the agent acts as if in another one (0.5: undecided;")
    lines.append("in brackets what it reaches when it acts as in its own):")
    return lines + [
        f"  {group:40} {value:8.3f} [{swap['control'][group]:.3f}]"
        for group, value in swap["followed_task"].items()
    ]
