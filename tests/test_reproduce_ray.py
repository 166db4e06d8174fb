"""A grid on a real Ray cluster of two machines, one of which is lost in mid-run."""

import threading
import time

import pytest

from ertrl.launch.reproduce import reproduce
from test_reproduce import small_grid

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

    def alive() -> int:
        return sum(node["Alive"] for node in ray.nodes())

    until = time.monotonic() + 60  # the list of machines lags behind the tasks
    while alive() > 2 and time.monotonic() < until:
        time.sleep(0.5)
    assert (len(ray.nodes()), alive()) == (3, 2)
