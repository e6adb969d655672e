"""CXRTrek's protocol: a conversation that follows a radiologist's reading through eight stages."""

from carina.trek.build import Built, build_trek
from carina.trek.options import Quotas, TrekOptions

__all__ = ["Built", "Quotas", "TrekOptions", "build_trek"]
