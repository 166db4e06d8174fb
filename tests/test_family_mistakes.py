"""What can be wrong with a family of one's own is told in a line, early, by every command."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ertrl
from conftest import options_of
from ertrl.cli import main
from ertrl.collection.config import CollectConfig
from ertrl.collection.trainer import PolicyTrainer
from ertrl.envs import FamilyEnv, FamilyVectorEnv
from ertrl.envs.families.point_robot import PointRobot
from ertrl.envs.rollout import rollout
from ertrl.errors import ConfigError, PluginError

pytestmark = pytest.mark.usefixtures("forgets_own_parts")
PAGE = Path(__file__).parent.parent / "docs" / "add-a-family.md"
LINE = next(
    code
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    if "class Line(Family)" in code
)
"""The family of the documentation."""
SMALL = CollectConfig(
    hidden=(16,), batch_size=16, random_steps=20, steps=40, checkpoints=2,
    episodes_per_checkpoint=1, reference_episodes=1, simulations_per_task=1,
)  # fmt: skip


@pytest.fixture
def changed(tmp_path, monkeypatch):
    """The file of the documentation's family with a mistake in it."""
    monkeypatch.chdir(tmp_path)

    def write(right="", wrong=""):
        assert right in LINE
        Path("line.py").write_text(LINE.replace(right, wrong) if right else LINE)
        return "line.py"

    return write


def broken(file, capsys):
    """Promises that `check-plugin` finds broken, and why."""
    assert main(["check-plugin", file, "--json"]) == 1
    checks = json.loads(capsys.readouterr().out)["checks"]
    return {check["promise"]: check["problem"] for check in checks if check["problem"]}


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("    horizon = 20\n", "", "line: the class Line has no horizon"),
        ("horizon = 20", "horizon = 20.0", "horizon is a whole number of at least 1, got 20.0"),
        (
            "margin=0.5)",
            "margin=0.5)[:, 0]",
            "line: parameters is a table [tasks, P], a row per task, got the shape (40,)",
        ),
        ("margin=0.5)", "margin=0.5).tolist()", "parameters is a NumPy array of numbers, got list"),
        (
            '("place",)',
            '("place", "mass")',
            "parameters has 1 columns, and parameter_names names ['place', 'mass']",
        ),
        ('("place",)', '("place")', "parameter_names is a tuple of words, such as ('mass',)"),
        ('(("position", 1),)', '("position", 1)', "layout is pairs of a name and a size, such as"),
        (
            'varies = "reward"',
            'varies = "physics"',
            "line: varies is 'reward' or 'dynamics', got 'physics'",
        ),
        ("action_dim = 1", "action_dim = 1; action_low = [-2]", "action_low and action_high have"),
        (
            "    name = ",
            "    def __init__(self):\n        self.no\n\n    name = ",
            "line cannot be made: line.py, line 45: AttributeError",
        ),
    ],
)
def test_a_wrong_declaration_is_told_before_anything_is_done(changed, capsys, right, wrong, told):
    file = changed(right, wrong)
    for command in ("check-plugin", "collect"):
        assert main([command, file]) in (1, 2)
        error = capsys.readouterr().err
        assert told in error
        assert error.count("\n") == 1
    assert [p.name for p in Path().iterdir() if p.suffix != ".py"] in ([], ["__pycache__"])


def test_a_wrong_declaration_is_told_in_python():
    for change in ({"varies": "physics"}, {"parameters": np.ones(40)}, {"parameter_names": ("x",)}):
        kind = type("Mine", (PointRobot,), {"name": "mine", **change})
        for given in (kind, kind()):
            with pytest.raises(ConfigError, match=r"mine: (varies|parameters) (is|has) "):
                ertrl.collect(given)


def test_a_family_like_nothing_known_breaks_a_promise(changed, capsys):
    told = broken(changed('like = "point-robot"', 'like = "pointrobot"'), capsys)
    assert list(told) == [
        "A profile has settings for it: where it is `like` another family, that one is known"
    ]
    assert "Did you mean 'point-robot'?" in told.popitem()[1]


def test_the_family_of_the_documentation_keeps_its_promises(changed, capsys):
    assert main(["check-plugin", changed()]) == 0
    assert "broken" not in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:.*is not above random actions", "ignore:.*in no task is")
def test_a_class_is_collected_and_known_by_name_from_then_on(changed, monkeypatch, capsys):
    changed()
    monkeypatch.syspath_prepend(Path.cwd())
    monkeypatch.delitem(sys.modules, "line", raising=False)
    Line = importlib.import_module("line").Line
    data = ertrl.collect(Line, config=SMALL, progress="none")
    assert str(data.path) == "data/line"
    assert type(data.make_family()) is type(ertrl.make_family("line")) is Line
    ertrl.collect(Line, config=SMALL)
    assert capsys.readouterr().err == "data/line was finished before; it is only opened\n"


def test_observations_of_another_size_are_told(changed, capsys):
    file = changed('(("position", 1),)', '(("position", 3),)')
    told = broken(file, capsys)
    size = told["Observations are finite 32-bit numbers of the declared size"]
    assert "have the shape (21, 2, 1), expected (21, 2, 3): `layout` has 3 numbers" in size
    assert main(["collect", file, *options_of(SMALL), "--progress", "none"]) == 1
    assert capsys.readouterr().err == (
        "error: line: reset() gave observations of shape (40, 1), expected (40, 3): those of all "
        "rows, with as many numbers as `layout` has\n"
    )


def test_a_reset_that_gives_only_its_rows_breaks_a_promise(changed, capsys):
    told = broken(
        changed(
            "return self._x.astype(np.float32)\n\n    def step",
            "return self._x[rows].astype(np.float32)\n\n    def step",
        ),
        capsys,
    )
    assert list(told.values()) == [
        "reset() gave observations of shape (1, 1), expected (3, 1): those of all rows, of which "
        "1 of 3 was reset"
    ]


def test_a_reset_that_gives_only_its_rows_stops_a_collection(changed, capsys):
    """Where rows do not end together."""
    text = LINE.replace(
        "return self._x.astype(np.float32)\n\n    def step",
        "return self._x[rows].astype(np.float32)\n\n    def step",
    ).replace("terminated=never", "terminated=self._x[:, 0] > 0.2")
    Path(changed()).write_text(text)
    assert main(["collect", "line.py", *options_of(SMALL), "--progress", "none"]) == 1
    assert re.search(
        r"reset\(\) gave observations of shape \(\d+, 1\), expected \(40, 1\): those of all rows",
        capsys.readouterr().err,
    )


def test_a_global_generator_is_told_first(changed, capsys):
    told = broken(changed("np.random.default_rng(seed).uniform", "np.random.uniform"), capsys)
    assert next(iter(told)).startswith("The same seeds and actions give the same trajectories")
    first, *others = told.values()
    assert first.startswith("a second run went elsewhere: a row must draw from its own seed")
    assert told["Actions beyond 1 are cut"].startswith("one seed and one action lead to two places")
    assert not any("Mismatch" in problem for problem in (first, *others))


def test_actions_that_are_not_cut_are_told(changed, capsys):
    told = broken(changed("np.clip(action, -1, 1)", "action"), capsys)
    assert told == {
        "Actions beyond 1 are cut": "an action of 3 does more than one of 1: clip actions to "
        "[-1, 1] in step() (numbers differ by up to 0.2)"
    }


def installed_package(folder, source):
    """A distribution of somebody else with a family."""
    (folder / "their_family.py").write_text(source)
    facts = folder / "their_family-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: their-family\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[ertrl.envs.families]\ntheirs = their_family\n")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import no_such_package", "theirs (their_family, group ertrl.envs.families) cannot be"),
        (LINE.replace("    horizon = 20\n", ""), "line: the class Line has no horizon"),
    ],
)
def test_a_broken_package_of_others_stops_only_who_needs_families(tmp_path, source, told):
    installed_package(tmp_path, source)

    def python(*words):
        code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); " + words[0]
        run = [sys.executable, "-c", code, *words[1:]]
        return subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)

    command = "from ertrl.cli import main; sys.exit(main())"
    done = python(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    done = python(command, "list")
    assert done.returncode in (1, 2)
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    done = python("import ertrl; ertrl.make_family('line')")
    assert told in done.stderr.splitlines()[-1]
    done = python("import warnings; warnings.simplefilter('default'); import ertrl.envs")
    assert "ImportWarning: some environments are missing in Gymnasium: " in done.stderr


def test_what_fails_while_a_family_is_made_is_told_with_its_place():
    class Mine(PointRobot):
        name = "mine"

        def __init__(self):
            raise KeyError("no such thing")

    with pytest.raises(PluginError, match=r"mine cannot be made: test_family_mistakes.py, line \d"):
        ertrl.collect(Mine)


ONE_BUFFER = {
    "np.zeros((size, 1))": "np.zeros((size, 1), np.float32)",
    "self._x = self._x + 0.1 * np.clip(action, -1, 1)": "self._x += 0.1 * np.clip(action, -1, 1)",
    "self._x.astype(np.float32)": "self._x",
}


@pytest.fixture
def one_buffer(changed):
    """A simulation that gives the array it works on."""
    text = LINE
    for right, wrong in ONE_BUFFER.items():
        assert right in text
        text = text.replace(right, wrong)
    file = changed()
    Path(file).write_text(text)
    return file


def test_a_simulation_that_gives_its_own_array_breaks_a_promise(one_buffer, capsys):
    told = broken(one_buffer, capsys)
    assert list(told) == ["An observation stays what it was when the simulation goes on"]
    assert "changed after it was given: return a copy" in told.popitem()[1]


@pytest.fixture
def one_buffer_line(one_buffer, monkeypatch):
    monkeypatch.syspath_prepend(Path.cwd())
    monkeypatch.delitem(sys.modules, "line", raising=False)
    return importlib.import_module("line").Line()


def test_a_simulation_that_gives_its_own_array_spoils_no_episode(one_buffer_line):
    family, seen = one_buffer_line, []

    def watch(before, action, reward, after, counts):
        seen.append(np.concatenate([before + 0.1 * action, after], axis=1))

    rollout(family, family.parameters[:2], lambda x, t: np.ones((2, 1)), [1, 2], watch)
    moved, after = np.split(np.array(seen), 2, axis=-1)
    np.testing.assert_allclose(moved, after, atol=1e-6)


def test_a_simulation_that_gives_its_own_array_spoils_no_behaviour_policy(one_buffer_line):
    trainer = PolicyTrainer(one_buffer_line, SMALL)
    trainer.simulate(10, trainer.state.behaviour)
    fields = "observation", "action", "next_observation"
    stored = {name: trainer.replay._arrays[name][:, :9] for name in fields}
    moved = stored["observation"] + 0.1 * stored["action"]
    np.testing.assert_allclose(moved, stored["next_observation"], atol=1e-6)
    assert np.ptp(stored["observation"]) > 0


def test_a_simulation_that_gives_its_own_array_spoils_no_gymnasium(one_buffer_line):
    action = np.ones(1, np.float32)
    one, many = FamilyEnv(one_buffer_line), FamilyVectorEnv(one_buffer_line, 2)
    for env, act in ((one, action), (many, np.stack([action, action]))):
        seen = [env.reset(seed=0)[0], *(env.step(act)[0] for _ in range(3))]
        assert len({float(np.ravel(x)[0]) for x in seen}) == 4
