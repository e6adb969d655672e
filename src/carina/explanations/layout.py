"""Layout of a set of localisation maps on disk."""

from typing import Final

from carina.store.layout import Layout, declare_layout

LAYOUT: Final = declare_layout(
    Layout(
        holds="maps",
        title="set of localisation maps",
        file="maps.json",
        folder="maps",
        made_by="make one with `carina explain`",
    )
)
