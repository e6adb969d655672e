"""Which options say that no other is right."""

import pytest

from carina.runs.parse.choices import says_none
from carina.trek.wording import load_wording


@pytest.mark.parametrize("text", load_wording().common["none_of_these"])
def test_every_wording_of_none_in_trek_is_recognised(text):
    assert says_none(text)
    assert says_none(f"{text[0].upper()}{text[1:]}.")


@pytest.mark.parametrize(
    "text",
    [
        "None",
        " none ",
        "**None**",
        "NONE OF THE ABOVE",
        "None of the above (options 1-3)",
        "Nothing on this list",
        "No option is correct",
        "No answer applies",
        "Neither of these",
    ],
)
def test_an_option_that_denies_all_others_says_none(text):
    assert says_none(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No",
        "no change",
        "no pleural effusion",
        "nonspecific opacity",
        "not visible",
        "nothing that belongs in the image is cut off",
        "neither lung is clear",
        "was not there before",
        "red point",
    ],
)
def test_an_option_that_states_something_does_not_say_none(text):
    assert not says_none(text)
