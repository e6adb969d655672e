"""Layout of a study set on disk."""

from typing import Final

from carina.store.layout import Layout, declare_layout

LAYOUT: Final = declare_layout(
    Layout(
        holds="studies",
        title="study set",
        file="studies.json",
        folder="studies",
        opener="carina.studies.open_studies",
    )
)
