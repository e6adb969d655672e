"""Synthetic chest radiographs with exact truth: projected from a parametric patient, never painted."""

from carina.phantom.make import SOURCE, make_studies, make_study, write_phantom
from carina.phantom.options import Mix, PhantomOptions

__all__ = ["SOURCE", "Mix", "PhantomOptions", "make_studies", "make_study", "write_phantom"]
