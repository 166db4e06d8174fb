"""How z is learned. A file of this folder with a `METHOD` adds one.

    base.py            what a method is
    focal.py er_trl.py csro.py unicorn.py offline_pearl.py      the paper's five
    dora.py spc.py gentle.py                                    rivals since
    bayes_linear.py                                             our own

What several of them use, or what is a part of one:

    encoder.py         the context encoders, the distance metric
    inference.py       z as sums over transitions, so that it can be inferred step by step
    gan.py             the model of the behaviour policy, for ER-TRL
    prediction.py      what decoders predict, for UNICORN and GENTLE
    prototypes.py      a slow code per task, for DORA and SPC
    regression.py      features, and z as weights of a linear model in them, for Bayes-linear
    posterior.py       ... the linear algebra
    prior.py           ... a prior learned from training tasks
"""

from ertrl.errors import ConfigError
from ertrl.methods.base import Method
from ertrl.plugins import choose, parts, register

__all__ = ["Method", "get_method", "methods", "own_method"]


def methods() -> dict[str, type[Method]]:
    """All methods by name."""
    return parts(__name__, "METHOD", ("name", "summary", "paper"), Method)


def get_method(name: str) -> type[Method]:
    """Find the method of that name; calling it gives its default settings."""
    return choose("method", name, methods(), __name__, "METHOD")


def own_method(part: Method | type[Method]) -> type[Method]:
    """Make a method of one's own known by its name, for this process."""
    kind = part if isinstance(part, type) else type(part)
    if not issubclass(kind, Method):
        raise ConfigError(f"a method is a subclass of ertrl.methods.Method, got {part!r}")
    register(__name__, kind, methods())
    return kind
