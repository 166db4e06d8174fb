"""A method or learner of one's own: mistakes are told in a line, before anything is trained."""

import sys
import warnings
from dataclasses import KW_ONLY, dataclass
from types import SimpleNamespace

import pytest

import ertrl
from ertrl import api, plugins
from ertrl.cli import main
from ertrl.envs.families import own_family
from ertrl.envs.families.point_robot import PointRobot
from ertrl.errors import PluginError
from ertrl.methods import methods, own_method
from ertrl.methods.focal import Focal
from ertrl.training.loop import _warn_of_collapse

METHOD = '''
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp

from ertrl.methods.base import Method
from ertrl.methods.encoder import MeanEncoder, spread
from ertrl.nets import Trained


class State(NamedTuple):
    encoder: Trained[MeanEncoder]


@dataclass(frozen=True)
class Pull(Method):
    """Two contexts of a task have the same z: alone, that makes all z equal."""

    name = "pull"
    summary = "pulls the contexts of a task together"
    loss = "distance"
    rate: float = 0.05
    """Step size."""

    def init(self, dims, key):
        return State(Trained.of(MeanEncoder(self.encoder, dims, key)))

    def update(self, state, batch, z_gradient, key):
        def loss(encoder):
            codes = encoder(batch.context)
            distance = jnp.square(codes[:, 0] - codes[:, -1]).mean()
            return distance, {"distance": distance, **spread(codes[:, 0])}

        encoder, metrics = state.encoder.minimise(loss, self.rate)
        return State(encoder), metrics


METHOD = Pull
'''
LEARNER = """
from ertrl.learners.td3bc import Td3bc


class Mine(Td3bc):
    name = "mine"

    def act(self, state, observation, z, key=None):
        return super().act(state, observation, z, key)


LEARNER = Mine
"""
SHORT = ["--updates", "200", "--evaluate-every", "200", "--evaluation.episodes", "2"]


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """What a test makes known is not known to the next one."""
    monkeypatch.delenv(plugins.OWN, raising=False)
    monkeypatch.setattr(plugins, "_registered", {})
    monkeypatch.setattr(plugins, "_loaded", {})
    yield
    for name in [name for name in sys.modules if name.startswith(plugins.FILE_PREFIX)]:
        del sys.modules[name]


@pytest.fixture
def train(tmp_path, tiny_dataset, capsys, monkeypatch):
    """Write the file, train with it on the command line; exit code and what was said."""
    monkeypatch.chdir(tmp_path)

    def call(source=METHOD, *words, file="part.py"):
        (tmp_path / file).write_text(source)
        plugins._loaded.clear()
        plugins._registered.clear()
        code = main(["train", *(words or [file]), "--data", str(tiny_dataset.path), *SHORT])
        return code, capsys.readouterr()

    return call


def test_a_run_is_not_opened_with_other_code_and_is_said_to_be_finished(train, tmp_path, capsys):
    with pytest.warns(UserWarning, match="z hardly differs between tasks"):
        code, said = train()
    assert code == 0, said.err
    code, said = train()
    assert code == 0, said.err
    assert "finished before, opened as it is" in said.err
    code, said = train(METHOD.replace("0.05", "0.07 - 0.02"))
    assert code in (1, 2)
    assert "was begun with other code of 'pull' than there is now" in said.err
    assert "Remove it to train anew, or give another --out" in said.err
    (run,) = (tmp_path / "runs").iterdir()
    assert main(["train", str(run), "--updates", "400"]) == 1, "nor is it lengthened"
    assert "was begun with other code of 'pull'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spreads", "updates", "warns"),
    [
        ([0.05, 0.003], 300, True),
        ([0.002, 0.003], 5000, True),
        ([0.002, 0.003], 300, False),
        ([0.002, 0.3], 5000, False),
    ],
    ids=["collapsed", "never-learned", "young", "learned"],
)
def test_a_z_that_does_not_differ_is_told(spreads, updates, warns):
    class Told:
        name, config = "run", SimpleNamespace(updates=updates)

        @staticmethod
        def metrics():
            return [{"kind": "train", "z_spread": spread} for spread in spreads]

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        _warn_of_collapse(Told)
    assert bool(found) == warns


def test_an_agent_that_other_code_reads_is_opened_with_a_warning(train, tmp_path, capsys):
    with pytest.warns(UserWarning, match="z hardly differs between tasks"):
        train()
    (run,) = map(str, (tmp_path / "runs").iterdir())
    for words in (["export", run], ["evaluate", run, "--protocol", "continual"]):
        plugins._loaded.clear()
        plugins._registered.clear()
        (tmp_path / "part.py").write_text(METHOD.replace("0.05", "0.07 - 0.02"))
        with pytest.warns(UserWarning, match="begun with other code of 'pull' than there is now"):
            assert main([*words, "--plugin", "part.py"]) == 0, capsys.readouterr().err


def test_a_run_of_an_unknown_method_says_how_to_make_it_known(train, tmp_path, capsys):
    with pytest.warns(UserWarning, match="z hardly differs"):
        train()
    plugins._registered.clear()
    plugins._loaded.clear()
    plugins.os.environ.pop(plugins.OWN)
    assert main(["report", str(tmp_path / "runs")]) == 1
    assert "unknown method 'pull'" in (told := capsys.readouterr().err)
    assert "name its file with --plugin FILE.py" in told
    (part,) = plugins.load(str(tmp_path / "part.py"))
    ertrl.register(part)
    (run,) = (tmp_path / "runs").iterdir()
    assert ertrl.Run(run).method.name == "pull"


BROKEN = {
    "encode gives z of the shape": (
        "    def update(",
        "    def encode(self, state, context):\n"
        "        return self.inference(state)(context)[..., :3]\n\n    def update(",
    ),
    "gives something else than (state, metrics)": ("State(encoder), metrics", "State(encoder)"),
    ".method.encoder.net": (
        "return State(encoder), metrics",
        "import jax\n        return jax.tree.map(lambda x: x.astype('bfloat16'), "
        "State(encoder)), metrics",
    ),
    "part.py, line 31: AttributeError": ("batch.context", "batch.contexts"),
    "part.py, line 27: AttributeError: 'Dims' object has no attribute 'trainingtasks'": (
        "dims, key))",
        "dims.trainingtasks, key))",
    ),
    "METHOD is an object; write METHOD = Pull": ("METHOD = Pull", "METHOD = Pull()"),
    "says 'rate: ...', but that is no setting: write @dataclass(frozen=True)": (
        "@dataclass(frozen=True)\n",
        "",
    ),
    "the setting 'rate' of Pull is a list": (
        "rate: float = 0.05",
        "rate: list = __import__('dataclasses').field(default_factory=list)",
    ),
    "letters, digits, -, _ and dots, such as 'my-part', got 'my pull'": ('"pull"', '"my pull"'),
    "'focal' is the name of ertrl.methods.focal.Focal already": ('"pull"', '"focal"'),
    "has no METHOD, LEARNER or FAMILIES": ("METHOD = Pull", ""),
    "gives Pull, which has no name": ('    name = "pull"\n', ""),
}


@pytest.mark.parametrize("told", BROKEN)
def test_what_cannot_be_trained_is_said_in_a_line(train, tmp_path, told):
    before, after = BROKEN[told]
    code, said = train(METHOD.replace(before, after))
    assert code in (1, 2)
    assert told in said.err
    assert "Traceback" not in said.err
    assert not (tmp_path / "runs").exists(), "nothing was begun"


LEARNERS = {
    "gives a tuple, no LearnerStep": (
        "    def act(",
        "    def update(self, *given):\n        return tuple(super().update(*given))\n\n"
        "    def act(",
    ),
    "act gives actions of the shape": ("z, key)\n", "z, key)[..., :1]\n"),
}


@pytest.mark.parametrize("told", LEARNERS)
def test_a_learner_that_cannot_work_is_told_too(train, tmp_path, told):
    source = LEARNER.replace(*LEARNERS[told])
    code, said = train(source, "focal", "--use-learner", "part.py")
    assert code in (1, 2)
    assert told in said.err
    assert not (tmp_path / "runs").exists()


def test_a_learner_is_taken_from_a_file_and_is_no_method(train):
    code, said = train(LEARNER, "focal", "--use-learner", "part.py")
    assert code == 0, said.err
    assert "focal-mine" in said.out
    code, said = train(LEARNER)
    assert code in (1, 2)
    assert "mine is a learner, no method: give it with --use-learner" in said.err


def test_a_class_typed_at_a_prompt_is_trained_though_nobody_can_compare_its_code(
    tiny_dataset, tmp_path
):
    typed: dict = {"__name__": "__main__"}
    exec(METHOD, typed)  # no file, as in a notebook
    short = {"updates": 200, "evaluate_every": 200, "evaluation": {"episodes": 2}}
    with pytest.warns(UserWarning, match="z hardly differs"):
        run = ertrl.train(
            typed["Pull"], tiny_dataset, settings=short, out=tmp_path, progress="none"
        )
    assert "code" not in run.spec


def test_settings_are_looked_for_where_they_can_be_forgotten_and_nowhere_else():
    class Mixin:
        helper: int

    class Plain(Mixin, Focal):
        name = "plain-one"
        title: str = "Plain"  # no setting in Method either

    assert own_method(Plain) is Plain

    @dataclass(frozen=True)
    class More(Focal):
        name = "more-of-it"
        _: KW_ONLY
        extra: int = 1

    assert own_method(More) is More

    @dataclass
    class Tasks(PointRobot):
        name = "tasks-of-mine"
        note: str = ""

        def __post_init__(self):
            super().__init__()

    assert own_family(Tasks).name == "tasks-of-mine"


def test_an_object_of_a_known_family_keeps_its_options(tmp_path):
    family = ertrl.make_family("cheetah-vel", split="released")
    made, *_ = api._plan(family, None, "laptop", "paper", None, None)
    assert made.options == family.options
    made, *_ = api._plan(type(family), None, "laptop", "paper", None, None)
    assert made.options["split"] == "paper"


def test_a_part_of_the_same_name_is_named():
    class Other(Focal):
        pass

    with pytest.raises(PluginError, match=r"'focal' is the name of ertrl.methods.focal.Focal"):
        own_method(Other)
    assert methods()["focal"] is Focal
