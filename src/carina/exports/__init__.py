"""Benchmarks for other tools, one module a target.

An export is one function with the decorator `@exporter`. See "Add an export" in the documentation.
"""

from carina.exports._exporter import EXPORTS, Exporter, exporter
from carina.exports._exporting import ExportResult, export
from carina.exports._folder import Counts, ExportManifest, Format, LineFile, Sink, Written
from carina.exports._pictures import PictureMode

__all__ = [
    "EXPORTS",
    "Counts",
    "ExportManifest",
    "ExportResult",
    "Exporter",
    "Format",
    "LineFile",
    "PictureMode",
    "Sink",
    "Written",
    "export",
    "exporter",
]
