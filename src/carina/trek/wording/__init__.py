"""What trek says, as data: one readable file a stage, one for what all share, one for grammar; a folder a language.

A stage's file maps a family of questions to its variants (a format, or `format/name`), each with its questions and,
where the answer is worded, with answers by kind. `carina.trek.wording.lint` says what a sound file looks like.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from string import Formatter
from typing import Any, Final

import yaml

try:
    from yaml import CSafeLoader as Loader
except ImportError:  # a PyYAML without libyaml: the same, slower
    from yaml import SafeLoader as Loader  # type: ignore[assignment]

from carina.cases.model import Format
from carina.store.errors import CarinaError
from carina.trek.protocol import TREK

STAGES: Final = tuple(stage.number for stage in TREK.stages)
BLANK: Final = "____"
"""Stands in a question for the words to be filled in."""
GAP: Final = "gap"
"""The kind of answer that consists of those words alone."""


@dataclass(frozen=True, slots=True)
class Template:
    """A sentence with slots."""

    id: str
    text: str
    slots: tuple[str, ...]
    says_images: bool = False
    """Whether it names the images, which the draft fills in."""
    has_gap: bool = False
    """Whether it leaves a blank to be filled in."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Wordings of one kind of question, and of its answers."""

    format: Format
    questions: tuple[Template, ...]
    on_one_image: tuple[Template, ...]
    """Those that say which image they are about."""
    answers: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Wording:
    """All words of one language."""

    language: str
    pools: Mapping[tuple[int, str, str], Pool]
    """By stage, family and variant."""
    phrases: Mapping[int, Mapping[str, Any]]
    """By stage: lists of clauses, nested by what they say."""
    common: Mapping[str, Any]
    """What all stages share."""
    grammar: Mapping[str, Any]
    """How phrases are put together."""
    sha256: str
    """Checksum of all files: other wordings make other conversations."""


def languages() -> tuple[str, ...]:
    """Languages that have a wording."""
    folders = resources.files(__name__).iterdir()
    return tuple(sorted(folder.name for folder in folders if (folder / "common.yaml").is_file()))


@lru_cache(maxsize=4)
def load_wording(language: str = "en") -> Wording:
    """The words of one language."""
    folder = resources.files(__name__) / language
    if not folder.is_dir():
        raise CarinaError(f"no wording in the language {language!r}; there is {', '.join(languages())}")
    names = (*(f"stage-{stage}" for stage in STAGES), "common", "grammar")
    files = {name: (folder / f"{name}.yaml").read_bytes() for name in names}
    pools: dict[tuple[int, str, str], Pool] = {}
    phrases: dict[int, Mapping[str, Any]] = {}
    for stage in STAGES:
        content = yaml.load(files[f"stage-{stage}"], Loader)
        phrases[stage] = content.pop("phrases", {})
        for family, variants in content.items():
            for variant, pool in variants.items():
                questions = _make_templates(f"s{stage}.{family}.{variant}", pool["questions"])
                pools[stage, family, variant] = Pool(
                    format=variant.partition("/")[0],
                    questions=questions,
                    on_one_image=tuple(template for template in questions if "image" in template.slots),
                    answers={kind: tuple(texts) for kind, texts in pool.get("answers", {}).items()},
                )
    return Wording(
        language=language,
        pools=pools,
        phrases=phrases,
        common=yaml.load(files["common"], Loader),
        grammar=yaml.load(files["grammar"], Loader),
        sha256=hashlib.sha256(b"".join(files[name] for name in sorted(files))).hexdigest(),
    )


def slots_of(text: str) -> tuple[str, ...]:
    """Names of the slots of a text, each once, in order."""
    return tuple(dict.fromkeys(name for _, name, _, _ in Formatter().parse(text) if name))


def _make_templates(prefix: str, texts: Sequence[str]) -> tuple[Template, ...]:
    prefix = prefix.replace(" ", "-").replace("/", "-")
    return tuple(
        Template(
            id=f"{prefix}.{number:03d}",
            text=text,
            slots=slots,
            says_images="images" in slots,
            has_gap=BLANK in text,
        )
        for number, text in enumerate(texts, start=1)
        for slots in (slots_of(text),)
    )
