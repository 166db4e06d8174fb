"""One self-contained page. The same runs give the same bytes: no date, no place, no machine."""

import shlex
from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

from ertrl.config import to_json
from ertrl.reporting import words
from ertrl.reporting.benefit import Benefit
from ertrl.reporting.benefit import content as benefit_content
from ertrl.reporting.html_tables import dot, plain_table
from ertrl.reporting.markup import Content, Markup, tag, text
from ertrl.reporting.material import Material
from ertrl.reporting.pictures import Picture
from ertrl.reporting.results import Results
from ertrl.reporting.sections import (
    as_json,
    definitions,
    family_sections,
    figure,
    folded,
    overview,
    section,
)
from ertrl.reporting.summary import Summary

Tables = tuple[Summary, Summary]
"""Normalised and not."""


def render(
    results: Results,
    materials: Sequence[Material],
    pictures: Sequence[Mapping[str, Picture]],
    tables: Sequence[Tables],
    found: Benefit | None = None,
    shared: Mapping[str, Picture] | None = None,
) -> str:
    """The whole page."""
    several = len(results.families) > 1
    body: list[Content] = [overview(results)] if several else []
    links: list[Content] = [tag("a", "Overview", href="#overview")] if several else []
    for family, material, drawn, (summary, raw) in zip(
        results.families, materials, pictures, tables, strict=True
    ):
        sections = family_sections(results, family, material, drawn, summary, raw)
        if several:
            links.append(tag("a", family.family, href=f"#{sections[0][0]}"))
            body.append(tag("h2", family.family, class_="family"))
            body.append(tag("p", f"{words.headline(summary)}. {words.verdict(summary)}"))
        for key, title, content in sections:
            if not several:
                links.append(tag("a", title, href=f"#{key}"))
            body.append(content)
    for key, title, content in [*_shared(found, shared or {}), *_closing(results)]:
        links.append(tag("a", title, href=f"#{key}"))
        body.append(content)
    head = _head(results, materials, [summary for summary, _ in tables])
    footer = tag(
        "footer",
        "Raw numbers: ",
        tag("a", "results.json", href="results.json"),
        ", ",
        tag("a", "tables/summary.csv", href="tables/summary.csv"),
        "; tables as ",
        tag("a", "Markdown", href="tables/summary.md"),
        " and ",
        tag("a", "LaTeX", href="tables/summary.tex"),
        ". The links need the folder this page was written into; everything else is in this file.",
    )
    navigation = tag("nav", tag("div", links), aria_label="Sections")
    return _fill(
        "page.html",
        title=text(f"ertrl report: {', '.join(f.family for f in results.families)}"),
        style=_asset("style.css").strip(),
        script=_asset("script.js").strip(),
        body=Markup(head + navigation + tag("main", body) + footer),
    )


def _asset(name: str) -> str:
    return (resources.files("ertrl.reporting") / "assets" / name).read_text()


def _fill(name: str, **parts: str) -> str:
    return Template(_asset(name)).substitute(parts)


def _head(results: Results, materials: Sequence[Material], summaries: Sequence[Summary]) -> Markup:
    families, first = results.families, summaries[0]
    seeds = sorted({len(v.runs) for f in families for v in f.variants})
    told = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    kicker = " · ".join(
        [
            "ertrl report",
            ", ".join(f.family for f in families),
            ", ".join(results.labels),
            f"{told} seed{'' if seeds[-1] == 1 else 's'} each",
        ]
    )
    if len(families) == 1:
        lead = [tag("h1", words.headline(first)), tag("p", words.verdict(first), class_="lead")]
    else:
        lead = [tag("h1", f"{len(families)} families, {len(results.labels)} methods")]
    notes = [*results.notes, *(note for material in materials for note in material.notes)]
    warning = (
        tag("div", "Before you compare:", tag("ul", [tag("li", n) for n in notes]), class_="notes")
        if notes
        else None
    )
    return tag(
        "header",
        tag(
            "div",
            tag("p", kicker, class_="kicker"),
            lead,
            tag("p", words.SCALE, class_="lead fine"),
            warning,
        ),
        class_="top",
    )


# --- sections about all runs ---


def _shared(found: Benefit | None, pictures: Mapping[str, Picture]) -> list[tuple]:
    if found is None:
        return []
    drawn = {kind: figure(picture) for kind, picture in pictures.items()}
    body = benefit_content(found, drawn.get("distance"), drawn.get("dose"))
    title = "When does hiding the behaviour policy help?"
    return [("benefit", "When it helps", section("benefit", title, *body))]


def _closing(results: Results) -> list[tuple[str, str, Markup]]:
    runs = [(f, v, r) for f in results.families for v in f.variants for r in v.runs]
    specs = [r.run.spec for _, _, r in runs]
    return [
        ("runs", "Runs", _runs(results, runs)),
        ("reproduce", "Reproduce", _reproduce(specs, [r.run.name for _, _, r in runs])),
        ("provenance", "Provenance", _provenance(specs, [r.run.name for _, _, r in runs])),
    ]


def _runs(results: Results, runs: Sequence[tuple]) -> Markup:
    rows = [
        [
            [dot(variant.label, results.labels), tag("code", member.run.name)],
            variant.label,
            variant.learner,
            member.run.spec["profile"],
            member.seed,
            f"{member.last_step:,} of {variant.updates:,}",
            len(member.evaluations),
        ]
        for _, variant, member in runs
    ]
    head = ["run", "method", "learner", "profile", "seed", "updates", "evaluations"]
    configurations = [
        folded(member.run.name, as_json(to_json(member.run.config))) for _, _, member in runs
    ]
    return section(
        "runs",
        "Runs",
        plain_table(head, rows, left=4),
        tag("div", tag("h3", "Configurations"), configurations, class_="screen"),
    )


def _reproduce(specs: Sequence[dict[str, Any]], names: Sequence[str]) -> Markup:
    commands = list(dict.fromkeys(spec["provenance"]["command"] for spec in specs))
    folders = [shlex.quote(f"runs/{name}") for name in names]
    again = " \\\n  ".join(["ertrl report", *folders, "--out report"])
    return section(
        "reproduce",
        "How to reproduce",
        tag("p", "The runs were started by:"),
        tag("pre", "\n".join(commands)),
        tag("p", "With them in a folder called runs, this page is made by:"),
        tag("pre", again),
        tag(
            "p",
            "All randomness is addressed by the seeds: on the same machine with the same versions "
            "and the same number of threads, the same commands give the same numbers.",
            class_="fine",
        ),
    )


def _provenance(specs: Sequence[dict[str, Any]], names: Sequence[str]) -> Markup:
    groups: dict[str, tuple[dict[str, Content], list[str]]] = {}
    for spec, name in zip(specs, names, strict=True):
        origin = spec["provenance"]
        machine = origin["machine"]
        facts: dict[str, Content] = {
            "commit": tag("code", origin["commit"]),
            "versions": ", ".join(f"{k} {v}" for k, v in origin["versions"].items()),
            "machine": f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}",
            "threads": str(origin["threads"]),
            "dataset": tag("code", spec["dataset"]),
        }
        groups.setdefault(repr(facts), (facts, []))[1].append(name)
    content: list[Content] = []
    for facts, members in groups.values():
        who = "All runs" if len(groups) == 1 else ", ".join(members)
        content += [tag("h3", who), definitions(facts)]
    return section("provenance", "Provenance", *content)
