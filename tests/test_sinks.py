"""Metrics that go elsewhere, too."""

import sys
from types import SimpleNamespace

import pytest

from conftest import tiny_config
from ertrl.errors import MissingExtra
from ertrl.training import Run, train_run


def new_run(tmp_path, dataset):
    return Run.create(tmp_path, dataset, tiny_config("focal"), "test")


def scalars(folder):
    """(name, step) -> value of all event files, read as TensorBoard does."""
    from tensorboardX.proto.event_pb2 import Event

    found = {}
    for file in sorted(folder.iterdir()):
        data, place = file.read_bytes(), 0
        while place < len(data):
            length = int.from_bytes(data[place : place + 8], "little")
            event = Event.FromString(data[place + 12 : place + 12 + length])
            place += 12 + length + 4
            for value in event.summary.value:
                found[value.tag, event.step] = value.simple_value
    return found


def test_both_sinks_get_every_number_of_the_log(tiny_dataset, tmp_path, monkeypatch):
    calls, logged, finished = [], [], []
    started = SimpleNamespace(log=logged.append, finish=lambda: finished.append(True))
    fake = SimpleNamespace(init=lambda **options: calls.append(options) or started)
    monkeypatch.setitem(sys.modules, "wandb", fake)
    run = new_run(tmp_path, tiny_dataset)
    train_run(run, tiny_dataset, "none", sinks=("tensorboard", "wandb"))
    lines = run.metrics()
    assert {line["kind"] for line in lines} == {"train", "evaluation"}
    found = scalars(run.path / "tensorboard")
    for line, sent in zip(lines, logged, strict=True):
        assert sent.pop("step") == line["step"]
        for name, value in line.items():
            if name not in ("kind", "step"):
                name = f"{line['kind']}/{name}"
                assert found.pop((name, line["step"])) == pytest.approx(value, rel=1e-5)
                assert sent.pop(name) == value
        assert not sent
    assert not found
    # W&B: a run of the same name that can be resumed.
    (options,) = calls
    assert (options["id"], options["resume"]) == (run.name, "allow")
    assert options["config"]["seed"] == 0
    assert finished == [True]


@pytest.mark.parametrize(("sink", "module"), [("tensorboard", "tensorboardX"), ("wandb", "wandb")])
def test_a_missing_package_is_named_before_anything_is_trained(
    sink, module, tiny_dataset, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, module, None)
    run = new_run(tmp_path, tiny_dataset)
    with pytest.raises(MissingExtra, match=rf"pip install '\.\[{sink}\]'"):
        train_run(run, tiny_dataset, "none", sinks=(sink,))
    assert run.metrics() == []
