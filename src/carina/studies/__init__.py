"""Studies: what was imaged, and what experts say is there."""

from carina.studies.collection import Problem, Studies, open_studies
from carina.studies.manifest import Counts, Manifest, PartInfo, Provenance, SourceInfo
from carina.studies.model import (
    Anatomy,
    Annotation,
    Device,
    Finding,
    Image,
    Location,
    Measure,
    Quality,
    Recommendation,
    Relation,
    Report,
    ReportSection,
    Sentence,
    Statement,
    Study,
    Tip,
)
from carina.studies.parts import finished_part, write_part
from carina.studies.pixels import read_header, read_pixels, to_display, write_png
from carina.studies.region import Region
from carina.studies.store import claim, write_manifest, write_studies

__all__ = [
    "Anatomy",
    "Annotation",
    "Counts",
    "Device",
    "Finding",
    "Image",
    "Location",
    "Manifest",
    "Measure",
    "PartInfo",
    "Problem",
    "Provenance",
    "Quality",
    "Recommendation",
    "Region",
    "Relation",
    "Report",
    "ReportSection",
    "Sentence",
    "SourceInfo",
    "Statement",
    "Studies",
    "Study",
    "Tip",
    "claim",
    "finished_part",
    "open_studies",
    "read_header",
    "read_pixels",
    "to_display",
    "write_manifest",
    "write_part",
    "write_png",
    "write_studies",
]
