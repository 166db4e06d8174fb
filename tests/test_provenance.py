"""Where a number comes from."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import ertrl

COMMIT = "from ertrl.provenance import provenance; print(provenance()['commit'])"


def git(folder, *words):
    person = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    subprocess.run(["git", *person, *words], cwd=folder, check=True, capture_output=True)


def commit_said_in(folder):
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    found = subprocess.run(
        [sys.executable, "-c", COMMIT], env=environment, capture_output=True, text=True, check=True
    )
    return found.stdout.strip()


def test_the_commit_is_that_of_our_checkout_not_of_the_one_we_are_installed_in(tmp_path):
    """As in a project whose .venv lies in its folder, and is not committed."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(ertrl.__file__).parent, tmp_path / "site" / "ertrl", ignore=ignore)
    (tmp_path / ".gitignore").write_text("__pycache__\n")
    git(tmp_path, "init")
    git(tmp_path, "add", ".gitignore")
    git(tmp_path, "commit", "-m", "somebody's own project")
    assert commit_said_in(tmp_path / "site") == "not a checkout"
    git(tmp_path, "add", "site")
    git(tmp_path, "commit", "-m", "our files")
    assert re.fullmatch(r"[0-9a-f]{40}", commit_said_in(tmp_path / "site"))
    (tmp_path / "site" / "ertrl" / "new.py").write_text("")
    assert commit_said_in(tmp_path / "site").endswith(" with changes")
