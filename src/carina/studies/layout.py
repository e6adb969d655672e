"""Layout of a study set on disk."""

from typing import Final

from carina.store.layout import Layout, declare_layout

LAYOUT: Final = declare_layout(
    Layout(
        holds="studies",
        title="study set",
        file="studies.json",
        folder="studies",
        made_by="make one with `carina phantom` or `carina import`",
    )
)
