"""Text towers: tokenizers from a folder, transformers' language models, and the way into the joint space.

Imported only where torch and transformers are.
"""

import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import torch
import transformers
from torch import Tensor, nn

from carina.models.clip.interface import Texts
from carina.models.clip.model_folder import ModelFolder
from carina.models.clip.state_dict import Weights, freeze, map_same_names, use_one_thread
from carina.store.errors import CarinaError

TextTower = Callable[[Sequence[str]], Texts]
HEAD: Final = 64
"""Width of an attention head of BERT, OpenAI's CLIP, ViT-B and ViT-L; it cannot be read from the weights."""


def clip_tokenizer(folder: ModelFolder) -> Any:  # noqa: ANN401 - transformers is not there for everybody
    """Load the byte-pair tokenizer of CLIP."""
    if not (folder.has("tokenizer.json") or folder.has("vocab.json", "merges.txt")):
        raise CarinaError(
            f"{folder.path}: tokenizer missing; put vocab.json and merges.txt of openai/clip-vit-base-patch32 here, "
            "which every CLIP in English shares"
        )
    return _load_tokenizer(transformers.CLIPTokenizer, folder)


def bert_tokenizer(folder: ModelFolder, published: str) -> Any:  # noqa: ANN401
    """Load a word-piece tokenizer; `published` names the model whose vocabulary it is."""
    if not (folder.has("tokenizer.json") or folder.has("vocab.txt")):
        raise CarinaError(f"{folder.path / 'vocab.txt'}: missing; put the vocab.txt of {published} here")
    return _load_tokenizer(transformers.BertTokenizer, folder)


def siglip_tokenizer(folder: ModelFolder) -> Any:  # noqa: ANN401
    """Load the tokenizer of SigLIP from the file that needs no sentencepiece."""
    if not folder.has("tokenizer.json"):
        raise CarinaError(
            f"{folder.path / 'tokenizer.json'}: missing; it is published with the weights (spiece.model is not read)"
        )
    return _load_tokenizer(transformers.PreTrainedTokenizerFast, folder)


def _load_tokenizer(kind: Any, folder: ModelFolder) -> Any:  # noqa: ANN401
    try:
        return kind.from_pretrained(str(folder.path), local_files_only=True)
    except Exception as error:
        # Whatever tokenizers raise on foreign files, the place to look is this folder.
        what = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise CarinaError(f"{folder.path}: its tokenizer cannot be loaded: {what}") from error


def check_vocabulary(folder: ModelFolder, tokenizer: Any, rows: int) -> None:  # noqa: ANN401
    """Check that every token has an embedding."""
    most = max(tokenizer.get_vocab().values(), default=-1) + 1
    if most > rows:
        raise CarinaError(
            f"{folder.path}: its tokenizer knows {most} tokens, its weights {rows}; is it of another model?"
        )


@dataclass(frozen=True)
class ClipText:
    """Text transformer of CLIP: a prompt is embedded at its last token."""

    tokenizer: Any
    model: nn.Module
    """`CLIPTextModelWithProjection`."""

    def __call__(self, prompts: Sequence[str]) -> Texts:
        ids, kept = encode_prompts(self.tokenizer, prompts, self.model.config.max_position_embeddings)
        with use_one_thread():
            # No mask: it reads from left to right, so what stands behind the last token is not seen from there.
            said = self.model(input_ids=ids)
            return Texts(said.text_embeds, self.model.text_projection(said.last_hidden_state), kept)


@dataclass(frozen=True)
class SiglipText:
    """Text transformer of SigLIP: prompts have a fixed length and are embedded at the last position."""

    tokenizer: Any
    model: nn.Module
    """`SiglipTextModel`."""

    def __call__(self, prompts: Sequence[str]) -> Texts:
        plain = [normalise_prompt(prompt) for prompt in prompts]
        ids, kept = encode_prompts(
            self.tokenizer, plain, self.model.config.max_position_embeddings, fill=True
        )
        with use_one_thread():
            said = self.model(input_ids=ids)
            return Texts(said.pooler_output, self.model.head(said.last_hidden_state), kept)


@dataclass(frozen=True)
class BertText:
    """A BERT and a projection: a prompt is embedded at its first token."""

    tokenizer: Any
    model: nn.Module
    projection: nn.Module
    longest: int

    def __call__(self, prompts: Sequence[str]) -> Texts:
        ids, kept = encode_prompts(self.tokenizer, prompts, self.longest)
        with use_one_thread():
            said = self.model(input_ids=ids, attention_mask=(ids != self.tokenizer.pad_token_id).long())
            words = self.projection(said.last_hidden_state)
            return Texts(words[:, 0], words, kept)


@dataclass(frozen=True)
class MeanBertText:
    """Text tower of MedCLIP: the mean over all tokens of the first, second and last layer."""

    tokenizer: Any
    model: nn.Module
    projection: nn.Module
    longest: int
    layers: tuple[int, ...] = (1, 2, -1)

    def __call__(self, prompts: Sequence[str]) -> Texts:
        """Embed each prompt alone. The published code averages over padding too, so it depends on the batch."""
        alone = [self._embed_one(prompt) for prompt in prompts]
        most = max(len(words) for words, _ in alone)
        words = torch.stack([nn.functional.pad(words, (0, 0, 0, most - len(words))) for words, _ in alone])
        kept = torch.stack([nn.functional.pad(kept, (0, most - len(kept))) for _, kept in alone])
        return Texts(torch.stack([words.mean(0) for words, _ in alone]), words, kept)

    def _embed_one(self, prompt: str) -> tuple[Tensor, Tensor]:
        ids, kept = encode_prompts(self.tokenizer, [prompt], self.longest)
        with use_one_thread():
            hidden = self.model(input_ids=ids, output_hidden_states=True).hidden_states
            mean = torch.stack([hidden[layer] for layer in self.layers]).mean(0)
            return self.projection(mean)[0], kept[0]


def encode_prompts(
    tokenizer: Any,  # noqa: ANN401
    prompts: Sequence[str],
    longest: int,
    *,
    fill: bool = False,
) -> tuple[Tensor, Tensor]:
    """Token ids (m, w) of prompts, truncated and padded, and a mask (m, w) of the tokens that are words.

    Prompts are padded to the longest of them or, with `fill`, to `longest` tokens.
    """
    padding: Literal["max_length", "longest"] = "max_length" if fill else "longest"
    said = tokenizer(
        list(prompts),
        padding=padding,
        truncation=True,
        max_length=longest,
        return_special_tokens_mask=True,
        return_tensors="pt",
    )
    return said["input_ids"], (said["special_tokens_mask"] == 0) & (said["attention_mask"] == 1)


def normalise_prompt(prompt: str) -> str:
    """Normalise a prompt as in the training of SigLIP: lower case, no punctuation, single spaces."""
    return " ".join(prompt.lower().translate(str.maketrans("", "", string.punctuation)).split())


def count_heads(weights: Weights, key: str, width: int, head: int = HEAD) -> int:
    """Number of heads of a transformer of this width; `key` names the weight that gives the width."""
    heads = max(1, width // head)
    if width % heads:
        raise weights.shape_error(key, f"a width of whole heads of {head}")
    return heads


def read_bert(weights: Weights, prefix: str, *, pooler: bool = False) -> nn.Module:
    """Read the `BertModel` whose weights have a prefix."""
    words = f"{prefix}embeddings.word_embeddings.weight"
    rows, width = weights.shape(words, 2)
    config = transformers.BertConfig(
        vocab_size=rows,
        hidden_size=width,
        num_hidden_layers=weights.count(rf"{re.escape(prefix)}encoder\.layer\.(\d+)\..*"),
        num_attention_heads=count_heads(weights, words, width),
        intermediate_size=weights.shape(f"{prefix}encoder.layer.0.intermediate.dense.weight", 2)[0],
        max_position_embeddings=weights.shape(f"{prefix}embeddings.position_embeddings.weight", 2)[0],
        type_vocab_size=weights.shape(f"{prefix}embeddings.token_type_embeddings.weight", 2)[0],
    )
    model = transformers.BertModel(config, add_pooling_layer=pooler)
    weights.fill(model, map_same_names(model, prefix))
    return freeze(model)
