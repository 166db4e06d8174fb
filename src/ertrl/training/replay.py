"""Repeat the update at which a run diverged, and name the first operation that went wrong."""

import linecache
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from ertrl.training.run import Run
from ertrl.training.update import make_chunk, not_finite, update

PACKAGE = Path(__file__).parents[1]
CALLS = {"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "remat2", "checkpoint"}
"""Operations that consist of others."""
SHOWN = 4
"""Inputs of an operation that are named."""


def replay(run: Run, number: int | None = None) -> dict[str, Any]:
    """Run the kept update again: as it was compiled, then operation by operation."""
    state, batch, key, what = run.load_divergence(number)
    spoilt = [f"state{name}" for name in not_finite(state)]
    spoilt += [f"batch{name}" for name in not_finite(batch)]
    chunk = make_chunk(run.config, run.scaling)
    step = partial(update, run.config, scaling=run.scaling)
    after, metrics = chunk(state, jax.tree.map(lambda x: x[None], batch), key)
    found = {name: float(values[0]) for name, values in metrics.items()}
    bad = {name: str(value) for name, value in found.items() if not np.isfinite(value)}
    bad |= dict.fromkeys(not_finite(after), "not finite")
    return {
        "run": run.name,
        "step": int(state.step) + 1,
        "recorded": what,
        "again": bad,
        "inputs": spoilt,
        "operation": None if spoilt else first_operation(step, state, batch, key),
    }


def first_operation(function: Callable[..., Any], *inputs: Any) -> dict[str, str] | None:
    """The first operation that makes NaN of numbers, else the first that makes infinity.

    The function is traced once and its operations are done one by one.
    """
    arguments, structure = jax.tree.flatten(inputs)
    traced = jax.make_jaxpr(lambda *x: function(*structure.unflatten(x)))(*arguments)
    for kind, is_bad in (("NaN", np.isnan), ("infinity", np.isinf)):
        try:
            _evaluate(traced.jaxpr, traced.consts, arguments, is_bad)
        except _Found as found:
            operation = found.operation
            shapes = ", ".join(str(x.aval.str_short()) for x in operation.invars[:SHOWN])
            shapes += ", ..." * (len(operation.invars) > SHOWN)
            message = f"{operation.primitive.name} of {shapes} makes {kind}"
            return {"message": message, **_place(operation)}
    return None


class _Found(Exception):
    """The operation that was looked for."""

    def __init__(self, operation: Any):
        self.operation = operation


def _evaluate(jaxpr: Any, constants: Sequence[Any], inputs: Sequence[Any], is_bad: Any) -> list:
    """What a traced program makes, unless one of its operations makes a bad number."""
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, constants, strict=True))
    known |= dict(zip(jaxpr.invars, inputs, strict=True))

    def value(variable: Any) -> Any:
        return variable.val if isinstance(variable, Literal) else known[variable]

    def holds(values: Sequence[Any]) -> bool:
        real = [x for x in map(jnp.asarray, values) if jnp.issubdtype(x.dtype, jnp.floating)]
        return any(is_bad(np.asarray(x)).any() for x in real)

    for operation in jaxpr.eqns:
        name, given = operation.primitive.name, [value(x) for x in operation.invars]
        inner = operation.params.get("jaxpr") or operation.params.get("call_jaxpr")
        if name in CALLS and inner is not None:
            results = _evaluate(inner.jaxpr, inner.consts, given, is_bad)
        elif name == "cond":
            way = operation.params["branches"][int(given[0])]
            results = _evaluate(way.jaxpr, way.consts, given[1:], is_bad)
        elif name == "scan":
            results = _rounds(operation.params, given, is_bad)
        else:
            bound = operation.primitive.get_bind_params(operation.params)
            parts, options = bound if isinstance(bound, tuple) else ((), bound)
            made = operation.primitive.bind(*parts, *given, **options)
            results = list(made) if operation.primitive.multiple_results else [made]
            # What was given such a number, if only as a constant, did not make it.
            if holds(results) and not holds(given):
                raise _Found(operation)
        known |= dict(zip(operation.outvars, results, strict=True))
    return [value(x) for x in jaxpr.outvars]


def _rounds(scan: dict[str, Any], given: Sequence[Any], is_bad: Any) -> list[Any]:
    """A loop, round by round."""
    fixed, kept = scan["num_consts"], scan["num_consts"] + scan["num_carry"]
    carry, made = list(given[fixed:kept]), {}
    order = range(scan["length"])
    for i in reversed(order) if scan["reverse"] else order:
        inputs = [*given[:fixed], *carry, *(x[i] for x in given[kept:])]
        out = _evaluate(scan["jaxpr"].jaxpr, scan["jaxpr"].consts, inputs, is_bad)
        carry, made[i] = out[: kept - fixed], out[kept - fixed :]
    columns = zip(*(made[i] for i in order), strict=True)
    return [*carry, *(jnp.stack(column) for column in columns)]


def _place(operation: Any) -> dict[str, str]:
    """The innermost line of this package that asked for the operation."""
    frames = operation.source_info.traceback.frames if operation.source_info.traceback else ()
    for frame in frames:
        file = Path(frame.file_name)
        if file.is_relative_to(PACKAGE) and file != Path(__file__):
            where = f"{file.relative_to(PACKAGE.parent)}, line {frame.line_num}"
            line = linecache.getline(frame.file_name, frame.line_num).strip()
            return {"where": f"{where}, in {frame.function_name}", "line": line}
    return {"where": "outside of ertrl", "line": ""}


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
