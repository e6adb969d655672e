"""The query decoder against torch's own layers, and the models that are made of it against its published parts."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytest.importorskip("transformers", reason="the extra torch is not installed")

from safetensors.torch import load_file  # noqa: E402
from torch import nn  # noqa: E402

from carina.models.clip.query_decoder import DecoderShape, QueryDecoder, attention_on_grid  # noqa: E402
from carina.models.clip.state_dict import use_one_thread  # noqa: E402

D, HIDDEN, LAYERS, HEADS = 16, 24, 4, 4


def shaken(module, seed=0):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in module.state_dict().values():
            value.copy_(torch.randn(value.shape, generator=generator) * 0.3)
    return module.eval()


def given(seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn((2, 5, D), generator=generator), torch.randn((2, 9, D), generator=generator)


def made(**options):
    return shaken(QueryDecoder(DecoderShape(width=D, layers=LAYERS, hidden=HIDDEN, **options)))


def torch_layer():
    return nn.TransformerDecoderLayer(D, HEADS, HIDDEN, dropout=0.0, norm_first=True, batch_first=True)


@pytest.mark.parametrize("input_norm", [False, True])
def test_a_decoder_equals_torchs(input_norm):
    ours = made(input_norm=input_norm)
    theirs = nn.TransformerDecoder(torch_layer(), LAYERS, nn.LayerNorm(D)).eval()
    state = ours.state_dict()
    own = {name: value for name, value in state.items() if not name.startswith("input_norm")}
    theirs.load_state_dict(own, strict=True)
    queries, memory = given()
    decoded, _ = ours(queries, memory)
    if input_norm:
        norm = nn.LayerNorm(D)
        norm.load_state_dict({part: state[f"input_norm.{part}"] for part in ("weight", "bias")})
        queries, memory = norm(queries), norm(memory)
    torch.testing.assert_close(decoded, theirs(queries, memory), atol=1e-5, rtol=1e-5)


def reference(state, queries, memory, *, self_attention):
    """Layer by layer, with torch's attention; returns its weights of every layer and head."""
    seen = []

    def attention(prefix):
        module = nn.MultiheadAttention(D, HEADS, batch_first=True)
        module.load_state_dict(
            {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
        )
        return module.eval()

    def norm(name, values):
        return nn.functional.layer_norm(values, (D,), state[f"{name}.weight"], state[f"{name}.bias"])

    def linear(name, values):
        return nn.functional.linear(values, state[f"{name}.weight"], state[f"{name}.bias"])

    for index in range(LAYERS):
        layer = f"layers.{index}"
        if self_attention:
            plain = norm(f"{layer}.norm1", queries)
            queries = queries + attention(f"{layer}.self_attn.")(plain, plain, plain)[0]
        added, weights = attention(f"{layer}.multihead_attn.")(
            norm(f"{layer}.norm2", queries), memory, memory, average_attn_weights=False
        )
        queries = queries + added
        inner = linear(f"{layer}.linear1", norm(f"{layer}.norm3", queries)).relu()
        queries = queries + linear(f"{layer}.linear2", inner)
        seen.append(weights)
    return norm("norm", queries), torch.stack(seen).permute(1, 3, 0, 2, 4)


@pytest.mark.parametrize("self_attention", [False, True])
def test_the_weights_of_every_layer_and_head_equal_torchs(self_attention):
    ours = made(self_attention=self_attention)
    queries, memory = given()
    decoded, weights = ours(queries, memory)
    expected, seen = reference(ours.state_dict(), queries, memory, self_attention=self_attention)
    torch.testing.assert_close(decoded, expected, atol=1e-5, rtol=1e-5)
    assert weights.shape == (2, 5, LAYERS, HEADS, 9)
    torch.testing.assert_close(weights, seen, atol=1e-5, rtol=1e-5)


def test_queries_see_each_other_only_where_they_are_let():
    queries, memory = given()
    for self_attention in (False, True):
        ours = made(self_attention=self_attention)
        assert any("self_attn" in name for name in ours.state_dict()) == self_attention
        whole, part = ours(queries, memory)[0][:, :2], ours(queries[:, :2], memory)[0]
        assert torch.allclose(whole, part, atol=1e-6) != self_attention


def test_keys_before_the_patches_are_dropped_and_not_shared_out():
    weights = torch.arange(1.0, 14.0).expand(1, 1, 2, 3, 13)
    found = attention_on_grid(weights, (3, 4), before=1)
    assert found.weights.shape == (1, 1, 2, 3, 3, 4)
    assert found.weights[0, 0, 0, 0].tolist() == [[2, 3, 4, 5], [6, 7, 8, 9], [10, 11, 12, 13]]
    assert (found.dropped == 1).all()
    assert (attention_on_grid(weights[..., 1:], (3, 4)).dropped == 0).all()


# ---- models ----


def pixels(model):
    image = np.random.default_rng(3).integers(0, 256, (2, 120, 90), dtype=np.uint8)
    return torch.from_numpy(np.stack([model.prepare(one) for one in image]))


def torch_decoder(state, width, heads=HEADS):
    """torch's own, from weights under a decoder's published names."""
    hidden = len(state["layers.0.linear1.bias"])
    layer = nn.TransformerDecoderLayer(width, heads, hidden, dropout=0.0, norm_first=True, batch_first=True)
    made = nn.TransformerDecoder(layer, LAYERS, nn.LayerNorm(width)).eval()
    made.load_state_dict(state, strict=True)
    return made


def behind(state, prefix):
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}


def linear(state, name, values):
    return nn.functional.linear(values, state[f"{name}.weight"], state[f"{name}.bias"])


def first_tokens(published, kind, texts):
    """By transformers' BERT, each text alone."""
    import transformers

    state = behind(load_file(published(kind) / "text.safetensors"), "bert.")
    config = transformers.BertConfig(
        vocab_size=80, hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=48,
    )  # fmt: skip
    bert = transformers.BertModel(config).eval()
    bert.load_state_dict({key: value for key, value in state.items() if "position_ids" not in key})
    tokenizer = transformers.BertTokenizer.from_pretrained(str(published(kind)))
    with use_one_thread(), torch.no_grad():
        rows = [bert(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 0] for text in texts]
    return torch.stack(rows)


def test_medklip_asks_all_its_observations_at_once(published, opened):
    import json

    model, state = opened("medklip"), load_file(published("medklip") / "model.safetensors")
    book = json.loads((published("medklip") / "observation explanation.json").read_text())
    queries = linear(state, "disease_embedding_layer", first_tokens(published, "medklip", book.values()))
    given = pixels(model)
    features = model.tower(given).layer3.flatten(2).transpose(1, 2)
    memory = linear(state, "res_l2", linear(state, "res_l1", features).relu())
    decoded = torch_decoder(behind(state, "decoder."), D)(queries.expand(2, -1, -1), memory)
    two = linear(state, "classifier", decoded).softmax(-1)[..., 1]
    texts = model.encode_text(["device", "pneumonia"])
    scores = model.score(model.encode_image(given), texts)
    # The fifth and the misspelt fourth.
    torch.testing.assert_close(scores.sigmoid(), two[:, [4, 3]], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(texts.pooled, queries[[4, 3]], atol=1e-5, rtol=1e-4)


def test_mavl_asks_nine_times_and_shows_four(published, opened):
    import json

    model, state = opened("mavl"), load_file(published("mavl") / "model.safetensors")
    book = json.loads((published("mavl") / "observation explanation.json").read_text())
    looks = json.loads((published("mavl") / "gpt4_mimic.json").read_text())
    names = [name.replace("eumonia", "pneumonia") for name in book]
    texts = [text for name, own in zip(names, book.values(), strict=True) for text in (own, *looks[name])]
    queries = linear(state, "disease_embedding_layer", first_tokens(published, "mavl", texts))
    assert len(queries) == 9 * len(book)
    given = pixels(model)
    conv = nn.functional.conv2d(model.tower(given).layer3, state["res_l1.0.weight"], state["res_l1.0.bias"])
    conv = nn.functional.prelu(conv, state["res_l1.1.weight"])
    memory = (
        nn.functional.conv2d(conv, state["res_l2.weight"], state["res_l2.bias"]).flatten(2).transpose(1, 2)
    )
    decoder = behind(state, "decoder.")
    decoded = torch_decoder(decoder, D)(queries.expand(2, -1, -1), memory)
    two = linear(state, "classifier", decoded.reshape(2, len(book), 9 * D)).softmax(-1)[..., 1]
    scores = model.score(model.encode_image(given), model.encode_text(["opacity"]))
    torch.testing.assert_close(scores.sigmoid()[:, 0], two[:, 2], atol=1e-5, rtol=1e-4)
    _, seen = reference(decoder, queries.expand(2, -1, -1), memory, self_attention=True)
    own = seen.unflatten(1, (len(book), 9))[:, 2]
    # Description, patterns, shape and texture.
    expected = (own[:, 0] + own[:, 6] + own[:, 7] + own[:, 8]) / 4
    found = model.cross_attention(given, ["lung opacity"]).weights[:, 0].flatten(-2)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_kad_asks_a_finding_among_the_fourteen(published, opened):
    from carina.models.clip.kad import CHESTXRAY14_QUERIES

    model, state = opened("kad"), load_file(published("kad") / "model.safetensors")
    given = pixels(model)
    features = model.tower(given).layer4.flatten(2).transpose(1, 2)
    memory = linear(state, "image_encoder.res_l2", linear(state, "image_encoder.res_l1", features).relu())
    images = model.encode_image(given)
    torch.testing.assert_close(images.pooled, memory.mean(1), atol=1e-5, rtol=1e-4)
    decoder = torch_decoder(behind(state, "model.decoder."), D)
    company = torch.cat([model.encode_text([name]).pooled for name in CHESTXRAY14_QUERIES])

    def norm(values):
        return nn.functional.layer_norm(
            values, (D,), state["model.decoder_norm.weight"], state["model.decoder_norm.bias"]
        )

    def answers(queries):
        decoded = decoder(norm(queries).expand(2, -1, -1), norm(memory))
        return linear(state, "model.mlp_head.0", decoded).softmax(-1)[..., 1]

    fracture = model.encode_text(["fracture"]).pooled
    said = model.score(images, model.encode_text(["Pneumonia", "fracture", "hernia"])).sigmoid()
    torch.testing.assert_close(said[:, 0], answers(company)[:, 6], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(said[:, 2], answers(company)[:, 13], atol=1e-5, rtol=1e-4)
    beside = answers(torch.cat([company, fracture]))
    torch.testing.assert_close(said[:, 1], beside[:, 14], atol=1e-5, rtol=1e-4)


def test_the_text_of_kad_is_its_pooled_token_through_a_perceptron(published, opened):
    model, state = opened("kad"), load_file(published("kad") / "model.safetensors")
    text = model.text
    ids = text.tokenizer(["edema"], return_tensors="pt")["input_ids"]
    first = text.model(input_ids=ids).last_hidden_state[:, 0]
    pooled = linear(state, "text_encoder.bert_model.pooler.dense", first).tanh()
    inner = nn.functional.gelu(linear(state, "text_encoder.mlp_embed.0", pooled))
    expected = linear(state, "text_encoder.mlp_embed.2", inner)
    torch.testing.assert_close(model.encode_text(["EDEMA"]).pooled, expected, atol=1e-5, rtol=1e-4)


def test_carzero_decodes_prompts_with_images_and_images_with_prompts(published, opened):
    """One decoder: prompts look at a picture and its patches, pictures at a prompt and its 97 places."""
    model, state = opened("carzero"), load_file(published("carzero") / "model.safetensors")
    fusion = behind(state, "CARZero.fusion_module.")
    width = 128

    def attention(prefix):
        module = nn.MultiheadAttention(width, HEADS, batch_first=True)
        module.load_state_dict(behind(fusion, prefix))
        return module.eval()

    def norm(name, values):
        return nn.functional.layer_norm(values, (width,), fusion[f"{name}.weight"], fusion[f"{name}.bias"])

    def answer(query, memory):
        """Of one query to one memory (k, d)."""
        query, memory = norm("decoder_norm", query[None, None]), norm("decoder_norm", memory[None])
        seen = []
        for index in range(LAYERS):
            layer = f"decoder.layers.{index}"
            added, weights = attention(f"{layer}.multihead_attn.")(
                norm(f"{layer}.norm2", query), memory, memory
            )
            query = query + added
            inner = linear(fusion, f"{layer}.linear1", norm(f"{layer}.norm3", query)).relu()
            query = query + linear(fusion, f"{layer}.linear2", inner)
            seen.append(weights[0, 0])
        hidden = norm("decoder.norm", query)
        for layer in (0, 3, 6):
            hidden = linear(fusion, f"mlp_head.{layer}", hidden).relu()
        return float(linear(fusion, "mlp_head.9", hidden).detach()), torch.stack(seen).mean(0)

    given = pixels(model)
    prompts = ["There is pneumonia", "There is no mass"]
    images, texts = model.encode_image(given), model.encode_text(prompts)
    assert texts.words.shape == (2, 97, width)
    tokens = model.tower.finish(model.tower(given))
    scores, maps = model.score(images, texts), model.cross_attention(given, prompts)
    for n in range(2):
        for m in range(2):
            to_image, seen = answer(texts.pooled[m], tokens[n])
            to_text, _ = answer(tokens[n, 0], torch.cat([texts.pooled[m : m + 1], texts.words[m]]))
            assert float(scores[n, m]) == pytest.approx((to_image + to_text) / 2, abs=1e-5)
            shown = maps.weights[n, m].mean((0, 1)).flatten()
            torch.testing.assert_close(shown, seen[1:], atol=1e-6, rtol=1e-4)
            torch.testing.assert_close(maps.dropped[n, m].mean(), seen[0], atol=1e-6, rtol=1e-4)


def test_a_model_refuses_embeddings_of_another_model(opened):
    model, other = opened("medklip"), opened("gloria")
    with pytest.raises(TypeError, match="encode_image"):
        model.score(other.encode_image(pixels(other)), model.encode_text(["device"]))
    with pytest.raises(TypeError, match="encode_text"):
        model.score(model.encode_image(pixels(model)), other.encode_text(["there is mass"]))
