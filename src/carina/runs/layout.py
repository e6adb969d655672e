"""How a run lies on disk."""

from typing import Final

from carina.store.layout import Layout, declare_layout

LAYOUT: Final = declare_layout(
    Layout(
        holds="run",
        title="run",
        file="run.json",
        folder="steps",
        made_by="make one with `carina run`",
    )
)
