"""Tiny random weights of models with decoders, projections and merged words, named as they are published."""

import torch

WIDTH = 128
"""Of BERTs and vision transformers, whose heads are 64 wide."""
D, HIDDEN = 16, 24
"""Of decoders."""
OBSERVATIONS = {
    "normal": "no disease", "effusion": "fluid in the pleural space", "opacity": "an area that is hazy",
    "eumonia": "an inflammation of the lung", "device": "some equipment", "thicken": "of the pleura",
    "tail_abnorm_obs": "rare diseases",
}  # fmt: skip
"""With MedKLIP's misspelling."""
ASPECTS = ("border", "fluid", "location", "opacity", "other", "patterns", "shape", "texture")
NAMES = {
    "biovil": "biovil", "biovil-t": "biovil-t", "gloria": "gloria", "afloc": "afloc", "medklip": "medklip",
    "kad": "kad", "kad-224": "kad", "mavl": "mavl", "carzero": "carzero",
}  # fmt: skip


def extend(tiny):
    """Make the module of the other kinds make these too."""
    tiny.NAMES |= NAMES
    tiny.MAKERS |= {
        kind: (lambda path, generator, make=make: make(tiny, path, generator))
        for kind, make in MAKERS.items()
    }


def resnet(tiny, generator, prefix, *, numbered=False, stages=4):
    """Of one block a stage, but two in the second."""
    numbers = {
        "conv1": "0",
        "bn1": "1",
        "layer1": "4",
        "layer2": "5",
        "layer3": "6",
        "layer4": "7",
    }
    state = {}
    for key, value in tiny.resnet_state(generator)[0].items():
        child, _, rest = key.removeprefix("model.").partition(".")
        if child == "fc" or (stages == 3 and child == "layer4"):
            continue
        state[f"{prefix}{numbers[child] if numbered else child}.{rest}"] = value
    return state


def bert(tiny, rows, generator, prefix, *, depth=5, pooler=True):
    """Deep enough to tell its last four layers from the others."""
    shapes = tiny.bert_shapes(prefix, rows)
    first = {
        key.partition("layer.0.")[2]: shape
        for key, shape in shapes.items()
        if f"{prefix}encoder.layer.0." in key
    }
    for layer in range(depth):
        shapes |= {f"{prefix}encoder.layer.{layer}.{rest}": shape for rest, shape in first.items()}
    if pooler:
        shapes |= tiny.linear(f"{prefix}pooler.dense", WIDTH, WIDTH)
    return filled(tiny, shapes, generator) | {f"{prefix}embeddings.position_ids": torch.arange(48)[None]}


def decoder_shapes(tiny, prefix, width=D, layers=4):
    shapes = tiny.norm(f"{prefix}norm", width)
    for index in range(layers):
        layer = f"{prefix}layers.{index}"
        for name in ("self_attn", "multihead_attn"):
            shapes |= {
                f"{layer}.{name}.in_proj_weight": (3 * width, width),
                f"{layer}.{name}.in_proj_bias": (3 * width,),
                **tiny.linear(f"{layer}.{name}.out_proj", width, width),
            }
        shapes |= tiny.linear(f"{layer}.linear1", width, HIDDEN) | tiny.linear(
            f"{layer}.linear2", HIDDEN, width
        )
        for norm in ("norm1", "norm2", "norm3"):
            shapes |= tiny.norm(f"{layer}.{norm}", width)
    return shapes


def filled(tiny, shapes, generator):
    return {
        key: tiny.noise(shape, generator) + 0.3 * ("norm" in key.lower()) for key, shape in shapes.items()
    }


def conv(name, width, out, *, bias):
    return {f"{name}.weight": (out, width, 1, 1)} | ({f"{name}.bias": (out,)} if bias else {})


def cxr_bert(tiny, path, generator):
    """The text tower of BioViL, with what it fills gaps by."""
    state = bert(tiny, tiny.bert_vocabulary(path), generator, "bert.", depth=2, pooler=False)
    head = "cls_projection_head"
    shapes = {
        **tiny.linear(f"{head}.dense_to_hidden", WIDTH, 12), **tiny.norm(f"{head}.LayerNorm", 12),
        **tiny.linear(f"{head}.dense_to_output", 12, 12), "cls.predictions.bias": (80,),
        **tiny.norm("cls.predictions.transform.LayerNorm", WIDTH),
    }  # fmt: skip
    tiny.put(path, state | filled(tiny, shapes, generator), "text.safetensors")


def projector(tiny, width):
    return {
        **conv("projector.model.0", width, 12, bias=False), **tiny.norm("projector.model.1", 12),
        "projector.model.1.running_mean": (12,), "projector.model.1.running_var": (12,),
        **conv("projector.model.3", 12, 12, bias=True),
    }  # fmt: skip


def positive(state):
    """Variances are."""
    return {
        key: value.abs() + 0.5 if key.endswith("running_var") else value for key, value in state.items()
    } | {"projector.model.1.num_batches_tracked": torch.tensor(7)}


def _biovil(tiny, path, generator):
    shapes = {**projector(tiny, 128), **tiny.linear("encoder.encoder.fc", 128, 10)}
    tiny.put(
        path,
        positive(resnet(tiny, generator, "encoder.encoder.") | filled(tiny, shapes, generator)),
    )
    cxr_bert(tiny, path, generator)


def _biovil_t(tiny, path, generator):
    shapes = {
        **projector(tiny, 2 * D),
        **tiny.linear("encoder.encoder.fc", 128, 10),
        **conv("encoder.backbone_to_vit", 128, D, bias=False),
        "encoder.missing_previous_emb": (1, D, 1, 1),
        "encoder.vit_pooler.type_embed": (2, 1, D),
        **tiny.norm("encoder.vit_pooler.norm_post", D),
        "encoder.vit_pooler.blocks.0.attn.proj_q.weight": (D, D),
    }
    tiny.put(
        path,
        positive(resnet(tiny, generator, "encoder.encoder.") | filled(tiny, shapes, generator)),
    )
    cxr_bert(tiny, path, generator)


def _late(tiny, path, generator, name, more):
    """GLoRIA and AFLoc."""
    rows = tiny.bert_vocabulary(path)
    shapes = {
        **tiny.linear(f"{name}.img_encoder.global_embedder", 128, WIDTH),
        **conv(f"{name}.img_encoder.local_embedder", 64, WIDTH, bias=False),
        **more,
    }
    state = resnet(tiny, generator, f"{name}.img_encoder.model.") | filled(tiny, shapes, generator)
    tiny.put(path, state | bert(tiny, rows, generator, f"{name}.text_encoder.model."))


def _gloria(tiny, path, generator):
    _late(tiny, path, generator, "gloria", {})


def _afloc(tiny, path, generator):
    _late(tiny, path, generator, "afloc", conv("afloc.img_encoder.local2_embedder", 32, WIDTH, bias=False))


def _clinical_bert(tiny, path, generator):
    """As BERT is published after its own training: with heads that nobody asks here."""
    state = bert(tiny, tiny.bert_vocabulary(path), generator, "bert.", depth=2)
    shapes = {"cls.predictions.bias": (80,), **tiny.linear("cls.seq_relationship", WIDTH, 2)}
    tiny.put(path, state | filled(tiny, shapes, generator), "text.safetensors")
    tiny.write(path / "observation explanation.json", OBSERVATIONS)


def _medklip(tiny, path, generator):
    shapes = {
        **tiny.linear("disease_embedding_layer", WIDTH, D), **tiny.linear("cl_fc", D, WIDTH),
        **tiny.linear("res_l1", 64, 64), **tiny.linear("res_l2", 64, D), **tiny.linear("classifier", D, 2),
        **decoder_shapes(tiny, "decoder."),
    }  # fmt: skip
    state = resnet(tiny, generator, "res_features.", numbered=True, stages=3)
    tiny.put(path, state | filled(tiny, shapes, generator))
    _clinical_bert(tiny, path, generator)


def _mavl(tiny, path, generator):
    shapes = {
        **tiny.linear("disease_embedding_layer", WIDTH, D), **conv("res_l1.0", 64, 64, bias=True),
        "res_l1.1.weight": (1,), **conv("res_l2", 64, D, bias=True), "temp": (9,),
        "location_emb.weight": (WIDTH, D, 9), "location_emb.bias": (WIDTH,), "pool.positional_embedding": (197, 64),
        **{key: shape for part in "kqvc" for key, shape in tiny.linear(f"pool.{part}_proj", 64, 64).items()},
        **tiny.linear("classifier", 9 * D, 2), **decoder_shapes(tiny, "decoder."),
    }  # fmt: skip
    state = resnet(tiny, generator, "backbone.", numbered=True, stages=3)
    tiny.put(path, state | filled(tiny, shapes, generator))
    _clinical_bert(tiny, path, generator)
    spelt = [name.replace("eumonia", "pneumonia") for name in OBSERVATIONS]
    concepts = {
        name: [f"{aspect}: of {name} it is {aspect}" for aspect in ASPECTS] for name in [*spelt, "covid19"]
    }
    tiny.write(path / "gpt4_mimic.json", concepts)


def _kad(tiny, path, generator, stages=4):
    rows = tiny.bert_vocabulary(path)
    last = 16 << stages - 1
    shapes = {
        **tiny.linear("image_encoder.res_l1", last, last), **tiny.linear("image_encoder.res_l2", last, D),
        **tiny.linear("image_encoder.resnet.fc", 128, 10),
        **tiny.linear("text_encoder.mlp_embed.0", WIDTH, WIDTH), **tiny.linear("text_encoder.mlp_embed.2", WIDTH, D),
        "text_encoder.logit_scale": (), "model.logit_scale": (), **tiny.linear("model.mlp_head.0", D, 2),
        **decoder_shapes(tiny, "model.decoder."),
    }  # fmt: skip
    state = filled(tiny, shapes, generator) | bert(tiny, rows, generator, "text_encoder.bert_model.", depth=2)
    used = resnet(tiny, generator, "image_encoder.res_features.", numbered=True, stages=stages)
    whole = resnet(tiny, generator, "image_encoder.resnet.")
    # One norm, saved under both of its names.
    norm = {
        f"model.decoder_norm.{part}": state[f"model.decoder.norm.{part}"].clone()
        for part in ("weight", "bias")
    }
    tiny.put(path, state | used | whole | norm)


def _kad_224(tiny, path, generator):
    _kad(tiny, path, generator, stages=3)


def _carzero(tiny, path, generator):
    rows = tiny.bert_vocabulary(path)
    image, fusion = "CARZero.img_encoder.model", "CARZero.fusion_module"
    shapes = {
        f"{image}.cls_token": (1, 1, WIDTH), f"{image}.pos_embed": (1, 50, WIDTH),
        f"{image}.patch_embed.proj.weight": (WIDTH, 3, 32, 32), f"{image}.patch_embed.proj.bias": (WIDTH,),
        **tiny.norm(f"{image}.norm", WIDTH), f"{fusion}.logit_scale": (),
        **decoder_shapes(tiny, f"{fusion}.decoder.", WIDTH),
        **tiny.linear(f"{fusion}.mlp_head.0", WIDTH, 20), **tiny.linear(f"{fusion}.mlp_head.3", 20, 12),
        **tiny.linear(f"{fusion}.mlp_head.6", 12, 8), **tiny.linear(f"{fusion}.mlp_head.9", 8, 1),
    }  # fmt: skip
    for index in range(2):
        block = f"{image}.blocks.{index}"
        shapes |= {
            **tiny.norm(f"{block}.norm1", WIDTH), **tiny.norm(f"{block}.norm2", WIDTH),
            **tiny.linear(f"{block}.attn.qkv", WIDTH, 3 * WIDTH), **tiny.linear(f"{block}.attn.proj", WIDTH, WIDTH),
            **tiny.linear(f"{block}.mlp.fc1", WIDTH, 32), **tiny.linear(f"{block}.mlp.fc2", 32, WIDTH),
        }  # fmt: skip
    state = filled(tiny, shapes, generator)
    norm = {
        f"{fusion}.decoder_norm.{part}": state[f"{fusion}.decoder.norm.{part}"].clone()
        for part in ("weight", "bias")
    }
    tiny.put(path, state | norm | bert(tiny, rows, generator, "CARZero.text_encoder.model."))


MAKERS = {
    "biovil": _biovil, "biovil-t": _biovil_t, "gloria": _gloria, "afloc": _afloc, "medklip": _medklip, "mavl": _mavl,
    "kad": _kad, "kad-224": _kad_224, "carzero": _carzero,
}  # fmt: skip
