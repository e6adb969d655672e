"""Published CheXpercept bundles: reading them as benchmarks, and writing benchmarks as such.

>>> import_bundle(Path("bundle"), Path("bench"), ImportOptions())
>>> export_bundle(open_benchmark("bench"), Path("again"), ExportOptions())
"""

from carina.percept.bundle.case import case_of
from carina.percept.bundle.exporting import ExportManifest, ExportOptions, export_bundle
from carina.percept.bundle.faults import BundleError, RecordError
from carina.percept.bundle.importing import Imported, ImportOptions, import_bundle
from carina.percept.bundle.reading import Skipped, Survey, survey
from carina.percept.bundle.record import files_of, key_id_of, record_of
from carina.percept.bundle.source import SOURCE

__all__ = [
    "SOURCE",
    "BundleError",
    "ExportManifest",
    "ExportOptions",
    "ImportOptions",
    "Imported",
    "RecordError",
    "Skipped",
    "Survey",
    "case_of",
    "export_bundle",
    "files_of",
    "import_bundle",
    "key_id_of",
    "record_of",
    "survey",
]
