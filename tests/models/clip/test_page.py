"""docs/reference/models.md says of every kind of CLIP-style model what its adapter does."""

import re
from pathlib import Path

import pytest

from carina.models.clip.kinds import KINDS

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
MODELS, METHODS = (
    (REFERENCE / name).read_text(encoding="utf-8") for name in ("models.md", "ground-methods.md")
)
OF_SETTINGS = ("clip", "siglip", "biomedclip", "chexzero", "carzero")
"""Whose grid is that of their weights, which here are tiny."""
NAMED_LIST = ("medklip", "mavl")
TINY = {"medclip": "medclip-resnet"}


def table(page: str, title: str) -> dict[str, list[str]]:
    """Cells of the section's rows by the kind that they start with; of two rows of one kind both."""
    text = re.split(rf"^#+ {re.escape(title)}$", page, flags=re.MULTILINE)[1].partition("\n#")[0]
    found: dict[str, list[str]] = {}
    for kind, rest in re.findall(r"^\| `([a-z-]+)`[^|]*\| (.*) \|$", text, re.MULTILINE):
        found.setdefault(kind, []).extend(rest.split(" | "))
    return found


def test_the_page_lists_the_files_of_every_kind() -> None:
    files = table(MODELS, "Files")
    assert list(files) == list(KINDS)
    for kind, cells in files.items():
        described = " ".join(cells)
        assert ("text.safetensors" in described) is KINDS[kind].has_text_weights
        # Repositories and files that the message names when weights are missing.
        for word in re.findall(r"[\w.-]+/[\w./-]+\w|[\w.-]+\.(?:pt|ckpt|json|txt)\b", KINDS[kind].download):
            assert word in described, f"{kind}: {word}"


def test_the_page_describes_every_kind() -> None:
    assert list(table(MODELS, "What each kind does")) == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_does_what_the_page_says(opened, kind: str) -> None:
    model = opened(TINY.get(kind, kind))
    prompts, _, square, grid, native, pretraining = table(MODELS, "What each kind does")[kind]
    assert (native, pretraining) == (f"`{model.native}`", model.pretraining)
    asked = model.prompts("pneumonia")
    if kind in NAMED_LIST:
        assert (asked.positive, asked.negative) == (("pneumonia",), ())
    else:
        assert tuple(prompts.replace("{}", "pneumonia").split(" / ")) == asked.positive + asked.negative
    if kind not in OF_SETTINGS:
        assert str(model.side) in square
        assert "{} x {}".format(*model.grid) in grid


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_marks_the_native_method_of_each_kind(opened, kind: str) -> None:
    header = re.search(r"^\| model \| (.*) \|$", METHODS, re.MULTILINE)[1].split(" | ")
    marks = table(METHODS, "Which models they serve")[kind][: len(header)]
    assert header[marks.index("own")] == opened(TINY.get(kind, kind)).native
