"""What `carina sources` tells of conversations in the ms-swift layout."""

from typing import Final

from carina.studies.sources import Source

NAME: Final = "swift-chat"
SOURCE: Final = Source(
    name=NAME,
    title="Staged conversations in the ms-swift layout of CXRTrek's published sample",
    needs="a file .json or .jsonl (also .gz) of conversations, or a folder of them; becomes a benchmark, not studies.",
    licence="That of your copy: the text comes from credentialed reports, and Carina brings none.",
    truth=("questions", "keys", "boxes"),
    url="https://arxiv.org/abs/2505.23143",
)
