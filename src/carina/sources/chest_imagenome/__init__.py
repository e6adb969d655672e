"""Chest ImaGenome: scene graphs of frontal images of MIMIC-CXR-JPG, by programs (silver) or by readers (gold)."""

from carina.sources.chest_imagenome.reader import read_chest_imagenome

__all__ = ["read_chest_imagenome"]
