"""Methods and families are found, ours and installed ones, and what is wrong with them is said."""

import sys

import pytest

from ertrl.envs import make_family
from ertrl.errors import ConfigError, PluginError
from ertrl.methods import get_method
from ertrl.plugins import choose, installed
from ertrl.profiles import collect_config

METHOD = """
from ertrl.methods.focal import Focal

class Theirs(Focal):
    name = {!r}

METHOD = Theirs
"""
FAMILY = """
from ertrl.envs.families.point_robot import PointRobot

class Elsewhere(PointRobot):
    name = "elsewhere"
    like = "point-robot"

FAMILIES = (Elsewhere,)
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a distribution with one plug-in on the path; nothing of it outlives the test."""

    def put(group, source):
        (tmp_path / "their_plugin.py").write_text(source)
        facts = tmp_path / "their_plugin-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: their-plugin\nVersion: 1.0\n")
        (facts / "entry_points.txt").write_text(f"[{group}]\ntheirs = their_plugin\n")
        monkeypatch.syspath_prepend(tmp_path)

    installed.cache_clear()
    yield put
    sys.modules.pop("their_plugin", None)
    installed.cache_clear()


def test_a_method_of_another_distribution_is_found(install):
    install("ertrl.methods", METHOD.format("theirs"))
    assert get_method("theirs").update is get_method("focal").update


def test_a_family_of_another_distribution_is_found(install):
    install("ertrl.envs.families", FAMILY)
    assert make_family("elsewhere").n_tasks == 40
    assert collect_config("laptop", "elsewhere") == collect_config("laptop", "point-robot")


def test_a_family_that_is_like_nothing_known_is_refused(install):
    install("ertrl.envs.families", FAMILY.replace('"point-robot"', '"point-robto"'))
    with pytest.raises(ConfigError, match=r"elsewhere.like: unknown.*Did you mean 'point-robot'"):
        collect_config("laptop", "elsewhere")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_package", "theirs .* cannot be loaded: ModuleNotFoundError"),
        ("METHODE = 1", "has no METHOD"),
        (METHOD.format("focal"), "two things are named 'focal'"),
    ],
)
def test_a_plug_in_that_does_not_work_is_named(install, source, reason):
    install("ertrl.methods", source)
    with pytest.raises(PluginError, match=reason):
        get_method("focal")


@pytest.fixture
def find(tmp_path, monkeypatch):
    """Parts of a package with these files, as those of `ertrl.methods` are found."""
    (tmp_path / "rooms").mkdir()
    monkeypatch.syspath_prepend(tmp_path)

    def found(**sources):
        for name, source in {"__init__": "", **sources}.items():
            (tmp_path / "rooms" / f"{name}.py").write_text(source)
        return installed("rooms", "METHOD", ("name", "summary"))

    yield found
    for name in [name for name in sys.modules if name.split(".")[0] == "rooms"]:
        del sys.modules[name]


ABSTRACT = """
from ertrl.methods.base import Method

class METHOD(Method):
    name, summary = "two", "second"
"""
GOOD = "class METHOD:\n    name, summary = 'one', 'first'"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("class METHOD(", r"rooms/b.py cannot be loaded: SyntaxError: .*line 1"),
        ("x = 1\nx.y", r"rooms/b.py, line 2, cannot be loaded: AttributeError: "),
        ("class METHOD:\n    name = 'two'", r"rooms/b.py: the class METHOD has no summary"),
        (ABSTRACT, "the class METHOD has no init, update"),
        (GOOD, r"two things are named 'one', in .*rooms/a.py and in .*rooms/b.py"),
    ],
)
def test_a_file_that_does_not_work_is_named_with_its_mistake(find, source, reason):
    with pytest.raises(PluginError, match=reason):
        find(a=GOOD, b=source)


def test_a_file_that_only_helps_is_named_to_whoever_asks_for_it(find):
    known = find(a=GOOD, new_one="METHODE = 1")
    assert list(known) == ["one"]
    with pytest.raises(ConfigError, match=r"unknown method 'new-one'.*new_one.py .* has no METHOD"):
        choose("method", "new-one", known, "rooms", "METHOD")
    with pytest.raises(ConfigError, match=r"Known: one\.$"):
        choose("method", "two", known, "rooms", "METHOD")
