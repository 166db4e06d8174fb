"""Numbers and tables as a person reads them."""

import sys

import pytest

from ertrl.provenance import command
from ertrl.text import markdown_table, readable_bytes, readable_duration


def test_bytes():
    sizes = {
        0: "0 bytes",
        512: "512 bytes",
        999_600: "1 MB",
        20_410_000: "20.4 MB",
        5e13: "50.0 TB",
    }
    assert {size: readable_bytes(size) for size in sizes} == sizes


def test_durations():
    spans = {5: "5 s", 180: "3 min", 9000: "2.5 h", 216_000: "2.5 days"}
    assert {seconds: readable_duration(seconds) for seconds in spans} == spans


def test_a_markdown_table_keeps_its_cells_apart():
    table = markdown_table(["what", "n"], [["a|b\nc", "1"]], "lr")
    assert table == "| what | n |\n| --- | --: |\n| a\\|b c | 1 |"


def test_a_command_is_told_without_folders_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    words = [f"{tmp_path}/bin/ertrl", "train", "focal", "--data", f"{tmp_path}/data/x"]
    words += ["--out=/elsewhere/runs", "--collect-settings", '{"steps": 1}', "a/b"]
    monkeypatch.setattr(sys, "argv", words)
    told = "ertrl train focal --data data/x --out=runs --collect-settings '{\"steps\": 1}' a/b"
    assert command() == told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["ipykernel_launcher.py", "-f", "kernel.json"], "Python, in a notebook"),
        ([""], "Python, at its prompt"),
    ],
)
def test_what_has_no_command_says_where_it_was_typed(monkeypatch, words, told):
    monkeypatch.setattr(sys, "argv", words)
    assert command() == told
