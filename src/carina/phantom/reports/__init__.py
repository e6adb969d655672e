"""Reports of phantom studies; every sentence is linked to the facts it states."""

from carina.phantom.reports.wording import WordingName
from carina.phantom.reports.writer import write_report

__all__ = ["WordingName", "write_report"]
