"""Methods that look at slopes or attention: against finite differences on a transformer in plain numpy."""

import numpy as np
import pytest

from carina.explanations.methods import METHODS
from carina.models.clip.interface import PromptPair
from carina.store.errors import CarinaError

POOLS = ("class", "mean", "attention")
PAIR = PromptPair(("sign of nodule", "a nodule"), ("no nodule",))
BEST = PromptPair(("sign of nodule", "a nodule"), ("no nodule", "nothing here"), several="max")


def maps(name, model, pixels, prompts, **options):
    method = METHODS[name]
    return method.maps(model, pixels, prompts, method.options(**options)).numpy()


def same(ours, theirs, tolerance=1e-5):
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * np.abs(theirs).max())


def scorer(slow, model, prompts, contrast):
    """The score of one pooled picture, spelt out."""
    texts = {
        prompt: model.encode_text([prompt]).pooled[0].numpy()
        for prompt in prompts.positive + prompts.negative
    }

    def side(pooled, of):
        scores = [model.scale * slow.cosine(pooled, texts[prompt]) for prompt in of]
        return max(scores) if prompts.several == "max" else sum(scores) / len(scores)

    def score(pooled):
        if contrast == "none":
            return side(pooled, prompts.positive)
        difference = side(pooled, prompts.positive) - side(pooled, prompts.negative)
        return difference if contrast == "difference" else 1 / (1 + np.exp(-difference))

    return score


@pytest.mark.parametrize("contrast", ["none", "difference", "probability"])
@pytest.mark.parametrize("prompts", [PAIR, BEST], ids=["mean", "best"])
@pytest.mark.parametrize("kind", POOLS)
def test_grad_cam_of_a_transformer_equals_numerical_gradients(tiny, slow, kind, prompts, contrast):
    # Of these weights some features speak for the finding; else the map is 0 everywhere.
    model = tiny.random_model(kind, cells=2, seed={"class": 9, "mean": 8, "attention": 4}[kind])
    pixels = tiny.pictures(model)
    vit, score = slow.SlowVit.of(model.tower), scorer(slow, model, prompts, contrast)
    theirs = []
    for picture in pixels.numpy():
        tokens = vit.run(vit.embed(picture), stop=2)
        features = vit.norm("blocks.2.norm1", tokens)

        def ended(normed, tokens=tokens):
            return score(vit.pool(vit.after(2, tokens, normed, vit.weights(2, normed))))

        slope = slow.slopes(ended, features)
        weights = slope[vit.prefix :].mean(0)
        theirs.append(vit.grid(np.maximum(features @ weights, 0)))
    ours = maps("grad-cam", model, pixels, prompts, contrast=contrast)
    assert ours.max() > 0
    same(ours, np.array(theirs))


def resnet_slopes(slow, model, picture, score):
    """Features of the last stage (rows, columns, channels) and their slopes."""
    features = model.tower(picture[None]).last[0].permute(1, 2, 0).numpy()
    matrix = model.head.weight.numpy().T
    return features, slow.slopes(lambda there: score((there @ matrix).mean((0, 1))), features)


@pytest.mark.parametrize("kind", ["resnet", "resnet3"])
def test_grad_cam_of_a_residual_network(tiny, slow, kind):
    model = tiny.random_model(kind)
    pixels = tiny.pictures(model)
    score, theirs = scorer(slow, model, PAIR, "difference"), []
    for picture in pixels:
        features, slope = resnet_slopes(slow, model, picture, score)
        theirs.append(np.maximum(features @ slope.mean((0, 1)), 0))
    ours = maps("grad-cam", model, pixels, PAIR, contrast="difference")
    assert ours.max() > 0
    same(ours, np.array(theirs))


def enlarged(channel, side):
    """Bilinear, with the outermost cells at the edges: by weights worked out for every pixel."""
    rows, columns = channel.shape

    def places(number):
        at = np.arange(side) * (number - 1) / (side - 1)
        low = np.minimum(np.floor(at).astype(int), max(number - 2, 0))
        return low, np.minimum(low + 1, number - 1), at - low

    made = np.zeros((side, side))
    for y, (top, bottom, down) in enumerate(zip(*places(rows), strict=True)):
        for x, (left, right, along) in enumerate(zip(*places(columns), strict=True)):
            upper = (1 - along) * channel[top, left] + along * channel[top, right]
            lower = (1 - along) * channel[bottom, left] + along * channel[bottom, right]
            made[y, x] = (1 - down) * upper + down * lower
    return made


@pytest.mark.parametrize(("kind", "channels"), [("class", 3), ("class", 300), ("resnet3", 5)])
def test_gscorecam_weights_channels_by_the_score_of_the_masked_image(tiny, slow, kind, channels):
    model = tiny.random_model(kind)
    pixels = tiny.pictures(model)
    score, theirs = scorer(slow, model, PAIR, "none"), []
    for picture in pixels:
        if kind == "class":
            vit = slow.SlowVit.of(model.tower)
            tokens = vit.run(vit.embed(picture.numpy()), stop=2)
            normed = vit.norm("blocks.2.norm1", tokens)

            def ended(there, vit=vit, tokens=tokens):
                return score(vit.pool(vit.after(2, tokens, there, vit.weights(2, there))))

            features, slope = (
                values[1:].reshape(3, 3, -1) for values in (normed, slow.slopes(ended, normed))
            )
        else:
            features, slope = resnet_slopes(slow, model, picture, score)
        steep = slope.mean((0, 1))
        scores = np.zeros(len(steep))
        for channel in np.argsort(-steep)[:channels]:
            mask = enlarged(features[..., channel], model.side)
            mask = (mask - mask.min()) / (mask.max() - mask.min() + 1e-6)
            shown = model.encode_image(picture[None] * tiny.torch.from_numpy(mask)).pooled[0].numpy()
            scores[channel] = 2.0 * score(shown)
        theirs.append(np.maximum(features @ slow.softmax(scores), 0))
    ours = maps("gscorecam", model, pixels, PAIR, channels=channels, scale=2.0, batch=2)
    assert ours.max() > 0
    same(ours, np.array(theirs))


@pytest.mark.parametrize("layers", [1, 2, 5])
@pytest.mark.parametrize("kind", ["class", "mean"])
def test_legrad_sums_positive_gradients_over_blocks(tiny, slow, kind, layers):
    model = tiny.random_model(kind, cells=2, scale=1.0)
    pixels = tiny.pictures(model)
    vit, score = slow.SlowVit.of(model.tower), scorer(slow, model, PAIR, "difference")
    theirs = []
    for picture in pixels.numpy():
        total = 0
        for index in range(max(3 - layers, 0), 3):
            tokens = vit.run(vit.embed(picture), stop=index)

            def ended(weights, index=index, tokens=tokens):
                return score(vit.finish(vit.at(index, weights).block(index, tokens).mean(0)))

            weights = vit.weights(index, vit.norm(f"blocks.{index}.norm1", tokens))
            total = total + np.maximum(slow.slopes(ended, weights), 0).mean((0, 1))
        theirs.append(vit.grid(total))
    same(maps("legrad", model, pixels, PAIR, layers=layers, contrast="difference"), np.array(theirs))


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("limit", [None, 0.3, 0.8])
def test_legrad_with_attention_pooling_equals_numerical_gradients(tiny, slow, limit, normalised):
    model = tiny.random_model("attention", scale=1.0)
    pixels = tiny.pictures(model)
    vit = slow.SlowVit.of(model.tower)

    def slopes_of(picture, prompts):
        total, score = 0, scorer(slow, model, prompts, "none")
        for index in (1, 2):
            tokens = vit.run(vit.embed(picture), stop=index + 1)
            tokens = vit.norm("norm", tokens) if normalised else tokens

            def ended(weights, tokens=tokens):
                return score(vit.at("pool", weights).attended(tokens))

            total = total + np.maximum(slow.slopes(ended, vit.pool_weights(tokens)), 0).mean(0)
        return total

    theirs = []
    for picture in pixels.numpy():
        made, empty = slopes_of(picture, PAIR), slopes_of(picture, PromptPair(("a picture of",)))
        if limit is not None:
            made[(empty - empty.min()) / (empty.max() - empty.min()) > limit] = 0
        theirs.append(vit.grid(made))
    ours = maps("legrad", model, pixels, PAIR, limit=limit, normalised=normalised, empty="a picture of")
    assert (np.array(theirs) == 0).any() == (limit is not None)
    same(ours, np.array(theirs))


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("kind", POOLS)
def test_relevance_propagates_weighted_attention_through_blocks(tiny, slow, kind, layers):
    model = tiny.random_model(kind, cells=2)
    pixels = tiny.pictures(model)
    vit, score = slow.SlowVit.of(model.tower), scorer(slow, model, PAIR, "none")

    def moved(name, weights, tokens, start):
        def ended(there):
            changed = vit.at(name, there)
            return score(changed.pool(changed.run(tokens, start)))

        return np.maximum(slow.slopes(ended, weights) * weights, 0).mean(0)

    theirs = []
    for picture in pixels.numpy():
        tokens = vit.run(vit.embed(picture), stop=3 - layers)
        through = np.eye(len(tokens))
        for index in range(3 - layers, 3):
            weights = vit.weights(index, vit.norm(f"blocks.{index}.norm1", tokens))
            through = through + moved(index, weights, tokens, index) @ through
            tokens = vit.block(index, tokens)
        if kind == "class":
            row = through[0]
        elif kind == "mean":
            row = (through - np.eye(len(tokens))).mean(0)
        else:
            row = moved("pool", vit.pool_weights(vit.norm("norm", tokens)), tokens, 3) @ through
        theirs.append(vit.grid(row))
    same(maps("relevance", model, pixels, PAIR, layers=layers), np.array(theirs))


@pytest.mark.parametrize("heads", ["mean", "max"])
@pytest.mark.parametrize("skipped", [0, 2])
@pytest.mark.parametrize("kind", POOLS)
def test_rollout_multiplies_attention(tiny, slow, kind, skipped, heads):
    model = tiny.random_model(kind)
    pixels = tiny.pictures(model)
    vit, one_head = slow.SlowVit.of(model.tower), np.mean if heads == "mean" else np.max
    theirs = []
    for picture in pixels.numpy():
        tokens = vit.embed(picture)
        through = np.eye(len(tokens))
        for index in range(3):
            weights = one_head(vit.weights(index, vit.norm(f"blocks.{index}.norm1", tokens)), axis=0)
            mixed = weights + np.eye(len(tokens))
            mixed = np.array([row / row.sum() for row in mixed])
            if index >= skipped:
                through = mixed @ through
            tokens = vit.block(index, tokens)
        if kind == "attention":
            row = one_head(vit.pool_weights(vit.norm("norm", tokens)), axis=0) @ through
        else:
            row = through[0] if kind == "class" else through.mean(0)
        theirs.append(vit.grid(row))
    same(maps("rollout", model, pixels, PAIR, skipped=skipped, heads=heads), np.array(theirs))


def test_rollout_ignores_the_text(tiny):
    model = tiny.random_model("class")
    pixels = tiny.pictures(model)
    one, other = (maps("rollout", model, pixels, PromptPair((text,))) for text in ("a nodule", "a fracture"))
    assert np.array_equal(one, other)


def test_rollout_of_no_block_is_refused(tiny):
    model = tiny.random_model("class")
    with pytest.raises(
        CarinaError, match="option skipped: expected fewer than the 3 blocks of the model, found 3"
    ):
        maps("rollout", model, tiny.pictures(model), PAIR, skipped=3)


@pytest.mark.parametrize("name", ["maskclip", "gem", "legrad", "relevance", "rollout"])
def test_a_model_without_a_transformer_is_refused(tiny, name):
    model = tiny.random_model("resnet")
    with pytest.raises(CarinaError, match="expected a vision transformer as image tower"):
        maps(name, model, tiny.pictures(model), PAIR)


@pytest.mark.parametrize("name", ["grad-cam", "gscorecam"])
def test_a_model_without_an_image_tower_is_refused(tiny, name):
    model = tiny.random_model("resnet").but(tower=None)
    with pytest.raises(CarinaError, match="expected an image tower whose layers can be read"):
        maps(name, model, tiny.pictures(model), PAIR)
