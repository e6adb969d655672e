"""The page of a report: tables and charts of every exam, and a browser of cases, in one file."""

from carina.report.page.render import render

__all__ = ["render"]
