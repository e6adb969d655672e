"""Benchmarks for the Hugging Face hub: Parquet that `datasets` opens, a data card, Croissant metadata."""

from carina.exports.hf.format import HubFormat, hf

__all__ = ["HubFormat", "hf"]
