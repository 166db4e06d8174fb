"""`--variant released`: one row of docs/released.md, one test."""

from pathlib import Path

import numpy as np
import pytest

from ertrl.config import to_json
from ertrl.data import Dataset, Sampler
from ertrl.data.sampler import SamplingConfig
from ertrl.envs import family_names, make_family
from ertrl.errors import ConfigError
from ertrl.profiles import collect_config, family_options, train_config, variants
from toys import write_dataset

MUJOCO = sorted(name for name in family_names() if "split" in make_family(name).choices)
ANTS = ("ant-goal", "ant-dir")
DOCS = (Path(__file__).parent.parent / "docs" / "released.md").read_text()


def both(family, method="focal", profile="paper"):
    """The configurations of the paper and of the released code, as JSON."""
    return [
        to_json(train_config(profile, family, method, "brac", variant))
        for variant in ("paper", "released")
    ]


def at(config, path):
    for key in path.split("."):
        config = config[key]
    return config


ROWS = [
    ("sampling.contexts_per_task", "focal", MUJOCO, 2, 1),
    ("sampling.timeouts_terminate", "focal", MUJOCO, False, True),
    ("sampling.meta_batch", "focal", ["ant-dir"], 10, 16),
    ("sampling.context_size", "focal", ["ant-goal"], 256, 512),
    ("method.encoder.latent_dim", "focal", ["hopper-mass", "hopper-friction"], 40, 20),
    ("updates", "focal", [f for f in MUJOCO if f != "cheetah-vel"], 100_000, 200_000),
    ("method.gan.learning_rate", "er-trl", MUJOCO, 3e-4, 2e-4),
    ("method.prediction_weight", "unicorn", ["cheetah-vel", "humanoid-dir", *ANTS], 6.67, 0.15),
    ("method.prediction_weight", "unicorn", ["hopper-mass", "hopper-friction"], 0.67, 1.5),
    ("method.prediction_weight", "unicorn", ["walker-mass", "walker-friction"], 1.43, 0.7),
    ("method.change_scale", "unicorn", MUJOCO, "changes", "states"),
    ("learner.penalty", "focal", MUJOCO, "gradient", "value"),
    ("learner.project_alpha", "focal", MUJOCO, True, False),
    ("learner.plain_clip", "focal", MUJOCO, False, True),
    ("learner.alpha_init", "focal", ["humanoid-dir", *ANTS], 50.0, 500.0),
]


@pytest.mark.parametrize(("path", "method", "families", "paper", "released"), ROWS)
def test_a_row_of_the_table(path, method, families, paper, released):
    for family in families:
        assert [at(config, path) for config in both(family, method)] == [paper, released]
    assert f"`{path}`" in DOCS


@pytest.mark.parametrize("method", ["focal", "er-trl", "csro", "unicorn", "offline-pearl"])
@pytest.mark.parametrize("family", MUJOCO)
def test_nothing_differs_but_what_the_table_says(family, method):
    def flat(config, prefix=""):
        for key, value in config.items():
            if isinstance(value, dict):
                yield from flat(value, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}", value

    paper, released = (dict(flat(config)) for config in both(family, method))
    differing = {key for key in paper if paper[key] != released[key]}
    assert differing <= {path for path, *_ in ROWS}


@pytest.mark.parametrize("family", MUJOCO)
def test_the_released_tasks(family):
    options = family_options("paper", family, "released")
    expected = {"split": "released"}
    if family == "ant-dir":
        expected["observation_dim"] = 27
    if family.endswith("-mass"):
        expected["refresh_constants"] = False
    assert options == expected
    assert make_family(family, **options).options == {**make_family(family).options, **options}
    assert family_options("paper", family) == {}
    assert collect_config("paper", family, "released") == collect_config("paper", family)


def test_the_laptop_has_the_rows_that_do_not_depend_on_scale():
    paper, released = both("cheetah-vel", "unicorn", "laptop")
    for path in (
        "sampling.contexts_per_task",
        "sampling.timeouts_terminate",
        "method.change_scale",
        "learner.penalty",
        "learner.project_alpha",
    ):
        assert at(paper, path) != at(released, path)
    assert paper["updates"] == released["updates"]


def test_an_unknown_variant_is_named():
    assert variants("paper") == ["paper", "released"]
    with pytest.raises(ConfigError, match=r"relesed.*Did you mean 'released'"):
        train_config("paper", "ant-dir", "focal", None, "relesed")


def test_time_limits_terminate_only_if_asked(tmp_path):
    """The toy's tasks have one episode that ends after 2 steps and one that is cut after 4."""
    write_dataset(tmp_path / "d")
    data = Dataset(tmp_path / "d").task(0)
    every = np.arange(len(data.steps))
    assert data.transitions(every).terminated.tolist() == [0, 1, 0, 0, 0, 0]
    cut = data.transitions(every, timeouts_terminate=True)
    assert cut.terminated.tolist() == [0, 1, 0, 0, 0, 1]
    sizes = {"meta_batch": 2, "batch_size": 50, "context_size": 3}
    shares = []
    for timeouts_terminate in (False, True):
        config = SamplingConfig(**sizes, timeouts_terminate=timeouts_terminate)
        batch = Sampler(Dataset(tmp_path / "d"), config, 0, 0).batches(0, 20)
        shares.append(batch.rl.terminated.mean())
    np.testing.assert_allclose(shares, [1 / 6, 2 / 6], atol=0.03)
