"""A BERT whose sizes are read off its weights: checkpoints of two towers name the model and keep its config elsewhere.

Imported only where torch and transformers are.
"""

import re
from typing import Final

import transformers
from torch import nn

from carina.models.clip.state import Weights, frozen, same_names

HEAD: Final = 64
"""Width of a head, which weights do not tell: of BERT, of OpenAI's CLIP, of ViT-B and ViT-L."""


def heads_of(weights: Weights, key: str, width: int, head: int = HEAD) -> int:
    """How many heads a transformer has, where nothing else is said, whose width a weight tells."""
    heads = max(1, width // head)
    if width % heads:
        raise weights.odd(key, f"a width of whole heads of {head}")
    return heads


def bert_like(weights: Weights, prefix: str, *, pooler: bool = False) -> nn.Module:
    """The `BertModel` whose weights stand behind a prefix."""
    words = f"{prefix}embeddings.word_embeddings.weight"
    rows, width = weights.shape(words, 2)
    config = transformers.BertConfig(
        vocab_size=rows,
        hidden_size=width,
        num_hidden_layers=weights.count(rf"{re.escape(prefix)}encoder\.layer\.(\d+)\..*"),
        num_attention_heads=heads_of(weights, words, width),
        intermediate_size=weights.shape(f"{prefix}encoder.layer.0.intermediate.dense.weight", 2)[0],
        max_position_embeddings=weights.shape(f"{prefix}embeddings.position_embeddings.weight", 2)[0],
        type_vocab_size=weights.shape(f"{prefix}embeddings.token_type_embeddings.weight", 2)[0],
    )
    model = transformers.BertModel(config, add_pooling_layer=pooler)
    weights.fill(model, same_names(model, prefix))
    return frozen(model)
