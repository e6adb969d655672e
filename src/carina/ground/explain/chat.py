"""Chat models as explainers: where they look while they are asked whether a finding is there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from carina.errors import CarinaError
from carina.ground.explain.explainer import Asked, Shown
from carina.ground.probes import presence_question
from carina.models.chat.grid import ImageGrid, check_kind, image_grid
from carina.models.chat.loading import Loaded, first_line, folder_of, load, quiet
from carina.models.chat.template import Template, message
from carina.models.fingerprint import fingerprint_of_transformers
from carina.models.frame import Map
from carina.models.weights import CONFIG, Checkpoint

HF: Final = "hf:"
METHOD: Final = "attention"
NEUTRAL: Final = "Describe this image."
"""What a map is relative to: where the model looks when it is asked for nothing."""
LONGEST: Final = 8
"""Tokens of an answer whose attention is looked at."""
_STARTS: Final = ("", "▁", "Ġ")
"""How tokenizers write that a word begins: not at all, as SentencePiece does, and as GPT-2's does."""


class AttentionOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What decides a map, beside the model."""

    tokens: Literal["last", "answer"] = "last"
    """Whose attention: the last token of the question, from which the first word of the answer is written; or the mean
    over all tokens from which the model's own answer is written, greedily and no longer than `LONGEST`."""
    layers: Annotated[str, msgspec.Meta(pattern=r"^(all|last|[1-9][0-9]*-[1-9][0-9]*)$")] = "all"
    """Whose mean is taken: all, the last, or from one to another, counted from 1."""
    relative: bool = False
    """Whether each token's attention is divided by that under `NEUTRAL`."""
    device: str = "cpu"


class Words(NamedTuple):
    """Tokens that begin an answer."""

    yes: tuple[int, ...]
    no: tuple[int, ...]


class _Looked(NamedTuple):
    """One pass."""

    values: Map
    yes: float
    no: float


@dataclass(frozen=True, kw_only=True)
class ChatExplainer:
    """A model, and how its attention is looked at. Each probe is asked alone: a batch would change its last bits."""

    loaded: Loaded
    weights: str
    template: Template
    grid: ImageGrid
    words: Words
    layers: range
    options: AttentionOptions

    @property
    def name(self) -> str:
        return f"{HF}{self.loaded.name}"

    @property
    def method(self) -> str:
        return METHOD

    @property
    def settings(self) -> Mapping[str, Any]:
        return {
            "name": self.name,
            "weights": self.weights,
            "pretraining": "unknown",
            "grid": [self.grid.rows, self.grid.columns],
            "numbers": str(self.loaded.model.dtype).removeprefix("torch."),
            "words": {"yes": list(self.words.yes), "no": list(self.words.no)},
            "neutral": NEUTRAL if self.options.relative else None,
            "options": msgspec.to_builtins(self.options),
        }

    def explain(self, asked: Sequence[Asked]) -> list[Shown]:
        from carina.ground.explain.methods.quiet import quiet as one_thread  # noqa: PLC0415 - needs torch

        with one_thread(), quiet(self.loaded.transformers):
            return [self._shown(one) for one in asked]

    def _shown(self, one: Asked) -> Shown:
        question = presence_question(one.target, one.phrase)
        looked = self._looked(one.image, question)
        values = looked.values
        if self.options.relative:
            neutral = self._looked(one.image, NEUTRAL).values
            # Attention may be too small for a number; what nothing looks at is nowhere looked at more.
            values = np.asarray(values / np.maximum(neutral, np.finfo(np.float32).tiny), np.float32)
        return Shown(
            values=values,
            frame=self.grid.frame(*one.image.shape),
            positive=(question,),
            score=looked.yes,
            against=looked.no,
        )

    def _looked(self, image: NDArray[np.uint8], question: str) -> _Looked:
        torch, model = self.loaded.torch, self.loaded.model
        inputs = self.prepared(image, question)
        asked = inputs["input_ids"]
        places = (asked[0] == model.config.image_token_id).nonzero()[:, 0].to(model.device)
        inputs = inputs.to(model.device, dtype=model.dtype)
        if self.options.tokens == "answer":
            # Its last token is written, and nothing is written from it.
            inputs = self._followed(inputs, self._answer(inputs)[:-1])
        steps = inputs["input_ids"].shape[1] - asked.shape[1] + 1
        passed = model(**inputs, output_attentions=True, use_cache=False, logits_to_keep=steps)
        chosen = (passed.attentions[layer][0, :, -steps:] for layer in self.layers)
        attention = torch.stack([heads[..., places].float().mean(dim=(0, 1)) for heads in chosen]).mean(dim=0)
        likely = passed.logits[0, 0].float().log_softmax(dim=-1)
        yes, no = (likely[list(tokens)].logsumexp(dim=0).item() for tokens in self.words)
        return _Looked(attention.reshape(self.grid.rows, self.grid.columns).cpu().numpy(), yes, no)

    def prepared(self, image: NDArray[np.uint8], question: str) -> Any:  # noqa: ANN401 - torch's
        """What the model gets of an image and a question; an error where its image tokens are not those of the grid."""
        # Not all processors take a grey picture for one.
        picture = Image.fromarray(image).convert("RGB")
        said = [message("user", self.template.plain(question), [picture])]
        try:
            inputs = self.template.prepared([said])
        except Exception as error:  # a processor may fail in any way
            raise CarinaError(
                f"{self.loaded.path}: an image and a question cannot be prepared for it: {first_line(error)}"
            ) from error
        tokens = inputs["input_ids"][0].tolist()
        places = [n for n, token in enumerate(tokens) if token == self.loaded.model.config.image_token_id]
        rows, columns = self.grid.rows, self.grid.columns
        if not places or places != list(range(places[0], places[0] + rows * columns)):
            raise CarinaError(
                f"{self.loaded.path}: an image becomes {len(places)} tokens; expected {rows * columns} in one piece, "
                f"a grid of {rows} x {columns}"
            )
        longest = len(tokens) + (LONGEST if self.options.tokens == "answer" else 0)
        if self.loaded.context is not None and longest > self.loaded.context:
            raise CarinaError(
                f"{self.name}: has room for {self.loaded.context} tokens; the question “{question}” needs {longest}"
            )
        return inputs

    def _answer(self, inputs: Any) -> list[int]:  # noqa: ANN401
        tokens = self.loaded.model.generate(
            **inputs,
            max_new_tokens=LONGEST,
            do_sample=False,
            num_beams=1,
            eos_token_id=sorted(self.loaded.ends) or None,
            pad_token_id=self.loaded.processor.tokenizer.pad_token_id,
            # An answer with a token for an image, without the image, could not be looked at.
            suppress_tokens=[self.loaded.model.config.image_token_id],
        )
        return self.loaded.up_to_end(tokens[0, inputs["input_ids"].shape[1] :].tolist())

    def _followed(self, inputs: Any, answer: list[int]) -> dict[str, Any]:  # noqa: ANN401
        """A question with the beginning of its answer: whatever is told of each token is told of the new ones too."""
        asked = inputs["input_ids"]
        new = asked.new_tensor([answer])
        added = {"input_ids": new, "attention_mask": new.new_ones(new.shape)}
        return {
            name: self.loaded.torch.cat(
                [values, added.get(name, new.new_zeros(new.shape)).to(values.dtype)], dim=1
            )
            if values.shape == asked.shape
            else values
            for name, values in inputs.items()
        }


def open_chat_explainer(model: str, method: str | None, options: Mapping[str, Any]) -> ChatExplainer:
    """The chat model of a folder; whatever cannot be shown of it is told before its weights are read, if it can be."""
    if method not in {None, METHOD}:
        raise CarinaError(f"{model}: chat models show {METHOD} alone, not {method!r}")
    named = model.removeprefix(HF)
    try:
        configured = msgspec.convert(dict(options), AttentionOptions, strict=False)
    except msgspec.ValidationError as error:
        known = ", ".join(AttentionOptions.__struct_fields__)
        raise CarinaError(f"method {METHOD}, options: {error}; known are {known}") from error
    _, path = folder_of(named)
    check_kind(str(path / CONFIG), Checkpoint.of(path).config.get("model_type"))
    weights = fingerprint_of_transformers(path)
    loaded = _loaded(named, weights, configured.device)
    made = ChatExplainer(
        loaded=loaded,
        weights=weights,
        template=Template(loaded),
        grid=image_grid(loaded),
        words=_words(loaded),
        layers=_layers(loaded, configured.layers),
        options=configured,
    )
    made.prepared(np.zeros((made.grid.rows, made.grid.columns), np.uint8), NEUTRAL)
    return made


@lru_cache(maxsize=1)
def _loaded(named: str, weights: str, device: str) -> Loaded:
    """Once a process, as long as the files are the same: the command that shares the work out opens the model too."""
    del weights
    return load(named, trust_remote_code=False, device=device, dtype=None, attention="eager")


def _layers(loaded: Loaded, said: str) -> range:
    number = loaded.model.config.get_text_config().num_hidden_layers
    if said == "all":
        return range(number)
    if said == "last":
        return range(number - 1, number)
    first, last = map(int, said.split("-"))
    if not first <= last <= number:
        raise CarinaError(
            f"method {METHOD}, option layers: {said!r} is no range of the {number} layers of {HF}{loaded.name}"
        )
    return range(first - 1, last)


def _words(loaded: Loaded) -> Words:
    """Tokens that are the whole word, at the beginning of a text or after a space; else the one that begins it."""
    tokenizer = loaded.processor.tokenizer
    vocabulary = tokenizer.get_vocab()

    def of(word: str) -> tuple[int, ...]:
        whole = {vocabulary[start + word] for start in _STARTS if start + word in vocabulary}
        return tuple(sorted(whole or tokenizer.encode(word, add_special_tokens=False)[:1]))

    words = Words(of("Yes"), of("No"))
    if not words.yes or not words.no or set(words.yes) & set(words.no):
        raise CarinaError(f"{loaded.path}: its tokenizer does not tell the beginnings of Yes and No apart")
    return words
