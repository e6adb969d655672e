"""Fixed queries of MedKLIP and MAVL, made from texts by a frozen BERT.

Imported only where torch and transformers are.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import torch
from torch import Tensor

from carina.models.clip.interface import Texts
from carina.models.clip.model_folder import ModelFolder
from carina.models.clip.observations import find_observation
from carina.models.clip.query_decoder import DecoderTexts
from carina.models.clip.state_dict import COUNTERS, Weights, use_one_thread
from carina.models.clip.text import TextTower, bert_tokenizer, check_vocabulary, encode_prompts, read_bert

LONGEST: Final = 64
"""Most tokens of a description."""
CLINICAL_BERT: Final = "emilyalsentzer/Bio_ClinicalBERT"
BERT_UNUSED: Final = rf"{COUNTERS}|(bert\.)?pooler\..*|cls\..*"
"""Weights of a published BERT that are not used."""
_BATCH: Final = 64


def read_texts(folder: ModelFolder, weights: Weights, texts: Sequence[str]) -> Tensor:
    """First tokens (m, c) of texts, by the BERT in the folder of a checkpoint, with or without the heads of a task."""
    prefix = "bert." if weights.has("bert.") else ""
    model = read_bert(weights, prefix)
    tokenizer = bert_tokenizer(folder, CLINICAL_BERT)
    check_vocabulary(folder, tokenizer, model.config.vocab_size)
    ids, _ = encode_prompts(tokenizer, texts, min(LONGEST, model.config.max_position_embeddings))
    with use_one_thread():
        read = [
            model(input_ids=part, attention_mask=(part != tokenizer.pad_token_id).long()).last_hidden_state[
                :, 0
            ]
            for part in ids.split(_BATCH)
        ]
        return torch.cat(read)


def make_fixed_texts(known: Mapping[str, str], queries: Tensor) -> TextTower:
    """A text tower whose prompts are names of observations or of findings; each prompt is one query (d,)."""
    order = {name: place for place, name in enumerate(known)}

    def encode(prompts: Sequence[str]) -> Texts:
        places = tuple(order[find_observation(prompt, known)] for prompt in prompts)
        return DecoderTexts(queries[list(places)], None, None, places)

    return encode
