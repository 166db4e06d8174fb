"""Sentences that say what the numbers say, no more."""

from typing import Any

from ertrl.evaluation.idaq import EPISODES as IDAQ_EPISODES
from ertrl.reporting.html_tables import minus
from ertrl.reporting.results import FamilyResults
from ertrl.reporting.summary import SIGNIFICANT, Summary
from ertrl.reporting.tables import number

SCALE = (
    "Returns are normalised per task: 0 is a uniformly random policy, 100 the final behaviour "
    "policy (the expert)."
)


def headline(summary: Summary) -> str:
    """The result in one sentence: the best mean with a given context and with one's own."""
    group = "test-id" if any(c.group == "test-id" for c in summary.columns) else None
    group = group or summary.columns[0].group
    where = {"test-id": "held-out ", "train": "training "}.get(group, f"{group} ")
    clauses = []
    for protocol, manner in (
        ("offline", "with logged data as context"),
        ("online", "when the agent gathers its own"),
    ):
        best = _best(summary, group, protocol)
        if best is not None:
            clauses.append(f"{minus(number(best[1]))} {manner} ({best[0]})")
    if not clauses:
        return f"{summary.family}: no method has been measured on {where}tasks yet"
    return f"The best mean on {where}{summary.family} tasks is {' and '.join(clauses)}"


def _best(summary: Summary, group: str, protocol: str) -> tuple[str, float] | None:
    if not any(c == (group, protocol) for c in summary.columns):
        return None
    cells = {row.label: summary.cell(row.label, group, protocol) for row in summary.methods}
    means = {label: c.estimate.value for label, c in cells.items() if c.estimate is not None}
    if not means:
        return None
    label = max(means, key=lambda name: means[name])
    return label, means[label]


def verdict(summary: Summary) -> str:
    """Whether the methods differ by more than chance."""
    if len(summary.methods) < 2:
        return "There is one method, so there is nothing to compare."
    count = len(summary.comparisons)
    if not count:
        return "With fewer than two seeds per method, differences between methods cannot be tested."
    clear = [c for c in summary.comparisons if c.p_holm < SIGNIFICANT]
    tests = f"Welch's t-test, Holm's correction over {count} comparisons"
    if not clear:
        return f"No difference between methods is significant at 5% ({tests})."
    wins: dict[str, int] = {}
    for c in clear:
        winner = c.one if c.difference.value > 0 else c.other
        wins[winner] = wins.get(winner, 0) + 1
    told = "; ".join(f"{label} better in {n}" for label, n in wins.items())
    return f"Significant at 5%: {len(clear)} of {count} comparisons ({told}; {tests})."


def protocol_lines(family: FamilyResults) -> dict[str, str]:
    """Each protocol in one line, with the numbers of this evaluation."""
    settings: dict[str, Any] = family.settings
    episodes, prior = settings["episodes"], settings["prior_episodes"]
    z0 = {"zero": "the zero vector", "mean": "the mean z of the training tasks"}
    start = z0.get(settings["prior"], str(settings["prior"]))
    first = "one episode" if prior == 1 else f"{prior} episodes"
    lines = {
        "offline": "Another policy's data: before each episode, one more horizon of transitions "
        "of the task's own dataset joins the context.",
        "online": f"The agent's own episodes. It starts from z0 ({start}) and infers z for the "
        f"first time after {first}.",
        "non-prior": "Exploration without knowledge of the task: uniformly random actions in the "
        "first half of the evaluation, then samples of the policy. Takes twice the interaction.",
        "idaq": "The best of the agent's own episodes. It first tries z of training tasks that are "
        "unlike each other, and ends with the z that scored best.",
    }

    def tail(protocol: str) -> str:
        last = max(episodes, IDAQ_EPISODES) if protocol == "idaq" else episodes
        return f" Episode {last} counts." if last > 1 else ""

    return {p: lines[p] + tail(p) for p in family.protocols}
