"""Runs side by side: what each model sees, how sure that is, and the cases behind it, as a page, tables and figures.

>>> write_report([Path("runs/gpt"), Path("runs/majority")], Path("report"))
"""

from carina.report.read import Run, read_run, runs_in
from carina.report.write import ReportPaths, write_report

__all__ = ["ReportPaths", "Run", "read_run", "runs_in", "write_report"]
