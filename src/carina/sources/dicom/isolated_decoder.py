"""Decodes JPEG lossless in a process of its own.

gdcm is the only decoder at hand, and it ends its process on some damaged images, which no `except` can prevent. So it
runs in a process that may end: it is started once, gets images one after the other, and is started again where needed.

As a program, this file is that process. It imports nothing of Carina.
"""

import atexit
import json
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any, Final

_LONGEST: Final = 60.0
"""Seconds for one image; the largest ones take about 10."""
_NUMBER: Final = struct.Struct(">Q")


class IsolatedDecoderError(Exception):
    """The image cannot be decoded, or decoding has ended the process."""


class _Decoder:
    """The process, as seen from outside."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._process = subprocess.Popen(  # noqa: S603 - this very file
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def decode(self, request: Mapping[str, Any], data: bytes) -> bytes:
        head = json.dumps({**request, "length": len(data)}).encode()
        assert self._process.stdin is not None  # noqa: S101 - asked for above
        assert self._process.stdout is not None  # noqa: S101 - asked for above
        timer = threading.Timer(_LONGEST, self._process.kill)
        timer.start()
        try:
            for part in (_NUMBER.pack(len(head)), head, data):
                self._process.stdin.write(part)
            self._process.stdin.flush()
            (length,) = _NUMBER.unpack(_read_exactly(self._process.stdout, _NUMBER.size))
            return _read_exactly(self._process.stdout, length)
        finally:
            timer.cancel()

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                assert pipe is not None  # noqa: S101 - asked for above
                pipe.close()
        self._process.wait()


_running: list[_Decoder] = []


def decode_isolated(request: Mapping[str, Any], data: bytes) -> bytes:
    """Decode compressed pixel data by gdcm in another process.

    Args:
        request: Options of `Decoder.as_array` of pydicom, and `syntax`, the UID of the transfer syntax.
        data: The encapsulated pixel data.

    Returns:
        The decoded values, as bytes in the order of this machine.

    Raises:
        IsolatedDecoderError: It cannot be decoded.
    """
    if _running and _running[0].owner != os.getpid():
        _running.clear()  # of the process that this one is a copy of
    if not _running:
        _running.append(_Decoder())
    try:
        decoded = _running[0].decode(request, data)
    except (OSError, EOFError, struct.error):
        stop_isolated()
        raise IsolatedDecoderError from None
    if not decoded:
        raise IsolatedDecoderError
    return decoded


def stop_isolated() -> None:
    """End the process, if this one has started it."""
    for decoder in _running:
        if decoder.owner == os.getpid():
            decoder.stop()
    _running.clear()


atexit.register(stop_isolated)


def _read_exactly(file: IO[bytes], length: int) -> bytes:
    found = file.read(length)
    if len(found) < length:
        raise EOFError
    return found


def _serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """The process itself: an empty reply says that an image cannot be decoded."""
    import numpy as np  # noqa: PLC0415 - only in this process
    from pydicom.pixels import get_decoder  # noqa: PLC0415 - only in this process

    while True:
        try:
            (length,) = _NUMBER.unpack(_read_exactly(requests, _NUMBER.size))
            request = json.loads(_read_exactly(requests, length))
            data = _read_exactly(requests, request.pop("length"))
        except EOFError:
            return
        try:
            values, _ = get_decoder(request.pop("syntax")).as_array(data, **request, decoding_plugin="gdcm")
            decoded = np.ascontiguousarray(values).tobytes()
        except Exception:  # gdcm and pydicom raise nearly every error
            decoded = b""
        replies.write(_NUMBER.pack(len(decoded)))
        replies.write(decoded)
        replies.flush()


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
