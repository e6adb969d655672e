"""Normalise a reply: remove reasoning and markup, and replace equivalent characters by one."""

import re
import unicodedata
from typing import Final, NamedTuple

ANSWER_SIGN: Final = "\x01"
"""Inserted before text that a reply puts in a box (`\\boxed{}`, `<answer>`), which marks it as an answer."""

_CHUNK: Final = 512
"""Characters that are normalised at a time: Unicode normalisation is quadratic in runs of combining marks."""

LONGEST_REPLY: Final = 400_000
"""Characters of a reply that are searched for an answer, half of them from either end."""

_REASONING: Final = re.compile(
    r"<(?P<end>/?)(?:think|thinking|thoughts?|reasoning|reflection|analysis|scratchpad|seed:think)\b[^<>]{0,40}>"
    r"|(?P<open>\[think\]|◁think▷|<unused94>|<\|channel>|<\|channel\|>\s?(?:analysis|commentary))"
    r"|(?P<close>\[/think\]|◁/think▷|<unused95>|<channel\|>|<\|channel\|>\s?final)",
    re.IGNORECASE,
)
_NAMELESS: Final = re.compile(
    r"<unused\d{1,6}>|<\|[a-z_]{1,20}\|>|</?(?:s|eos|bos|end_of_turn|start_of_turn)>"
)
_ANSWER_TAG: Final = re.compile(
    r"<(/?)(?:answer|final_answer|final)>|<\|(?:begin|end)_of_box\|>", re.IGNORECASE
)
_TAG: Final = re.compile(r"<(?:/?[a-zA-Z][^<>\n]{0,60}|\|[^<>|\n]{1,40}\|)>")
_BREAK: Final = re.compile(r"<(?:br|/?p|/?li|/?div|/?ul|/?ol)\b[^<>\n]{0,20}>", re.IGNORECASE)
_LATEX: Final = re.compile(
    r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|bf|rm)\s{0,2}(?=\{)|\\[,;!()\[\] ]?|\$"
)
_ESCAPED: Final = re.compile(r"\\n(?![a-z])")
_BOXED: Final = re.compile(r"\\(?:boxed|fbox)\s{0,2}(?=\{)")

_SIGNS: Final = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´", "'"),
        **dict.fromkeys("“”„‟″«»「」『』", '"'),
        **dict.fromkeys("‐‑‒–—―−➔➜", "-"),
        **dict.fromkeys("→⇒", ":"),
        **dict.fromkeys("•●▪◦‣·∙■□◆▶►", "-"),
        **dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\ufe0f", None),
        **dict.fromkeys("【〔《〈", "["),
        **dict.fromkeys("】〕》〉", "]"),
        "⁄": "/",
        "、": ",",
        "。": ".",
        "\u2028": "\n",
        "\u2029": "\n",
    }
)


class VisibleReply(NamedTuple):
    """A reply without its reasoning."""

    text: str
    has_reasoning: bool
    """Whether reasoning was removed."""
    ends_in_reasoning: bool
    """Whether the reply ends inside its reasoning."""


def remove_reasoning(reply: str) -> VisibleReply:
    """Remove the reasoning from a reply.

    A reasoning block that is not closed extends to the end. One that is not opened begins with the reply, because the
    chat template of some models opens it.
    """
    if "<" not in reply and "◁" not in reply and ("]" not in reply or "think]" not in reply.lower()):
        return VisibleReply(reply.strip(), False, False)  # noqa: FBT003 - by place, which is twice as fast
    kept: list[str] = []
    inside = thought = False
    at = 0
    for tag in _REASONING.finditer(reply):
        closes = tag["close"] is not None or tag["end"] == "/"
        if not inside:
            if closes:
                # A tag that opens the answer closes no reasoning if there is no text before it.
                thought = thought or bool(reply[at : tag.start()].strip())
                kept.clear()
            else:
                kept.append(reply[at : tag.start()])
                inside = thought = True
        elif closes:
            inside = False
        if not inside:
            at = tag.end()
    if not inside:
        kept.append(reply[at:])
    return VisibleReply(
        _NAMELESS.sub(_keep_box_token, "".join(kept)).strip(), has_reasoning=thought, ends_in_reasoning=inside
    )


def shorten_reply(reply: VisibleReply) -> VisibleReply:
    """Remove the middle of a reply that is longer than `LONGEST_REPLY`."""
    if len(reply.text) <= LONGEST_REPLY:
        return reply
    # The dots separate the two parts, so that no answer is read across the cut.
    head, tail = reply.text[: LONGEST_REPLY // 2], reply.text[-LONGEST_REPLY // 2 :]
    return reply._replace(text=f"{head}...\n...\n...{tail}")


def _keep_box_token(token: re.Match[str]) -> str:
    # Tokens of boxes and references are part of an answer; those of turns and channels are not.
    word = token[0]
    return word if "box" in word or "ref" in word else ""


def fold_characters(text: str) -> str:
    """Replace equivalent characters by one: full-width digits, curly quotes, dashes, bullets."""
    if text.isascii():
        return text
    pieces = [
        unicodedata.normalize("NFKC", text[at : at + _CHUNK].translate(_SIGNS))
        for at in range(0, len(text), _CHUNK)
    ]
    return "".join(pieces).translate(_SIGNS)


def normalise_text(text: str) -> str:
    """Lower-case text without markup, with `ANSWER_SIGN` before text that was boxed."""
    text = fold_characters(text)
    if ANSWER_SIGN in text:
        text = text.replace(ANSWER_SIGN, " ")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\\" in text or "$" in text:
        text = _LATEX.sub("", _BOXED.sub(ANSWER_SIGN, _ESCAPED.sub("\n", text)))
    if "<" in text:
        text = _BREAK.sub("\n", _ANSWER_TAG.sub(_replace_answer_tag, text))
        text = _TAG.sub("", text)
    if "*" in text:
        text = text.replace("*", "")
    if "`" in text:
        text = text.replace("`", "")
    if "~~" in text:
        text = text.replace("~~", "")
    if "_" in text:
        text = text.replace("_", " ")
    return text.lower().strip()


def _replace_answer_tag(tag: re.Match[str]) -> str:
    if tag[0].startswith("<|"):
        return ANSWER_SIGN if "begin" in tag[0] else ""
    return "\n" if tag[1] else f"\n{ANSWER_SIGN}"


def make_storable(text: str) -> str:
    """The text without lone surrogates, which cannot be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
