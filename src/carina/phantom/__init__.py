"""Synthetic chest radiographs with exact truth, projected from a parametric model of the patient."""

from carina.phantom.dicom import DicomFolder, write_dicom
from carina.phantom.make import SOURCE, make_phantoms, make_studies, make_study
from carina.phantom.options import Mix, PhantomOptions

__all__ = [
    "SOURCE",
    "DicomFolder",
    "Mix",
    "PhantomOptions",
    "make_phantoms",
    "make_studies",
    "make_study",
    "write_dicom",
]
