"""Taking what is right out of a record, and putting it back."""

from typing import Any

from carina.percept.bundle import layout
from carina.percept.bundle.faults import RecordError

Json = Any


def split(record: Json) -> tuple[Json, Json]:
    """A record without its keys, and the keys alone in the same nesting; None where there is no key.

    Lists of objects keep their length in both, so that each item finds its other half again.
    """
    if isinstance(record, dict):
        asked, keys = {}, {}
        for name, value in record.items():
            if layout.is_key(name):
                keys[name] = value
                continue
            asked[name], below = split(value)
            if below is not None:
                keys[name] = below
        return asked, keys or None
    if isinstance(record, list):
        halves = [split(item) for item in record]
        below = [keys for _, keys in halves]
        return [asked for asked, _ in halves], below if any(keys is not None for keys in below) else None
    return record, None


def merge(asked: Json, keys: Json, field: str = "") -> Json:
    """A record with its keys put back; `RecordError` names the field where they do not fit."""
    if keys is None:
        return asked
    if isinstance(asked, dict) and isinstance(keys, dict):
        found = dict(asked)
        for name, value in keys.items():
            called = f"{field}.{name}" if field else name
            if layout.is_key(name):
                if name in found and found[name] != value:
                    raise RecordError(
                        "json", called, f"is one thing in {layout.RECORDS} and another in {layout.KEYS}"
                    )
                found[name] = value
            elif name not in found:
                raise RecordError("missing", called, f"is in {layout.KEYS} but not in {layout.RECORDS}")
            else:
                found[name] = merge(found[name], value, called)
        return found
    if isinstance(asked, list) and isinstance(keys, list) and len(asked) == len(keys):
        return [
            merge(item, key, f"{field}[{place}]")
            for place, (item, key) in enumerate(zip(asked, keys, strict=True))
        ]
    raise RecordError("json", field, f"has another form in {layout.KEYS} than in {layout.RECORDS}")
