"""Benchmarks written as CheXpercept bundles. `carina.sources.chexpercept` imports them."""

from carina.exports.chexpercept.format import BundleFormat, chexpercept

__all__ = ["BundleFormat", "chexpercept"]
