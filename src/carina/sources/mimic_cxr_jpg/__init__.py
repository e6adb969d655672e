"""MIMIC-CXR-JPG, with the reports of MIMIC-CXR."""

from carina.sources.mimic_cxr_jpg.reader import read_mimic_cxr_jpg

__all__ = ["read_mimic_cxr_jpg"]
