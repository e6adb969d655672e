"""From a reply as it came to words that can be read: no reasoning, no markup, one kind of every sign."""

import re
import unicodedata
from typing import Final, NamedTuple

SIGN: Final = "\x01"
"""Stands before what a reply puts in a box (`\\boxed{}`, `<answer>`): an answer without a word that says so."""

_CHUNK: Final = 512
"""Unicode's reordering of combining marks is quadratic in a run of them: short pieces bound it."""

LONG: Final = 400_000
"""Characters of a reply that are searched for an answer, half of them from either end; nobody answers in the middle of
a book."""

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


class Spoken(NamedTuple):
    """What a reply says aloud."""

    text: str
    thought: bool
    """Whether reasoning was taken out."""
    cut: bool
    """Whether the reply ends inside its reasoning."""


def spoken(reply: str) -> Spoken:
    """A reply without its reasoning. A block that nobody closed goes on to the end; one that nobody opened began
    with the reply, as where the template of a model opens it."""
    if "<" not in reply and "◁" not in reply and ("]" not in reply or "think]" not in reply.lower()):
        return Spoken(reply.strip(), False, False)  # noqa: FBT003 - by place, which is twice as fast
    kept: list[str] = []
    inside = thought = False
    at = 0
    for tag in _REASONING.finditer(reply):
        closes = tag["close"] is not None or tag["end"] == "/"
        if not inside:
            if closes:
                # A channel that opens the answer closes nothing where nothing was said before it.
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
    return Spoken(_NAMELESS.sub(_of_token, "".join(kept)).strip(), thought=thought, cut=inside)


def ends(said: Spoken) -> Spoken:
    """What is said, without the middle of a text that is longer than any answer needs."""
    if len(said.text) <= LONG:
        return said
    # The dots keep what stands before the cut from being read together with what comes after it.
    head, tail = said.text[: LONG // 2], said.text[-LONG // 2 :]
    return said._replace(text=f"{head}...\n...\n...{tail}")


def _of_token(token: re.Match[str]) -> str:
    # Tokens of boxes and references carry meaning; those of turns and channels do not.
    word = token[0]
    return word if "box" in word or "ref" in word else ""


def folded(text: str) -> str:
    """One character for every sign that means the same: full-width digits, curly quotes, dashes, bullets."""
    if text.isascii():
        return text
    pieces = [
        unicodedata.normalize("NFKC", text[at : at + _CHUNK].translate(_SIGNS))
        for at in range(0, len(text), _CHUNK)
    ]
    return "".join(pieces).translate(_SIGNS)


def plain(text: str) -> str:
    """Lower-case words without markup; `SIGN` before what stood in a box."""
    text = folded(text)
    if SIGN in text:
        text = text.replace(SIGN, " ")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\\" in text or "$" in text:
        text = _LATEX.sub("", _BOXED.sub(SIGN, _ESCAPED.sub("\n", text)))
    if "<" in text:
        text = _BREAK.sub("\n", _ANSWER_TAG.sub(_sign, text))
        text = _TAG.sub("", text)
    for mark in ("*", "`", "~~"):
        if mark in text:
            text = text.replace(mark, "")
    if "_" in text:
        text = text.replace("_", " ")
    return text.lower().strip()


def _sign(tag: re.Match[str]) -> str:
    if tag[0].startswith("<|"):
        return SIGN if "begin" in tag[0] else ""
    return "\n" if tag[1] else f"\n{SIGN}"


def storable(text: str) -> str:
    """The text without half characters, which no file can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
