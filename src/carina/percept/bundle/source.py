"""What `carina sources` tells of published bundles."""

from typing import Final

from carina.percept.bundle import layout
from carina.studies.sources import Source

SOURCE: Final = Source(
    name=layout.NAME,
    title="CheXpercept, a published bundle",
    needs=f"{layout.RECORDS} and the folder {layout.PICTURES}/ beside it; becomes a benchmark, not studies.",
    licence="That of your copy: its images are of a credentialed source, and Carina brings none.",
    truth=("questions", "keys"),
    url="https://arxiv.org/abs/2606.21020",
)
