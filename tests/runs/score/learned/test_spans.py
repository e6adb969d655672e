"""Words as RadGraph's editions split them; expected values from the published package (radgraph 0.1.18)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carina.runs.score.learned.spans import as_read, split_words

TEXT = 'No effusions (2cm), heart-size ok/normal. "Mild" 5%.\\nLine: 3.5 cm\n(is).'


@pytest.mark.parametrize(
    ("edition", "expected"),
    [
        (
            "radgraph",
            'No effusions ( 2cm ) , heart-size ok / normal . "Mild" 5% . \\nLine : 3 . 5 cm ( is ) .',
        ),
        (
            "radgraph-xl",
            'No effusions ( 2cm ), heart - size ok / normal . " Mild " 5 % . Line : 3 . 5 cm ( is ) .',
        ),
    ],
)
def test_punctuation_is_split_from_words(edition, expected):
    assert split_words(TEXT, edition) == expected.split()


def test_the_files_of_physionet_are_of_the_first_edition():
    assert split_words(TEXT, "None") == split_words(TEXT, "radgraph")


@given(
    st.text(alphabet="ab1 .,:;/()%'\"-\\nfé\n\t", max_size=40), st.sampled_from(["radgraph", "radgraph-xl"])
)
def test_splitting_loses_only_white_space(text, edition):
    words = split_words(text, edition)
    assert not any(word == "" or word.split() != [word] for word in words)
    if "\\" not in text:
        assert "".join(words) == "".join(text.split())
    assert split_words(" ".join(words), edition) == words or "\\" in text


def test_escaped_full_stops_are_restored():
    assert [as_read(word) for word in ("/.", "/?", "/", ".")] == [".", "?", "/", "."]
