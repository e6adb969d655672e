"""Cases as chat conversations, in the layouts that other tools read."""

from carina.exports.chat.format import ChatFormat, chat

__all__ = ["ChatFormat", "chat"]
