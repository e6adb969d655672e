"""A classical reader of radiographs: looks at the pixels, has no weights and knows no key."""

from carina.runs.builtin.reader.anchored import Anchored
from carina.runs.builtin.reader.examinee import Reader

__all__ = ["Anchored", "Reader"]
