"""In-process vision-language models of transformers, `hf:PATH`: many turns in one batch, answered token by token."""

import io
import secrets
from collections.abc import Sequence
from typing import Any

from PIL import Image

from carina.models.chat.loading import (
    LoadedModel,
    find_model_folder,
    first_line,
    load_model,
    silence_transformers,
)
from carina.models.chat.template import ChatTemplate, Conversation, make_message
from carina.models.conversation import ChatTurn, ImageReader, Reply, RequestOptions, Sampling
from carina.models.fingerprint import fingerprint_of_transformers
from carina.models.registry import ModelName, ModelOptions, model_kind
from carina.store.seeding import rng


class HfModel:
    """An opened model of the class image-text-to-text.

    The answer to a turn does not depend on the other turns of its batch, up to rounding. A batch that does not fit in
    memory is tried again in halves, and the size that fitted is kept for the rest.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        *,
        sampling: Sampling,
        request: RequestOptions | None = None,
        batch: int = 8,
    ) -> None:
        self.name = f"hf:{loaded.name}"
        self.batch = batch
        self._loaded = loaded
        self._sampling = sampling
        self._request = request or RequestOptions()
        self._template = ChatTemplate(loaded)

    @classmethod
    def open(
        cls,
        location: str,
        *,
        sampling: Sampling,
        request: RequestOptions | None = None,
        trust_remote_code: bool = False,
        device: str | None = None,
        dtype: str | None = None,
        batch: int = 8,
    ) -> "HfModel":
        """Open the model in a folder, or one that was downloaded from the hub.

        Args:
            location: Folder, or hub id `OWNER/NAME`.
            sampling: How answers are drawn.
            request: Its `top_p` and `top_k` take the place of the model's own.
            trust_remote_code: Whether code that comes with the weights may run.
            device: None takes a GPU where there is one.
            dtype: None takes the model's own on a GPU, and float32 on the CPU.
            batch: Turns at a time.
        """
        loaded = load_model(location, trust_remote_code=trust_remote_code, device=device, dtype=dtype)
        return cls(loaded, sampling=sampling, request=request, batch=batch)

    def answer(self, turns: Sequence[ChatTurn], images: ImageReader) -> list[Reply]:
        """One reply per turn, in order."""
        replies: list[Reply] = []
        while len(replies) < len(turns):
            # The batch size may shrink between two batches.
            replies += self._answer_batch(turns[len(replies) : len(replies) + self.batch], images)
        return replies

    def _answer_batch(self, turns: Sequence[ChatTurn], images: ImageReader) -> list[Reply]:
        try:
            inputs = self._prepare(turns, images)
        except (
            Exception
        ) as error:  # an image, a template or a processor may fail in any way, for one turn alone
            if len(turns) == 1:
                return [_failed_reply(f"the turn cannot be prepared for {self.name}: {first_line(error)}")]
            inputs = None
        if inputs is None:
            return self._answer_halves(turns, images)
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        limits = [self._longest_answer(length) for length in lengths]
        if len(turns) > 1 and min(limits) < self._sampling.max_tokens:
            return self._answer_limited_alone(turns, limits, images)
        if limits[0] < 1:
            # As services report it: the prompt is too long for the model, which is no transport error.
            return [Reply(text="", stop="model_length", input_tokens=lengths[0])]
        try:
            rows = self._generate(turns, inputs, max_tokens=min(limits))
        except (RuntimeError, MemoryError) as error:
            if not self._is_out_of_memory(error):
                raise
            rows = None
        # Outside the except block, where the error's traceback no longer keeps the tensors alive.
        if rows is None:
            return self._answer_after_out_of_memory(turns, images)
        return [self._reply(row, length) for row, length in zip(rows, lengths, strict=True)]

    def _prepare(self, turns: Sequence[ChatTurn], images: ImageReader) -> Any:  # noqa: ANN401 - torch's
        """Tensors of a batch, padded on the left."""
        conversations = [make_conversation(turn, images, self._template) for turn in turns]
        with silence_transformers(self._loaded.transformers):
            return self._template.prepare(conversations)

    def _longest_answer(self, prompt_length: int) -> int:
        """How many tokens the answer to a prompt of some length may have."""
        most = self._sampling.max_tokens
        return most if self._loaded.context is None else min(most, self._loaded.context - prompt_length)

    def _generate(self, turns: Sequence[ChatTurn], inputs: Any, *, max_tokens: int) -> list[list[int]]:  # noqa: ANN401
        """New tokens of every row, up to the one that ends it."""
        loaded = self._loaded
        sampler = make_token_sampler(loaded, self._sampling, self._request, turns)
        with loaded.torch.inference_mode(), silence_transformers(loaded.transformers):
            tokens = loaded.model.generate(
                **inputs.to(loaded.model.device, dtype=loaded.model.dtype),
                max_new_tokens=max_tokens,
                do_sample=False,
                num_beams=1,
                eos_token_id=sorted(loaded.ends) or None,
                pad_token_id=loaded.processor.tokenizer.pad_token_id,
                logits_processor=loaded.transformers.LogitsProcessorList([sampler] if sampler else []),
            )
        return [loaded.up_to_end(row) for row in tokens[:, inputs["input_ids"].shape[1] :].tolist()]

    def _reply(self, row: list[int], prompt_length: int) -> Reply:
        text = self._loaded.processor.tokenizer.decode(row, skip_special_tokens=True)
        return Reply(
            text=text.strip(),
            stop="stop" if row and row[-1] in self._loaded.ends else "max_tokens",
            input_tokens=prompt_length,
            output_tokens=len(row),
        )

    def _answer_limited_alone(
        self, turns: Sequence[ChatTurn], limits: Sequence[int], images: ImageReader
    ) -> list[Reply]:
        """Answer turns that leave less room than an answer may need one by one: no other turn is cut short for them."""
        is_limited = [limit < self._sampling.max_tokens for limit in limits]
        others = [turn for turn, alone in zip(turns, is_limited, strict=True) if not alone]
        together = iter(self._answer_batch(others, images) if others else [])
        return [
            self._answer_batch([turn], images)[0] if alone else next(together)
            for turn, alone in zip(turns, is_limited, strict=True)
        ]

    def _answer_halves(self, turns: Sequence[ChatTurn], images: ImageReader) -> list[Reply]:
        half = len(turns) // 2
        return self._answer_batch(turns[:half], images) + self._answer_batch(turns[half:], images)

    def _answer_after_out_of_memory(self, turns: Sequence[ChatTurn], images: ImageReader) -> list[Reply]:
        if self._loaded.torch.cuda.is_available():
            self._loaded.torch.cuda.empty_cache()
        if len(turns) == 1:
            return [_failed_reply(f"{self.name} has not enough memory for this turn alone")]
        self.batch = max(1, len(turns) // 2)
        return self._answer_halves(turns, images)

    def _is_out_of_memory(self, error: Exception) -> bool:
        # The CPU's allocator has no error of its own.
        kinds = (self._loaded.torch.OutOfMemoryError, MemoryError)
        return isinstance(error, kinds) or "can't allocate memory" in str(error)


def _failed_reply(reason: str) -> Reply:
    return Reply(text=None, error=reason)


def make_conversation(turn: ChatTurn, images: ImageReader, template: ChatTemplate) -> Conversation:
    """A turn in the form of chat templates, its examples first."""
    shown = [(example.case, one) for example in turn.examples for one in example.messages]
    messages = [
        make_message(
            one.role,
            template.escape(one.text),
            [_decode_png(images(case, view)) for view in one.shows],
            are_images_last=turn.image_order == "after",
        )
        for case, one in [*shown, *((turn.case, one) for one in turn.messages)]
    ]
    if not turn.system:
        return messages
    system = template.escape(turn.system)
    if template.takes_system:
        return [make_message("system", system), *messages]
    first = next(part for part in messages[0]["content"] if part["type"] == "text")
    first["text"] = f"{system}\n\n{first['text']}"
    return messages


def _decode_png(png: bytes) -> Image.Image:
    with Image.open(io.BytesIO(png)) as image:
        # Not all processors accept a grey image.
        return image.convert("RGB")


# ---- sampling -------------------------------------------------------------------------------------------------------


class TokenSampler:
    """Samples the next token of every row with random numbers of that row, whatever else is in the batch.

    A Gumbel-distributed number is added to each logit; then the largest one is a sample from the distribution, and
    greedy search takes it. Numbers come from the CPU, so that they are the same whatever the device.
    """

    def __init__(self, torch: Any, seeds: Sequence[int], warpers: Sequence[Any]) -> None:  # noqa: ANN401
        self._torch = torch
        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self._warpers = warpers

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # noqa: ANN401 - as transformers calls it
        torch = self._torch
        scores = scores.double()
        for warp in self._warpers:
            scores = warp(input_ids, scores)
        uniform = torch.stack(
            [torch.rand(scores.shape[1], generator=row, dtype=scores.dtype) for row in self._generators]
        )
        return scores - torch.log(-torch.log(uniform)).to(scores.device)


def make_token_sampler(
    loaded: LoadedModel, sampling: Sampling, request: RequestOptions, turns: Sequence[ChatTurn]
) -> TokenSampler | None:
    """The sampler for the answers to some turns; None where the likeliest token is taken.

    Without a temperature the model's own settings decide; so do they about `top_k` and `top_p` unless these are given.
    """
    own = loaded.model.generation_config
    temperature = sampling.temperature
    if temperature is None:
        temperature = (own.temperature or 1.0) if own.do_sample else 0.0
    if temperature == 0:
        return None
    kinds = loaded.transformers
    warpers = [kinds.TemperatureLogitsWarper(float(temperature))]
    top_k = own.top_k if request.top_k is None else request.top_k
    top_p = own.top_p if request.top_p is None else request.top_p
    if top_k:
        warpers.append(kinds.TopKLogitsWarper(top_k=top_k))
    if top_p is not None and top_p < 1:
        warpers.append(kinds.TopPLogitsWarper(top_p=top_p))
    return TokenSampler(loaded.torch, [_seed(sampling.seed, turn) for turn in turns], warpers)


def _seed(seed: int | None, turn: ChatTurn) -> int:
    if seed is None:
        return secrets.randbits(63)
    return int(rng(seed, "answer", turn.case, turn.step.id).integers(2**63))


# ---- registration ---------------------------------------------------------------------------------------------------


def _fingerprint(name: ModelName) -> str:
    _, folder = find_model_folder(name.location)
    return fingerprint_of_transformers(folder)


@model_kind(
    "hf",
    capabilities=["chat", "maps"],
    form="hf:PATH or hf:OWNER/NAME",
    extra="torch",
    packages=("torch", "transformers"),
    fingerprint=_fingerprint,
    request_options=("top_p", "top_k"),
    takes_examples=True,
)
def open_hf(name: ModelName, options: ModelOptions) -> HfModel | LoadedModel:
    """Vision-language model of transformers, in this process."""
    if options.needs == "maps":
        return load_model(
            name.location,
            trust_remote_code=options.trust_remote_code,
            device=options.device,
            dtype=None,
            attention="eager",
        )
    return HfModel.open(
        name.location,
        sampling=options.sampling,
        request=options.request,
        trust_remote_code=options.trust_remote_code,
        device=options.device,
    )
