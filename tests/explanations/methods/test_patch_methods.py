"""Methods that compare patches, or words, with the text: against loops over pictures, patches and prompts."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from carina.explanations.methods import METHODS
from carina.models.clip.interface import PromptPair
from carina.store.errors import CarinaError

POOLS = ("class", "mean", "attention")
PAIRS = {
    "mean": PromptPair(("sign of nodule", "a nodule"), ("no nodule", "nothing here")),
    "max": PromptPair(("sign of nodule", "a nodule"), ("no nodule", "nothing here"), several="max"),
}


def maps(name, model, pixels, prompts, **options):
    method = METHODS[name]
    return method.maps(model, pixels, prompts, method.options(**options)).numpy()


def taken_together(model, pixels, prompts, contrast, one):
    """The rule for several prompts, in loops: the mean, or the map of the prompt with the best score."""
    result = []
    for index in range(len(pixels)):
        sides = []
        for side in (prompts.positive, prompts.negative):
            made = [one(index, prompt) for prompt in side]
            if prompts.several == "mean":
                sides.append(np.mean(made, axis=0))
            else:
                seen = model.encode_image(pixels[index : index + 1])
                scores = [float(model.score(seen, model.encode_text([prompt]))[0, 0]) for prompt in side]
                sides.append(made[int(np.argmax(scores))])
        result.append(sides[0] - (sides[1] if contrast == "difference" else 0))
    return np.array(result)


def same(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-7 * np.abs(theirs).max())


def cosine_map(patches, text):
    rows, columns, _ = patches.shape
    made = np.zeros((rows, columns))
    for row in range(rows):
        for column in range(columns):
            patch = patches[row, column]
            made[row, column] = patch @ text / np.sqrt((patch @ patch) * (text @ text))
    return made


@pytest.mark.parametrize("contrast", ["none", "difference"])
@pytest.mark.parametrize("several", ["mean", "max"])
@pytest.mark.parametrize("kind", ["class", "mean", "attention", "resnet", "resnet3"])
def test_similarity_is_the_cosine_of_every_patch(tiny, kind, several, contrast):
    model, prompts = tiny.random_model(kind), PAIRS[several]
    pixels = tiny.pictures(model)
    patches = model.encode_image(pixels).patches.numpy()

    def one(index, prompt):
        return cosine_map(patches[index], model.encode_text([prompt]).pooled[0].numpy())

    ours = maps("similarity", model, pixels, prompts, sigma=0, contrast=contrast)
    same(ours, taken_together(model, pixels, prompts, contrast, one))
    smooth = maps("similarity", model, pixels, prompts, contrast=contrast)
    same(smooth, gaussian_filter1d(gaussian_filter1d(ours.astype(float), 1.5, axis=1), 1.5, axis=2))


def test_best_prompts_differ_between_images(tiny):
    """So that the rule above is tried on both sides."""
    model = tiny.random_model(
        "class", given={"sign of nodule": [0, 0, 0, 1.0, 0, 0], "a nodule": [0, 0, 0, 0, 1.0, 0]}
    )
    pixels = tiny.pictures(model, 12)
    prompts = [*PAIRS["max"].positive]
    best = model.score(model.encode_image(pixels), model.encode_text(prompts)).argmax(1)
    assert set(best.tolist()) == {0, 1}
    ours = maps("similarity", model, pixels, PAIRS["max"], sigma=0)
    for index in range(12):
        alone = PromptPair((prompts[best[index]],))
        same(ours[index], maps("similarity", model, pixels[index : index + 1], alone, sigma=0)[0])


@pytest.mark.parametrize("kind", ["mean", "resnet", "resnet3"])
def test_products_add_up_to_the_score_without_its_norms(tiny, kind):
    model = tiny.random_model(kind)
    assert model.exact
    pixels, prompts = tiny.pictures(model), PromptPair(("sign of nodule",))
    ours = maps("similarity", model, pixels, prompts, measure="dot", sigma=0)
    pooled = model.encode_image(pixels).pooled
    same(
        ours.mean(axis=(1, 2), dtype=float), (pooled @ model.encode_text(prompts.positive).pooled[0]).numpy()
    )


@pytest.mark.parametrize("contrast", ["none", "difference"])
@pytest.mark.parametrize("words", ["mean", "max"])
@pytest.mark.parametrize("several", ["mean", "max"])
def test_words_attend_to_patches(tiny, several, words, contrast):
    model, prompts = tiny.random_model("class"), PAIRS[several]
    pixels = tiny.pictures(model)
    patches = model.encode_image(pixels).patches.numpy()

    def one(index, prompt):
        texts = model.encode_text([prompt])
        kept = [word.numpy() for word, keep in zip(texts.words[0], texts.kept[0], strict=True) if keep]
        assert len(kept) == len(prompt.split())
        shares = np.zeros((len(kept), 3, 3))
        for row in range(3):
            for column in range(3):
                powers = np.array([np.exp(patches[index, row, column] @ word) for word in kept])
                shares[:, row, column] = powers / powers.sum()
        each = [np.exp(4 * share) / np.exp(4 * share).sum() for share in shares]
        return np.mean(each, axis=0) if words == "mean" else np.max(each, axis=0)

    ours = maps("word-attention", model, pixels, prompts, words=words, contrast=contrast)
    same(ours, taken_together(model, pixels, prompts, contrast, one))


def test_a_single_word_attends_to_all_patches_equally(tiny):
    """Each patch has one word to share itself out among: GLoRIA's maps need two."""
    model = tiny.random_model("class")
    ours = maps("word-attention", model, tiny.pictures(model), PromptPair(("nodule",)))
    same(ours, np.full((2, 3, 3), 1 / 9))


def test_a_prompt_without_words_is_refused(tiny):
    model = tiny.random_model("class")
    with pytest.raises(CarinaError, match=r"prompt '\[PAD\]': expected at least one word"):
        maps("word-attention", model, tiny.pictures(model), PromptPair(("a nodule", "[PAD]")))


@pytest.mark.parametrize("renormalised", [False, True])
@pytest.mark.parametrize("layers", ["mean", "last"])
@pytest.mark.parametrize("heads", ["mean", "max"])
@pytest.mark.parametrize("contrast", ["none", "difference"])
def test_a_decoder_attends_to_patches(tiny, contrast, heads, layers, renormalised):
    model, prompts = tiny.random_model("class", decodes=True), PAIRS["max"]
    pixels = tiny.pictures(model)

    def one(index, prompt):
        weights = model.cross_attention(pixels[index : index + 1], [prompt]).weights[0, 0].numpy()
        chosen = weights if layers == "mean" else weights[-1:]
        made = np.mean([(np.mean if heads == "mean" else np.max)(layer, axis=0) for layer in chosen], axis=0)
        return made / made.sum() if renormalised else made

    options = {"layers": layers, "heads": heads, "renormalised": renormalised, "contrast": contrast}
    ours = maps("cross-attention", model, pixels, prompts, **options)
    same(ours, taken_together(model, pixels, prompts, contrast, one))


def test_attention_to_other_keys_is_left_out_unless_renormalised(tiny):
    model, prompt = tiny.random_model("class", decodes=True), PromptPair(("a nodule",))
    pixels = tiny.pictures(model)
    dropped = model.cross_attention(pixels, prompt.positive).dropped.mean((1, 2, 3)).numpy()
    same(maps("cross-attention", model, pixels, prompt).sum((1, 2), dtype=float), 1 - dropped)
    shared = maps("cross-attention", model, pixels, prompt, renormalised=True)
    same(shared.sum((1, 2), dtype=float), np.ones(2))


@pytest.mark.parametrize("several", ["mean", "max"])
@pytest.mark.parametrize("kind", POOLS)
def test_maskclip_is_the_value_path_of_the_last_block(tiny, slow, kind, several):
    model, prompts = tiny.random_model(kind), PAIRS[several]
    pixels = tiny.pictures(model)
    vit = slow.SlowVit.of(model.tower)

    def one(index, prompt):
        tokens = vit.run(vit.embed(pixels[index].numpy()), stop=2)
        values = vit.linear("blocks.2.attention.value", vit.norm("blocks.2.norm1", tokens))
        patches = vit.finish(vit.linear("blocks.2.attention.out", values))
        text = model.encode_text([prompt]).pooled[0].numpy()
        return vit.grid(np.array([slow.cosine(patch, text) for patch in patches]))

    ours = maps("maskclip", model, pixels, prompts, contrast="difference")
    same(ours, taken_together(model, pixels, prompts, "difference", one))


@pytest.mark.parametrize("chosen", [(7, 1, None), (2, 0, None), (3, 2, None), (3, 1, 4.0)])
@pytest.mark.parametrize("kind", POOLS)
def test_gem_groups_patches_by_self_self_attention(tiny, slow, kind, chosen):
    depth, iterations, temperature = chosen
    model, prompts = tiny.random_model(kind), PAIRS["mean"]
    pixels = tiny.pictures(model)
    vit = slow.SlowVit.of(model.tower)

    def added(index, tokens):
        normed = vit.norm(f"blocks.{index}.norm1", tokens)
        lengths = [np.linalg.norm(token) for token in normed]
        heat = temperature if temperature is not None else np.mean(lengths) / np.sqrt(tiny.WIDTH / 2)
        heads = {
            part: vit.heads(f"blocks.{index}.attention.{part}", normed) for part in ("query", "key", "value")
        }
        joined = []
        for head in range(2):
            made = []
            for part in ("value", "key", "query"):
                vectors = heads[part][head]
                for _ in range(iterations):
                    vectors = np.array([slow.unit(vector) for vector in vectors])
                    mixed = []
                    for vector in vectors:
                        weights = slow.softmax(np.array([heat * (vector @ other) for other in vectors]))
                        mixed.append(sum(w * other for w, other in zip(weights, vectors, strict=True)))
                    vectors = np.array(mixed)
                vectors = np.array([slow.unit(vector) for vector in vectors])
                weights = slow.softmax(heat * vectors @ vectors.T)
                made.append(weights @ heads["value"][head])
            joined.append(sum(made) / 3)
        return vit.linear(f"blocks.{index}.attention.out", np.concatenate(joined, axis=-1))

    def one(index, prompt):
        tokens = vit.embed(pixels[index].numpy())
        branch = None
        for block in range(3):
            if block >= 3 - (depth - 1):
                branch = (tokens if branch is None else branch) + added(block, tokens)
            tokens = vit.block(block, tokens)
        text = model.encode_text([prompt]).pooled[0].numpy()
        return vit.grid(np.array([slow.cosine(patch, text) for patch in vit.finish(branch)]))

    options = {"depth": depth, "iterations": iterations, "temperature": temperature}
    ours = maps("gem", model, pixels, prompts, **options)
    same(ours, taken_together(model, pixels, prompts, "none", one))


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"rollout"}))
def test_a_difference_needs_negative_prompts(tiny, name):
    model = tiny.random_model("class", decodes=True)
    with pytest.raises(
        CarinaError, match="contrast 'difference': expected negative prompts beside 'a nodule'"
    ):
        maps(name, model, tiny.pictures(model), PromptPair(("a nodule",)), contrast="difference")


@pytest.mark.parametrize("name", ["similarity", "maskclip", "gem", "word-attention"])
def test_without_patches_there_is_no_map(tiny, name):
    model = tiny.random_model("class")
    blind = model.but(image=lambda pixels: tiny.Images(model.tower.pool(model.tower(pixels)), None))
    with pytest.raises(CarinaError, match="expected image patches in the joint space"):
        maps(name, blind, tiny.pictures(model), tiny.PAIR)
