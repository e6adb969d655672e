"""What decides the conversations: defaults, and what is refused."""

import pytest

from carina.errors import CarinaError
from carina.trek.options import Quotas, TrekOptions


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"shuffled": -0.1}, "-0.1, expected 0 to 1"),
        ({"shuffled": 1.5}, "1.5, expected 0 to 1"),
        ({"frame": "inch"}, "unknown box convention 'inch'; expected one of pixel, percent, thousand"),
        ({"frame": "unit"}, "unknown box convention 'unit'"),
        ({"most_images": 0}, "at least one image a study, not 0"),
        ({"split": "exam"}, "unknown split 'exam'; expected one of train, val, test"),
        ({"language": "xx"}, "no wording in the language 'xx'; there is en"),
        ({"extractor": "magic"}, "unknown extractor 'magic'"),
        ({"paraphrase": "openai/gpt"}, "unknown paraphraser 'openai/gpt'"),
        ({"indication": 1.5}, "1.5"),
        ({"indication": -1.0}, "-1.0"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(wrong, told):
    with pytest.raises(CarinaError, match=told.replace("?", r"\?")):
        TrekOptions(**wrong)


@pytest.mark.parametrize("frame", ["pixel", "percent", "thousand"])
@pytest.mark.parametrize("split", [None, "train", "val", "test"])
def test_what_makes_sense_is_taken(frame, split):
    options = TrekOptions(frame=frame, split=split, shuffled=1.0, extractor="model:a/b", paraphrase="model:c")
    assert (options.frame, options.split, options.seed, options.quotas) == (frame, split, 0, Quotas())
