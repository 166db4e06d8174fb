"""One self-contained page. The same runs give the same bytes: no date, no place, no machine."""

import json
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ertrl.colours import COLOURS, PALETTE
from ertrl.envs import group_title
from ertrl.evaluation.protocols import IDAQ_EPISODES
from ertrl.reporting.draw.look import inline_svg
from ertrl.reporting.draw.panels import BAND_SEEDS
from ertrl.reporting.write import sentences, words
from ertrl.reporting.write.sections import CLOSING, FAMILY, FROM_LOGS, OVERVIEW, Report, sections


def render(report: Report) -> str:
    results, families = report.results, report.families
    variants = [v for f in results.families for v in f.variants]
    seeds = sorted({len(v.runs) for v in variants})
    page = _environment().get_template("page.html")
    return page.render(
        report=report,
        families=[(f, sections(FROM_LOGS if f.results.from_logs else FAMILY, f)) for f in families],
        first=sections(OVERVIEW, report),
        last=sections(CLOSING, report),
        methods=list(dict.fromkeys(v.label for v in variants)),
        seeds=(seeds[0], seeds[-1]),
        notes=[*results.notes, *(note for f in families for note in f.material.notes)],
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("ertrl.reporting.write"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters |= {
        "chance": words.chance,
        "group_title": group_title,
        "indented": lambda value: json.dumps(value, indent=2, sort_keys=True),
        "minus": words.minus,
        "number": lambda value, form=".1f": words.minus(words.number(value, form)),
        "svg": lambda picture, words: Markup(inline_svg(picture.figure, picture.name, words)),
    }
    shared: dict[str, Any] = {
        "BAND_SEEDS": BAND_SEEDS,
        "COLOURS": COLOURS,
        "IDAQ_EPISODES": IDAQ_EPISODES,
        "BELOW_ZERO": words.BELOW_ZERO,
        "MISSING": words.MISSING,
        "n_colours": len(PALETTE),
        "sentences": sentences,
        "words": words,
    }
    environment.globals |= shared
    return environment
