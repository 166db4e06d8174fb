"""The one network that agents are made of."""

from dataclasses import dataclass, replace

import numpy as np

from ertrl.errors import DataError

Arrays = dict[str, np.ndarray]
"""By name, as a file holds them."""


@dataclass(frozen=True)
class MLP:
    """Fully connected ReLU network; optionally standardised inputs and layer normalisation."""

    weights: tuple[np.ndarray, ...]
    """[inputs, outputs] of each layer."""
    biases: tuple[np.ndarray, ...]
    layer_norm: bool = False
    centre: np.ndarray | None = None
    """Subtracted from the inputs, which are then divided by `scale`."""
    scale: np.ndarray | None = None

    def __post_init__(self):
        """Layers must fit each other."""
        ends = [*zip(self.weights[:-1], self.weights[1:], strict=True)]
        widths = zip(self.weights, self.biases, strict=True)
        apart = [x for x in (self.centre, self.scale) if x is not None]
        fits = (
            bool(self.weights)
            and all(w.ndim == 2 and 0 not in w.shape for w in self.weights)
            and all(w.shape[1] == after.shape[0] for w, after in ends)
            and all(b.shape == w.shape[1:] for w, b in widths)
            and len(apart) in (0, 2)
            and all(x.shape == self.weights[0].shape[:1] for x in apart)
            and (self.scale is None or bool((self.scale > 0).all()))
        )
        if not fits:
            raise DataError("the layers of a network do not fit each other")

    @property
    def inputs(self) -> int:
        return self.weights[0].shape[0]

    @property
    def outputs(self) -> int:
        return self.weights[-1].shape[1]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """For one row of inputs, or several."""
        if self.centre is not None:
            x = (x - self.centre) / self.scale
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = x @ weight
            x += bias
            if self.layer_norm:
                x -= x.mean(axis=-1, keepdims=True)
                x /= np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + 1e-5)
            np.maximum(x, 0, out=x)
        return x @ self.weights[-1] + self.biases[-1]

    def scaled(self, centre: np.ndarray, scale: np.ndarray) -> "MLP":
        """The same network, its first inputs standardised before it sees them."""
        rest = self.inputs - len(centre)
        ends = np.concatenate([centre, np.zeros(rest)]), np.concatenate([scale, np.ones(rest)])
        return replace(self, centre=ends[0].astype(np.float32), scale=ends[1].astype(np.float32))

    def arrays(self, name: str) -> Arrays:
        """What it consists of, under names that begin with this one."""
        found = {}
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            found |= {f"{name}.weight.{i}": weight, f"{name}.bias.{i}": bias}
        if self.centre is not None and self.scale is not None:
            found |= {f"{name}.centre": self.centre, f"{name}.scale": self.scale}
        return found

    @classmethod
    def of_arrays(cls, arrays: Arrays, name: str, layer_norm: bool) -> "MLP":
        """From what `arrays` gave."""
        count = sum(key.startswith(f"{name}.weight.") for key in arrays)
        weights, biases = (
            tuple(arrays[f"{name}.{part}.{i}"] for i in range(count)) for part in ("weight", "bias")
        )
        rest = arrays.get(f"{name}.centre"), arrays.get(f"{name}.scale")
        return cls(weights, biases, layer_norm, *rest)
