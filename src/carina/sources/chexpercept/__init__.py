"""Published CheXpercept bundles, imported as benchmarks. `carina.exports.chexpercept` writes them."""

from carina.sources.chexpercept.case import read_case
from carina.sources.chexpercept.reader import read_bundle

__all__ = ["read_bundle", "read_case"]
