"""What went wrong between this machine and the server of a model, in one line that says what to change.

The clients of the providers hide the cause: a refused connection, a wrong certificate and a cut answer are all
"Connection error.". The cause is found in the chain of errors, by the classes of Python and by the names of those of
the HTTP packages, which are not imported here.
"""

import ssl
from collections.abc import Iterator
from typing import Final

from carina.store.text import make_printable

_LONGEST_CHAIN: Final = 20
_SENTENCES: Final = (
    (("gaierror",), "unknown host: {place}: the name cannot be resolved; check --base-url and the network"),
    (("SSLCertVerificationError", "SSLError"), ""),
    (
        ("ConnectionRefusedError",),
        "connection refused: nothing listens at {place}; start the server, or correct --base-url",
    ),
    (
        ("AttemptTimeoutError",),
        "timeout: no complete answer from {place}{limit}; raise --timeout, or check the server",
    ),
    (("ConnectTimeout",), "timeout: no connection to {place}; check --base-url and the network"),
    (
        ("ReadTimeout", "WriteTimeout", "PoolTimeout"),
        "timeout: {place} stopped in the middle of an exchange; check the server",
    ),
    (
        ("ConnectError",),
        "no connection: {place} cannot be reached ({message}); check --base-url and the network",
    ),
    (("DecodingError",), "damaged answer: {place}: {message}"),
    (
        ("TooManyRedirects",),
        "endless redirects: {place} redirects again and again; correct the server, or --base-url",
    ),
    (("RemoteProtocolError",), ""),
    (
        ("ReadError", "WriteError", "ConnectionResetError", "BrokenResourceError", "EndOfStream"),
        "connection closed: {place} closed the connection before its answer was complete; if it expects TLS, write "
        "https:// in --base-url",
    ),
    (
        ("UnsupportedProtocol", "LocalProtocolError", "InvalidURL"),
        "wrong address: {place}: {message}; correct --base-url",
    ),
)
"""Classes of errors, the most specific first, and the sentence for each; an empty one depends on more."""


def describe_fault(error: BaseException, address: str | None, seconds: int | None) -> str | None:
    """Describe a failed exchange with a server.

    Args:
        error: What the client of the model raised.
        address: Where the server is, without credentials; None where it is not known.
        seconds: Time limit of one attempt.

    Returns:
        One line that names the kind of failure, the address and what to change; None for any other error.

    Example:
        >>> describe_fault(ConnectionRefusedError(), "http://localhost:8000", 60)
        'connection refused: nothing listens at http://localhost:8000; start the server, or correct --base-url'
    """
    place = address or "the server"
    causes = {type(one).__name__: one for one in reversed(list(_chain(error)))}
    for names, sentence in _SENTENCES:
        cause = next((causes[name] for name in names if name in causes), None)
        if cause is None:
            continue
        if isinstance(cause, ssl.SSLError):
            return _describe_tls(cause, place)
        if not sentence:
            return _describe_protocol(str(cause), place)
        limit = f" within {seconds} s" if seconds else ""
        return sentence.format(place=place, message=make_printable(str(cause)), limit=limit)
    return None


def _describe_tls(error: ssl.SSLError, place: str) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message or "certificate verify failed"
        return (
            f"TLS failure: the certificate of {place} is not trusted ({why}); name a file with its authority in "
            f"SSL_CERT_FILE, or correct --base-url"
        )
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"):
        return f"TLS failure: {place} does not speak TLS; write http:// in --base-url, or serve the model with TLS"
    return f"TLS failure: {place}: {error.reason or error}; check the server's TLS settings, or correct --base-url"


def _describe_protocol(message: str, place: str) -> str:
    if "without sending" in message:
        return f"connection closed: {place} closed the connection before its answer was complete ({message})"
    return (
        f"damaged answer: what {place} sent is no HTTP answer ({make_printable(message)}); if it expects TLS, write "
        f"https:// in --base-url"
    )


def find_cause(error: BaseException, *kinds: type[BaseException]) -> BaseException | None:
    """The error of one of these kinds that caused an error, or is it; None where there is none."""
    return next((one for one in _chain(error) if isinstance(one, kinds)), None)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those that caused it, the last of several attempts first."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < _LONGEST_CHAIN:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
        waiting += [cause for cause in (one.__cause__, one.__context__) if cause is not None]
