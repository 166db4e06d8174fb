"""An agent as two ONNX graphs, built node by node: encoder (any number of transitions) and policy.

Sums and the closed form are computed in double precision, as the NumPy runtime does.
"""

from pathlib import Path
from typing import Any

import numpy as np

from ertrl import runtime
from ertrl.plugins import require
from ertrl.runtime.inference import LeastSquares, Mean
from ertrl.runtime.layers import MLP
from ertrl.types import Context

OPSET, IR_VERSION = 18, 8
"""Old enough for any onnxruntime of the last years."""


class Graph:
    """Nodes and constants as they come; values go by their names."""

    def __init__(self):
        self._onnx = require("onnx", "onnx")
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; returns the name of what it gives."""
        name = f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def constant(self, value: Any, kind: type = np.float32) -> str:
        name = f"constant_{len(self._constants)}"
        array = np.asarray(value, kind)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def double(self, x: str) -> str:
        return self.op("Cast", x, to=self._onnx.TensorProto.DOUBLE)

    def total(self, x: str) -> str:
        """Sum over the transitions, axis 0; of none it is 0."""
        return self.op("ReduceSum", x, self.constant([0], np.int64), keepdims=0)

    def part(self, x: str, first: int, last: int) -> str:
        """Of the last axis."""
        ends = [self.constant([n], np.int64) for n in (first, last, -1)]
        return self.op("Slice", x, *ends)

    def standardised(self, x: str, centre: np.ndarray, scale: np.ndarray) -> str:
        return self.op("Div", self.op("Sub", x, self.constant(centre)), self.constant(scale))

    def mlp(self, net: MLP, x: str) -> str:
        if net.centre is not None and net.scale is not None:
            x = self.standardised(x, net.centre, net.scale)
        last = len(net.weights) - 1
        for i, (weight, bias) in enumerate(zip(net.weights, net.biases, strict=True)):
            x = self.op("Gemm", x, self.constant(weight), self.constant(bias))
            if i < last:
                if net.layer_norm:
                    ones = self.constant(np.ones_like(bias))
                    x = self.op("LayerNormalization", x, ones, axis=-1, epsilon=1e-5)
                x = self.op("Relu", x)
        return x

    def finish(self, inputs: dict[str, list[Any]], result: str, name: str, shape: list) -> bytes:
        """The model, with one output of this name and shape, 32-bit floats as the inputs are."""
        helper, number = self._onnx.helper, self._onnx.TensorProto.FLOAT
        self._nodes.append(helper.make_node("Cast", [result], [name], to=number))
        values = [helper.make_tensor_value_info(n, number, shape) for n, shape in inputs.items()]
        output = helper.make_tensor_value_info(name, number, shape)
        graph = helper.make_graph(self._nodes, name, values, [output], self._constants)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="ertrl")
        model.ir_version = IR_VERSION
        self._onnx.checker.check_model(model, full_check=True)
        return model.SerializeToString()


def policy(agent: runtime.Agent) -> bytes:
    """Observation [N, O], z [N, Z] -> action [N, A]."""
    g = Graph()
    best = g.op("Tanh", g.mlp(agent.policy, g.op("Concat", "observation", "z", axis=-1)))
    action = g.op("Mul", best, g.constant(agent.actions.half))
    action = g.op("Add", action, g.constant(agent.actions.middle))
    sizes = {
        "observation": ["rows", agent.observation_dim],
        "z": ["rows", agent.inference.latent_dim],
    }
    return g.finish(sizes, action, "action", ["rows", agent.action_dim])


def encoder(agent: runtime.Agent) -> bytes:
    """Observation [H, O], action [H, A], reward [H, 1], next_observation [H, O] -> z [Z]."""
    g, inference, n = Graph(), agent.inference, agent.inference.latent_dim
    action = g.standardised("action", agent.actions.middle, agent.actions.half)
    inputs = ["observation", action, "reward", "next_observation"]
    sizes = {
        "observation": ["transitions", agent.observation_dim],
        "action": ["transitions", agent.action_dim],
        "reward": ["transitions", 1],
        "next_observation": ["transitions", agent.observation_dim],
    }
    if isinstance(inference, LeastSquares):
        z = _least_squares(g, inference, inputs)
    else:
        if not inference.next_observation:
            del sizes["next_observation"], inputs[3]
        out = g.mlp(inference.net, g.op("Concat", *inputs, axis=-1))
        z = _mean(g, out) if isinstance(inference, Mean) else _gaussian(g, out, n)
    return g.finish(sizes, z, "z", [n])


def _mean(g: Graph, out: str) -> str:
    codes = g.double(g.op("Tanh", out))
    rows = g.double(g.op("Shape", codes, start=0, end=1))
    return g.op("Div", g.total(codes), g.op("Max", rows, g.constant(1, np.float64)))


def _gaussian(g: Graph, out: str, n: int) -> str:
    out = g.double(out)
    # log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), which does not overflow.
    raw, zero, one = g.part(out, n, 2 * n), g.constant(0, np.float64), g.constant(1, np.float64)
    small = g.op("Exp", g.op("Neg", g.op("Abs", raw)))
    variance = g.op("Add", g.op("Max", raw, zero), g.op("Log", g.op("Add", one, small)))
    vote = g.op("Div", one, g.op("Max", variance, g.constant(1e-7, np.float64)))
    weighted = g.total(g.op("Mul", vote, g.part(out, 0, n)))
    # Without any vote 0 / 0; the smallest vote there can be changes nothing otherwise.
    return g.op("Div", weighted, g.op("Max", g.total(vote), g.constant(1e-300, np.float64)))


def _least_squares(g: Graph, of: LeastSquares, inputs: list[str]) -> str:
    s, a, r, s2 = inputs
    joined = g.op("Concat", s, a, g.op("Sub", s2, s), r, axis=-1)
    columns = g.standardised(joined, of.centre, of.scale)
    total, d = len(of.centre), of.latent_dim
    out = g.double(g.mlp(of.net, g.part(columns, 0, total - of.targets)))
    out = g.op("Reshape", out, g.constant([-1, d + 1], np.int64))
    y = g.double(g.part(columns, total - of.targets, total))
    y = g.op("Reshape", y, g.constant([-1, 1], np.int64))
    phi, rest = g.op("Tanh", g.part(out, 0, d)), g.op("Sub", y, g.part(out, d, d + 1))
    if of.prior_root is not None:
        mean = g.constant(np.asarray(of.prior_mean)[:, None], np.float64)
        root = g.constant(of.prior_root, np.float64)
        rest = g.op("Sub", rest, g.op("MatMul", phi, mean))
        phi = g.op("MatMul", phi, root)
    weights = None
    if of.trust:
        weights = _weights(g, of, rest)
        half = g.op("Sqrt", weights)  # once for the features, once for the targets
        phi, rest = g.op("Mul", phi, half), g.op("Mul", rest, half)
    turned = g.op("Transpose", phi, perm=[1, 0])
    ridge = g.constant(of.noise**2 * np.eye(d), np.float64)
    if of.at_most:
        count = g.total(weights) if weights else g.double(g.op("Shape", phi, start=0, end=1))
        share = g.op("Div", count, g.constant([of.targets * of.at_most], np.float64))
        ridge = g.op("Mul", ridge, g.op("Add", share, g.constant(1, np.float64)))
    precision = g.op("Add", g.op("MatMul", turned, phi), ridge)
    w = _solve(g, precision, g.op("MatMul", turned, rest), d)
    if of.prior_root is not None:
        w = g.op("Add", g.op("MatMul", root, w), mean)
    w = g.op("Reshape", w, g.constant([d], np.int64))
    low, high = (g.constant(end, np.float64) for end in (-of.clip, of.clip))
    return g.op("Min", g.op("Max", w, low), high)


def _weights(g: Graph, of: LeastSquares, rest: str) -> str:
    """What each target of a transition counts."""
    trust = g.constant(of.trust, np.float64)
    of_rows = g.op("Reshape", rest, g.constant([-1, of.targets], np.int64))
    left = g.op("ReduceMean", g.op("Mul", of_rows, of_rows), g.constant([1], np.int64))
    counts = g.op("Div", trust, g.op("Max", left, trust))
    wide = g.op("Mul", counts, g.constant(np.ones((1, of.targets)), np.float64))
    return g.op("Reshape", wide, g.constant([-1, 1], np.int64))


def _solve(g: Graph, a: str, b: str, d: int) -> str:
    """Gauss-Jordan elimination, unrolled: ONNX has no solver. Positive definite: no pivoting."""
    rows = g.op("Concat", a, b, axis=1)
    for k in range(d):
        here = np.eye(d)[:, k : k + 1]
        row = g.op("Gather", rows, g.constant([k], np.int64), axis=0)
        row = g.op("Div", row, g.op("Gather", row, g.constant([k], np.int64), axis=1))
        column = g.op("Gather", rows, g.constant([k], np.int64), axis=1)
        # Row k becomes `row`, every other one loses its multiple of it.
        others = g.op("Mul", rows, g.constant(1 - here, np.float64))
        kept = g.op("Mul", column, g.constant(1 - here, np.float64))
        placed = g.op("Mul", row, g.constant(here, np.float64))
        rows = g.op("Add", g.op("Sub", others, g.op("Mul", kept, row)), placed)
    return g.op("Gather", rows, g.constant([d], np.int64), axis=1)


class OnnxAgent:
    """What onnxruntime makes of an exported agent, on one core."""

    def __init__(self, folder: Path):
        ort = require("onnxruntime", "onnx")
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._encoder, self._policy = (
            ort.InferenceSession(str(folder / name), options, ["CPUExecutionProvider"])
            for name in ("encoder.onnx", "policy.onnx")
        )
        self._names = [value.name for value in self._encoder.get_inputs()]

    def encode(self, context: Context) -> np.ndarray:
        """Z of the one context [1, H, ...]."""
        rows = {name: np.asarray(x[0], np.float32) for name, x in context._asdict().items()}
        rows["reward"] = rows["reward"][:, None]
        return self._encoder.run(["z"], {name: rows[name] for name in self._names})[0]

    def act(self, observations: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Actions for observations [N, O], all with this z."""
        codes = np.tile(np.asarray(z, np.float32), (len(observations), 1))
        return self._policy.run(["action"], {"observation": observations, "z": codes})[0]
