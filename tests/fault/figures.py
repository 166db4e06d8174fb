"""The figures of `make fault` as the table of docs/reliability.md."""

from typing import Any

from ertrl.text import markdown_table

BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def table(figures: dict[str, Any]) -> str:
    """Promise, test, figure."""
    stages, refused = figures["crashes"], figures["refused"]
    operations = ", ".join(f"{s['killed']} of {s['operations']} {n}" for n, s in stages.items())
    damage = figures["mutations"]
    by_kind = {where: sum(damage[where].values()) for where in ("dataset", "run")}
    lost = damage["collection"]
    hostile, words, memory = figures["hostile"], figures["words"], figures["memory"]
    rows = [
        (
            "A crash at any file operation loses nothing and leaves nothing behind",
            "crashes.py",
            f"{operations}: the same files in the end",
        ),
        ("... by SIGKILL of a process", "crashes.py", f"{figures['killed_processes']} processes"),
        (
            "A full disk, a read-only one, a removed folder: an error, and nothing is lost",
            "trouble.py",
            ", ".join(f"{n} {k.replace('_', ' ')}" for k, n in refused.items()),
        ),
        (
            "Damage is named: flip, cut, delete, swap, append, duplicate",
            "damage.py",
            f"{by_kind['dataset']} to a dataset, {by_kind['run']} to a run, {lost['named']} of "
            f"{lost['mutations']} to a collection, which ended with the same data otherwise",
        ),
        (
            "A sealed file that says what cannot be breaks nothing",
            "hostile.py",
            f"{hostile['files']:,} files, {hostile['calls']:,} calls, "
            f"{hostile['tracebacks']} tracebacks",
        ),
        (
            "Words on the command line break nothing",
            "words.py",
            f"{words['lines']:,} lines, {words['tracebacks']} tracebacks",
        ),
        (
            "Processes on one folder do not harm each other",
            "trouble.py",
            f"{figures['two_processes']['refused']} of 2 trainings is told who holds the run, "
            f"{figures['two_processes']['evaluations_at_once']} evaluations are all kept",
        ),
        (
            "A NaN is kept, repeated and named",
            "trouble.py",
            f"update {figures['divergence']['step']}: {figures['divergence']['operation']}",
        ),
        (
            "Memory does not grow",
            "trouble.py",
            f"{memory['growth']} MB from update {memory['updates'] // 5:,} to "
            f"{memory['updates']:,}, of {memory['megabytes'][-1]:.0f} MB",
        ),
    ]
    shown = [(promise, f"`tests/fault/{file}`", figure) for promise, file, figure in rows]
    return markdown_table(("promise", "attack", "figure"), shown, "lll")
