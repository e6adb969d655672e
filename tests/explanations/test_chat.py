"""Attention of chat models: a tiny random Llava and Gemma 3, as transformers saves them."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.explanations.test_map_parts import asked, bench  # noqa: F401 - a fixture
from tests.models.in_process import tiny as vlms
from typer.testing import CliRunner

from carina.cli import app
from carina.explanations.chat import NEUTRAL_QUESTION, open_chat_explainer
from carina.explanations.maps import open_maps
from carina.models.chat.grid import find_image_grid
from carina.models.frame import Frame
from carina.store.errors import CarinaError

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
transformers = pytest.importorskip("transformers", reason="the extra torch is not installed")

SIDE, PATCH, CELLS = 32, 8, 4
QUESTION = "Is there a mass on this chest X-ray?"
IMAGE = np.random.default_rng(0).integers(0, 256, (40, 60), np.uint8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a kind of model whose pictures have a grid of 4 x 4 tokens; not to be changed."""
    made = {}

    def of(kind):
        if kind not in made:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(vlms, "SIDE", SIDE)
                patch.setattr(vlms, "PATCHES", CELLS**2)
                made[kind] = vlms.save_tiny(kind, tmp_path_factory.mktemp("vlm") / f"tiny-{kind}")
        return made[kind]

    return of


@pytest.fixture
def changed(folder, tmp_path):
    """A copy of a model with other fields in one of its files."""

    def of(kind, file, **fields):
        path = tmp_path / "changed"
        shutil.copytree(folder(kind), path, dirs_exist_ok=True)
        said = json.loads((path / file).read_text())
        for name, value in fields.items():
            *outer, last = name.split("__")
            place = said
            for step in outer:
                place = place[step]
            place[last] = value
        (path / file).write_text(json.dumps(said))
        return path

    return of


def opened(path, **options):
    return open_chat_explainer(f"hf:{path}", None, options)


# ---- against attention by hand ---------------------------------------------------------------------------------------


class ByHand:
    """Llava's attention, recomputed in numpy from what goes into each layer."""

    def __init__(self, path):
        # Not the explainer's own, and without attention that could be looked at.
        self.model = transformers.LlavaForConditionalGeneration.from_pretrained(path).eval()
        self.processor = transformers.AutoProcessor.from_pretrained(path)
        self.image_token = self.processor.tokenizer.convert_tokens_to_ids("<image>")

    def inputs(self, image, question):
        # As the template of the tiny models writes it; one token for each patch is put in by the processor.
        text = f"<s>user: <image>{question}\nassistant: "
        return self.processor(
            images=Image.fromarray(image).convert("RGB"),
            text=text,
            return_tensors="pt",
            add_special_tokens=False,
        )

    def passed(self, inputs, answer=()):
        """Logits of the last token, and the attention of all tokens, (layers, heads, from, to)."""
        ids = torch.cat([inputs["input_ids"], torch.tensor([list(answer)], dtype=torch.long)], dim=1)
        layers, weights = self.model.model.language_model.layers, []

        def look(module, _given, named):
            weights.append(self.attention(module, named["hidden_states"][0]))

        hooks = [layer.self_attn.register_forward_pre_hook(look, with_kwargs=True) for layer in layers]
        with torch.no_grad():
            logits = self.model(input_ids=ids, pixel_values=inputs["pixel_values"]).logits
        for hook in hooks:
            hook.remove()
        return logits[0, -1].double().numpy(), np.stack(weights)

    @staticmethod
    def attention(module, hidden):
        hidden = hidden.double().numpy()
        length, heads, width = len(hidden), 2, 8
        query, key = (
            (hidden @ projection.weight.detach().double().numpy().T)
            .reshape(length, heads, width)
            .swapaxes(0, 1)
            for projection in (module.q_proj, module.k_proj)
        )
        turned = np.arange(length)[:, None] / 10000.0 ** (np.arange(0, width, 2) / width)
        cos, sin = np.cos(turned), np.sin(turned)

        def rotated(values):
            first, second = values[..., : width // 2], values[..., width // 2 :]
            return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)

        scores = rotated(query) @ rotated(key).swapaxes(1, 2) / np.sqrt(width)
        scores[:, np.triu(np.ones((length, length), bool), 1)] = -np.inf
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)

    def answer(self, inputs, most=8):
        """The likeliest token, again and again; never an image's."""
        said = []
        while len(said) < most and self.model.config.text_config.eos_token_id not in said:
            logits, _ = self.passed(inputs, said)
            logits[self.image_token] = -np.inf
            said.append(int(logits.argmax()))
        return said

    def map(self, image, question, *, layers=slice(None), answered=False):
        inputs = self.inputs(image, question)
        ids = inputs["input_ids"][0].numpy()
        answer = self.answer(inputs)[:-1] if answered else []
        _, weights = self.passed(inputs, answer)
        seen = weights[layers, :, len(ids) - 1 :, : len(ids)][..., ids == self.image_token]
        return seen.mean(axis=(0, 1, 2)).reshape(CELLS, CELLS)


@pytest.fixture(scope="module")
def by_hand(folder):
    return ByHand(folder("llava"))


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        ({}, {}),
        ({"layers": "last"}, {"layers": slice(1, 2)}),
        ({"layers": "1-1"}, {"layers": slice(0, 1)}),
        ({"layers": "1-2", "tokens": "answer"}, {"answered": True}),
    ],
)
def test_a_map_is_attention_to_the_patches(folder, by_hand, options, taken):
    (shown,) = opened(folder("llava"), **options).explain([asked(image=IMAGE)])
    expected = by_hand.map(IMAGE, QUESTION, **taken)
    assert np.ptp(expected) > expected.mean()
    assert shown.values.dtype == np.float32
    np.testing.assert_allclose(shown.values, expected, rtol=1e-3, atol=1e-6)
    assert shown.positive == (QUESTION,)


def test_a_relative_map_is_divided_by_that_of_a_neutral_question(folder, by_hand):
    (shown,) = opened(folder("llava"), relative="true").explain([asked(image=IMAGE)])
    expected = by_hand.map(IMAGE, QUESTION) / by_hand.map(IMAGE, NEUTRAL_QUESTION)
    np.testing.assert_allclose(shown.values, expected, rtol=5e-3)


@pytest.mark.parametrize("options", [{}, {"tokens": "answer", "relative": True}])
def test_scores_are_log_probabilities_of_yes_and_no(folder, by_hand, options):
    (shown,) = opened(folder("llava"), **options).explain([asked(image=IMAGE)])
    logits, _ = by_hand.passed(by_hand.inputs(IMAGE, QUESTION))
    logs = logits - np.log(np.exp(logits).sum())
    # One character is one token: Yes begins with Y.
    yes, no = (logs[vlms.CHARACTERS.index(letter)] for letter in "YN")
    assert (shown.score, shown.against) == (pytest.approx(yes, abs=1e-4), pytest.approx(no, abs=1e-4))


def test_whole_words_count_with_and_without_a_space_before_them(changed, by_hand):
    """Two words in place of letters: of the beginnings of an answer, all that are Yes are added up."""
    path = changed("llava", "tokenizer.json")
    said = json.loads((path / "tokenizer.json").read_text())
    vocabulary = said["model"]["vocab"]
    for old, new in (("0", "Yes"), ("1", "▁Yes"), ("2", "ĠNo")):
        vocabulary[new] = vocabulary.pop(old)
    (path / "tokenizer.json").write_text(json.dumps(said))
    explainer = opened(path)
    zero, one, two = (vlms.CHARACTERS.index(figure) for figure in "012")
    assert explainer.words == ((zero, one), (two,))
    (shown,) = explainer.explain([asked(image=IMAGE)])
    logits, _ = by_hand.passed(by_hand.inputs(IMAGE, QUESTION))
    likely = np.exp(logits) / np.exp(logits).sum()
    assert shown.score == pytest.approx(np.log(likely[zero] + likely[one]), abs=1e-4)
    assert shown.against == pytest.approx(np.log(likely[two]), abs=1e-4)


def test_the_map_of_a_probe_does_not_depend_on_other_probes(folder):
    explainer = opened(folder("llava"), tokens="answer")
    others = [asked(image=IMAGE[::-1].copy(), target=target) for target in ("mass", "pleural effusion")]
    (alone,) = explainer.explain([asked(image=IMAGE)])
    first, between, last = explainer.explain([others[0], asked(image=IMAGE), others[1]])
    np.testing.assert_array_equal(between.values, alone.values)
    assert (between.score, between.against) == (alone.score, alone.against)
    assert np.abs(first.values - alone.values).max() > 1e-4
    assert last.positive == ("Is there a pleural effusion on this chest X-ray?",)


def test_gemma_pools_patches_into_a_grid(changed):
    path = changed("gemma3", "config.json", text_config__sliding_window=256)
    (shown,) = opened(path).explain([asked(image=IMAGE)])
    assert shown.frame == Frame.stretched(*IMAGE.shape, side=SIDE)
    model = transformers.Gemma3ForConditionalGeneration.from_pretrained(path, attn_implementation="eager")
    processor = transformers.AutoProcessor.from_pretrained(path)
    inputs = processor(
        images=[[Image.fromarray(IMAGE).convert("RGB")]],
        text=f"<s>user: <start_of_image>{QUESTION}\nassistant: ",
        return_tensors="pt",
        add_special_tokens=False,
    )
    with torch.no_grad():
        weights = torch.stack(model.eval()(**inputs, output_attentions=True).attentions)
    places = inputs["input_ids"][0] == model.config.image_token_id
    expected = weights[:, 0, :, -1].mean(dim=(0, 1))[places].reshape(CELLS, CELLS)
    assert expected.max() > 1e-4
    np.testing.assert_allclose(shown.values, expected, rtol=1e-3, atol=1e-6)


# ---- where the tokens lie --------------------------------------------------------------------------------------------


def test_tokens_are_row_by_row(folder):
    """With a network whose patches do not see each other, one bright patch changes one token."""
    explainer = without_mixing(opened(folder("llava")))
    seen = []
    hook = explainer.loaded.model.model.multi_modal_projector.register_forward_hook(
        lambda _module, _given, made: seen.append(made[0].clone())
    )
    plain = np.zeros((SIDE, SIDE), np.uint8)
    try:
        for row, column in ((0, 0), (0, 3), (2, 1), (3, 3)):
            bright = plain.copy()
            bright[PATCH * row : PATCH * (row + 1), PATCH * column : PATCH * (column + 1)] = 255
            seen.clear()
            explainer.explain([asked(image=plain), asked(image=bright)])
            without, with_it = seen
            other = (without - with_it).abs().amax(dim=-1) > 1e-6
            assert other.nonzero()[:, 0].tolist() == [CELLS * row + column]
    finally:
        hook.remove()


def without_mixing(explainer):
    """The same model, of which another copy is loaded and changed."""
    loaded = explainer.loaded
    model = transformers.LlavaForConditionalGeneration.from_pretrained(
        loaded.path, attn_implementation="eager"
    )
    with torch.no_grad():
        for layer in model.model.vision_tower.encoder.layers:
            for last in (layer.self_attn.out_proj, layer.mlp.fc2):
                last.weight.zero_()
                last.bias.zero_()
    return replace(explainer, loaded=replace(loaded, model=model.eval()))


def processors():
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
    from transformers.models.llava.image_processing_pil_llava import LlavaImageProcessorPil
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    edge, square = {"shortest_edge": SIDE}, {"height": SIDE, "width": SIDE}
    return {
        "cropped": CLIPImageProcessorPil(size=edge, crop_size=square),
        "cropped inside": CLIPImageProcessorPil(size={"shortest_edge": 40}, crop_size=square),
        "stretched": SiglipImageProcessorPil(size=square),
        "with margins": LlavaImageProcessorPil(size=edge, crop_size=square, do_pad=True),
    }


def loaded_with(tmp_path, processor, *, side=SIDE, kind="clip_vision_model", strategy="default"):
    """As much of a model as tells where its tokens lie."""
    vision = {"model_type": kind, "image_size": side, "patch_size": PATCH}
    config = transformers.LlavaConfig(vision_config=vision, vision_feature_select_strategy=strategy)
    return SimpleNamespace(
        path=tmp_path,
        model=SimpleNamespace(config=config),
        processor=SimpleNamespace(image_processor=processor),
    )


@pytest.mark.parametrize("name", ["cropped", "cropped inside", "stretched", "with margins"])
@settings(max_examples=25)
@given(height=st.integers(33, 90), width=st.integers(33, 90))
def test_the_frame_is_where_the_processor_puts_an_image(tmp_path_factory, name, height, width):
    """A ramp of grey values tells each pixel's place on the image."""
    processor = processors()[name]
    frame = find_image_grid(loaded_with(tmp_path_factory.getbasetemp(), processor)).frame(height, width)
    for axis in (0, 1):
        length = (height, width)[axis]
        ramp = np.rint(255 * (np.arange(length) + 0.5) / length).astype(np.uint8)
        image = np.broadcast_to(ramp[:, None] if axis == 0 else ramp, (height, width))
        made = processor(Image.fromarray(image.copy()).convert("RGB"), return_tensors="np")["pixel_values"][0]
        grey = 255 * (made[0] * processor.image_std[0] + processor.image_mean[0])
        assert grey.shape == (SIDE, SIDE)
        middle = (np.arange(SIDE) + 0.5) * frame.side / SIDE
        x, y = np.meshgrid(middle, middle)
        points = frame.from_input(np.stack([x, y], axis=-1).reshape(-1, 2)).reshape(SIDE, SIDE, 2)
        share = points / (width, height)
        # Beyond the reach of the filter, which bends a ramp at its edges.
        extent = np.array([frame.columns, frame.rows]) * SIDE / frame.side
        inside = ((share * extent > 3) & ((1 - share) * extent > 3)).all(axis=-1)
        assert inside.sum() > SIDE
        # One pixel of the square is at least 255 / 110 of grey.
        np.testing.assert_allclose(grey[inside], 255 * share[..., 1 - axis][inside], atol=1.3)


def test_incomplete_patches_are_not_part_of_the_grid(tmp_path):
    """As in SigLIP with patches of 14 on 384 pixels."""
    square = {"height": 30, "width": 30}
    processor = type(processors()["stretched"])(size=square)
    loaded = loaded_with(tmp_path, processor, side=30, kind="siglip_vision_model", strategy="full")
    grid = find_image_grid(loaded)
    assert (grid.rows, grid.columns) == (3, 3)
    assert grid.frame(60, 90) == Frame(60, 90, 30, 30, 24)
    assert grid.frame(60, 90).seen().sum() == 48 * 72


# ---- what cannot be shown --------------------------------------------------------------------------------------------


def refused(path, method=None, **options):
    with pytest.raises(CarinaError) as told:
        open_chat_explainer(f"hf:{path}", method, options)
    return str(told.value)


def test_other_methods_and_options_are_refused(folder):
    path = folder("llava")
    assert (
        refused(path, "gem")
        == f"hf:{path}: expected the method attention, the only one of chat models, found 'gem'"
    )
    assert "unknown field `depth`. Known: tokens, layers, relative, device." in refused(path, depth=1)
    assert "Invalid enum value 'first' - at `$.tokens`" in refused(path, tokens="first")
    assert "at `$.layers`" in refused(path, layers="0-1")
    assert "at `$.relative`" in refused(path, relative="much")
    for said in ("2-1", "2-3"):
        assert refused(path, layers=said) == (
            f"method attention, option layers: expected a range within the 2 layers of hf:tiny-llava, found '{said}'"
        )
    assert refused(path, device="abacus").startswith("device 'abacus': unknown")


def test_models_without_a_known_grid_are_refused(folder, changed):
    path = folder("qwen2_5_vl")
    assert refused(path) == (
        f"{path / 'config.json'}: the image tokens of model_type 'qwen2_5_vl' are not known to form one grid over the "
        "image; known are llava, gemma3"
    )
    path = changed("llava", "config.json", vision_feature_select_strategy="full")
    assert "vision_feature_select_strategy 'full' leaves one token more or less" in refused(path)
    path = changed("llava", "config.json", model_type="own", auto_map={"AutoConfig": "own.OwnConfig"})
    assert "model_type 'own'" in refused(path)


def test_an_image_that_becomes_other_tokens_is_refused(changed):
    path = changed("llava", "processor_config.json", num_additional_image_tokens=3)
    assert refused(path) == (f"{path}: an image becomes 18 tokens; expected 16 in one piece, a grid of 4 x 4")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"image_processor_type": "LlavaNextImageProcessor", "image_grid_pinpoints": [[32, 64]]},
            "LlavaNextImageProcessor: ",
        ),
        ({"do_resize": False}, "do_resize is false"),
        ({"do_pan_and_scan": True}, "do_pan_and_scan"),
        ({"do_pad": True}, "do_pad: "),
        ({"crop_size": {"height": 24, "width": 24}}, "network of 32 x 32"),
    ],
)
def test_processors_of_unknown_geometry_are_refused(changed, fields, said):
    path = changed(
        "llava",
        "processor_config.json",
        **{f"image_processor__{name}": value for name, value in fields.items()},
    )
    assert said in refused(path)


def test_pickled_weights_are_not_read(changed):
    path = changed("llava", "config.json")
    (path / "model.safetensors").rename(path / "pytorch_model.bin")
    assert "pickled weights can run code" in refused(path)


def test_a_question_longer_than_the_context_is_refused(changed):
    path = changed("llava", "config.json", text_config__max_position_embeddings=60)
    explainer = opened(path)
    with pytest.raises(
        CarinaError, match=r"hf:changed: has room for 60 tokens; the question “Is there a mass"
    ):
        explainer.explain([asked(image=IMAGE)])


# ---- the whole command -----------------------------------------------------------------------------------------------


def test_the_command_writes_maps_and_scores_them(bench, folder, tmp_path):  # noqa: F811
    model = f"hf:{folder('llava')}"
    result = CliRunner().invoke(
        app,
        ["explain", str(bench.directory), "--model", model, "--method", "attention", "--option", "layers=2-2",
         "-o", str(tmp_path / "run"), "--no-controls", "--limit", "4", "--workers", "1"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    maps = open_maps(tmp_path / "run")
    said = maps.manifest.options
    assert (said["model"], said["method"]) == ("hf:tiny-llava", "attention")
    assert said["settings"]["options"]["layers"] == "2-2"
    assert str(tmp_path) not in json.dumps(said)
    explainer = opened(folder("llava"), layers="2-2")
    cases = {case.id: case for case in bench}
    assert [one.id for one in maps] == ["g00", "g02", "g01", "g03"]
    for one in maps:
        image = bench.pixels(cases[one.id].images[0])
        (alone,) = explainer.explain([asked(image=image, target=one.target)])
        np.testing.assert_allclose(one.values, alone.values, atol=1e-3 * np.ptp(alone.values))
        assert (one.score, one.against, one.positive) == (alone.score, alone.against, alone.positive)
        assert one.frame == Frame.cropped(*image.shape, shortest=SIDE, side=SIDE)
    assert (tmp_path / "run" / "scores.parquet").is_file()
