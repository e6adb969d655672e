"""The text tower of GLoRIA, CARZero and AFLoc: a BERT whose word pieces are merged into words.

A word is the sum of its pieces over the last four layers; a prompt is the mean over 97 places, most of them empty.
Imported only where torch and transformers are.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from carina.models.clip.interface import Texts
from carina.models.clip.state_dict import use_one_thread
from carina.models.clip.text import encode_prompts
from carina.store.errors import CarinaError

PLACES: Final = 97
"""Length to which every prompt is padded with zeros, over which its mean is taken."""
LAYERS: Final = 4
_PIECE: Final = "##"


def normalise_prompt(prompt: str) -> str:
    """Normalise a prompt as in training: lower-case words of letters and digits, without sentences of one word."""
    kept: list[str] = []
    for sentence in re.split(r"[0-9]+\.|\.", prompt.replace("\n", " ").lower()):
        words = re.findall(r"\w+", sentence)
        if len(words) > 1:
            kept += [word.encode("ascii", "ignore").decode() for word in words]
    return " ".join(word for word in kept if word)


@dataclass(frozen=True)
class MergedBertText:
    """Words and prompts of a BERT."""

    tokenizer: Any
    model: nn.Module
    places: int = PLACES

    def __call__(self, prompts: Sequence[str]) -> Texts:
        said = [normalise_prompt(prompt) for prompt in prompts]
        for prompt, left in zip(prompts, said, strict=True):
            if not left:
                raise CarinaError(
                    f"prompt {prompt!r}: no words are left, because this model removes sentences of one word; "
                    "expected a sentence of at least two words, such as 'there is edema'"
                )
        ids, _ = encode_prompts(
            self.tokenizer, said, min(self.places, self.model.config.max_position_embeddings)
        )
        with use_one_thread():
            mask = (ids != self.tokenizer.pad_token_id).long()
            hidden = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
            pieces = torch.stack(hidden[-LAYERS:]).sum(0)
            words, kept = (
                torch.stack(part)
                for part in zip(
                    *(self._merge_pieces(*one) for one in zip(pieces, ids, strict=True)), strict=True
                )
            )
            return Texts(words.mean(1), words, kept)

    def _merge_pieces(self, pieces: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Words (places, d) of one prompt, and which of them are neither special nor empty."""
        names = self.tokenizer.convert_ids_to_tokens(ids.tolist())
        end = names.index(self.tokenizer.sep_token)
        starts = [index for index in range(end + 1) if index == 0 or not names[index].startswith(_PIECE)]
        words = [
            pieces[start:stop].sum(0) for start, stop in zip(starts, [*starts[1:], end + 1], strict=True)
        ]
        kept = torch.arange(self.places)
        return (
            nn.functional.pad(torch.stack(words), (0, 0, 0, self.places - len(words))),
            (kept > 0) & (kept < len(words) - 1),
        )
