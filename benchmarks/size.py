"""How large is the code, and how much of it does a newcomer meet?

    .venv/bin/python benchmarks/size.py            # or: make results-size; a second

Counts lines and files of every part of src/ertrl, now and at the commit BEFORE, and writes the
section Size of docs/architecture.md. Lines are all lines of Python files, the empty ones, too. A
run that stands twice is six lines in a row, imports and comments left out, that are equal to six
others.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Mapping

from ertrl.text import markdown_table
from shared import ROOT

BEFORE = "6f5c8a7"
"""Before reporting, collection and the command line were put in order."""
RUN = 6
PAGE = ROOT / "docs" / "architecture.md"
START, END = "<!-- size: make results-size -->", "<!-- end of size -->"

Files = dict[str, list[str]]
"""Path below src/ertrl -> lines."""


def files_now() -> Files:
    home = ROOT / "src" / "ertrl"
    paths = sorted(home.rglob("*.py"))
    return {str(path.relative_to(home)): path.read_text().splitlines() for path in paths}


def files_of(commit: str) -> Files:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, check=True, text=True, stdout=-1).stdout

    paths = git("ls-tree", "-r", "--name-only", commit, "src/ertrl").splitlines()
    python = [path for path in paths if path.endswith(".py")]
    return {p.removeprefix("src/ertrl/"): git("show", f"{commit}:{p}").splitlines() for p in python}


def parts(files: Files) -> Counter[str]:
    """Lines of every folder; those of files beside them together."""
    found: Counter[str] = Counter()
    for path, lines in files.items():
        found[path.split("/")[0] if "/" in path else "single files"] += len(lines)
    return found


def repeated(files: Files) -> int:
    """Runs of lines that stand somewhere else again."""
    count: Counter[tuple[str, ...]] = Counter()
    for lines in files.values():
        told = [x.strip() for x in lines]
        told = [x for x in told if len(x) > 3 and not x.startswith(("#", "import ", "from "))]
        count.update(zip(*(told[i:] for i in range(RUN)), strict=False))
    return sum(n - 1 for n in count.values() if n > 1)


def methods(files: Files) -> dict[str, int]:
    """Lines of the files that hold a method."""
    return {
        path.split("/")[1].removesuffix(".py"): len(lines)
        for path, lines in files.items()
        if path.startswith("methods/") and any(x.startswith("METHOD = ") for x in lines)
    }


def way() -> list[str]:
    """The files that the page tells a reader to open, in order."""
    table = PAGE.read_text().split("| step | what happens |")[1].split("\n\n")[0]
    return re.findall(r"`([\w/]+(?:\.py|/))`", table)


def section() -> str:
    now, before = files_now(), files_of(BEFORE)
    rows = _rows(parts(before), parts(now))
    rows.append(["**all**", *(f"{sum(map(len, f.values())):,}" for f in (before, now))])
    rows.append(["files", str(len(before)), str(len(now))])
    rows.append(["runs of six lines that stand twice", str(repeated(before)), str(repeated(now))])
    rows += [[f"the method {n}", *own] for n, *own in _rows(methods(before), methods(now))]
    table = markdown_table(["", "before", "now"], rows, "lrr")
    lines = [
        START,
        f"Lines of `src/ertrl` at commit `{BEFORE}`, when there were fewer features, and now.",
        "`make results-size` counts them.",
        f"From a simulator to a page, a reader opens the {len(way())} files of the first table;",
        "it was about 48.",
        f"\n{table}\n",
        END,
    ]
    return "\n".join(lines)


def _rows(before: Mapping[str, int], now: Mapping[str, int]) -> list[list[str]]:
    names = sorted({*before, *now}, key=lambda name: -now.get(name, 0))
    return [[name, *(f"{x[name]:,}" if name in x else "" for x in (before, now))] for name in names]


if __name__ == "__main__":
    text = PAGE.read_text()
    begin, end = text.index(START), text.index(END) + len(END)
    PAGE.write_text(text[:begin] + section() + text[end:])
