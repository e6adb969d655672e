"""Sources: readers of data sets, and the import that turns what they read into study sets or benchmarks.

One module a source; a reader is one function with the decorator `@source`. See "Add a source" in the documentation.
"""

from carina.sources._imported import DefectCount, ImportCounts, Imported
from carina.sources._importing import import_cases, import_source, import_studies
from carina.sources._record import RecordError, SourceError
from carina.sources._source import (
    SOURCES,
    Repaired,
    Skipped,
    Source,
    SourceList,
    Stream,
    WithImages,
    list_sources,
    source,
)

__all__ = [
    "SOURCES",
    "DefectCount",
    "ImportCounts",
    "Imported",
    "RecordError",
    "Repaired",
    "Skipped",
    "Source",
    "SourceError",
    "SourceList",
    "Stream",
    "WithImages",
    "import_cases",
    "import_source",
    "import_studies",
    "list_sources",
    "source",
]
