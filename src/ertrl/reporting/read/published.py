"""Numbers that somebody else published: results.json of a report, without its runs.

A run of one's own can so be compared with nine methods in the time of one training.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import UNSET, Meta, UnsetType

from ertrl import store
from ertrl.errors import CorruptFileError, DataError
from ertrl.evaluation.shapes import FromLogs, References, Tasks
from ertrl.reporting.read.identity import Identity, method_title
from ertrl.reporting.read.results import Published, SeedRun
from ertrl.shape import (
    Measured,
    Name,
    Open,
    Provenance,
    Real,
    Shape,
    Steps,
    Text,
    Whole,
    distinct,
    rectangle,
)

Numbers = dict[str, Any]


class Told(Shape):
    """Of one protocol, on one scale."""

    per_task: list[Measured] | None
    mean: dict[Name, Measured]


class Scales(Shape):
    """What a protocol measured."""

    normalised: Told
    returns: Told


class KeptIdentity(Shape):
    """An `Identity`, but for its method."""

    learner: Name | None
    settings: list[tuple[Name, Text]]
    profile: Name | None
    variant: Name | None


class KeptRun(Open):
    """A seed."""

    run: Name
    seed: Whole
    protocols: dict[Name, Scales]
    logs: FromLogs | None
    oracle_normalised_per_task: list[Measured] | None
    missing_repeats: dict[Name, Whole]
    probes: dict[Name, Any] | None
    provenance: Provenance
    success_percent: dict[Name, Real] | UnsetType = UNSET


class KeptVariant(Shape):
    """A row of the table."""

    label: Name
    method: Name
    learner: Name
    updates: Steps
    step: Steps
    runs: Annotated[list[KeptRun], Meta(min_length=1)]
    identity: KeptIdentity | UnsetType = UNSET
    """Older files have none: their variants are taken to be as their profile has them."""
    configuration: Name | UnsetType = UNSET
    """Older files have none: none of their seeds join those of a run that is here."""


class KeptFamily(Open, kw_only=True):
    """A table. What has a default is missing in older files."""

    family: Name | UnsetType = UNSET
    """There it is the key of the table."""
    policy_distance: Real | None = None
    style: Real | None = None
    dataset: Text
    evaluation: dict[Name, Any]
    tasks: Tasks
    groups: dict[Name, Tasks]
    references: References
    variants: Annotated[list[KeptVariant], Meta(min_length=1)]

    def __post_init__(self):
        distinct("tasks", self.tasks)
        for name, group in self.groups.items():
            if not set(group) <= set(self.tasks):
                raise ValueError(f"Expected tasks of the list in group {name}, got {group}")
        for name in References.__struct_fields__:
            if (values := getattr(self.references, name)) is not UNSET:
                rectangle(f"references.{name}", values, len(self.tasks))
        for variant in self.variants:
            for run in variant.runs:
                for name, scales in run.protocols.items():
                    for told in (scales.normalised, scales.returns):
                        if told.per_task is not None:
                            rectangle(f"{name} of {run.run}", told.per_task, len(self.tasks))


class KeptResults(Open):
    """results.json of a report."""

    kind: Literal["ertrl-results"]
    format: Literal[1]
    families: dict[Name, KeptFamily]


def identity_numbers(identity: Identity) -> Numbers:
    """What `read_published` knows a variant by."""
    return {name: value for name, value in asdict(identity).items() if name in _TOLD}


_TOLD = KeptIdentity.__struct_fields__


def read_published(file: Path) -> dict[str, list[SeedRun]]:
    """Family -> its runs, as far as their numbers tell."""
    if file.is_dir():
        file = file / "results.json"
    try:
        content = store.read_json(file, KeptResults)
    except CorruptFileError as error:
        raise DataError(f"{error} (wanted: the results.json of a report)") from None
    found: dict[str, list[SeedRun]] = {}
    for label, family in content["families"].items():
        members = found.setdefault(family.get("family", label), [])
        for variant in family["variants"]:
            members += [_seed(file, family, variant, run) for run in variant["runs"]]
    return found


def _seed(file: Path, family: Numbers, variant: Numbers, run: Numbers) -> SeedRun:
    stored: Numbers = variant.get("identity", {})
    told: Numbers = {**stored, "settings": tuple(map(tuple, stored.get("settings", ())))}
    identity = Identity(variant["method"], **told)
    if not stored and variant["label"] != method_title(variant["method"]):
        raise DataError(
            f"{file}: '{variant['label']}' is a variant of its method, and this file is from "
            "before results.json said which. Make that report again."
        )
    return SeedRun(
        name=run["run"],
        method=variant["method"],
        learner=variant["learner"],
        seed=run["seed"],
        updates=variant["updates"],
        dataset=family["dataset"],
        configuration=variant.get("configuration", f"{file}: {variant['label']}"),
        provenance=run["provenance"],
        evaluations=_evaluations(family, variant["step"], run),
        published=Published(
            file, identity, family.get("policy_distance"), family.get("style"), run
        ),
    )


def _evaluations(family: Numbers, step: int, run: Numbers) -> dict[int, Numbers]:
    """As a run has it, with the mean over repeats in the place of repeats.

    None of a seed that was not evaluated at this step.
    """
    protocols = {
        name: {"returns": [[value] for value in scales["returns"]["per_task"]]}
        for name, scales in run["protocols"].items()
        if scales["returns"]["per_task"] is not None
    }
    if not protocols and run["logs"] is None:
        return {}
    shared = ("dataset", "evaluation", "tasks", "groups", "references")
    evaluation = {**{name: family[name] for name in shared}, "protocols": protocols}
    if run["logs"] is not None:
        evaluation["logs"] = run["logs"]
    if run["oracle_normalised_per_task"] is not None:
        random, expert = (np.asarray(family["references"][name]) for name in ("random", "expert"))
        scores = np.asarray(run["oracle_normalised_per_task"], np.float64)
        evaluation["oracle"] = {"returns": (random + scores / 100 * (expert - random))[:, None]}
    return {step: evaluation}
