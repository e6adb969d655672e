"""A hospital's own chest radiographs, imported as studies without identifiers; and their segmentations."""

from carina.sources.dicom.attributes import Tag
from carina.sources.dicom.reader import read_dicom

__all__ = ["Tag", "read_dicom"]
