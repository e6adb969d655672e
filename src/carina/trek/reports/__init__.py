"""Radiology reports of the chest, read by rules: sections, sentences, and all that they state."""

from carina.trek.reports.read import read_report
from carina.trek.reports.reading import Comparison, Reading
from carina.trek.reports.truth import with_report_truth

__all__ = ["Comparison", "Reading", "read_report", "with_report_truth"]
