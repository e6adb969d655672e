"""Chat models as explainers: their attention to the image when they are asked whether a finding is present."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from carina.explanations.explainer import MapResult, Probe
from carina.ground import presence_question
from carina.models.chat.grid import ImageGrid, check_kind, find_image_grid
from carina.models.chat.loading import (
    LoadedModel,
    find_model_folder,
    first_line,
    load_model,
    silence_transformers,
)
from carina.models.chat.template import ChatTemplate, make_message
from carina.models.fingerprint import fingerprint_of_transformers
from carina.models.frame import Map
from carina.models.weights import CONFIG, Checkpoint
from carina.store.errors import CarinaError

HF: Final = "hf:"
METHOD: Final = "attention"
NEUTRAL_QUESTION: Final = "Describe this image."
"""Question without a finding, by whose attention a relative map is divided."""
MAX_ANSWER_TOKENS: Final = 8
"""Largest number of tokens of an answer whose attention is used."""
_WORD_PREFIXES: Final = ("", "▁", "Ġ")
"""Prefixes by which tokenizers mark the beginning of a word: none, SentencePiece's and GPT-2's."""


class AttentionOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the attention map of a chat model."""

    tokens: Literal["last", "answer"] = "last"
    """Tokens whose attention is used: "last" for the last token of the question, from which the first word of the
    answer is generated; "answer" for the mean over all tokens from which the model generates its own answer, greedily
    and no longer than `MAX_ANSWER_TOKENS`."""
    layers: Annotated[str, msgspec.Meta(pattern=r"^(all|last|[1-9][0-9]*-[1-9][0-9]*)$")] = "all"
    """Layers that are averaged: "all", "last", or a range such as "14-20", counted from 1."""
    relative: bool = False
    """Whether attention is divided by the attention under `NEUTRAL_QUESTION`."""
    device: str = "cpu"


class Words(NamedTuple):
    """Tokens with which the answers Yes and No begin."""

    yes: tuple[int, ...]
    no: tuple[int, ...]


class _AttentionPass(NamedTuple):
    """Attention map and answer scores of one forward pass."""

    values: Map
    yes: float
    no: float


@dataclass(frozen=True, kw_only=True)
class ChatExplainer:
    """A chat model with the options of its attention map. Probes run one by one: a batch would change the last bits."""

    loaded: LoadedModel
    weights: str
    template: ChatTemplate
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
            "neutral": NEUTRAL_QUESTION if self.options.relative else None,
            "options": msgspec.to_builtins(self.options),
        }

    def explain(self, probes: Sequence[Probe]) -> list[MapResult]:
        from carina.explanations.methods._inference import deterministic_inference as one_thread  # noqa: PLC0415 - needs torch

        with one_thread(), silence_transformers(self.loaded.transformers):
            return [self._explain_one(probe) for probe in probes]

    def _explain_one(self, probe: Probe) -> MapResult:
        question = presence_question(probe.target, probe.phrase)
        attention_pass = self._attend(probe.image, question)
        values = attention_pass.values
        if self.options.relative:
            neutral = self._attend(probe.image, NEUTRAL_QUESTION).values
            # Attention may underflow to 0; the smallest float avoids a division by zero.
            values = np.asarray(values / np.maximum(neutral, np.finfo(np.float32).tiny), np.float32)
        return MapResult(
            values=values,
            frame=self.grid.frame(*probe.image.shape),
            positive=(question,),
            score=attention_pass.yes,
            against=attention_pass.no,
        )

    def _attend(self, image: NDArray[np.uint8], question: str) -> _AttentionPass:
        torch, model = self.loaded.torch, self.loaded.model
        inputs = self.prepare(image, question)
        question_tokens = inputs["input_ids"]
        places = (question_tokens[0] == model.config.image_token_id).nonzero()[:, 0].to(model.device)
        inputs = inputs.to(model.device, dtype=model.dtype)
        if self.options.tokens == "answer":
            # Nothing is generated from the last token of the answer.
            inputs = self._append_answer(inputs, self._answer(inputs)[:-1])
        steps = inputs["input_ids"].shape[1] - question_tokens.shape[1] + 1
        outputs = model(**inputs, output_attentions=True, use_cache=False, logits_to_keep=steps)
        attentions = (outputs.attentions[layer][0, :, -steps:] for layer in self.layers)
        attention = torch.stack([heads[..., places].float().mean(dim=(0, 1)) for heads in attentions]).mean(
            dim=0
        )
        log_probabilities = outputs.logits[0, 0].float().log_softmax(dim=-1)
        yes, no = (log_probabilities[list(tokens)].logsumexp(dim=0).item() for tokens in self.words)
        return _AttentionPass(attention.reshape(self.grid.rows, self.grid.columns).cpu().numpy(), yes, no)

    def prepare(self, image: NDArray[np.uint8], question: str) -> Any:  # noqa: ANN401 - torch's
        """Inputs of the model for an image and a question.

        Raises:
            CarinaError: The inputs cannot be prepared, their image tokens do not form the grid, or they are too long.
        """
        # Not all processors accept grey images.
        rgb = Image.fromarray(image).convert("RGB")
        messages = [make_message("user", self.template.escape(question), [rgb])]
        try:
            inputs = self.template.prepare([messages])
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
        longest = len(tokens) + (MAX_ANSWER_TOKENS if self.options.tokens == "answer" else 0)
        if self.loaded.context is not None and longest > self.loaded.context:
            raise CarinaError(
                f"{self.name}: has room for {self.loaded.context} tokens; the question “{question}” needs {longest}"
            )
        return inputs

    def _answer(self, inputs: Any) -> list[int]:  # noqa: ANN401
        tokens = self.loaded.model.generate(
            **inputs,
            max_new_tokens=MAX_ANSWER_TOKENS,
            do_sample=False,
            num_beams=1,
            eos_token_id=sorted(self.loaded.ends) or None,
            pad_token_id=self.loaded.processor.tokenizer.pad_token_id,
            # An image token in the answer would have no image.
            suppress_tokens=[self.loaded.model.config.image_token_id],
        )
        return self.loaded.up_to_end(tokens[0, inputs["input_ids"].shape[1] :].tolist())

    def _append_answer(self, inputs: Any, answer: list[int]) -> dict[str, Any]:  # noqa: ANN401
        """The inputs of a question, with an answer appended to every input that has one value per token."""
        question_tokens = inputs["input_ids"]
        new = question_tokens.new_tensor([answer])
        added = {"input_ids": new, "attention_mask": new.new_ones(new.shape)}
        return {
            name: self.loaded.torch.cat(
                [values, added.get(name, new.new_zeros(new.shape)).to(values.dtype)], dim=1
            )
            if values.shape == question_tokens.shape
            else values
            for name, values in inputs.items()
        }


def open_chat_explainer(model: str, method: str | None, options: Mapping[str, Any]) -> ChatExplainer:
    """Open a chat model as an explainer; faults are found before its weights are read where possible.

    Raises:
        CarinaError: The model or its weights cannot be used, or the method or an option is unknown.
    """
    if method not in {None, METHOD}:
        raise CarinaError(
            f"{model}: expected the method {METHOD}, the only one of chat models, found {method!r}"
        )
    name = model.removeprefix(HF)
    try:
        configured = msgspec.convert(dict(options), AttentionOptions, strict=False)
    except msgspec.ValidationError as error:
        known = ", ".join(AttentionOptions.__struct_fields__)
        raise CarinaError(f"method {METHOD}, options: {error}. Known: {known}.") from error
    _, path = find_model_folder(name)
    check_kind(str(path / CONFIG), Checkpoint.of(path).config.get("model_type"))
    weights = fingerprint_of_transformers(path)
    loaded = _load(name, weights, configured.device)
    explainer = ChatExplainer(
        loaded=loaded,
        weights=weights,
        template=ChatTemplate(loaded),
        grid=find_image_grid(loaded),
        words=_find_words(loaded),
        layers=_parse_layers(loaded, configured.layers),
        options=configured,
    )
    explainer.prepare(np.zeros((explainer.grid.rows, explainer.grid.columns), np.uint8), NEUTRAL_QUESTION)
    return explainer


@lru_cache(maxsize=1)
def _load(name: str, weights: str, device: str) -> LoadedModel:
    """Load a model once in each process, as long as its files (whose checksum is `weights`) stay the same."""
    del weights
    return load_model(name, trust_remote_code=False, device=device, dtype=None, attention="eager")


def _parse_layers(loaded: LoadedModel, text: str) -> range:
    number = loaded.model.config.get_text_config().num_hidden_layers
    if text == "all":
        return range(number)
    if text == "last":
        return range(number - 1, number)
    first, last = map(int, text.split("-"))
    if not first <= last <= number:
        raise CarinaError(
            f"method {METHOD}, option layers: expected a range within the {number} layers of {HF}{loaded.name}, "
            f"found {text!r}"
        )
    return range(first - 1, last)


def _find_words(loaded: LoadedModel) -> Words:
    """Tokens for the whole words Yes and No, at the beginning of a text or after a space; else their first tokens."""
    tokenizer = loaded.processor.tokenizer
    vocabulary = tokenizer.get_vocab()

    def find(word: str) -> tuple[int, ...]:
        whole = {vocabulary[start + word] for start in _WORD_PREFIXES if start + word in vocabulary}
        return tuple(sorted(whole or tokenizer.encode(word, add_special_tokens=False)[:1]))

    words = Words(find("Yes"), find("No"))
    if not words.yes or not words.no or set(words.yes) & set(words.no):
        raise CarinaError(
            f"{loaded.path}: expected different first tokens for Yes and No; its tokenizer has the same"
        )
    return words
