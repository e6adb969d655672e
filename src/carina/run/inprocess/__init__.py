"""Models that answer in this process, by the names that the command line knows them by.

`hf:PATH` or `hf:OWNER/NAME`: a vision-language model through transformers (`pip install 'carina[torch]'`).
`onnx:PATH`: a small classifier of findings (`pip install 'carina[onnx]'`).
"""

from typing import Final, Protocol

from carina.errors import CarinaError
from carina.models.served import Sampling
from carina.run.examinee import Examinee
from carina.run.inprocess.hf import HfExaminee
from carina.run.inprocess.onnx import OnnxExaminee

__all__ = ["HfExaminee", "OnnxExaminee", "open_examinee"]


class _Open(Protocol):
    def __call__(
        self, named: str, *, sampling: Sampling, trust_remote_code: bool, device: str | None
    ) -> Examinee: ...


def _hf(named: str, *, sampling: Sampling, trust_remote_code: bool, device: str | None) -> Examinee:
    return HfExaminee.open(named, sampling=sampling, trust_remote_code=trust_remote_code, device=device)


def _onnx(named: str, *, sampling: Sampling, trust_remote_code: bool, device: str | None) -> Examinee:
    del sampling, trust_remote_code  # a classifier draws nothing and brings no code
    return OnnxExaminee.open(named, device=device)


_KINDS: Final[dict[str, _Open]] = {"hf": _hf, "onnx": _onnx}
_KNOWN: Final = "hf:PATH, hf:OWNER/NAME and onnx:PATH"


def open_examinee(
    name: str, *, sampling: Sampling, trust_remote_code: bool = False, device: str | None = None
) -> Examinee:
    """The model of a name such as "hf:weights/my-vlm"; `CarinaError` says what is missing and how to get it."""
    kind, colon, named = name.partition(":")
    if not colon or kind not in _KINDS or not named:
        raise CarinaError(f"model {name!r}: not a model that runs in this process; known are {_KNOWN}")
    return _KINDS[kind](named, sampling=sampling, trust_remote_code=trust_remote_code, device=device)
