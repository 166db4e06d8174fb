"""What a user installs: one version everywhere, all files in the wheel, types for type checkers."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

import ertrl

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The unpacked wheel."""
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    with zipfile.ZipFile(next(out.glob("*.whl"))) as archive:
        archive.extractall(out / "site")
    return out / "site"


def test_one_version(wheel):
    """`__version__` is the source; citation and changelog follow it by hand."""
    metadata = next(wheel.glob("*.dist-info")) / "METADATA"
    assert f"\nVersion: {ertrl.__version__}\n" in metadata.read_text()
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == ertrl.__version__
    releases = re.findall(
        r"^## \[([\d.]+)\] - (\d{4}-\d\d-\d\d)$",
        (ROOT / "CHANGELOG.md").read_text(),
        re.MULTILINE,
    )
    assert releases[0] == (ertrl.__version__, str(citation["date-released"]))


def test_the_wheel_has_every_file(wheel):
    source = ROOT / "src"
    files = {p.relative_to(source) for p in (source / "ertrl").rglob("*") if p.is_file()}
    files = {path for path in files if "__pycache__" not in path.parts}
    assert Path("ertrl/py.typed") in files
    assert files == {p.relative_to(wheel) for p in (wheel / "ertrl").rglob("*") if p.is_file()}


def test_a_type_checker_sees_the_types(wheel, tmp_path):
    checker = shutil.which("ty", path=Path(sys.executable).parent)
    if checker is None:
        pytest.skip("ty is not installed")
    program = """
        from typing import assert_type
        import ertrl
        data = ertrl.Dataset("data/point-robot")
        assert_type(ertrl.train("er-trl", data), ertrl.Run)
        assert_type(data.fingerprint, str)
        ertrl.train(3.5, data)
    """
    (tmp_path / "program.py").write_text("\n".join(map(str.strip, program.splitlines())))
    found = subprocess.run(
        [
            *(checker, "check", "--project", ".", "--output-format", "concise"),
            *("--python", sys.prefix, "--extra-search-path", str(wheel), "program.py"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    problems = [line for line in found.stdout.splitlines() if line.startswith("program.py")]
    assert len(problems) == 1, found.stdout
    assert "invalid-argument-type" in problems[0]
