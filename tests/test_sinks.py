"""Metrics that go elsewhere, too."""

import sys
from types import SimpleNamespace

import pytest

from conftest import tiny_config
from ertrl.errors import MissingExtra
from ertrl.training import Run, train_run


def new_run(tmp_path, dataset):
    return Run.create(tmp_path, dataset, "focal", "td3bc", tiny_config("focal"), "test")


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


def test_tensorboard_holds_every_number_of_the_log(tiny_dataset, tmp_path):
    run = new_run(tmp_path, tiny_dataset)
    train_run(run, tiny_dataset, "none", sinks=("tensorboard",))
    found = scalars(run.path / "tensorboard")
    lines = run.metrics()
    assert {line["kind"] for line in lines} == {"train", "evaluation"}
    for line in lines:
        for name, value in line.items():
            if name not in ("kind", "step"):
                shown = found.pop((f"{line['kind']}/{name}", line["step"]))
                assert shown == pytest.approx(value, rel=1e-5)
    assert not found


def test_wandb_gets_a_run_of_the_same_name_that_can_be_resumed(tiny_dataset, tmp_path, monkeypatch):
    calls, logged, finished = [], [], []
    started = SimpleNamespace(log=logged.append, finish=lambda: finished.append(True))
    fake = SimpleNamespace(init=lambda **options: calls.append(options) or started)
    monkeypatch.setitem(sys.modules, "wandb", fake)
    run = new_run(tmp_path, tiny_dataset)
    train_run(run, tiny_dataset, "none", sinks=("wandb",))
    (options,) = calls
    assert (options["id"], options["resume"]) == (run.name, "allow")
    assert options["config"]["seed"] == 0
    assert [line["step"] for line in logged] == [line["step"] for line in run.metrics()]
    assert all(any(key.startswith(("train/", "evaluation/")) for key in line) for line in logged)
    assert finished == [True]


@pytest.mark.parametrize(("sink", "module"), [("tensorboard", "tensorboardX"), ("wandb", "wandb")])
def test_a_missing_package_is_named_before_anything_is_trained(
    sink, module, tiny_dataset, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, module, None)
    run = new_run(tmp_path, tiny_dataset)
    with pytest.raises(MissingExtra, match=rf"pip install 'ertrl\[{sink}\]'"):
        train_run(run, tiny_dataset, "none", sinks=(sink,))
    assert run.metrics() == []
