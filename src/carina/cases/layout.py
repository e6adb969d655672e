"""Layout of a benchmark on disk."""

from typing import Final

from carina.store.layout import Layout, declare_layout

LAYOUT: Final = declare_layout(
    Layout(
        holds="benchmark",
        title="benchmark",
        file="bench.json",
        folder="cases",
        made_by="build one with `carina build`",
    )
)
