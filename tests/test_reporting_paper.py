import pytest

from ertrl.reporting.paper import in_paper, paper_results, published

ER_TRL = {
    # family: ID offline, online, non-prior; OOD offline, online, non-prior; normalised
    "cheetah-vel": (96.4, 92.5, 94.2, 72.6, 61.8, 70.4),
    "ant-goal": (107.7, 93.1, 102.2, 79.1, 49.2, 67.3),
    "ant-dir": (69.1, 53.6, 62.3, 54.9, 27.6, 32.3),
    "humanoid-dir": (70.5, 61.4, 60.7, 59.9, 53.4, 51.1),
    "hopper-mass": (98.7, 99.7, 100.9, 99.7, 99.6, 96.6),
    "hopper-friction": (86.7, 92.9, 91.0, 67.4, 66.4, 65.7),
    "walker-mass": (77.5, 70.7, 68.6, 61.7, 65.2, 63.9),
    "walker-friction": (64.2, 55.6, 49.9, 62.8, 58.8, 54.8),
}
COLUMNS = [(g, p) for g in ("train", "test-ood") for p in ("offline", "online", "non-prior")]


@pytest.mark.parametrize("family", ER_TRL)
def test_er_trl_as_printed(family):
    found = [published(family, "er-trl", *column).mean for column in COLUMNS]
    assert found == pytest.approx(ER_TRL[family], abs=0.0501)


@pytest.mark.parametrize(
    ("family", "method", "column", "mean"),
    [
        ("cheetah-vel", "csro", ("train", "offline"), 94.0),
        ("cheetah-vel", "offline-pearl", ("test-ood", "online"), 56.2),
        ("ant-goal", "focal", ("test-ood", "non-prior"), 48.3),
        ("ant-dir", "csro", ("test-ood", "online"), 8.5),
        ("hopper-mass", "unicorn", ("test-ood", "non-prior"), 86.7),
        ("walker-friction", "offline-pearl", ("train", "offline"), 56.5),
    ],
)
def test_best_baselines_as_printed(family, method, column, mean):
    assert published(family, method, *column).mean == pytest.approx(mean, abs=0.0501)


def test_unnormalised_id_offline():
    expected = [-35.5, -134.2, 680.9, 745.5, 614.7, 546.0, 618.8, 541.3]
    found = [
        published(family, "er-trl", "train", "offline", normalised=False).mean for family in ER_TRL
    ]
    assert found == expected


def test_every_table_is_complete():
    results = paper_results()
    methods = {"offline-pearl", "focal", "csro", "unicorn", "er-trl"}
    blocks = [
        block
        for scale in ("normalised", "unnormalised")
        for group in results[scale].values()
        for block in group.values()
    ]
    assert len(blocks) == 12
    for block in [*blocks, *results["rmse"].values()]:
        assert block.keys() == ER_TRL.keys()
        for entries in block.values():
            assert entries.keys() == methods
            assert all(len(entry) == 2 and entry[1] >= 0 for entry in entries.values())


def test_rmse_as_printed():
    rmse = paper_results()["rmse"]
    assert rmse["linear"]["cheetah-vel"]["csro"] == [0.1586, 0.0009]
    assert rmse["svr"]["humanoid-dir"]["offline-pearl"] == [1.3596, 0.0]


def test_what_the_paper_does_not_have():
    assert not in_paper("point-robot")
    assert in_paper("ant-dir")
    assert published("point-robot", "er-trl", "train", "offline") is None
    assert published("ant-dir", "er-trl", "test-id", "offline") is None
