"""Which figures a family gets, with their captions and file names."""

import re
from typing import NamedTuple

from matplotlib.figure import Figure

from ertrl.reporting import figures
from ertrl.reporting.figures.common import BAND_SEEDS
from ertrl.reporting.gather import FamilyResults
from ertrl.reporting.material import Material
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
        made = {
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
            "tasks": (
                figures.task_returns(family, labels, material.axis),
                f"Return of every task of {name}",
                "Each point is a task, mean over seeds and repeats."
                + (
                    "" if material.axis.circular else " The shaded range is that of training tasks."
                ),
            ),
        }
        made |= _from_replays(family, material, labels)
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


def _from_replays(
    family: FamilyResults, material: Material, labels: list[str]
) -> dict[str, tuple[Figure, str, str]]:
    name, made = family.family, {}
    watched = {
        label: replays
        for label, replays in material.replays.items()
        if all(replay.adapted for replay in replays)
    }
    if watched:
        first_seeds = {label: replays[0].adapted for label, replays in watched.items()}
        every_seed = {
            label: {p: [replay.adapted[p] for replay in replays] for p in family.protocols}
            for label, replays in watched.items()
        }
        made["paths"] = (
            figures.paths(family, material.axis, material.goals, first_seeds),
            f"Paths of adapted agents on {name}",
            "Paths in the plane on held-out tasks, one colour per task, of the first seed of each "
            "method. All start at the ring. The agent never observes the task: it goes where its "
            "context tells it to.",
        )
        made["adaptation"] = (
            figures.adaptation_curves(family, labels, every_seed),
            f"Return from episode to episode on {name}",
            "Normalised return of each evaluation episode, as the context grows; tables show the "
            f"last one. {SEEDS_DRAWN}",
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
