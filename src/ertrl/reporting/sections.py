"""The parts of the page that belong to one family."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ertrl.data import Dataset
from ertrl.reporting import html_tables, words
from ertrl.reporting.explorer import explorer
from ertrl.reporting.html_tables import Line, grid, minus, plain_table
from ertrl.reporting.markup import Content, Markup, paragraphs, tag
from ertrl.reporting.material import Material
from ertrl.reporting.paper import in_paper, paper_results
from ertrl.reporting.pictures import Picture, slug
from ertrl.reporting.replay import latent_shift
from ertrl.reporting.representation import plus_minus, representation
from ertrl.reporting.results import FamilyResults, Results, SeedRun
from ertrl.reporting.style import PALETTE, inline_svg
from ertrl.reporting.summary import SIGNIFICANT, Cell, Column, Summary, group_title
from ertrl.reporting.tables import CAPTION, MISSING, number

LONG_TABLE = 12
"""Longer tables are folded away."""


def section(key: str, title: str, *content: Content) -> Markup:
    """A card with a heading."""
    return tag("section", tag("h2", title), content, id=key)


def definitions(pairs: Mapping[str, Content], kind: str | None = None) -> Markup:
    """A list of terms and what they are."""
    return tag("dl", [[tag("dt", k), tag("dd", v)] for k, v in pairs.items()], class_=kind)


def folded(title: str, *content: Content) -> Markup:
    """Content that opens on a click."""
    return tag("details", tag("summary", title), content)


def as_json(value: Any) -> Markup:
    """A configuration, readable."""
    return tag("pre", json.dumps(value, indent=2, sort_keys=True))


def figure(picture: Picture) -> Markup:
    """The picture in the page, with links to its files."""
    svg = Markup(inline_svg(picture.figure, picture.name, picture.alt))
    files = [
        tag("a", kind.upper(), href=f"figures/{picture.name}.{kind}") for kind in ("png", "pdf")
    ]
    caption = tag(
        "figcaption",
        picture.caption,
        tag("span", " ", files[0], " ", files[1], class_="files"),
    )
    return tag("figure", tag("div", svg, class_="scroll swipe"), caption)


def tiles(summary: Summary, labels: Sequence[str]) -> Markup:
    """The few numbers to look at first, as bars."""
    found = []
    for group in ("test-id", "test-ood"):
        for protocol in ("offline", "online"):
            if (group, protocol) in summary.columns:
                lines = [
                    _tile_line(row.label, summary.cell(row.label, group, protocol), labels)
                    for row in summary.methods
                ]
                title = tag("h3", group_title(group), tag("span", f"{protocol} context"))
                found.append(tag("div", title, lines, class_="tile"))
    return tag("div", found, class_="tiles") if found else Markup("")


def _tile_line(label: str, cell: Cell, labels: Sequence[str]) -> Markup:
    value = None if cell.estimate is None else cell.estimate.value
    width = 0.0 if value is None else float(np.clip(value, 0, 100))
    place = list(labels).index(label) % len(PALETTE)
    bar = tag("i", style=f"--colour: var(--c{place}); width: {width:.1f}%")
    shown = MISSING if value is None else minus(number(value))
    return tag("div", tag("span", label), tag("span", bar, class_="bar"), tag("span", shown))


def overview(results: Results) -> Markup:
    """All families in one table."""
    return section(
        "overview",
        "All families",
        html_tables.overview_table(results),
        tag(
            "p",
            "Interquartile mean of the normalised return over all seeds and tasks of all families. "
            "Brackets, from three seeds on: 95% bootstrap interval, seeds drawn within families. "
            f"{MISSING}: not measured on every family, and therefore not averaged.",
            class_="fine",
        ),
    )


def family_sections(
    results: Results,
    family: FamilyResults,
    material: Material,
    pictures: Mapping[str, Picture],
    summary: Summary,
    raw: Summary,
) -> list[tuple[str, str, Markup]]:
    """(id, short title for the navigation, section), in reading order."""
    labels, prefix = results.labels, slug(family.family)
    made: list[tuple[str, str, Markup]] = []

    def add(name: str, short: str, title: str, *content: Content) -> None:
        key = f"{prefix}-{name}"
        made.append((key, short, section(key, title, *content)))

    add("summary", "Summary", "Summary", *_summary(family, summary, raw, labels))
    add("curves", "Learning", "Learning curves", figure(pictures["curves"]))
    if "adaptation" in pictures:
        seen = [figure(pictures[kind]) for kind in ("paths", "adaptation") if kind in pictures]
        add("adaptation", "Adaptation", "Adaptation", *seen, *_oracle(family))
    if {"offline", "online"} <= set(family.protocols):
        picture = figure(pictures["shift"])
        add("shift", "Context shift", "Context shift", picture, *_shift(family))
    add("tasks", "Tasks", "Return per task", figure(pictures["tasks"]))
    if "latent" in pictures:
        explored = explorer(f"{prefix}-explorer", family, material)
        also = figure(pictures["projection"]) if "projection" in pictures else None
        add("latent", "Latent space", "Latent space", figure(pictures["latent"]), explored, also)
    picture = figure(pictures["probes"]) if "probes" in pictures else None
    add("probes", "What z knows", "What z knows", picture, *representation(family, labels))
    if ablation := _ablation(family, summary):
        add("ablation", "Ablation", "Ablation", *ablation)
    found, picture = _statistics(family, summary, labels), figure(pictures["profiles"])
    add("stats", "Statistics", "Statistics", *found, tag("h3", "Performance profiles"), picture)
    if in_paper(family.family):
        add("paper", "Paper", "Beside the paper", *_paper(family, summary))
    if material.dataset is not None:
        picture = figure(pictures["data"])
        add("data", "Data", "Behaviour data", picture, *_data(family, material.dataset))
    return made


def _summary(
    family: FamilyResults, summary: Summary, raw: Summary, labels: Sequence[str]
) -> list[Content]:
    repeats = family.settings["repeats"]
    return [
        tiles(summary, labels),
        html_tables.summary_table(summary, labels),
        tag("p", CAPTION[True], class_="fine"),
        definitions(words.protocol_lines(family), "protocols"),
        tag(
            "p",
            "Training tasks were trained on; held-out tasks lie between them; out-of-distribution "
            f"tasks lie beyond them. Independent repeats per task: {repeats}. The expert is the "
            "behaviour policy at the end of its training, so a return above 100 is possible; zero "
            "action is an agent that does nothing.",
            class_="fine",
        ),
        folded("Returns without normalisation", html_tables.summary_table(raw, labels)),
    ]


def _oracle(family: FamilyResults) -> list[Content]:
    rows: list[list[Content]] = []
    for variant in family.variants:
        found = [list(family.scores(variant, "oracle", g).values()) for g in family.groups]
        rows.append([variant.label, *(plus_minus(scores, "{:.1f}") for scores in found)])
    return [
        plain_table(["z from expert data", *(group_title(g) for g in family.groups)], rows),
        tag(
            "p",
            "The oracle: normalised return with z inferred from transitions of the best policy "
            "that was logged for the task. The gap from a protocol up to the oracle is what better "
            "context could give; the gap from the oracle up to 100 is the learned policy's own.",
            class_="fine",
        ),
    ]


def _shift(family: FamilyResults) -> list[Content]:
    columns = [Column(g, what) for g in family.groups for what in ("points lost", "shift of z")]
    lines = []
    for variant in family.variants:
        cells: list[Content] = []
        moved = [m for run in variant.runs if (m := _moved(family, run, variant.step)) is not None]
        for group in family.groups:
            offline, online = (family.scores(variant, p, group) for p in ("offline", "online"))
            lost = [offline[s] - online[s] for s in offline if s in online]
            far = [float(m[family.rows[group]].mean()) for m in moved]
            cells += [plus_minus(lost, "{:.1f}"), plus_minus(far, "{:.2f}")]
        lines.append(Line(variant.label, str(len(variant.runs)), cells))
    return [
        grid(columns, lines),
        tag(
            "p",
            "Points of normalised return lost from offline to online context. Shift of z: mean "
            "distance between a task's z from offline and from online context, over the spread of "
            "z between all tasks; at 1, the shift moves z as far as tasks lie apart. Mean ± half "
            "width of the 95% confidence interval over seeds.",
            class_="fine",
        ),
    ]


def _moved(family: FamilyResults, run: SeedRun, step: int) -> np.ndarray | None:
    offline, online = (family.measured(run, p, "z", step) for p in ("offline", "online"))
    return None if offline is None or online is None else latent_shift(offline, online)


def _ablation(family: FamilyResults, summary: Summary) -> list[Content]:
    """Variants of one method against the one that is as its profile has it."""
    content: list[Content] = []
    for method in dict.fromkeys(v.method for v in family.variants):
        labels = [v.label for v in family.variants if v.method == method]
        if len(labels) < 2:
            continue
        base = min(labels, key=len)
        lines = []
        for label in (name for name in labels if name != base):
            cells = [_against(summary, column, label, base) for column in summary.columns]
            lines.append(Line(label, "", cells))
        content += [tag("h3", f"Compared with {base}"), grid(summary.columns, lines)]
    if content:
        note = (
            "Difference of mean normalised returns. Bold: significant at 5% by Welch's t-test with "
            "Holm's correction over the whole family; small: 95% interval."
        )
        content.append(tag("p", note, class_="fine"))
    return content


def _against(summary: Summary, column: Column, label: str, base: str) -> Content:
    for c in summary.comparisons:
        if c.column == column and {c.one, c.other} == {label, base}:
            sign = 1 if c.one == label else -1
            low, high = sorted((sign * c.difference.low, sign * c.difference.high))
            value: Content = minus(f"{sign * c.difference.value:+.1f}")
            value = tag("strong", value) if c.p_holm < SIGNIFICANT else value
            return [value, tag("small", minus(f" [{low:.1f}, {high:.1f}]"))]
    means = [summary.cell(name, *column).estimate for name in (label, base)]
    if means[0] is None or means[1] is None:
        return MISSING
    return minus(f"{means[0].value - means[1].value:+.1f}")


def _statistics(family: FamilyResults, summary: Summary, labels: Sequence[str]) -> list[Content]:
    content: list[Content] = [paragraphs(words.verdict(summary))]
    if summary.comparisons:
        table = html_tables.comparison_table(summary)
        few = len(summary.comparisons) <= LONG_TABLE
        title = f"All {len(summary.comparisons)} comparisons"
        content.append(table if few else folded(title, table))
        content.append(
            tag(
                "p",
                "Difference of mean normalised returns with Welch's 95% interval; p is two-sided; "
                "Holm's correction covers all rows. P(first is better): a random seed of the first "
                "method against one of the second on the same task, ties half.",
                class_="fine",
            )
        )
    content.append(tag("h3", "Interquartile mean"))
    content.append(html_tables.iqm_table(family, summary.columns, labels))
    content.append(
        tag(
            "p",
            "Mean of the middle half of all seeds and tasks, which single failures move less than "
            "the mean. Brackets: 95% bootstrap interval; a seed is drawn with all its tasks, since "
            "one agent serves them all. Shown from three seeds on.",
            class_="fine",
        )
    )
    return content


def _paper(family: FamilyResults, summary: Summary) -> list[Content]:
    facts = paper_results()
    return [
        tag("p", "Numbers as printed in ", tag("a", facts["source"], href=facts["url"]), "."),
        html_tables.paper_table(family, summary),
        tag("ul", [tag("li", note) for note in facts["notes"][:3]], class_="fine"),
        tag(
            "p",
            "Data, simulator version and number of updates differ as well: read the difference as "
            "orientation, not as a test.",
            class_="fine",
        ),
    ]


def _data(family: FamilyResults, dataset: Dataset) -> list[Content]:
    manifest = dataset.manifest
    origin, collector = manifest["provenance"], manifest["collector"]
    episodes = sum(data.episodes for data in dataset.tasks.values())
    transitions = sum(int(data.lengths.sum()) for data in dataset.tasks.values())
    split = ", ".join(f"{len(t)} {group_title(g).lower()}" for g, t in family.groups.items())
    parameters = np.stack([data.parameters for data in dataset.tasks.values()])
    names = manifest["parameter_names"]
    ranges = ", ".join(
        minus(f"{name} {low:.3g} to {high:.3g}")
        for name, low, high in zip(names, parameters.min(0), parameters.max(0), strict=True)
    )
    facts: dict[str, Content] = {
        "family": dataset.family,
        "content": tag("code", dataset.fingerprint),
        "tasks": f"{len(dataset.tasks)} ({split})",
        "task parameters": ranges,
        "size": f"{episodes:,} episodes of up to {dataset.horizon} steps, "
        f"{transitions:,} transitions",
        "collector": f"{collector['name']}, "
        f"{len({int(c) for data in dataset.tasks.values() for c in np.unique(data.checkpoints)})} "
        "checkpoints",
        "command": tag("code", origin["command"]),
        "commit": tag("code", origin["commit"]),
        "versions": ", ".join(f"{k} {v}" for k, v in origin["versions"].items()),
    }
    if dataset.family_options:
        facts["options"] = ", ".join(f"{k} {v}" for k, v in dataset.family_options.items())
    return [
        definitions(facts),
        folded("Collector settings", as_json(collector.get("config", {}))),
    ]
