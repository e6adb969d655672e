"""Benchmarks for the Hugging Face hub: Parquet that `datasets` opens, a data card, Croissant metadata.

>>> export_hub(Path("bench"), Path("folder"), HubOptions(pictures="embed"))
"""

from carina.cases.hub.card import card
from carina.cases.hub.croissant import croissant
from carina.cases.hub.exporting import HubOptions, export_hub

__all__ = ["HubOptions", "card", "croissant", "export_hub"]
