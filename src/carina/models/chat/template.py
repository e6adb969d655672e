"""The chat template of a model of transformers, checked when the model is opened."""

import re
from typing import Any, Final

from PIL import Image

from carina.models.chat.loading import LoadedModel, first_line
from carina.store.errors import CarinaError

Conversation = list[dict[str, Any]]
"""Messages in the form that chat templates take."""
_SYSTEM, _QUESTION, _ANSWER, _LAST = "carina instructs", "carina asks", "carina answers", "carina ends"
"""Texts of the conversation with which a template is checked."""
_SHORTEST: Final = 3
"""Shortest special token, in characters, that is escaped; a shorter one is likely to be an ordinary word."""


class ChatTemplate:
    """The chat template of one model."""

    def __init__(self, loaded: LoadedModel) -> None:
        self._processor = loaded.processor
        self._tokens = _special_token_pattern(loaded.processor)
        image = getattr(loaded.processor, "image_token", None)
        messages = [
            make_message("user", _QUESTION, [None]),
            make_message("assistant", _ANSWER),
            make_message("user", _LAST),
        ]
        try:
            rendered = self._render(messages)
        except Exception as error:  # a template may raise anything
            raise CarinaError(f"{loaded.path}: its chat template fails: {first_line(error)}") from error
        places = [rendered.find(words) for words in (_QUESTION, _ANSWER, _LAST)]
        if places != sorted(places) or -1 in places or (image is not None and rendered.count(image) != 1):
            raise CarinaError(
                f"{loaded.path}: its chat template does not take messages with images and text; "
                "expected a chat_template.jinja for content in parts"
            )
        self.takes_system = self._has_system_role()

    def prepare(self, conversations: list[Conversation]) -> Any:  # noqa: ANN401 - torch's
        """Tensors of a batch of conversations that end with a question, padded on the left."""
        return self._processor.apply_chat_template(
            conversations,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"padding": True},
        )

    def escape(self, text: str) -> str:
        """Escape special tokens, so that no text is read as an image or as the end of a message."""
        return self._tokens.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text) if self._tokens else text

    def _has_system_role(self) -> bool:
        """Whether the template renders a system message; some refuse it, some drop it."""
        try:
            return _SYSTEM in self._render([make_message("system", _SYSTEM), make_message("user", _QUESTION)])
        except Exception:  # whatever it raises, the system prompt goes into the first question
            return False

    def _render(self, messages: Conversation) -> str:
        return str(self._processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))


def make_message(
    role: str,
    text: str,
    images: list[Image.Image | None] | None = None,
    *,
    are_images_last: bool = False,
) -> dict[str, Any]:
    """One message with its images; None is a placeholder for an image when a template is checked."""
    parts: list[dict[str, Any]] = [
        {"type": "image"} if image is None else {"type": "image", "image": image} for image in images or ()
    ]
    words = {"type": "text", "text": text}
    return {"role": role, "content": [words, *parts] if are_images_last else [*parts, words]}


def _special_token_pattern(processor: Any) -> re.Pattern[str] | None:  # noqa: ANN401
    """A pattern of the special tokens, which the tokenizer does not read as text, longest first."""
    tokenizer = processor.tokenizer
    tokens = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}
    tokens |= {
        token
        for holder in (processor, tokenizer)
        for name in ("image_token", "video_token", "boi_token", "eoi_token", "audio_token")
        if isinstance(token := getattr(holder, name, None), str)
    }
    marked = [token for token in tokens if len(token) >= _SHORTEST and not token[0].isalnum()]
    if not marked:
        return None
    return re.compile("|".join(re.escape(token) for token in sorted(marked, key=len, reverse=True)))
