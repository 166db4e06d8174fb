"""From runs to numbers, tables, figures and one page: `report(runs, out)`."""

from ertrl.reporting.report import report
from ertrl.reporting.tables import print_summary

__all__ = ["print_summary", "report"]
