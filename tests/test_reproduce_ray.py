"""A grid on a real Ray cluster of two machines, one of which is lost in mid-run."""

import json
import signal
import subprocess
import sys
import threading
import time

import pytest

from ertrl import store
from ertrl.errors import ConfigError
from ertrl.launch.jobs import call
from ertrl.launch.ray import RayExecutor
from ertrl.launch.reproduce import reproduce
from ertrl.training import Run
from test_reproduce import COLLECT, small_grid, train_settings

pytestmark = [pytest.mark.fault_ray, pytest.mark.filterwarnings("ignore")]
"""Ray itself warns of what it deprecates."""

GRID = small_grid(seeds=(0, 1), updates=1500, checkpoint_every=100)
"""Two runs: one for each machine."""


@pytest.fixture
def cluster():
    utilities = pytest.importorskip("ray.cluster_utils")
    cluster = utilities.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    yield cluster
    import ray

    ray.shutdown()
    cluster.shutdown()


def results(place):
    """Everything that must be the same bit for bit."""
    names = ("metrics.jsonl", "checkpoints/00001500.safetensors", "evaluations/00001500.json")
    runs = sorted((place / "runs").iterdir())
    return {(run.name, name): (run / name).read_bytes() for run in runs for name in names}


@pytest.mark.parametrize("address", [False, True], ids=["shared folder", "address"])
def test_a_lost_machine_costs_nothing_but_time(cluster, tmp_path, monkeypatch, address):
    """Every run ends as on one machine; the one that was lost goes on from its checkpoint."""
    import ray

    monkeypatch.setattr("ertrl.launch.place.SECONDS_BETWEEN_UPLOADS", 0.2)
    nodes = [cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)]
    ray.init(address=cluster.address, log_to_driver=False, logging_level="warning")
    out, work = tmp_path / "ray", tmp_path / "work"
    lost = []

    def lose_a_machine():
        """As soon as both runs have a checkpoint."""
        folder = out / "partial" if address else out / "runs"
        depth = "*/*/checkpoints/*.json" if address else "*/checkpoints/*.json"
        while len({path.parent for path in folder.glob(depth)}) < 2:
            time.sleep(0.1)
        cluster.remove_node(nodes[0], allow_graceful=False)
        lost.append(time.monotonic())

    threading.Thread(target=lose_a_machine, daemon=True).start()
    where = f"file://{out}" if address else out
    done = reproduce(GRID, where, executor="ray", work=work, reporting=False, progress="none")
    assert lost, "the grid was faster than its end"
    assert done.failures == []

    alone = reproduce(GRID, tmp_path / "local", reporting=False, progress="none")
    assert alone.failures == []
    assert results(out) == results(tmp_path / "local")
    trained = [store.read_json(path) for path in (out / "jobs").glob("train-*.json")]
    assert any(record["began_at"] > 0 for record in trained), "it began anew instead of going on"

    def alive() -> int:
        return sum(node["Alive"] for node in ray.nodes())

    until = time.monotonic() + 60  # the list of machines lags behind the tasks
    while alive() > 2 and time.monotonic() < until:
        time.sleep(0.5)
    assert (len(ray.nodes()), alive()) == (3, 2)


def test_a_stopped_grid_saves_its_runs(tmp_path):
    """Without a checkpoint before; the cluster waits for it."""
    settings = train_settings(updates=50_000, checkpoint_every=50_000, evaluate_every=50_000)
    words = ["--families", "point-robot", "--methods", "focal", "--seeds", "0", "--no-report"]
    words += ["--collect-settings", json.dumps(COLLECT), "--train-settings", json.dumps(settings)]
    words += ["--probe-transitions", "0", "--executor", "ray", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "ertrl", "reproduce", *words]
    grid = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 180
    while not any(path.stat().st_size for path in tmp_path.glob("runs/*/metrics.jsonl")):
        assert grid.poll() is None
        assert time.monotonic() < until
        time.sleep(0.2)
    grid.send_signal(signal.SIGINT)
    _, said = grid.communicate(timeout=120)
    assert grid.returncode == 128 + signal.SIGINT
    assert "every run has saved its state" in said
    (run,) = (tmp_path / "runs").iterdir()
    assert 0 < Run(run).checkpoints.newest() < 50_000


def test_an_address_where_nobody_answers_is_told_at_once():
    begun = time.monotonic()
    with pytest.raises(ConfigError, match=r"nobody answers at '127\.0\.0\.1:9'"):
        RayExecutor(call, "127.0.0.1:9")
    assert time.monotonic() - begun < 30
