"""Tiny checkpoints in the published layouts: with weights made by hand, or numbers that anybody can compute again."""

import json
import zlib

import numpy as np
import torch
import transformers

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "edema", "effusion", "no", "maybe", "clear", "lung"]
WORDS += [
    "mild",
    "in",
    "the",
    "left",
    "heart",
    "is",
    ".",
    ",",
    "/",
    "(",
    ")",
    "a",
    "b",
    "1",
    "2",
    "##s",
    "cm",
]
PLACES = {"edema": 0, "effusion": 1, "no": 2, "maybe": 3, "clear": 4, "lung": 5}
"""Words that have a direction of their own; all others have none."""
ENCODER = "_embedder.token_embedder_bert._matched_embedder.transformer_model."
ENTITIES = ["Anatomy::definitely present", "Observation::definitely present"]
RELATIONS = ["modify", "located_at"]


def config(hidden=16, positions=32):
    return transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=hidden,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=hidden,
        max_position_embeddings=positions,
        architectures=["BertModel"],
    )


def save_tokenizer(folder, made=None):
    """Configuration and tokenizer, without weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    (made or config()).save_pretrained(folder)
    return folder


def readable_encoder(made, *, mixed):
    """A BERT whose states can be told by hand: words have directions; attention takes the mean of them, or nothing."""
    state = {
        name: torch.zeros_like(value) for name, value in transformers.BertModel(made).state_dict().items()
    }
    for name, value in state.items():
        if name.endswith("LayerNorm.weight"):
            value.fill_(1.0)
    for word, place in PLACES.items():
        state["embeddings.word_embeddings.weight"][WORDS.index(word), place] = 1.0
    if mixed:
        # Queries and keys are 0, so every word is attended to alike.
        for part in ("self.value", "output.dense"):
            state[f"encoder.layer.0.attention.{part}.weight"] = torch.eye(made.hidden_size)
    return state


# ---- CheXbert -------------------------------------------------------------------------------------------------------


def readable_heads(hidden=16):
    """Edema, effusion and clear lungs by their words; "no" denies the first two, "maybe" leaves edema open."""
    decided = {
        (4, 1): {"edema": 2},
        (4, 2): {"edema": 1, "no": 2},
        (4, 3): {"edema": 1, "maybe": 2},
        (9, 1): {"effusion": 2},
        (9, 2): {"effusion": 1, "no": 2},
        (13, 1): {"clear": 2},
    }
    heads = {}
    for number in range(14):
        classes = 2 if number == 13 else 4
        weight, bias = torch.zeros(classes, hidden), torch.zeros(classes)
        bias[0] = 1.0
        for label in range(classes):
            for word, times in decided.get((number, label), {}).items():
                weight[label, PLACES[word]] += 1000.0 * times
                # Against a direction that no word has: states are shifted by their mean.
                weight[label, hidden - 1] -= 1000.0 * times
        heads |= {f"linear_heads.{number}.weight": weight, f"linear_heads.{number}.bias": bias}
    return heads


def chexbert_state(made=None):
    bert = readable_encoder(made or config(), mixed=True)
    return {f"module.bert.{name}": value for name, value in bert.items()} | {
        f"module.{name}": value for name, value in readable_heads().items()
    }


def save_chexbert(folder, state=None):
    """As published: torch's own format, with what training left beside the weights."""
    save_tokenizer(folder)
    torch.save(
        {
            "epoch": 7,
            "model_state_dict": chexbert_state() if state is None else state,
            "optimizer_state_dict": {},
        },
        folder / "chexbert.pth",
    )
    return folder


# ---- RadGraph -------------------------------------------------------------------------------------------------------

HIDDEN, FEATURE, UNITS, WIDEST, PIECES = 8, 4, 6, 3, 16
SPAN = 2 * HIDDEN + FEATURE


def radgraph_shapes(edition):
    """Names and shapes of all weights beside the encoder's."""
    ner, related = f"{edition}__ner_labels", f"{edition}__relation_labels"

    def linear(name, inputs, outputs):
        return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}

    def hidden(name, inputs):
        return linear(f"{name}._linear_layers.0", inputs, UNITS) | linear(
            f"{name}._linear_layers.1", UNITS, UNITS
        )

    pruner = f"_relation._mention_pruners.{related}._scorer"
    return (
        {"_endpoint_span_extractor._span_width_embedding.weight": (WIDEST, FEATURE)}
        | hidden(f"_ner._ner_scorers.{ner}.0._module", SPAN)
        | linear(f"_ner._ner_scorers.{ner}.1._module", UNITS, len(ENTITIES))
        | hidden(f"{pruner}.0._module", SPAN)
        | linear(f"{pruner}.1._module", UNITS, 1)
        | hidden(f"_relation._relation_feedforwards.{related}", 3 * SPAN)
        | linear(f"_relation._relation_scorers.{related}", UNITS, len(RELATIONS))
        | {
            "_coref._distance_embedding.weight": (10, FEATURE),
            "_events._distance_embedding.weight": (10, FEATURE),
        }
    )


def drawn(name, shape):
    """Numbers from -1 to 1 that depend on a name alone."""
    drawing = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
    values = torch.from_numpy(2 * drawing.random(shape) - 1).float()
    if "LayerNorm.weight" in name:
        values += 1.5
    if name.endswith("__ner_labels.1._module.bias"):
        values -= 2.5  # entities are rare
    return values


def drawn_state(edition):
    """Weights without any meaning."""
    made = transformers.BertModel(config(HIDDEN)).state_dict()
    shapes = {f"{ENCODER}{name}": tuple(value.shape) for name, value in made.items()} | radgraph_shapes(
        edition
    )
    return {name: drawn(name, shape) for name, shape in shapes.items()}


def readable_state(edition):
    """Edema is an observation, a lung is anatomy, and edema is located at every lung."""
    state = {name: torch.zeros(shape) for name, shape in radgraph_shapes(edition).items()}
    encoder = readable_encoder(config(HIDDEN), mixed=False)
    state |= {f"{ENCODER}{name}": value for name, value in encoder.items()}
    ner, related = f"{edition}__ner_labels", f"{edition}__relation_labels"
    edema, lung = PLACES["edema"], PLACES["lung"]
    pruner = f"_relation._mention_pruners.{related}._scorer"
    pair = f"_relation._relation_feedforwards.{related}"
    # A state is 2.65 in the direction of its word and -0.38 elsewhere, so 4 tells two hits from one.
    for name in (f"_ner._ner_scorers.{ner}.0._module", f"{pruner}.0._module"):
        for unit, place in enumerate((lung, edema)):
            state[f"{name}._linear_layers.0.weight"][unit, [place, HIDDEN + place]] = 1.0
    state[f"{pair}._linear_layers.0.weight"][0, [edema, SPAN + lung]] = 1.0
    for name in (f"_ner._ner_scorers.{ner}.0._module", f"{pruner}.0._module", pair):
        state[f"{name}._linear_layers.0.bias"][:] = -4.0
        state[f"{name}._linear_layers.1.weight"][:] = torch.eye(UNITS)
    state[f"_ner._ner_scorers.{ner}.1._module.weight"][:, :2] = 10 * torch.eye(2)
    state[f"_ner._ner_scorers.{ner}.1._module.bias"][:] = -1.0
    state[f"{pruner}.1._module.weight"][0, :2] = 10.0
    state[f"{pruner}.1._module.bias"][:] = -5.0
    state[f"_relation._relation_scorers.{related}.weight"][1, 0] = 100.0
    state[f"_relation._relation_scorers.{related}.bias"][:] = -50.0
    return state


def save_radgraph(folder, state=None, edition="radgraph-xl", **relation):
    """An unpacked archive, with the encoder beside it."""
    save_tokenizer(folder / "encoder", config(HIDDEN))
    bert = {"model_name": "owner/encoder", "max_length": PIECES, "type": "pretrained_transformer_mismatched"}
    described = {
        "dataset_reader": {"type": "dygie", "max_span_width": WIDEST, "token_indexers": {"bert": bert}},
        "model": {
            "type": "dygie",
            "embedder": {"token_embedders": {"bert": bert}},
            "feature_size": FEATURE,
            "feedforward_params": {"dropout": 0.4, "hidden_dims": UNITS, "num_layers": 2},
            "initializer": {},
            "module_initializer": {},
            "loss_weights": {"coref": 0, "events": 0, "ner": 0.2, "relation": 1},
            "max_span_width": WIDEST,
            "modules": {
                "coref": {"coref_prop": 0, "max_antecedents": 10, "spans_per_word": 0.3},
                "events": {
                    "argument_spans_per_word": 0.8,
                    "trigger_spans_per_word": 0.3,
                    "loss_weights": {"arguments": 1, "trigger": 1},
                },
                "ner": {},
                "relation": {"spans_per_word": 0.5} | relation,
            },
            "target_task": "relation",
        },
    }
    (folder / "config.json").write_text(json.dumps(described))
    words = folder / "vocabulary"
    words.mkdir()
    (words / "non_padded_namespaces.txt").write_text("*tags\n*labels\n")
    (words / f"{edition}__ner_labels.txt").write_text("\n" + "\n".join(ENTITIES) + "\n")
    (words / f"{edition}__relation_labels.txt").write_text("\n".join(RELATIONS) + "\n")
    torch.save(readable_state(edition) if state is None else state, folder / "weights.th")
    return folder
