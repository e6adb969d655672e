"""Options of `build_trek`: defaults, and values that are refused."""

import pytest

from carina.store.errors import CarinaError
from carina.trek.options import Quotas, TrekOptions


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shuffled": -0.1}, "shuffled -0.1"),
        ({"shuffled": 1.5}, "shuffled 1.5"),
        ({"frame": "inch"}, "frame 'inch'.* pixel, percent, thousand"),
        ({"frame": "unit"}, "frame 'unit'"),
        ({"most_images": 0}, "most_images 0"),
        ({"split": "exam"}, "split 'exam'.* train, val, test"),
        ({"language": "xx"}, "language 'xx'.* en"),
        ({"extractor": "magic"}, "extractor 'magic'"),
        ({"paraphrase": "openai/gpt"}, "paraphrase 'openai/gpt'"),
        ({"indication": 1.5}, "indication 1.5"),
        ({"indication": -1.0}, "indication -1.0"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name_and_value(wrong, message):
    with pytest.raises(CarinaError, match=message):
        TrekOptions(**wrong)


@pytest.mark.parametrize("frame", ["pixel", "percent", "thousand"])
@pytest.mark.parametrize("split", [None, "train", "val", "test"])
def test_options_keep_their_values(frame, split):
    options = TrekOptions(frame=frame, split=split, shuffled=1.0, extractor="model:a/b", paraphrase="model:c")
    assert (options.frame, options.split, options.seed, options.quotas) == (frame, split, 0, Quotas())
