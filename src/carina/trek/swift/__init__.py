"""Staged conversations in the ms-swift layout of the published sample, read as a benchmark.

>>> import_swift(Path("sample.json"), Path("bench"), ImportOptions(images=Path("images")))
"""

from carina.trek.swift.case import Read, case_of
from carina.trek.swift.faults import REMEDIES, Defect, Defects, RecordError, SwiftError, Tally
from carina.trek.swift.importing import Imported, ImportOptions, Skipped, files_of, import_swift
from carina.trek.swift.source import SOURCE

__all__ = [
    "REMEDIES",
    "SOURCE",
    "Defect",
    "Defects",
    "ImportOptions",
    "Imported",
    "Read",
    "RecordError",
    "Skipped",
    "SwiftError",
    "Tally",
    "case_of",
    "files_of",
    "import_swift",
]
