"""Cases as conversations: what is said, and the layouts in which others' tools read it.

>>> messages(case)  # who says what, and which views enter where
>>> export_chat(Path("bench"), Path("chat"), ChatOptions(layout="llava"))
"""

from carina.cases.chat.exporting import NAMES, ChatOptions, LayoutName, export_chat, record
from carina.cases.chat.folder import Counts, ExportManifest
from carina.cases.chat.layouts import LAYOUTS
from carina.cases.chat.messages import (
    PLACEHOLDER,
    Message,
    answer,
    asked,
    box_text,
    inline,
    messages,
    plain,
    shown,
)
from carina.cases.chat.pictures import MODES, Mode, reference
from carina.cases.chat.staged import SCHEMA, staged

__all__ = [
    "LAYOUTS",
    "MODES",
    "NAMES",
    "PLACEHOLDER",
    "SCHEMA",
    "ChatOptions",
    "Counts",
    "ExportManifest",
    "LayoutName",
    "Message",
    "Mode",
    "answer",
    "asked",
    "box_text",
    "export_chat",
    "inline",
    "messages",
    "plain",
    "record",
    "reference",
    "shown",
    "staged",
]
