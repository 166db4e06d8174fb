"""The figures of `make fault` as the table of docs/reliability.md."""

from typing import Any

from ertrl.text import markdown_table

BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def table(figures: dict[str, Any]) -> str:
    """Promise, attack, figure."""
    kills, disks, damage = figures["kills"], figures["disks"], figures["mutations"]
    hostile, words, memory = figures["hostile"], figures["words"], figures["memory"]
    stages = ", ".join(f"{s['killed']} of {s['operations']} in {n}" for n, s in kills.items())
    named = {where: sum(damage[where].values()) for where in ("dataset", "run", "agent")}
    lost, near = damage["collection"], figures["neighbours"]
    rows = [
        (
            "SIGKILL before any file operation loses nothing and leaves nothing behind",
            "crashes.py",
            f"{stages}: the same files in the end",
        ),
        (
            "... of a process",
            "crashes.py",
            f"{sum(s['processes'] for s in kills.values())} processes killed, the same",
        ),
        (
            "A full disk, a read-only one, a removed folder: an error, and nothing is lost",
            "trouble.py",
            ", ".join(f"{n} {k.replace('_', ' ')}" for k, n in disks.items()),
        ),
        (
            "Damage is named: flip, cut, delete, swap, append, duplicate",
            "damage.py",
            ", ".join(f"{n} of {n} to a{'n' * (k[0] == 'a')} {k}" for k, n in named.items()),
        ),
        (
            "... or does no harm to an unfinished collection",
            "damage.py",
            f"{lost['named']} of {lost['mutations']} are named, "
            f"{lost['same_data']} end with the same data",
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
            f"{near['trainings_told']} of 2 trainings is told who holds the run, "
            f"{near['evaluations_at_once']} evaluations at once are all kept",
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
