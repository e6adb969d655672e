"""A model that answers by classical image processing: it uses pixels and questions, no weights and no answer key."""

from carina.runs.builtin.reader.anchored import AnchoredReader
from carina.runs.builtin.reader.model import Reader

__all__ = ["AnchoredReader", "Reader"]
