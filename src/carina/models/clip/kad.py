"""KAD: a ResNet-50, Med-KEBERT, and a decoder whose queries are names of findings.

Queries attend to each other, so an answer depends on what else is asked. Its authors ask all findings of a data set at
once; here every prompt is asked together with the fourteen findings of ChestX-ray14.
So a prompt's answer is its own, and on that data set it is theirs. KAD-224 ends after the third stage, KAD-512 and
KAD-1024 after the fourth; which of the last two it is, weights do not tell: config.json may say `img_res`. Weights are
named as in its code, by which its checkpoint is loaded without exceptions; the file itself was not at hand, and of the
size of KAD-1024's grid nothing is published. Imported only where torch and transformers are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn

from carina.models.clip.dual_encoder import DualEncoder
from carina.models.clip.interface import ClipModel, Images, Texts
from carina.models.clip.model_folder import ModelFolder
from carina.models.clip.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Preparation
from carina.models.clip.query_decoder import (
    DecoderImages,
    DecoderOutput,
    DecoderTexts,
    decoder_functions,
    memory_of,
    places_of,
    presence_logits,
    read_decoder,
)
from carina.models.clip.resnet import read_resnet, to_patches
from carina.models.clip.state_dict import (
    COUNTERS,
    Weights,
    freeze,
    map_same_names,
    read_linear,
    use_one_thread,
)
from carina.models.clip.text import bert_tokenizer, check_vocabulary, encode_prompts, read_bert
from carina.models.frame import Frame
from carina.models.weights import CONFIG
from carina.store.errors import CarinaError

SIDES: Final = {3: 224, 4: 512}
"""Side of the input in pixels by the number of stages, unless the settings give another."""
SMALLEST: Final = 32
"""Smallest side in pixels: one cell of the last stage."""
LARGEST: Final = 2048
"""Largest side in pixels: twice that of KAD-1024. A larger value is likely a mistake."""
LONGEST: Final = 256
"""Tokens of a prompt."""
PAIR: Final = ("{}",)
"""The positive prompt is the name of a finding; there is no negative prompt."""
CHESTXRAY14_QUERIES: Final = (
    "atelectasis",
    "cardiomegaly",
    "pleural effusion",
    "infiltration",
    "lung mass",
    "lung nodule",
    "pneumonia",
    "pneumothorax",
    "consolidation",
    "edema",
    "emphysema",
    "fibrosis",
    "pleural thicken",
    "hernia",
)
"""Findings of ChestX-ray14, as KAD names them; they are queried with every finding."""
PUBMED_BERT: Final = "microsoft/BiomedNLP-PubMedBERT-base-uncased-abstract-fulltext"
_UNUSED: Final = rf"({COUNTERS}|image_encoder\.resnet\..*|(text_encoder|model)\.logit_scale)"
"""The whole network is saved a second time, in addition to the part that is used; scales are for training."""


def open_model(folder: ModelFolder, weights: Weights) -> ClipModel:
    tower = read_resnet(weights, "image_encoder.res_features.", numbered=True)
    stages = len(tower.shape.blocks)
    first = read_linear(weights, "image_encoder.res_l1.", tower.shape.channels(stages))
    second = read_linear(weights, "image_encoder.res_l2.", first.out_features)
    decoder = read_decoder(weights, "model.decoder.", input_norm="model.decoder_norm")
    head = read_linear(weights, "model.mlp_head.0.", decoder.shape.width)
    text = _read_text_tower(folder, weights)
    weights.close(_UNUSED)
    company = text.embed(CHESTXRAY14_QUERIES)
    side = _read_side(folder, SIDES[stages])

    def encode(pixels: Tensor) -> Images:
        patches = second(first(to_patches(tower(pixels).last)).relu())
        # The mean of the patches was trained to be close to its text.
        return DecoderImages(patches.mean((1, 2)), patches, patches.flatten(1, 2))

    def decode(images: Images, texts: Texts) -> DecoderOutput:
        memory = memory_of(images)

        def ask(queries: Tensor) -> tuple[Tensor, Tensor]:
            found, seen = decoder(queries.expand(len(memory), -1, -1), memory)
            return presence_logits(head(found)), seen

        answers = []
        together = None
        for place, own in zip(places_of(texts), texts.pooled, strict=True):
            if place is None:
                logits, seen = ask(torch.cat([company, own[None]]))
            else:
                logits, seen = together = together or ask(company)
            answers.append(
                (logits[:, -1 if place is None else place], seen[:, -1 if place is None else place])
            )
        return DecoderOutput(*(torch.stack(part, dim=1) for part in zip(*answers, strict=True)))

    grid = tower.grid(side, stages)
    score, attend = decoder_functions(decode, grid)
    return DualEncoder(
        folder=folder,
        preparation=Preparation(
            fit=partial(Frame.stretched, side=side),
            side=side,
            resample="pil bicubic",
            mean=IMAGENET_MEAN,
            std=IMAGENET_STD,
        ),
        image=encode,
        text=text,
        tower=tower,
        grid=grid,
        trained_on="chest x-ray",
        pair=PAIR,
        native="cross-attention",
        scoring=score,
        attending=attend,
    )


@dataclass(frozen=True)
class NameText:
    """Text tower: the pooled token of a BERT, followed by a perceptron."""

    tokenizer: Any
    model: nn.Module
    projection: nn.Module

    def __call__(self, prompts: Sequence[str]) -> Texts:
        plain = [prompt.lower() for prompt in prompts]
        places = tuple(
            CHESTXRAY14_QUERIES.index(name) if name in CHESTXRAY14_QUERIES else None for name in plain
        )
        return DecoderTexts(self.embed(plain), None, None, places)

    def embed(self, prompts: Sequence[str]) -> Tensor:
        """Embed m prompts: (m, d)."""
        ids, _ = encode_prompts(
            self.tokenizer, prompts, min(LONGEST, self.model.config.max_position_embeddings)
        )
        with use_one_thread():
            said = self.model(input_ids=ids, attention_mask=(ids != self.tokenizer.pad_token_id).long())
            made: Tensor = self.projection(said.pooler_output)
            return made


def _read_text_tower(folder: ModelFolder, weights: Weights) -> NameText:
    model = read_bert(weights, "text_encoder.bert_model.", pooler=True)
    prefix = "text_encoder.mlp_embed."
    (inner, _), (out, _) = (weights.shape(f"{prefix}{layer}.weight", 2) for layer in (0, 2))
    projection = nn.Sequential(nn.Linear(model.config.hidden_size, inner), nn.GELU(), nn.Linear(inner, out))
    weights.fill(projection, map_same_names(projection, prefix))
    tokenizer = bert_tokenizer(folder, PUBMED_BERT)
    check_vocabulary(folder, tokenizer, model.config.vocab_size)
    return NameText(tokenizer, model, freeze(projection))


def _read_side(folder: ModelFolder, default: int) -> int:
    said = folder.read(CONFIG).get("img_res", default)
    if not isinstance(said, int) or not SMALLEST <= said <= LARGEST:
        raise CarinaError(
            f"{folder.path / CONFIG}: img_res is {said!r}; expected the side of the square that it takes, in pixels "
            f"from {SMALLEST} to {LARGEST}"
        )
    return said
