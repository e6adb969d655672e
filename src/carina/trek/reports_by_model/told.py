"""The JSON that a model must answer with, and taking it apart: fact by fact, so that one bad fact spoils no other."""

import re
from typing import Final, Literal, TypeVar

import msgspec

from carina.studies.vocabulary import Certainty, Distribution, RelationKind, Severity, Side, Trend


class ToldFinding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A finding in the model's words; sentences are those of the report, by number."""

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


class ToldDevice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    name: str
    certainty: Certainty
    sentences: tuple[int, ...]
    side: Side | None = None
    position: Literal["adequate", "malpositioned"] | None = None
    site: str | None = None
    trend: Trend | None = None


class ToldRelation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    subject: str
    kind: RelationKind
    object: str
    sentences: tuple[int, ...]


class ToldRecommendation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: str
    sentences: tuple[int, ...]
    about: tuple[str, ...] = ()


class _Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole answer; every list must be there, if only to be empty."""

    findings: list[msgspec.Raw]
    devices: list[msgspec.Raw]
    relations: list[msgspec.Raw]
    recommendations: list[msgspec.Raw]


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a model told, in the right form."""

    findings: list[ToldFinding]
    devices: list[ToldDevice]
    relations: list[ToldRelation]
    recommendations: list[ToldRecommendation]
    malformed: int
    """Facts that were not in the right form."""


_FENCED: Final = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n\s*```\s*\Z", re.DOTALL)
_T = TypeVar("_T")


def taken_apart(text: str) -> Told | None:
    """What an answer tells; None where it is not the JSON that was asked for."""
    fenced = _FENCED.match(text)
    try:
        reply = msgspec.json.decode(fenced[1] if fenced else text, type=_Reply)
    except msgspec.DecodeError:
        return None
    findings = _decoded(reply.findings, ToldFinding)
    devices = _decoded(reply.devices, ToldDevice)
    relations = _decoded(reply.relations, ToldRelation)
    recommendations = _decoded(reply.recommendations, ToldRecommendation)
    told = len(reply.findings) + len(reply.devices) + len(reply.relations) + len(reply.recommendations)
    taken = len(findings) + len(devices) + len(relations) + len(recommendations)
    return Told(
        findings=findings,
        devices=devices,
        relations=relations,
        recommendations=recommendations,
        malformed=told - taken,
    )


def _decoded(facts: list[msgspec.Raw], kind: type[_T]) -> list[_T]:
    found: list[_T] = []
    for fact in facts:
        try:
            found.append(msgspec.json.decode(fact, type=kind))
        except msgspec.DecodeError:
            continue
    return found
