"""What people hand over as logs: files of all dialects, tables in memory, and their mistakes."""

import numpy as np
import pytest

from ertrl.cli import main
from ertrl.data import Dataset, import_logs
from ertrl.errors import ConfigError, DataError
from test_logs import imported, logs, write_csv


def named(**change):
    """Logs whose tasks are called a to e, as lists."""
    given = {name: values.tolist() for name, values in logs().items()}
    return given | {"task": ["abcde"[i] for i in given["task"]]} | change


def with_row(name, row, value):
    values = named()[name]
    return named(**{name: [*values[:row], value, *values[row + 1 :]]})


class Frame:
    """As much of a data frame as is needed: no mapping, but columns by name."""

    def __init__(self, columns):
        self._columns, self.columns = columns, list(columns)

    def __getitem__(self, name):
        return self._columns[name]


# --- in memory ---


@pytest.mark.parametrize("kind", ["lists", "frame", "arrow"])
def test_tables_of_any_kind_are_the_same_logs(kind, tmp_path):
    given = named()
    if kind == "frame":
        given = Frame({name: np.array(values) for name, values in given.items()})
    elif kind == "arrow":
        given = pytest.importorskip("pyarrow").table(given)
    arrays = {name: np.array(values) for name, values in named().items()}
    one, other = imported(tmp_path / "a", given), imported(tmp_path / "b", arrays)
    assert one.fingerprint == other.fingerprint


@pytest.mark.parametrize(
    ("source", "found"),
    [(None, "NoneType"), ([{"task": 1}], "a list of dict"), (3, "int"), ({1, 2}, "set")],
)
def test_what_is_no_log_is_called_by_its_type(source, found, tmp_path):
    with pytest.raises(ConfigError, match=rf"a mapping of columns .* got {found}$"):
        import_logs(source, tmp_path / "own")


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        (with_row("task", 3, None), DataError, r":\n  - column 'task' is empty: row 4$"),
        (with_row("task", 3, np.nan), DataError, r":\n  - column 'task' is empty: row 4$"),
        (with_row("episode", 3, None), DataError, r":\n  - column 'episode' is empty: row 4$"),
        (with_row("reward", 3, None), DataError, r"'reward' is empty, NaN, .*: row 4$"),
        (with_row("observation", 3, [1.0, None]), DataError, r"'observation' is empty.*: row 4$"),
        (with_row("observation", 3, None), ConfigError, r"'observation' has no vector in row 4;"),
        (
            with_row("observation", 3, [1.0]),
            ConfigError,
            r"'observation' differ in length: 2 in row 1, 1 in row 4;",
        ),
    ],
)
def test_what_is_missing_is_told_with_its_row(given, kind, told, tmp_path):
    with pytest.raises(kind, match=told):
        imported(tmp_path, given)


def test_a_name_alone_is_one_name(tmp_path):
    given = named(task=[{"a": "ab"}.get(name, name) for name in named()["task"]])
    given["mass"] = [ord(name[0]) for name in given["task"]]
    data = imported(tmp_path, given, held_out="ab", ood="c", parameters="mass")
    assert (data.task("ab").group, data.task("c").group) == ("test-id", "test-ood")
    assert data.task("d").parameters.tolist() == [ord("d")]


# --- columns ---


def test_a_gap_in_numbered_columns_is_refused(tmp_path):
    given = named()
    rows = given.pop("observation")
    given |= {"obs_0": [row[0] for row in rows], "obs_2": [row[1] for row in rows]}
    with pytest.raises(DataError, match=r"obs_2 stands where obs_1 was expected.*=obs_0,obs_2$"):
        imported(tmp_path, given)
    data = imported(tmp_path, given, columns={"observation": ["obs_0", "obs_2"]})
    assert data.dims.observation == 2


def test_only_columns_with_a_role_need_a_value_per_row(tmp_path):
    extra = {"dt": np.array(0.01), "calibration": np.ones((3, 3)), "odd": np.ones(7)}
    np.savez(tmp_path / "logs.npz", **extra, **logs())
    assert len(import_logs(tmp_path / "logs.npz", tmp_path / "one", progress="none").tasks) == 5
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in "ab":
        part = logs(tasks=1)
        del part["task"]
        np.savez(folder / f"{name}.npz", **extra, **part)
    data = import_logs(folder, tmp_path / "several", held_out=0, progress="none")
    assert [task.name for task in data.tasks.values()] == ["a", "b"]


def test_a_missing_parameter_is_a_missing_column(tmp_path):
    with pytest.raises(DataError, match=r"unknown column 'mas'.*--parameters takes") as caught:
        imported(tmp_path, named(mass=[1.0] * 60), parameters=["mas"])
    assert "--columns" not in str(caught.value)


@pytest.mark.parametrize("with_next", [False, True])
def test_nothing_is_made_up_behind_a_truncated_row(with_next, tmp_path):
    given = logs(episodes=1, steps=6)
    given["truncated"] = given["step"] == 2
    if with_next:
        given["next_observation"] = np.roll(given["observation"], -1, axis=0)
    data = imported(tmp_path, given)
    assert data.task(0).lengths.tolist() == ([3, 3] if with_next else [2, 2])
    notes = data.manifest["imported"]["notes"]
    assert any(n.startswith("5 truncated rows are not the last of their episode") for n in notes)


# --- files ---


@pytest.mark.parametrize(("separator", "comma"), [(";", False), (";", True), ("\t", False)])
def test_the_first_line_tells_the_separator(separator, comma, tmp_path):
    write_csv(tmp_path / "plain.csv", logs())
    text = (tmp_path / "plain.csv").read_text().replace(",", separator)
    (tmp_path / "OK.CSV").write_text(text.replace(".", ",") if comma else text)
    one, other = (
        import_logs(tmp_path / file, tmp_path / file[:2], name="own", progress="none")
        for file in ("plain.csv", "OK.CSV")
    )
    assert one.fingerprint == other.fingerprint
    assert other.manifest["imported"]["format"] == "csv"
    notes = " ".join(other.manifest["imported"]["notes"])
    assert ("decimal points in observation_0, observation_1, action_0, reward" in notes) == comma


def test_blank_lines_are_skipped_and_counted(tmp_path):
    file = tmp_path / "logs.csv"
    write_csv(file, logs())
    lines = file.read_text().splitlines()
    lines[3:3] = ["", "  "]  # before row 3, which is row 5 then
    file.write_text("\n".join(["", *lines, "", ""]))
    assert len(import_logs(file, tmp_path / "own", progress="none").tasks) == 5
    lines[5] = lines[5].replace(lines[5].split(",")[0], "", 1)
    file.write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"column 'task' is empty: row 5$"):
        import_logs(file, tmp_path / "again")


def test_rows_of_a_folder_are_those_of_its_files(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, row in (("a", 0), ("b", 4)):
        given = logs(tasks=1)
        given["reward"][row] = np.nan
        write_csv(folder / f"{name}.csv", {k: v for k, v in given.items() if k != "task"})
    with pytest.raises(DataError, match=r"'reward' is empty, NaN.*: rows a\.csv:1, b\.csv:5$"):
        import_logs(folder, tmp_path / "own")


@pytest.mark.parametrize("source", ["nowhere", "nowhere.csv", "no/folder.xyz"])
def test_what_is_not_there_does_not_exist(source, tmp_path):
    with pytest.raises(DataError, match=r"does not exist$"):
        import_logs(tmp_path / source, tmp_path / "own")


def test_text_in_another_encoding_is_told(tmp_path):
    (tmp_path / "logs.csv").write_bytes("task,größe\na,1\n".encode("latin-1"))
    with pytest.raises(DataError, match="0xf6, not UTF-8; save it as UTF-8"):
        import_logs(tmp_path / "logs.csv", tmp_path / "own")


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("task", r":\n  - column 'task' is empty: row 4$"),
        ("task in a dictionary", r":\n  - column 'task' is empty: row 4$"),
        ("observation", r"logs\.parquet: column 'observation' has no vector in row 4;"),
    ],
)
def test_nulls_of_parquet_are_told_with_their_rows(column, told, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    name = column.split()[0]
    table = pyarrow.table(with_row(name, 3, None))
    if name != column:  # as pandas writes categories
        table = table.set_column(0, name, table.column(name).dictionary_encode())
    parquet.write_table(table, tmp_path / "logs.parquet")
    with pytest.raises(DataError, match=told):
        import_logs(tmp_path / "logs.parquet", tmp_path / "own")


# --- where it goes, and what is told of it ---


@pytest.mark.parametrize("out", [".", "..", "/"])
def test_a_dataset_needs_a_folder_of_its_own(out):
    with pytest.raises(ConfigError, match=r"name a folder of its own, for example data/NAME"):
        import_logs(logs(), out)


def test_an_empty_folder_is_room_enough(tmp_path):
    (tmp_path / "own").mkdir()
    assert len(imported(tmp_path).tasks) == 5
    with pytest.raises(DataError, match="already exists"):
        imported(tmp_path)


def test_tasks_keep_their_names(tmp_path, capsys):
    data = imported(tmp_path, named())
    assert data.task("b") is data.task(1)
    assert data.task("b").name == "b"
    with pytest.raises(DataError, match=r"unknown task 'bb'\. Did you mean 'b'\?"):
        data.task("bb")
    assert main(["data", "info", str(data.path)]) == 0
    for told in (capsys.readouterr().out, (data.path / "README.md").read_text()):
        for word in ("Expert", "expert", "random", "zero ", "updates", "checkpoint"):
            assert word not in told
        rows = [line.replace("|", " ").split() for line in told.splitlines()]
        assert ["task", "name", "group"] in [row[:3] for row in rows]
        assert ["1", "b", "train"] in [row[:3] for row in rows]
    assert 'data.task("a").observations' in told


def test_policies_of_logs_are_no_checkpoints(tmp_path):
    policy = ["xy"[i // 4 % 2] for i in range(60)]
    told = (imported(tmp_path, named(policy=policy)).path / "README.md").read_text()
    assert "logged by 2 policies" in told
    assert "## Returns by policy" in told
    assert "updates" not in told


def test_tasks_of_a_simulator_have_numbers_only(tiny_dataset):
    with pytest.raises(DataError, match="have no names, only the numbers"):
        tiny_dataset.task("left")


def test_who_has_no_dataset_learns_of_both_ways(tmp_path, capsys):
    with pytest.raises(DataError, match=r"ertrl collect FAMILY.*ertrl data import"):
        Dataset(tmp_path)
    assert main(["train", "focal"]) == 2
    assert "ertrl data import" in capsys.readouterr().err
