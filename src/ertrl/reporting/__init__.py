"""From runs to numbers, tables, figures and one page: `report(runs, out)`.

Four rooms, in the order a number passes through them: `read` (results of runs, the paper's numbers,
who a variant is), `measure` (statistics, comparisons, gains), `draw` (figures) and `write` (page,
tables, results.json). A room imports only from rooms before it.
"""

from ertrl.reporting.compose import print_summary, report

__all__ = ["print_summary", "report"]
