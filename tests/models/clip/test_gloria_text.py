"""Word pieces that become words again, and what GLoRIA makes of them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytest.importorskip("transformers", reason="the extra torch is not installed")

from carina.models.clip.gloria import score_gloria  # noqa: E402
from carina.models.clip.gloria_text import normalise_prompt  # noqa: E402
from carina.models.clip.interface import Images, Texts  # noqa: E402


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("There is Pneumonia", "there is pneumonia"),
        ("pneumonia", ""),
        ("Edema. No mass", "no mass"),
        ("1. small effusion 2. large mass", "small effusion large mass"),
        ("a 3.5 cm mass", "5 cm mass"),
        ("left-sided\neffusion, small", "left sided effusion small"),
        ("œdème pulmonaire", "dme pulmonaire"),
        ("no ü here", "no here"),
        ("ü ü. no mass. ö ö", "no mass"),
        ("ü ü", ""),
        ("", ""),
    ],
)
def test_prompts_are_normalised_as_in_training(prompt, expected):
    assert normalise_prompt(prompt) == expected


@given(st.text())
def test_plain_prompts_are_words_in_lower_case(prompt):
    said = normalise_prompt(prompt)
    assert said == " ".join(said.split())
    assert all(
        word.replace("_", "a").isalnum() and word == word.lower() and word.isascii() for word in said.split()
    )


def test_a_word_is_the_sum_of_its_pieces_over_the_last_four_layers(opened):
    text = opened("gloria").text
    said = text(["No mass", "there is no mass"])
    # The vocabulary has "no" and single letters.
    ids = text.tokenizer(["no mass"], return_tensors="pt")["input_ids"]
    names = text.tokenizer.convert_ids_to_tokens(ids[0].tolist())
    assert names == ["[CLS]", "no", "m", "##a", "##s", "##s", "[SEP]"]
    layers = text.model(input_ids=ids, output_hidden_states=True).hidden_states
    assert len(layers) == 6
    pieces = (layers[2] + layers[3] + layers[4] + layers[5])[0]
    words = [pieces[0], pieces[1], pieces[2] + pieces[3] + pieces[4] + pieces[5], pieces[6]]
    assert said.words.shape == (2, 97, 128)
    torch.testing.assert_close(said.words[0, :4], torch.stack(words), atol=1e-5, rtol=1e-4)
    assert (said.words[0, 4:] == 0).all()
    torch.testing.assert_close(said.pooled[0], sum(words) / 97, atol=1e-5, rtol=1e-4)
    assert said.kept[0].nonzero().flatten().tolist() == [1, 2]
    assert said.kept[1].nonzero().flatten().tolist() == [1, 2, 3, 4]


def test_the_score_of_gloria_equals_a_value_worked_out_by_hand():
    """Two patches, two words: shares of words, then of places, then the best cosine."""
    first, second = (1.0, 0.0), (0.0, 2.0)
    words = [(9.0, 9.0), (1.0, 0.0), (1.0, 1.0), (5.0, -5.0)]
    images = Images(torch.tensor([[3.0, 4.0]]), torch.tensor([[[first, second]]]))
    kept = torch.tensor([[False, True, True, False]])
    texts = Texts(torch.tensor([[1.0, 0.0]]), torch.tensor([words]), kept)
    e = math.exp
    # Products of the first word are 1 and 0, of the second 1 and 2.
    shares = [(e(1) / (e(1) + e(1)), e(0) / (e(0) + e(2))), (e(1) / (e(1) + e(1)), e(2) / (e(0) + e(2)))]
    cosines = []
    for (x, y), (left, right) in zip(words[1:3], shares, strict=True):
        total = e(4 * left) + e(4 * right)
        seen = (e(4 * left) / total * 1, e(4 * right) / total * 2)
        cosines.append((x * seen[0] + y * seen[1]) / (math.hypot(x, y) * math.hypot(*seen)))
    expected = (5 * max(cosines) + 3 / 5) / 2
    assert float(score_gloria(images, texts)[0, 0]) == pytest.approx(expected, abs=1e-5)


def test_the_words_that_count_are_those_of_the_map(opened):
    """Padding changes neither: a short prompt asked beside a long one is what it is alone."""
    model = opened("gloria")
    pixels = torch.zeros(1, 3, 224, 224)
    pixels[:, :, 50:90, 100:150] = 1
    images = model.encode_image(pixels)
    long = "there is no mass and no other thing at all"
    alone = model.score(images, model.encode_text(["no mass"]))[0, 0]
    beside = model.score(images, model.encode_text([long, "no mass"]))[0, 1]
    torch.testing.assert_close(alone, beside, atol=1e-5, rtol=1e-5)
