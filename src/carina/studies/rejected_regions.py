"""Studies of which an import has left a region out, as the table of defects beside the study set lists them."""

import csv
from pathlib import Path
from typing import Final

DEFECTS: Final = "defects.csv"
"""File of the defects of studies that an import uses: one row for a defect of a study, in the columns `defect` and
`record` (the id of the study), and others."""
UNDRAWABLE: Final = ("region", "swapped corners", "outside", "no area")
"""Defects by which a box or polygon cannot be drawn."""
REJECTED: Final = (*UNDRAWABLE, "mask size", "mask missing")
"""Defects by which a region is left out, while the finding that it shows is kept."""


def list_studies_with_rejected_regions(directory: Path) -> frozenset[str]:
    """Ids of the studies of a set of which the import has left a region out; none where it has no table of defects."""
    try:
        with (directory / DEFECTS).open(newline="", encoding="utf-8", errors="replace") as file:
            return frozenset(row["record"] for row in csv.DictReader(file) if row["defect"] in REJECTED)
    except (OSError, KeyError, csv.Error):  # another program's file, or none
        return frozenset()
