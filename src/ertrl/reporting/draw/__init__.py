"""Third room: figures. Which ones a report has, as far as there is something to draw."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from matplotlib.figure import Figure

from ertrl.reporting.draw import findings, planes, returns
from ertrl.reporting.draw.look import house_style, settle
from ertrl.reporting.measure.gain import Gains
from ertrl.reporting.measure.representation import probes_of, swap, targets
from ertrl.reporting.read.dataset import Material
from ertrl.reporting.read.results import FamilyResults


class Picture(NamedTuple):
    name: str
    """File name without extension."""
    figure: Figure


def slug(text: str) -> str:
    """Letters, digits and hyphens only: safe as a file name and as an id."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "family"


def draw_family(family: FamilyResults, material: Material) -> dict[str, Picture]:
    """All figures that this family has the material for, by kind."""
    with house_style():
        made = {}
        first = {one: seeds[0] for one, seeds in material.watched.items()}
        if moving := {one: seen.adapted for one, seen in first.items() if seen.adapted}:
            made["paths"] = planes.paths(family, material, moving)
        if first:
            made["latent"] = planes.latent_space(family, material.axis, first)
        if not family.from_logs:
            if {"offline", "online"} <= set(family.protocols):
                made["shift"] = returns.context_shift(family)
            made |= {
                "profiles": returns.performance_profiles(family),
                "tasks": returns.task_returns(family, material.axis),
            }
            if any(run.run for v in family.variants for run in v.runs):
                if (curves := returns.learning_curves(family)) is not None:
                    made["curves"] = curves
                made["adaptation"] = returns.adaptation_curves(family)
            if (steps := returns.step_curves(family)) is not None:
                made["steps"] = steps
        probed = probes_of(family)
        if probed and targets(probed):
            made["probes"] = findings.probe_bars(family, probed)
        if (found := swap(family, probed)) and found.rows:
            made["swap"] = findings.swap_bars(family, probed)
        if material.dataset is not None:
            if shown := {v.identity: seeds[0]["projection"] for v, seeds in probed}:
                made["projection"] = planes.projections(family, material.axis, shown)
            if not family.from_logs:
                made["data"] = returns.behaviour_data(family, material.dataset)
        return _settled(slug(family.label), made)


def draw_gains(found: Gains | None) -> dict[str, Picture]:
    made = {}
    with house_style():
        if found and len({p.family for p in found.with_distance}) > 1:
            xlabel = "distance of behaviour policies"
            made["distance"] = findings.gain_figure(found.with_distance, "distance", xlabel)
        if found and found.doses:
            made["dose"] = findings.gain_figure(found.doses, "style", "strength of style")
        return _settled("benefit", made)


def _settled(prefix: str, made: Mapping[str, Figure]) -> dict[str, Picture]:
    return {kind: Picture(f"{prefix}-{kind}", settle(figure)) for kind, figure in made.items()}
