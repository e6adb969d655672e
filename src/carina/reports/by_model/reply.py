"""The JSON that a model must reply with, and its parser; malformed facts are counted and dropped."""

import re
from typing import Final, Literal, TypeVar

import msgspec

from carina.studies.vocabulary import Certainty, Distribution, RelationKind, Severity, Side, Trend


class ReplyFinding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A finding as the model states it; `sentences` are numbers of sentences of the report."""

    id: str
    name: str
    certainty: Certainty
    sentences: tuple[int, ...]
    side: Side | None = None
    zones: tuple[str, ...] = ()
    site: str | None = None
    severity: Severity | None = None
    distribution: Distribution | None = None
    trend: Trend | None = None
    appearance: tuple[str, ...] = ()


class ReplyDevice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A device as the model states it."""

    id: str
    name: str
    certainty: Certainty
    sentences: tuple[int, ...]
    side: Side | None = None
    position: Literal["adequate", "malpositioned"] | None = None
    site: str | None = None
    trend: Trend | None = None


class ReplyRelation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A relation between two facts of the reply, by the ids that the model gave them."""

    subject: str
    kind: RelationKind
    object: str
    sentences: tuple[int, ...]


class ReplyRecommendation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recommendation as the model states it."""

    action: str
    sentences: tuple[int, ...]
    about: tuple[str, ...] = ()


class _ReplyLists(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole reply; all four lists must be present, even if empty."""

    findings: list[msgspec.Raw]
    devices: list[msgspec.Raw]
    relations: list[msgspec.Raw]
    recommendations: list[msgspec.Raw]


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of a reply that have the right form."""

    findings: list[ReplyFinding]
    devices: list[ReplyDevice]
    relations: list[ReplyRelation]
    recommendations: list[ReplyRecommendation]
    malformed: int
    """Number of facts that do not have the right form."""


_FENCED: Final = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n\s*```\s*\Z", re.DOTALL)
_T = TypeVar("_T")


def parse_reply(text: str) -> ModelReply | None:
    """Parse a reply; None where it is not the JSON that the prompt asks for."""
    fenced = _FENCED.match(text)
    try:
        reply = msgspec.json.decode(fenced[1] if fenced else text, type=_ReplyLists)
    except msgspec.DecodeError:
        return None
    findings = _decode_facts(reply.findings, ReplyFinding)
    devices = _decode_facts(reply.devices, ReplyDevice)
    relations = _decode_facts(reply.relations, ReplyRelation)
    recommendations = _decode_facts(reply.recommendations, ReplyRecommendation)
    received = len(reply.findings) + len(reply.devices) + len(reply.relations) + len(reply.recommendations)
    parsed = len(findings) + len(devices) + len(relations) + len(recommendations)
    return ModelReply(
        findings=findings,
        devices=devices,
        relations=relations,
        recommendations=recommendations,
        malformed=received - parsed,
    )


def _decode_facts(facts: list[msgspec.Raw], kind: type[_T]) -> list[_T]:
    found: list[_T] = []
    for fact in facts:
        try:
            found.append(msgspec.json.decode(fact, type=kind))
        except msgspec.DecodeError:
            continue
    return found
