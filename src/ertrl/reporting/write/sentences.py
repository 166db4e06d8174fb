"""What came out, in sentences that say what the numbers say and no more."""

from collections.abc import Sequence

from ertrl.envs import group_title
from ertrl.reporting.measure.comparison import Column, ReturnsTable
from ertrl.reporting.measure.help_of_z import Help, help_of_z
from ertrl.reporting.measure.lead import Lead, Leads, leads
from ertrl.reporting.read.results import FamilyResults
from ertrl.reporting.write.words import BELOW_ZERO, SHARE, minus, number, plural, short_title

MANNERS = {
    "offline": "with logged data as context",
    "online": "when the agent gathers its own",
}
ENOUGH = 5
"""With fewer seeds, that no difference is significant says more of the seeds than of methods."""


def headline(table: ReturnsTable) -> str:
    """The result in one sentence, on new tasks, with a given context and with one's own.

    A method is named best only where that could be told from chance.
    """
    groups = [column.group for column in table.columns]
    if not groups:
        return f"{table.family}: no simulator, so all numbers are estimates from logs"
    found = _leads(table).of
    group = _first_group(table)
    told = _clauses({c: lead for c, lead in found.items() if c.group == group})
    where = f"{short_title(group)} {table.family} tasks"
    if not told:
        return f"No method has been measured on {where} yet"
    further = {c: lead for c, lead in found.items() if c.group != group and lead.clear}
    beyond = f"; out of distribution, {_clauses(further)}" if further else ""
    return f"On {where}: {told}{beyond}"


def _first_group(table: ReturnsTable) -> str:
    groups = [column.group for column in table.columns]
    return "test-id" if "test-id" in groups else groups[0]


def _leads(table: ReturnsTable) -> Leads:
    """Of the cells that a headline looks at."""
    groups = dict.fromkeys([_first_group(table), "test-ood"])
    return leads(table, [Column(group, protocol) for group in groups for protocol in MANNERS])


def _clauses(found: dict[Column, Lead]) -> str:
    """What was found and with which context; the same of two contexts is said once."""
    told: dict[tuple[str, str], list[str]] = {}
    for column, lead in found.items():
        manner = MANNERS[column.protocol]
        if len(lead.means) == 1:
            start, part = (f"{lead.label} reaches", ", "), f"{_ends(lead.means)} {manner}"
        else:
            finding, means = _finding(lead)
            start, part = (finding, " and "), f"{manner} ({means})"
        told.setdefault(start, []).append(part)
    return "; ".join(f"{finding} {link.join(parts)}" for (finding, link), parts in told.items())


def _finding(lead: Lead) -> tuple[str, str]:
    """What a column says of several methods, and the means behind it."""
    if lead.clear:
        return f"{lead.label} is best", minus(number(lead.means[0]))
    if len(lead.compared) < 2:
        return "differences between methods cannot be tested yet", _ends(lead.means)
    if lead.seeds[0] < ENOUGH:
        seeds = " to ".join(map(str, dict.fromkeys(lead.seeds)))
        return f"{seeds} seeds are too few to tell which method is best", _ends(lead.compared)
    return "no method is clearly best", _ends(lead.compared)


def _ends(means: Sequence[float]) -> str:
    """The lowest and the highest."""
    return " to ".join(dict.fromkeys(minus(number(x)) for x in (means[-1], means[0])))


def corrections(table: ReturnsTable) -> str:
    """Why a headline may be certain of what a table does not mark; nothing where neither tests."""
    own, all_pairs = (_leads(table).tests if table.columns else 0), len(table.comparisons)
    if not own:
        return ""
    return (
        f"The headline asks less than the tables: it corrects over the {own} "
        f"{plural(own, 'comparison')} of the highest mean with each other one, on new tasks with "
        f"logged and with own context; the tables over all {all_pairs}."
    )


def help_told(family: FamilyResults) -> str:
    """Whether z helps on new tasks, as far as logs can tell, in a sentence for each variant."""
    found = help_of_z(family)
    told = [_help(one, f"{one.label}: " if len(found) > 1 else "") for one in found]
    return " ".join(told)


def _help(one: Help, who: str) -> str:
    where = f"on {group_title(one.group).lower()}"
    if not one.verdicts:
        return f"{who}Logs do not tell whether z helps {where}."
    if all(one.verdicts):
        verdict = "z helps"
    elif any(one.verdicts):
        verdict = "it is not clear whether z helps"
    else:
        verdict = "nothing shows that z helps"
    parts = []
    if one.value:
        with_z, blind = (minus(number(x)) for x in one.value)
        parts.append(f"the policy is worth {with_z} with it and {blind} without")
    for target, pair in one.unexplained.items():
        with_z, without = (number(x, SHARE) for x in pair)
        parts.append(f"of the {target} {with_z} is unexplained with it and {without} without")
    told = f"{verdict} {where}: {', '.join(parts)}."
    return f"{who}{told}" if who else told[0].upper() + told[1:]


def doing_nothing(tables: Sequence[ReturnsTable]) -> str:
    """Every cell in which an agent that does nothing earns more; nothing where there is none."""
    found: dict[str, list[str]] = {}
    for table in tables:
        for row in table.methods:
            for column, cell in zip(table.columns, row.cells, strict=True):
                if cell.below_zero:
                    place = f"{short_title(column.group)} {column.protocol}"
                    where = f"{table.family} {place}" if len(tables) > 1 else place
                    found.setdefault(row.label, []).append(where)
    if not found:
        return ""
    cells = sum(
        cell.estimate is not None for t in tables for row in t.methods for cell in row.cells
    )
    count = sum(map(len, found.values()))
    told = "; ".join(f"{label}: {', '.join(places)}" for label, places in found.items())
    return f"Worse than doing nothing ({BELOW_ZERO}) in {count} of {cells} cells ({told})."


def verdict(table: ReturnsTable) -> str:
    if not table.columns:
        return "They say how methods do on what was logged, not what would happen outside of it."
    if len(table.methods) < 2:
        return "There is one method, so there is nothing to compare."
    count = len(table.comparisons)
    if not count:
        return "With fewer than two seeds per method, differences between methods cannot be tested."
    clear = [c for c in table.comparisons if c.significant]
    tests = f"Welch's t-test, Holm's correction over {count} {plural(count, 'comparison')}"
    if not clear:
        return f"No difference between methods is significant at 5% ({tests})."
    winners = [c.one if c.difference.value > 0 else c.other for c in clear]
    wins = {one.label: winners.count(one) for one in winners}
    told = "; ".join(f"{label} better in {n}" for label, n in wins.items())
    share = f"{len(clear)} of {count} {plural(count, 'comparison')}"
    return f"Significant at 5%: {share} ({told}; {tests})."
