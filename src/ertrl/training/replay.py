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
PLAINLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""A program with a question after every operation runs once, and would compile for long."""
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

    The function is traced and compiled once more, with the question after each operation whether
    its result holds such a number.
    """
    arguments, structure = jax.tree.flatten(inputs)
    traced = jax.make_jaxpr(lambda *x: function(*structure.unflatten(x)))(*arguments)
    for kind, is_bad in (("NaN", jnp.isnan), ("infinity", jnp.isinf)):
        operations: list[Any] = []
        program = partial(_asked, traced, is_bad, operations)
        answers = np.asarray(jax.jit(program, compiler_options=PLAINLY)(*arguments))
        if answers.any():
            operation = operations[int(np.argmax(answers))]
            shapes = ", ".join(str(x.aval.str_short()) for x in operation.invars[:SHOWN])
            shapes += ", ..." * (len(operation.invars) > SHOWN)
            message = f"{operation.primitive.name} of {shapes} makes {kind}"
            return {"message": message, **_place(operation)}
    return None


def _asked(
    closed: Any, is_bad: Callable[[Any], Any], operations: list[Any], *arguments: Any
) -> jax.Array:
    """Whether each result holds a bad number; notes down the operations in their order."""
    answers: list[jax.Array] = []

    def holds(values: Sequence[Any]) -> Any:
        real = [x for x in map(jnp.asarray, values) if jnp.issubdtype(x.dtype, jnp.floating)]
        return jnp.any(jnp.stack([is_bad(x).any() for x in real])) if real else jnp.array(False)

    def rounds(scan: dict[str, Any], given: Sequence[Any], taken: Any) -> list[Any]:
        """A loop, round by round; those in an update are short."""
        fixed, kept = scan["num_consts"], scan["num_consts"] + scan["num_carry"]
        carry, made = list(given[fixed:kept]), {}
        order = range(scan["length"])
        for i in reversed(order) if scan["reverse"] else order:
            inputs = [*given[:fixed], *carry, *(x[i] for x in given[kept:])]
            out = evaluate(scan["jaxpr"].jaxpr, scan["jaxpr"].consts, inputs, taken)
            carry, made[i] = out[: kept - fixed], out[kept - fixed :]
        columns = zip(*(made[i] for i in order), strict=True)
        return [*carry, *(jnp.stack(column) for column in columns)]

    def evaluate(
        jaxpr: Any, constants: Sequence[Any], inputs: Sequence[Any], taken: Any = True
    ) -> list[Any]:
        """What a part of the program makes; `taken` is whether the program goes there."""
        known: dict[Any, Any] = dict(zip(jaxpr.constvars, constants, strict=True))
        known |= dict(zip(jaxpr.invars, inputs, strict=True))

        def value(variable: Any) -> Any:
            return variable.val if isinstance(variable, Literal) else known[variable]

        for operation in jaxpr.eqns:
            given = [value(x) for x in operation.invars]
            inner = operation.params.get("jaxpr") or operation.params.get("call_jaxpr")
            if operation.primitive.name in CALLS and inner is not None:
                results = evaluate(inner.jaxpr, inner.consts, given, taken)
            elif operation.primitive.name == "cond":
                ways = [
                    evaluate(way.jaxpr, way.consts, given[1:], taken & (given[0] == i))
                    for i, way in enumerate(operation.params["branches"])
                ]
                results = [jax.lax.select_n(given[0], *made) for made in zip(*ways, strict=True)]
            elif operation.primitive.name == "scan":
                results = rounds(operation.params, given, taken)
            else:
                bound = operation.primitive.get_bind_params(operation.params)
                parts, options = bound if isinstance(bound, tuple) else ((), bound)
                made = operation.primitive.bind(*parts, *given, **options)
                results = list(made) if operation.primitive.multiple_results else [made]
                if any(jnp.issubdtype(x.dtype, jnp.floating) for x in results):
                    operations.append(operation)
                    # What was given such a number, if only as a constant, did not make it.
                    answers.append(holds(results) & ~holds(given) & taken)
            known |= dict(zip(operation.outvars, results, strict=True))
        return [value(x) for x in jaxpr.outvars]

    evaluate(closed.jaxpr, closed.consts, arguments)
    return jnp.stack(answers)


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
