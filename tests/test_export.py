"""Exported agents: whole, equal to the original, and safe to read whatever is in them."""

import json
import shutil
import struct

import numpy as np
import pytest

from ertrl import api, runtime, store
from ertrl.cli import main
from ertrl.deploy import export as module
from ertrl.errors import ConfigError, CorruptFileError, DataError, ErtrlError, RunError
from ertrl.runtime import ActionRange
from ertrl.runtime.agent import Agent
from ertrl.runtime.files import DESCRIPTION, WEIGHTS, describe
from ertrl.runtime.inference import LeastSquares
from ertrl.runtime.layers import MLP
from fault.inject import injecting


@pytest.fixture(scope="module")
def exported(tiny_run, tmp_path_factory):
    out = tmp_path_factory.mktemp("exported") / "agent"
    api.export(tiny_run, out, onnx=True)
    return out


@pytest.fixture
def copied(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "agent")


def reseal(folder, change):
    """Change the description and make its checksums right again, as an attacker would."""
    about = store.read_json(folder / DESCRIPTION)
    change(about)
    store.write_json(folder / DESCRIPTION, about)


def replace_weights(folder, blob):
    (folder / WEIGHTS).write_bytes(blob)
    reseal(folder, lambda about: about["files"].update({WEIGHTS: store.sha256(blob)}))


def test_an_exported_agent_does_what_the_run_does(exported, tiny_run, tiny_dataset):
    agent, plain = api.load_agent(tiny_run), runtime.load(exported)
    logs = tiny_dataset.task(25).transitions(np.arange(30))
    adapted = plain.begin()
    for step in zip(*logs[:4], strict=True):
        adapted.observe(*step)
    known = agent.adapt(logs)
    np.testing.assert_allclose(adapted.z, known.z, atol=1e-5)
    for s in logs.observation:
        np.testing.assert_allclose(adapted.act(s), known.act(s), atol=1e-5)
    assert adapted.transitions == 30


def test_who_takes_it_for_a_run_is_told_how_to_load_it(exported):
    with pytest.raises(RunError, match=r"an exported agent, not a run: .* ertrl\.runtime\.load"):
        api.load_agent(exported)


def test_a_learned_prior_is_saved_loaded_and_exported(tiny_dataset, tmp_path):
    settings = {"updates": 60, "evaluate_every": 60, "method": {"prior": 2.0}}
    settings |= {"updates_per_call": 20, "checkpoint_every": 20, "evaluation": {"repeats": 1}}
    run = api.train("bayes-linear", tiny_dataset, out=tmp_path / "runs", settings=settings)
    agent = api.load_agent(run)
    assert np.abs(agent.z0).max() > 0
    about = api.export(run, tmp_path / "agent", onnx=True)
    assert {"numpy-logged", "onnx-logged"} <= about["parity"]["largest"].keys()
    begun = runtime.load(tmp_path / "agent").begin()
    np.testing.assert_allclose(begun.z, agent.z0, atol=1e-6)
    assert begun.uncertainty == pytest.approx(1)


def test_onnx_takes_actions_in_the_units_of_the_robot(tiny_run, tmp_path, monkeypatch):
    of_run = type(tiny_run).agent

    def in_newtons(run, state):
        agent = of_run(run, state)
        agent.action_range = ActionRange(np.array([-8.0, 0.0]), np.array([8.0, 4.0]))
        return agent

    monkeypatch.setattr(type(tiny_run), "agent", in_newtons)
    about = api.export(tiny_run, tmp_path / "agent", onnx=True)
    assert {"onnx-random", "onnx-logged"} <= about["parity"]["largest"].keys()


@pytest.mark.parametrize("out", [".", "/"])
def test_a_place_without_a_name_is_refused(tiny_run, out):
    with pytest.raises(ConfigError, match="name one"):
        api.export(tiny_run, out)


def test_parity_origin_and_checksums_are_recorded(exported, tiny_run):
    about = runtime.load(exported).about
    found = {(name, what) for name, apart in about["parity"]["largest"].items() for what in apart}
    places = [f"{how}-{what}" for how in ("numpy", "onnx") for what in ("random", "logged")]
    assert found == {(place, what) for place in places for what in ("z", "action")}
    sizes = [size for apart in about["parity"]["largest"].values() for size in apart.values()]
    assert 0 < max(sizes) <= about["parity"]["tolerance"] == 1e-5
    assert (about["run"], about["method"], about["step"]) == (tiny_run.name, "er-trl", 40)
    assert {p.name for p in exported.iterdir()} == {DESCRIPTION, *about["files"]}
    assert api.verify(exported) == {"path": str(exported), "kind": "agent", "files": 4}


def test_the_command_exports(tiny_run, tmp_path, capsys):
    words = ["export", str(tiny_run.path), "--out", str(tmp_path / "a")]
    assert main(words) == 0
    assert "from the agent in JAX" in capsys.readouterr().out
    assert main(words) == 1
    assert "already exists" in capsys.readouterr().err
    assert main([*words[:3], str(tmp_path / "b"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["method"] == "er-trl"


def test_what_a_killed_export_left_is_swept(tiny_run, tmp_path):
    left = tmp_path / "left"

    def kill(number, kind):
        if kind == "os.rename" and not left.exists() and any(tmp_path.glob(".agent.*/agent.json")):
            shutil.copytree(tmp_path, left)

    with injecting(tmp_path, kill):
        api.export(tiny_run, tmp_path / "agent")
    assert any(left.glob(".agent.*/agent.safetensors"))
    api.export(tiny_run, left / "agent")
    assert [path.name for path in left.iterdir()] == ["agent"]


def test_an_agent_that_is_not_the_same_is_not_written(tiny_run, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TOLERANCE", 0.0)
    with pytest.raises(DataError, match=r"is not the one in JAX: .* nothing was written"):
        api.export(tiny_run, tmp_path / "agent")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [DESCRIPTION, WEIGHTS])
def test_a_changed_byte_is_noticed(copied, name):
    data = bytearray((copied / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copied / name).write_bytes(data)
    with pytest.raises(CorruptFileError, match=rf"{name} is damaged"):
        runtime.load(copied)


def test_a_byte_that_says_nothing_is_noticed_as_well(copied):
    with open(copied / DESCRIPTION, "a") as file:
        file.write("\n")
    with pytest.raises(CorruptFileError, match=rf"{DESCRIPTION} is damaged"):
        runtime.load(copied)


def test_what_is_missing_is_named(copied, tmp_path):
    with pytest.raises(DataError, match="ertrl export"):
        runtime.load(tmp_path / "nowhere")
    (copied / WEIGHTS).unlink()
    with pytest.raises(CorruptFileError, match=WEIGHTS):
        runtime.load(copied)
    with pytest.raises(ErtrlError):
        api.verify(copied)


HOSTILE = {
    "of another kind": lambda a: a.update(kind="ertrl-run"),
    "of a later format": lambda a: a.update(format=2),
    "of other sizes": lambda a: a.update(observation_dim=5),
    "of a huge size": lambda a: a.update(observation_dim=10**30),
    "with a wrong range": lambda a: a.update(action_low=[1.0, 1.0]),
    "with a range of words": lambda a: a.update(action_low="low"),
    "of unknown inference": lambda a: a["inference"].update(kind="__import__"),
    "of another inference": lambda a: a["inference"].update(kind="least-squares"),
    "without inference": lambda a: a.pop("inference"),
    "with a list for a name": lambda a: a.update(inference=[]),
    "with files elsewhere": lambda a: a.update(files=[]),
    "with a number for a checksum": lambda a: a["files"].update({DESCRIPTION: 3}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_sealed_description_that_makes_no_sense_is_refused(copied, what):
    reseal(copied, HOSTILE[what])
    with pytest.raises(CorruptFileError, match="agent"):
        runtime.load(copied)


@pytest.mark.parametrize(
    "change",
    [
        {"targets": 0},
        {"noise": 1e-300},
        {"noise": 10**400},
        {"clip": -1.0},
        {"trust": -1.0},
        {"trust": 10**400},
        {"at_most": -1.0},
        {"at_most": 10**400},
        {"scale": 0},
        {"prior.mean": (2,)},
        {"prior.root": (2, 2)},
        {"prior.mean": (3,), "prior.root": (2, 2)},
        {"prior.mean": (2,), "prior.root": (2, 3)},
    ],
)
def test_least_squares_that_cannot_be_solved_are_refused(tmp_path, change):
    def ones(*shape):
        return np.ones(shape, np.float32)

    inference = LeastSquares(MLP((ones(5, 3),), (ones(3),)), 1, ones(6), ones(6), 0.5, 3.0)
    agent = Agent(2, 1, inference, MLP((ones(4, 1),), (ones(1),)), ActionRange(-ones(1), ones(1)))
    arrays, about = agent.arrays(), describe(agent)

    def write():
        blob = store.arrays_to_bytes(arrays)
        (tmp_path / WEIGHTS).write_bytes(blob)
        store.write_json(tmp_path / DESCRIPTION, {**about, "files": {WEIGHTS: store.sha256(blob)}})

    write()
    assert runtime.load(tmp_path).inference.latent_dim == 2
    arrays["columns.scale"] *= np.float32(change.get("scale", 1))
    arrays |= {name: ones(*change[name]) for name in change if name.startswith("prior")}
    about["inference"].update({k: v for k, v in change.items() if k not in arrays})
    write()
    with pytest.raises(CorruptFileError, match="agent"):
        runtime.load(tmp_path)


def header(entry, numbers=b""):
    text = json.dumps({"policy.weight.0": entry}).encode()
    return struct.pack("<Q", len(text)) + text + numbers


WEIGHT_FILES = {
    "nothing": b"",
    "a header beyond the end": struct.pack("<Q", 2**62),
    "no JSON": struct.pack("<Q", 4) + b"{{{{",
    "a list": struct.pack("<Q", 2) + b"[]",
    "deep nesting": struct.pack("<Q", 10**5) + b"[" * 10**5,
    "numbers beyond the end": header({"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}),
    "a negative offset": header({"dtype": "F32", "shape": [4], "data_offsets": [-16, 0]}),
    "a huge shape": header({"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 4]}),
    "a negative shape": header({"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}, b"1234"),
    "another type": header({"dtype": "O", "shape": [1], "data_offsets": [0, 4]}, b"1234"),
    "no network": header({"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, b"1234"),
}


@pytest.mark.parametrize("what", WEIGHT_FILES)
def test_hostile_weights_are_refused(copied, what):
    replace_weights(copied, WEIGHT_FILES[what])
    with pytest.raises(CorruptFileError, match="agent"):
        runtime.load(copied)


def test_weights_that_are_no_numbers_or_do_not_fit_are_refused(copied):
    arrays = store.arrays_from_bytes((copied / WEIGHTS).read_bytes(), copied)
    bad = {**arrays, "policy.bias.0": np.full_like(arrays["policy.bias.0"], np.nan)}
    replace_weights(copied, store.arrays_to_bytes(bad))
    with pytest.raises(CorruptFileError, match=r"policy\.bias\.0 holds NaN"):
        runtime.load(copied)
    bad = {**arrays, "encoder.weight.0": np.ascontiguousarray(arrays["encoder.weight.0"][:-1])}
    replace_weights(copied, store.arrays_to_bytes(bad))
    with pytest.raises(CorruptFileError, match="task inference does not fit"):
        runtime.load(copied)
