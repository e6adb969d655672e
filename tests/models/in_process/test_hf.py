"""Vision-language models on tiny random weights: what they are shown, what they say, alone and in batches."""

import io
import shutil

import msgspec
import numpy as np
import pytest
from PIL import Image as PilImage

from carina import models
from carina.cases import Step
from carina.models import RequestOptions, Sampling
from carina.models.hf import HfModel, TokenSampler, make_conversation
from carina.runs.records import Example
from carina.store.errors import CarinaError

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
transformers = pytest.importorskip("transformers", reason="the extra torch is not installed")

KINDS = ("llava", "qwen2_5_vl", "gemma3")
GREEDY = Sampling(max_tokens=8)
DRAWN = Sampling(max_tokens=8, temperature=1.0, seed=7)


@pytest.fixture(scope="session")
def loaded(folder):
    """A model with what belongs to it, loaded once."""
    there = {}

    def of(kind):
        if kind not in there:
            there[kind] = models.open(f"hf:{folder(kind)}", sampling=GREEDY)._loaded
        return there[kind]

    return of


@pytest.fixture
def make_model(loaded):
    def of(kind="llava", *, sampling=GREEDY, batch=8):
        return HfModel(loaded(kind), sampling=sampling, batch=batch)

    return of


@pytest.fixture(scope="session")
def turns(turn):
    """Of different lengths, with no picture, one, two, and one in the middle of the conversation."""
    return [
        turn("a", ("Is it there?", ("v1",))),
        turn("b", ("Which one of these two is the larger?", ("v1", "v2"))),
        turn("c", ("Hm?", ())),
        turn("d", ("Look.", ("v1",)), ("I do.", ()), ("Now compare.", ("v2",)), ("Same.", ()), ("Sure?", ())),
        turn("e", ("Is it there?", ("v1",))),
    ]


@pytest.fixture
def sent(monkeypatch, loaded):
    """What reaches the model, batch by batch."""

    def of(kind="llava"):
        batches, model = [], loaded(kind).model
        generate = model.generate

        def watched(**inputs):
            batches.append(inputs)
            return generate(**inputs)

        monkeypatch.setattr(model, "generate", watched)
        return batches

    return of


def written(turn):
    """The prompt as the tests' template writes it, a picture as one sign."""
    lines = [f"system: {turn.system}\n"] if turn.system else []
    lines += [f"{m.role}: {'#' * len(m.shows)}{m.text}\n" for m in turn.messages]
    return "".join(lines) + "assistant: "


# ---- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_turn_gets_a_reply_with_its_counts(make_model, turns, pictures, tiny, kind):
    opened = make_model(kind)
    assert opened.name == f"hf:tiny-{kind}"
    replies = opened.answer(turns, pictures)
    a_picture = tiny.PATCHES + tiny.AROUND[kind]
    for turn, reply in zip(turns, replies, strict=True):
        text = written(turn)
        assert reply.error is None
        assert reply.input_tokens == 1 + len(text.replace("#", "")) + a_picture * text.count("#")
        assert (reply.stop, reply.output_tokens) == ("max_tokens", 8)
    assert len({reply.text for reply in replies}) > 2
    # The same words about another picture.
    assert replies[0].text != replies[4].text


@pytest.mark.parametrize("sampling", [GREEDY, DRAWN], ids=["greedy", "drawn"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_answers_as_each_turn_alone(make_model, turns, pictures, kind, sampling):
    together = make_model(kind, sampling=sampling).answer(turns, pictures)
    assert make_model(kind, sampling=sampling, batch=1).answer(turns, pictures) == together
    backwards = make_model(kind, sampling=sampling, batch=2).answer(turns[::-1], pictures)
    assert backwards[::-1] == together


def test_the_answer_equals_that_of_a_plain_call_of_the_model(  # noqa: PLR0917
    make_model, loaded, tiny, turns, pixels, pictures
):
    """Prompt, pictures and search made by hand: no template, no processor, no padding, no cache."""
    model, tokenizer = loaded("llava").model, loaded("llava").processor.tokenizer
    mean = np.array([0.48145466, 0.4578275, 0.40821073]).reshape(3, 1, 1)
    std = np.array([0.26862954, 0.26130258, 0.27577711]).reshape(3, 1, 1)
    image = tokenizer.convert_tokens_to_ids("<image>")
    for turn, reply in zip(turns, make_model().answer(turns, pictures), strict=True):
        tokens = [tokenizer.bos_token_id]
        for sign in written(turn):
            tokens += [image] * 4 if sign == "#" else [tiny.CHARACTERS.index(sign)]
        views = [view for message in turn.messages for view in message.shows]
        shown = [(pixels(turn.case, view)[None] / 255 - mean) / std for view in views]
        more = {"pixel_values": torch.tensor(np.array(shown), dtype=torch.float32)} if shown else {}
        start = len(tokens)
        with torch.inference_mode():
            for _ in range(8):
                logits = model(input_ids=torch.tensor([tokens]), **more).logits
                tokens.append(int(logits[0, -1].argmax()))
        words = [tiny.CHARACTERS[token] for token in tokens[start:] if token < len(tiny.CHARACTERS)]
        assert reply.text == "".join(words).strip()


def test_an_answer_ends_where_the_model_ends_it(folder, make_model, turns, pictures, tiny):
    text = make_model().answer(turns[:2], pictures)[0].text
    assert len(text) == 8, "the test counts on an answer without spaces at its ends"
    place = next(n for n in range(2, 8) if text[n] not in text[:n])
    opened = models.open(f"hf:{folder('llava')}", sampling=GREEDY)
    opened._loaded.model.generation_config.eos_token_id = [9999, tiny.CHARACTERS.index(text[place])]
    ended = HfModel(opened._loaded, sampling=GREEDY).answer(turns[:2], pictures)[0]
    # The token that ends it is counted, as served models count it.
    assert (ended.stop, ended.output_tokens) == ("stop", place + 1)
    assert ended.text == text[: place + 1].strip()


def test_a_reopened_model_gives_the_same_answers(folder, make_model, turns, pictures):
    again = models.open(f"hf:{folder('llava')}", sampling=GREEDY, device="cpu")
    assert again.answer(turns, pictures) == make_model().answer(turns, pictures)


# ---- what the model is shown ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_images_stand_before_the_text_of_their_message(  # noqa: PLR0917
    make_model, loaded, tiny, sent, turns, pictures, kind
):
    batches = sent(kind)
    make_model(kind).answer(turns, pictures)
    (batch,) = batches
    tokenizer = loaded(kind).processor.tokenizer
    patch = tokenizer.convert_tokens_to_ids(tiny.TOKENS[kind])
    special = set(tokenizer.all_special_ids) | {patch}
    for turn, ids in zip(turns, batch["input_ids"].tolist(), strict=True):
        assert ids.count(patch) == 4 * written(turn).count("#")
        # With a picture's tokens as one sign and all other marks left out, the prompt is the one that was meant.
        signs = [
            "#" if token == patch else "" if token in special else tiny.CHARACTERS[token] for token in ids
        ]
        read = "".join(signs).replace("####", "#")
        assert read.replace("\n\n#\n\n", "#") == written(turn)


@pytest.mark.parametrize("kind", KINDS)
def test_short_prompts_are_padded_on_the_left(make_model, loaded, sent, turns, pictures, kind):  # noqa: PLR0917
    batches = sent(kind)
    replies = make_model(kind).answer(turns, pictures)
    pad = loaded(kind).processor.tokenizer.pad_token_id
    (batch,) = batches
    for ids, mask, reply in zip(batch["input_ids"], batch["attention_mask"], replies, strict=True):
        fill = len(ids) - reply.input_tokens
        assert mask.tolist() == [0] * fill + [1] * reply.input_tokens
        assert (ids == pad).tolist() == [True] * fill + [False] * reply.input_tokens


def test_each_image_is_sent_once_and_in_order(make_model, sent, turns, pixels, pictures):
    batches = sent()
    make_model().answer(turns, pictures)
    (batch,) = batches
    views = [("a", "v1"), ("b", "v1"), ("b", "v2"), ("d", "v1"), ("d", "v2"), ("e", "v1")]
    red = batch["pixel_values"][:, 0].numpy() * 0.26862954 + 0.48145466
    expected = np.array([pixels(*view) for view in views])
    assert np.array_equal(np.rint(red * 255).astype(int), expected)


def test_text_that_looks_like_special_tokens_is_escaped(make_model, sent, loaded, turn, pictures, tiny):  # noqa: PLR0917
    batches = sent()
    said = turn("a", ("An <image> of </s> it?", ("v1",)), ("<image><s>", ()), ("<pad> So?", ()))
    (reply,) = make_model().answer([said], pictures)
    assert reply.error is None
    tokenizer = loaded("llava").processor.tokenizer
    (ids,) = batches[0]["input_ids"].tolist()
    counts = [ids.count(tokenizer.convert_tokens_to_ids(t)) for t in ("<image>", "<s>", "</s>", "<pad>")]
    assert counts == [4, 1, 0, 0]
    text = "".join(tiny.CHARACTERS[token] for token in ids if token < len(tiny.CHARACTERS))
    assert "An < image> of < /s> it?" in text
    assert "< image>< s>" in text
    assert "< pad> So?" in text


@pytest.mark.parametrize(
    "system",
    ["{{ raise_exception('no system, please') }}", ""],
    ids=["refused", "lost"],
)
def test_a_template_without_a_system_role_puts_it_into_the_first_question(
    tiny, tmp_path, turn, pictures, system
):
    guard = "{% if message.role == 'system' %}" + system + "{% else %}{{ message.role }}: "
    chat = tiny.CHAT.replace("{{ message.role }}: ", guard).replace(
        "}{% endfor %}{% if add", "}{% endif %}{% endfor %}{% if add"
    )
    opened = models.open(f"hf:{tiny.save_tiny('llava', tmp_path / 'm', chat=chat)}", sampling=GREEDY)
    asked = turn("a", ("It?", ("v1",)), ("No.", ()), ("Sure?", ()))
    said = make_conversation(asked, pictures, opened._template)
    assert [message["role"] for message in said] == ["user", "assistant", "user"]
    assert [part["type"] for part in said[0]["content"]] == ["image", "text"]
    assert said[0]["content"][1]["text"] == "You read.\n\nIt?"
    assert said[2]["content"][0]["text"] == "Sure?"
    (reply,) = opened.answer([turn("a", ("It?", ("v1",)))], pictures)
    assert reply.input_tokens == 1 + 4 + len("user: You read.\n\nIt?\nassistant: ")


def test_examples_and_images_after_the_text_reach_the_model(make_model, turn, pictures, sent, loaded):
    shown = turn("z", ("Which?", ("v1",)), ("That.", ())).messages
    plain = turn("a", ("It?", ("v1",)))
    asked = msgspec.structs.replace(
        plain, image_order="after", examples=(Example(case="example:z", protocol="percept", messages=shown),)
    )
    said = make_conversation(asked, pictures, make_model()._template)
    assert [message["role"] for message in said] == ["system", "user", "assistant", "user"]
    assert [[part["type"] for part in message["content"]] for message in said[1:]] == [
        ["text", "image"],
        ["text"],
        ["text", "image"],
    ]
    images = [part["image"] for message in said for part in message["content"] if part["type"] == "image"]
    names = [("example:z", "v1"), ("a", "v1")]
    for image, name in zip(images, names, strict=True):
        with PilImage.open(io.BytesIO(pictures(*name))) as expected:
            assert list(image.getdata()) == list(expected.convert("RGB").getdata())
    batches = sent()
    (reply,) = make_model().answer([asked], pictures)
    assert reply.error is None
    image_token = loaded("llava").processor.tokenizer.convert_tokens_to_ids("<image>")
    assert batches[0]["input_ids"].tolist()[0].count(image_token) == 2 * 4


def test_without_a_system_prompt_none_is_sent(make_model, turn, pictures):
    (reply,) = make_model().answer([turn("a", ("It?", ()), system="")], pictures)
    assert reply.input_tokens == 1 + len("user: It?\nassistant: ")


# ---- limits ---------------------------------------------------------------------------------------------------------


def long_turn(turn, tokens):
    """A turn whose prompt has this many tokens."""
    said = turn("long", ("", ()))
    return turn("long", ("x" * (tokens - 1 - len(written(said))), ()))


def test_a_prompt_beyond_the_context_gives_an_empty_answer(make_model, tiny, turns, turn, pictures):
    mixed = [turns[0], long_turn(turn, tiny.CONTEXT), turns[1], long_turn(turn, 300)]
    replies = make_model().answer(mixed, pictures)
    assert [reply.stop for reply in replies[1::2]] == ["model_length", "model_length"]
    assert [(reply.text, reply.error, reply.input_tokens) for reply in replies[1::2]] == [
        ("", None, 256),
        ("", None, 300),
    ]
    assert [replies[0], replies[2]] == make_model().answer([turns[0], turns[1]], pictures)


def test_an_answer_may_fill_the_context_and_cuts_no_other_short(make_model, tiny, turns, turn, pictures):
    cramped = long_turn(turn, tiny.CONTEXT - 3)
    replies = make_model().answer([cramped, *turns], pictures)
    assert (replies[0].input_tokens, replies[0].output_tokens, replies[0].stop) == (253, 3, "max_tokens")
    assert replies[1:] == make_model().answer(turns, pictures)


def out_of_memory(model, monkeypatch, fits, error):
    """Lets the model answer so many turns at once and no more; what it was asked is in the list."""
    asked, generate = [], model.generate

    def small(**inputs):
        asked.append(len(inputs["input_ids"]))
        if asked[-1] > fits:
            raise error
        return generate(**inputs)

    monkeypatch.setattr(model, "generate", small)
    return asked


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError(
            "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
        ),
        MemoryError(),
    ],
    ids=["gpu", "cpu", "python"],
)
def test_a_batch_that_does_not_fit_is_tried_in_halves(  # noqa: PLR0917
    make_model, loaded, turns, pictures, monkeypatch, error
):
    expected = make_model().answer(turns + turns, pictures)
    opened = make_model(batch=5)
    asked = out_of_memory(loaded("llava").model, monkeypatch, 2, error)
    assert opened.answer(turns + turns, pictures) == expected
    # 5 are 2 and 3, 3 are 1 and 2; from there on one at a time, which is half of 3.
    assert asked == [5, 2, 3, 1, 2, 1, 1, 1, 1, 1]
    assert opened.batch == 1


def test_a_turn_that_does_not_fit_in_memory_alone_fails(make_model, loaded, turns, pictures, monkeypatch):
    out_of_memory(loaded("llava").model, monkeypatch, 0, torch.OutOfMemoryError("out of memory"))
    replies = make_model().answer(turns[:2], pictures)
    assert [(reply.text, reply.error) for reply in replies] == [
        (None, "hf:tiny-llava has not enough memory for this turn alone")
    ] * 2


def test_other_errors_of_the_model_are_raised(make_model, loaded, turns, pictures, monkeypatch):
    out_of_memory(loaded("llava").model, monkeypatch, 0, RuntimeError("shapes do not match"))
    with pytest.raises(RuntimeError, match="shapes do not match"):
        make_model().answer(turns, pictures)


def test_a_broken_image_fails_only_its_own_turn(make_model, turns, pictures):
    def broken(case, view):
        return b"no PNG" if (case, view) == ("b", "v2") else pictures(case, view)

    replies = make_model().answer(turns, broken)
    whole = make_model().answer(turns, pictures)
    assert replies[1].text is None
    assert "cannot be prepared for hf:tiny-llava: cannot identify image file" in replies[1].error
    assert [replies[n] for n in (0, 2, 3, 4)] == [whole[n] for n in (0, 2, 3, 4)]


# ---- sampling -------------------------------------------------------------------------------------------------------


def test_the_seed_decides_a_sampled_answer(make_model, turns, pictures):
    def texts(**sampling):
        opened = make_model(sampling=Sampling(max_tokens=8, **sampling))
        return [reply.text for reply in opened.answer(turns, pictures)]

    assert texts(temperature=1.5, seed=1) == texts(temperature=1.5, seed=1)
    assert texts(temperature=1.5, seed=1) != texts(temperature=1.5, seed=2)
    assert texts(temperature=1.5) != texts(temperature=1.5)
    assert texts(temperature=0.0, seed=1) == texts(temperature=0.0)
    # So cold that only the likeliest is left.
    assert texts(temperature=1e-4, seed=1) == texts(temperature=0.0)


def test_equal_questions_of_other_cases_are_sampled_anew(make_model, turn, pictures):
    said = ("Is it there?", ())
    later = Step(id="2", stage=1, task="open", format="open", question=said[0])
    asked = [turn("a", said), turn("b", said), turn("a", said, step=later), turn("a", said)]
    replies = make_model(sampling=Sampling(max_tokens=8, temperature=1.5, seed=1)).answer(asked, pictures)
    texts = [reply.text for reply in replies]
    assert len(set(texts)) == 3
    assert texts[0] == texts[3]


def test_the_models_own_sampling_applies_without_a_temperature(
    make_model, loaded, turns, pictures, monkeypatch
):
    def texts(temperature):
        opened = make_model(sampling=Sampling(max_tokens=8, temperature=temperature, seed=1))
        return [reply.text for reply in opened.answer(turns, pictures)]

    own = loaded("llava").model.generation_config
    assert texts(None) == texts(0.0)
    monkeypatch.setattr(own, "do_sample", True)
    monkeypatch.setattr(own, "temperature", 1.5)
    warm = texts(None)
    assert warm == texts(1.5)
    assert warm != texts(0.0)
    monkeypatch.setattr(own, "top_k", 1)
    assert texts(None) == texts(0.0)
    monkeypatch.setattr(own, "top_k", None)
    monkeypatch.setattr(own, "top_p", 1e-6)
    assert texts(None) == texts(0.0)


@pytest.mark.parametrize("request_options", [RequestOptions(top_k=1), RequestOptions(top_p=1e-6)])
def test_options_of_a_request_take_the_place_of_the_models_own(loaded, turns, pictures, request_options):
    def texts(request):
        opened = HfModel(
            loaded("llava"), sampling=Sampling(max_tokens=8, temperature=1.5, seed=1), request=request
        )
        return [reply.text for reply in opened.answer(turns, pictures)]

    greedy = [reply.text for reply in HfModel(loaded("llava"), sampling=GREEDY).answer(turns, pictures)]
    assert texts(request_options) == greedy
    assert texts(None) != greedy


def test_sampled_tokens_follow_the_distribution():
    from scipy.stats import chisquare

    probabilities = torch.tensor([0.5, 0.25, 0.15, 0.1, 0.0])
    rows = 4000
    drawn = TokenSampler(torch, range(rows), [])
    chosen = drawn(None, torch.log(probabilities).expand(rows, -1)).argmax(dim=1)
    counts = torch.bincount(chosen, minlength=5).tolist()
    assert counts[4] == 0
    assert chisquare(counts[:4], [rows * p for p in (0.5, 0.25, 0.15, 0.1)]).pvalue > 0.001


# ---- templates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chat", "words"),
    [
        (None, "its chat template fails: .*does not have a chat template"),
        ("{{ raise_exception('not today') }}", "its chat template fails: not today"),
        ("{% for m in messages %}{{ m.content[-1].text }}{% endfor %}", "does not take messages with images"),
        ("{% for m in messages %}PICTURE{{ m.content[-1].text }}{% endfor %}", "does not take messages with images"),
        ("PICTURE{{ messages[0].content[-1].text }}", "does not take messages with images"),
    ],
    ids=["none", "failing", "without pictures", "a picture everywhere", "forgetful"],
)  # fmt: skip
def test_a_template_that_cannot_hold_a_conversation_is_refused(tiny, tmp_path, chat, words):
    path = tiny.save_tiny("llava", tmp_path / "m", chat=chat)
    with pytest.raises(CarinaError, match=words) as caught:
        models.open(f"hf:{path}", sampling=GREEDY)
    assert str(caught.value).startswith(str(path))


def test_a_tokenizer_without_padding_is_padded(folder, tmp_path, turns, pictures, make_model):
    path = shutil.copytree(folder("llava"), tmp_path / "tiny-llava")
    config = path / "tokenizer_config.json"
    config.write_text(config.read_text().replace('"pad_token": "<pad>"', '"pad_token": null'))
    opened = models.open(f"hf:{path}", sampling=GREEDY)
    assert opened._loaded.processor.tokenizer.pad_token == "</s>"  # noqa: S105
    assert opened.answer(turns, pictures) == make_model().answer(turns, pictures)
