"""Vision-language models through transformers: many turns in one batch, answered token by token."""

from collections.abc import Sequence
from typing import Any

from carina.models.chat.loading import Loaded, first_line, load, quiet
from carina.models.chat.template import Template
from carina.models.served import Reply, Sampling
from carina.run.examinee import Pictures
from carina.run.inprocess.conversation import conversation
from carina.run.inprocess.draws import draws
from carina.run.records import Turn


class HfExaminee:
    """A model of the class image-text-to-text, open.

    A turn's answer does not depend on the others of its batch, up to rounding. What does not fit in memory is tried
    again in halves, and the size that fitted is kept for the rest.
    """

    def __init__(self, loaded: Loaded, *, sampling: Sampling, batch: int = 8) -> None:
        self.name = f"hf:{loaded.name}"
        self.batch = batch
        self._loaded = loaded
        self._sampling = sampling
        self._template = Template(loaded)

    @classmethod
    def open(
        cls,
        named: str,
        *,
        sampling: Sampling,
        trust_remote_code: bool = False,
        device: str | None = None,
        dtype: str | None = None,
        batch: int = 8,
    ) -> "HfExaminee":
        """The model in a folder, or downloaded from the hub; `CarinaError` says what is missing.

        Device: a GPU where there is one. Numbers: the model's own on a GPU, float32 on the CPU.
        """
        loaded = load(named, trust_remote_code=trust_remote_code, device=device, dtype=dtype)
        return cls(loaded, sampling=sampling, batch=batch)

    def answer(self, turns: Sequence[Turn], pictures: Pictures) -> list[Reply]:
        """One reply a turn, in order."""
        replies: list[Reply] = []
        while len(replies) < len(turns):
            # The size of a batch may fall on the way.
            replies += self._answered(turns[len(replies) : len(replies) + self.batch], pictures)
        return replies

    def _answered(self, turns: Sequence[Turn], pictures: Pictures) -> list[Reply]:
        try:
            inputs = self._prepared(turns, pictures)
        except (
            Exception
        ) as error:  # a picture, a template or a processor may fail in any way, and for one turn alone
            if len(turns) == 1:
                return [_failed(f"the turn cannot be prepared for {self.name}: {first_line(error)}")]
            inputs = None
        if inputs is None:
            return self._in_halves(turns, pictures)
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        rooms = [self._room(length) for length in lengths]
        if len(turns) > 1 and min(rooms) < self._sampling.max_tokens:
            return self._cramped_apart(turns, rooms, pictures)
        if rooms[0] < 1:
            # As services tell it: the model could not answer, which is no failure on the way.
            return [Reply(text="", stop="model_length", input_tokens=lengths[0])]
        try:
            rows = self._generated(turns, inputs, most=min(rooms))
        except (RuntimeError, MemoryError) as error:
            if not self._is_out_of_memory(error):
                raise
            rows = None
        # Here, where nothing holds on to the error any more: its traceback would keep the tensors.
        if rows is None:
            return self._after_out_of_memory(turns, pictures)
        return [self._reply(row, length) for row, length in zip(rows, lengths, strict=True)]

    def _prepared(self, turns: Sequence[Turn], pictures: Pictures) -> Any:  # noqa: ANN401 - torch's
        """Tensors of a batch, filled up on the left."""
        said = [conversation(turn, pictures, self._template) for turn in turns]
        with quiet(self._loaded.transformers):
            return self._template.prepared(said)

    def _room(self, length: int) -> int:
        """How many tokens an answer to a prompt of some length may have."""
        most = self._sampling.max_tokens
        return most if self._loaded.context is None else min(most, self._loaded.context - length)

    def _generated(self, turns: Sequence[Turn], inputs: Any, *, most: int) -> list[list[int]]:  # noqa: ANN401
        """New tokens of every row, up to the one that ends it."""
        loaded = self._loaded
        drawn = draws(loaded, self._sampling, turns)
        with loaded.torch.inference_mode(), quiet(loaded.transformers):
            tokens = loaded.model.generate(
                **inputs.to(loaded.model.device, dtype=loaded.model.dtype),
                max_new_tokens=most,
                do_sample=False,
                num_beams=1,
                eos_token_id=sorted(loaded.ends) or None,
                pad_token_id=loaded.processor.tokenizer.pad_token_id,
                logits_processor=loaded.transformers.LogitsProcessorList([drawn] if drawn else []),
            )
        return [loaded.up_to_end(row) for row in tokens[:, inputs["input_ids"].shape[1] :].tolist()]

    def _reply(self, row: list[int], length: int) -> Reply:
        text = self._loaded.processor.tokenizer.decode(row, skip_special_tokens=True)
        return Reply(
            text=text.strip(),
            stop="stop" if row and row[-1] in self._loaded.ends else "max_tokens",
            input_tokens=length,
            output_tokens=len(row),
        )

    def _cramped_apart(self, turns: Sequence[Turn], rooms: Sequence[int], pictures: Pictures) -> list[Reply]:
        """Turns with less room than an answer may need, each alone: no other turn is cut short for them."""
        cramped = [room < self._sampling.max_tokens for room in rooms]
        roomy = [turn for turn, alone in zip(turns, cramped, strict=True) if not alone]
        together = iter(self._answered(roomy, pictures) if roomy else [])
        return [
            self._answered([turn], pictures)[0] if alone else next(together)
            for turn, alone in zip(turns, cramped, strict=True)
        ]

    def _in_halves(self, turns: Sequence[Turn], pictures: Pictures) -> list[Reply]:
        half = len(turns) // 2
        return self._answered(turns[:half], pictures) + self._answered(turns[half:], pictures)

    def _after_out_of_memory(self, turns: Sequence[Turn], pictures: Pictures) -> list[Reply]:
        if self._loaded.torch.cuda.is_available():
            self._loaded.torch.cuda.empty_cache()
        if len(turns) == 1:
            return [_failed(f"{self.name} has not enough memory for this turn alone")]
        self.batch = max(1, len(turns) // 2)
        return self._in_halves(turns, pictures)

    def _is_out_of_memory(self, error: Exception) -> bool:
        # The CPU's allocator has no error of its own.
        kinds = (self._loaded.torch.OutOfMemoryError, MemoryError)
        return isinstance(error, kinds) or "can't allocate memory" in str(error)


def _failed(why: str) -> Reply:
    return Reply(text=None, error=why)
