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


def heads_of(width: int, head: int = HEAD) -> int:
    """How many heads a transformer of a width has, where nothing else is said."""
    return max(1, width // head)


def bert_like(weights: Weights, prefix: str, *, pooler: bool = False) -> nn.Module:
    """The `BertModel` whose weights stand behind a prefix."""
    rows, width = weights.shape(f"{prefix}embeddings.word_embeddings.weight")
    config = transformers.BertConfig(
        vocab_size=rows,
        hidden_size=width,
        num_hidden_layers=weights.count(rf"{re.escape(prefix)}encoder\.layer\.(\d+)\..*"),
        num_attention_heads=heads_of(width),
        intermediate_size=weights.shape(f"{prefix}encoder.layer.0.intermediate.dense.weight")[0],
        max_position_embeddings=weights.shape(f"{prefix}embeddings.position_embeddings.weight")[0],
        type_vocab_size=weights.shape(f"{prefix}embeddings.token_type_embeddings.weight")[0],
    )
    model = transformers.BertModel(config, add_pooling_layer=pooler)
    weights.fill(model, same_names(model, prefix))
    return frozen(model)
