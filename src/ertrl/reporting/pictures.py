"""Which figures a family gets, with their captions and file names."""

import re
from typing import NamedTuple

from matplotlib.figure import Figure

from ertrl.reporting import figures
from ertrl.reporting.benefit import Benefit
from ertrl.reporting.figures.common import BAND_SEEDS
from ertrl.reporting.material import Material
from ertrl.reporting.representation import probes_of
from ertrl.reporting.results import FamilyResults
from ertrl.reporting.style import house_style, settle

SEEDS_DRAWN = (
    f"Thick lines are means over seeds; bands are 95% confidence intervals from {BAND_SEEDS} seeds "
    "on, thin lines are the seeds themselves where there are two."
)


class Picture(NamedTuple):
    """A figure and what to say about it."""

    name: str
    """File name without extension."""
    figure: Figure
    alt: str
    caption: str


def slug(text: str) -> str:
    """Letters, digits and hyphens only: safe as a file name and as an id."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "family"


def draw(family: FamilyResults, material: Material, labels: list[str]) -> dict[str, Picture]:
    """All figures that this family has the material for, by kind."""
    prefix, name = slug(family.family), family.family
    with house_style():
        made: Drawn = {
            "curves": (
                figures.learning_curves(family, labels),
                f"Learning curves on {name}",
                f"Normalised return during meta-training. {SEEDS_DRAWN}",
            ),
            "shift": (
                figures.context_shift(family, labels),
                f"Return per context protocol on {name}",
                "The drop from offline to online is the price of having to gather one's own "
                f"context. Dots are seeds; whiskers are 95% intervals from {BAND_SEEDS} seeds on.",
            ),
            "profiles": (
                figures.performance_profiles(family, labels),
                f"Performance profiles on {name}",
                "The share of seeds and tasks whose normalised return exceeds the value below. A "
                "curve further to the right is better; where curves cross, the mean hides "
                f"something. Bands: 95% bootstrap intervals over seeds, from {BAND_SEEDS} on.",
            ),
            "tasks": (
                figures.task_returns(family, labels, material.axis),
                f"Return of every task of {name}",
                "Each point is a task, mean over seeds and repeats."
                + (
                    "" if material.axis.circular else " The shaded range is that of training tasks."
                ),
            ),
        }
        made |= _adaptation(family, labels)
        made |= _from_replays(family, material, labels)
        made |= _from_probes(family, material, labels)
        if material.dataset is not None:
            made["data"] = (
                figures.behaviour_data(family, material.dataset),
                f"Behaviour data of {name}",
                "What the agent learned from: returns of the recorded episodes, from the first "
                "checkpoint of the behaviour policies to the last.",
            )
        return {
            kind: Picture(f"{prefix}-{kind}", settle(figure), alt, caption)
            for kind, (figure, alt, caption) in made.items()
        }


def draw_shared(found: Benefit | None) -> dict[str, Picture]:
    """Figures over all families."""
    if found is None:
        return {}
    made: Drawn = {}
    with house_style():
        if len({p.family for p in found.with_distance}) > 1:
            made["distance"] = (
                figures.gain_figure(
                    found.with_distance, "distance", "distance of behaviour policies"
                ),
                "Gain of ER-TRL over FOCAL against the distance between behaviour policies",
                "Each point is a family. Distance: Wasserstein-2 between the final behaviour "
                "policies of training tasks, mean over pairs and states, over the size of actions.",
            )
        if found.doses:
            made["dose"] = (
                figures.gain_figure(found.doses, "style", "strength of style"),
                "Gain of ER-TRL over FOCAL against the strength of style",
                "The same family, collected with behaviour policies that are pulled more and more "
                "strongly in a direction of their own per task: everything else is equal.",
            )
        return {
            kind: Picture(f"benefit-{kind}", settle(figure), alt, caption)
            for kind, (figure, alt, caption) in made.items()
        }


Drawn = dict[str, tuple[Figure, str, str]]
"""Kind -> figure, description, caption."""


def _adaptation(family: FamilyResults, labels: list[str]) -> Drawn:
    figure = figures.adaptation_curves(family, labels)
    if figure is None:
        return {}
    caption = (
        "Normalised return from episode to episode (where episodes end early, of the last one "
        "begun in each horizon of steps) as the context grows; tables show the last. Below each "
        "episode: how many transitions its z was inferred from, mean over runs and the group's "
        "tasks. Dashed: z from "
        f"the task's best logged policy instead. {SEEDS_DRAWN}"
    )
    return {"adaptation": (figure, f"Return from episode to episode on {family.family}", caption)}


def _from_probes(family: FamilyResults, material: Material, labels: list[str]) -> Drawn:
    probed = probes_of(family)
    if not probed:
        return {}
    name = family.family
    made = {
        "probes": (
            figures.probe_bars(family, probed, labels),
            f"What z knows on {name}",
            "Left: error of predicting the task's parameters from z, held-out tasks, 100% is "
            "predicting the same for all; shorter is better. Right: how often the checkpoint of "
            "the behaviour policy that collected a context is told from its z; shorter is better. "
            "Bars are means, dots are seeds.",
        )
    }
    if material.dataset is not None:
        firsts = {label: found[0]["projection"] for label, found in probed.items()}
        made["projection"] = (
            figures.projections(family, material.axis, firsts),
            f"Single transitions in the latent space on {name}",
            "z of single transitions of the paper's selection of tasks, the same for all methods; "
            "first seed of each. Above: plane of largest variance. Below: t-SNE, in which "
            "distances between clusters mean nothing. Triangles are out-of-distribution tasks.",
        )
    return made


def _from_replays(family: FamilyResults, material: Material, labels: list[str]) -> Drawn:
    name, made = family.family, {}
    watched = {
        label: replays
        for label, replays in material.replays.items()
        if all(replay.adapted for replay in replays)
    }
    if watched:
        first_seeds = {label: replays[0].adapted for label, replays in watched.items()}
        made["paths"] = (
            figures.paths(family, material.axis, material.goals, first_seeds),
            f"Paths of adapted agents on {name}",
            "Paths in the plane on held-out tasks, one colour per task, of the first seed of each "
            "method. All start at the ring. The agent never observes the task: it goes where its "
            "context tells it to.",
        )
    if material.replays:
        firsts = {label: replays[0] for label, replays in material.replays.items()}
        online = {label: r.online_z for label, r in firsts.items() if r.online_z is not None}
        crosses = " Crosses: z from the agent's own (online) context." if online else ""
        made["latent"] = (
            figures.latent_space(
                family, material.axis, {label: r.codes for label, r in firsts.items()}, online
            ),
            f"Latent space on {name}",
            "z of several independent offline contexts per task, projected onto the two directions "
            f"of largest variance; first seed of each method.{crosses}",
        )
    return made
