"""Staged conversations in the ms-swift layout of the published sample, imported as benchmarks."""

from carina.sources.swift_chat.case import read_case
from carina.sources.swift_chat.reader import read_conversations

__all__ = ["read_case", "read_conversations"]
