"""The small runs of `tests/runs/analysis`."""

from tests.runs.analysis.conftest import analysis, histories, prices, runs, small, written

__all__ = ["analysis", "histories", "prices", "runs", "small", "written"]
