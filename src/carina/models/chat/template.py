"""Messages in the form that the chat templates of transformers take, and a template that is tried out first."""

import re
from typing import Any, Final

from PIL import Image

from carina.errors import CarinaError
from carina.models.chat.loading import Loaded, first_line

Said = list[dict[str, Any]]
_SYSTEM, _ASKED, _ANSWERED, _LAST = "carina told", "carina asked", "carina answered", "carina ends"
_SHORTEST: Final = 3
"""Of a token with a meaning beside its letters; a shorter one is likely to be an ordinary word."""


class Template:
    """The chat template of one model."""

    def __init__(self, loaded: Loaded) -> None:
        self._processor = loaded.processor
        self._tokens = _reserved(loaded.processor)
        image = getattr(loaded.processor, "image_token", None)
        talk = [message("user", _ASKED, [None]), message("assistant", _ANSWERED), message("user", _LAST)]
        try:
            rendered = self._rendered(talk)
        except Exception as error:  # a template may raise anything
            raise CarinaError(f"{loaded.path}: its chat template fails: {first_line(error)}") from error
        places = [rendered.find(words) for words in (_ASKED, _ANSWERED, _LAST)]
        if places != sorted(places) or -1 in places or (image is not None and rendered.count(image) != 1):
            raise CarinaError(
                f"{loaded.path}: its chat template does not take messages with images and text; "
                "expected a chat_template.jinja for content in parts"
            )
        self.takes_system = self._says_system()

    def prepared(self, said: list[Said]) -> Any:  # noqa: ANN401 - torch's
        """Tensors of a batch of conversations that wait for an answer, filled up on the left."""
        return self._processor.apply_chat_template(
            said,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"padding": True},
        )

    def plain(self, text: str) -> str:
        """Words in which nothing will be taken for a picture or for the end of a message."""
        return self._tokens.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text) if self._tokens else text

    def _says_system(self) -> bool:
        """Whether the template has a place for what stands before the conversation; some refuse it, some lose it."""
        try:
            return _SYSTEM in self._rendered([message("system", _SYSTEM), message("user", _ASKED)])
        except Exception:  # whatever it raises, the words go into the first question
            return False

    def _rendered(self, said: Said) -> str:
        return str(self._processor.apply_chat_template(said, add_generation_prompt=True, tokenize=False))


def message(role: str, text: str, images: list[Image.Image | None] | None = None) -> dict[str, Any]:
    """One message, its pictures before its words; None stands for a picture in a template that is tried out."""
    parts: list[dict[str, Any]] = [
        {"type": "image"} if image is None else {"type": "image", "image": image} for image in images or ()
    ]
    return {"role": role, "content": [*parts, {"type": "text", "text": text}]}


def _reserved(processor: Any) -> re.Pattern[str] | None:  # noqa: ANN401
    """What the model's tokenizer takes for something else than words, longest first."""
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
