"""Repeat the update at which a run diverged, and name the first operation that went wrong."""

import traceback
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ertrl.training.run import Run
from ertrl.training.update import make_chunk, update

PACKAGE = Path(__file__).parents[1]


def replay(run: Run, step: int | None = None) -> dict[str, Any]:
    """Run the kept update again: as it was compiled, then operation by operation."""
    state, batch, key, what = run.load_divergence(step)
    arrays = {"state": state, "batch": batch}
    spoilt = [
        f"{name}{jax.tree_util.keystr(path)}"
        for name, tree in arrays.items()
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
        if np.issubdtype(leaf.dtype, np.floating) and not np.isfinite(leaf).all()
    ]
    after, metrics = make_chunk(run.config)(state, jax.tree.map(lambda x: x[None], batch), key)
    found = {name: float(values[0]) for name, values in metrics.items()}
    bad = {name: str(value) for name, value in found.items() if not np.isfinite(value)}
    bad |= {
        jax.tree_util.keystr(path): "not finite"
        for path, leaf in jax.tree_util.tree_leaves_with_path(after)
        if np.issubdtype(leaf.dtype, np.floating) and not np.isfinite(leaf).all()
    }
    return {
        "run": run.name,
        "step": int(state.step) + 1,
        "recorded": what,
        "again": bad,
        "inputs": spoilt,
        "operation": None if spoilt else _first_operation(run, state, batch, key),
    }


def _first_operation(run: Run, state: Any, batch: Any, key: Any) -> dict[str, str] | None:
    """The first operation whose result is NaN, else the first that overflows."""
    for watch in (jax.debug_nans, jax.debug_infs):
        try:
            with jax.disable_jit(), watch(True):
                update(run.config, state, batch, key)
        except FloatingPointError as error:
            frames = traceback.extract_tb(error.__traceback__)
            ours = [f for f in frames if Path(f.filename).is_relative_to(PACKAGE)]
            last = ours[-1]
            place = Path(last.filename).relative_to(PACKAGE.parent)
            message = str(error).split(". ")[0].split("\n")[0]
            where = f"{place}, line {last.lineno}, in {last.name}"
            return {"message": message, "where": where, "line": last.line or ""}
    return None


def describe(value: dict[str, Any]) -> str:
    """The replay in words."""
    lines = [f"{value['run']}: {value['recorded']}", f"again, at update {value['step']}:"]
    lines += [f"  {name}: {found}" for name, found in value["again"].items()]
    if not value["again"]:
        lines.append("  everything is finite: other versions or another machine?")
    if value["inputs"]:
        lines.append(f"The update was given NaN or infinite numbers: {', '.join(value['inputs'])}")
    elif value["operation"]:
        found = value["operation"]
        lines += [
            f"first operation: {found['message']}",
            f"  {found['where']}",
            f"  {found['line']}",
        ]
    else:
        lines.append("Operation by operation everything is finite: the program as a whole rounds.")
    return "\n".join(lines)
