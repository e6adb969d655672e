"""Adapters to models of others, with weights on this machine or served. What they are used for stands elsewhere.

Nothing here imports torch before a model is opened, so that everything else works without it.
"""

from carina.models.named import ModelIdentity, identify_segmenter, open_segmenter
from carina.models.segment import Box, Point, Prompts, Proposal, Segmenter

__all__ = [
    "Box",
    "ModelIdentity",
    "Point",
    "Prompts",
    "Proposal",
    "Segmenter",
    "identify_segmenter",
    "open_segmenter",
]
