"""The methods learn: held-out Point-Robot tasks, laptop profile, one seed, with a margin."""

import os

import pytest

from ertrl import api
from ertrl.evaluation import summarise


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """The laptop profile's Point-Robot data, collected once for all workers."""
    root = tmp_path_factory.getbasetemp()
    shared = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    from filelock import FileLock

    with FileLock(shared / "point-robot.lock"):
        return api.collect("point-robot", shared / "point-robot", progress="none")


@pytest.mark.parametrize("method", ["er-trl", "focal"])
def test_adapts_to_held_out_tasks(method, data, tmp_path):
    run = api.train(method, data, seed=3, out=tmp_path, progress="none")
    scores = summarise(run.evaluation())
    assert scores["offline/train"] > 85
    assert scores["offline/test-id"] > 85
    assert scores["online/test-id"] > 55
    # Better than idling, and the data's mean: it infers the task instead of averaging over tasks.
    idle = 5
    assert scores["non-prior/test-id"] > idle
