"""Hooks of the docs site (`make docs`): which pages it has, in which order.

The Markdown files are written to be read in the repository, too, so their links lead to README,
results and examples outside of this folder. Whatever they link to becomes part of the site, and
links are rewritten to where it is there.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
MENU = {
    "Start": ["README.md", "idea.md", "tutorial.md"],
    "Use": [
        *("cli.md", "own-logs.md", "own-environment.md", "deploy.md", "report.md"),
        *("data-format.md", "collection.md", "families.md", "profiles.md"),
    ],
    "Methods and findings": [
        "methods.md",
        "findings.md",
        "results.md",
        "paper-map.md",
        "released.md",
    ],
    "Scale and rely on it": [
        *("reproduce.md", "clusters.md", "scaling.md", "reliability.md", "determinism.md")
    ],
    "Extend": ["architecture.md", "add-a-method.md", "add-a-learner.md", "add-a-family.md"],
    "Reference": ["api.md"],
}
"""Pages that are not there are left out; pages that are not named here stand at the end."""
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)]*)?(\))")
CODE = re.compile(r"(```.*?```)", re.DOTALL)


def place(path: str) -> str:
    """Where a file of the repository is on the site."""
    if path == "README.md":
        return "overview.md"  # the index is that of docs/
    return path.removeprefix("docs/")


def target(page: str, link: str) -> str | None:
    """The file of the repository that a link of a page leads to; of a folder, what says most."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    inside = (posixpath.join(path, name) for name in ("README.md", "results.json", "train.json"))
    return next((file for file in (path, *inside) if (ROOT / file).is_file()), None)


def linked(page: str) -> set[str]:
    """Files that a page links to."""
    text = CODE.sub("", (ROOT / page).read_text())
    return {found for _, link, *_ in LINK.findall(text) if (found := target(page, link))}


def on_config(config):
    here = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
    named = [name for names in MENU.values() for name in names]
    rest = {"More": [name for name in here if name not in named]}
    sections = {title: [n for n in names if n in here] for title, names in (MENU | rest).items()}
    sections["Start"].insert(1, "overview.md")
    config.nav = [{title: names} for title, names in sections.items() if names]
    return config


def on_files(files, config):
    """Add everything outside of docs/ that pages lead to, and what those lead to."""
    waiting = {f"docs/{file.src_uri}" for file in files.documentation_pages()}
    seen = set(waiting)
    while waiting:
        found = {path for page in waiting if page.endswith(".md") for path in linked(page)} - seen
        for path in sorted(found):
            if not path.startswith("docs/"):
                files.append(File.generated(config, place(path), abs_src_path=str(ROOT / path)))
        seen |= found
        waiting = found
    return files


def on_page_markdown(markdown, page, config, files):
    path = Path(page.file.abs_src_path).relative_to(ROOT).as_posix()
    home = posixpath.dirname(page.file.src_uri)

    def moved(match: re.Match) -> str:
        found = target(path, match[2])
        if found is None:
            return match[0]
        there = posixpath.relpath(place(found), home or ".")
        return f"{match[1]}{there}{match[3] or ''}{match[4]}"

    parts = CODE.split(markdown)
    return "".join(part if i % 2 else LINK.sub(moved, part) for i, part in enumerate(parts))
