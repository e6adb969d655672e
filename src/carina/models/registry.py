"""The registry of model kinds, the parser of model names, and `open`.

| name | model |
|---|---|
| `KIND:LOCATION` | weights in a folder of this machine: `hf:weights/medgemma`, `sam:weights/medsam` |
| `builtin/NAME`, `control/NAME` | comes with Carina and needs no weights |
| `PROVIDER/NAME` | served, by a provider of inspect-ai: `openai/gpt-5` |

A kind is one function or class with the decorator `model_kind`: in a module of this package, in a package to the right
of it, or in another installed package that announces the module in the entry-point group `carina.models`.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

from carina.models.conversation import RequestOptions, Sampling
from carina.store.errors import CarinaError
from carina.store.registry import Registry

Capability = Literal["chat", "text", "maps", "segments"]
SERVED: Final = "served"
"""The kind of every `PROVIDER/NAME`."""
OPTION_PREFIX: Final = "model:"
"""Marks a model's name where an option also takes other values."""


class _Phrases(NamedTuple):
    can: str
    cannot: str


_PHRASES: Final[dict[Capability, _Phrases]] = {
    "chat": _Phrases("answer questions about images", "answer no questions about images"),
    "text": _Phrases("answer text prompts", "answer no text prompts"),
    "maps": _Phrases("make localisation maps", "make no localisation maps"),
    "segments": _Phrases("outline regions", "outline no regions"),
}


@dataclass(frozen=True, kw_only=True)
class ModelIdentity:
    """What decides a model's answers, for manifests."""

    name: str
    weights: str
    """SHA-256 of the weights."""
    settings: str
    """SHA-256 of the files that say how inputs are prepared and how the layers are put together."""


@dataclass(frozen=True, kw_only=True)
class ModelName:
    """A parsed model name.

    Example:
        >>> parse_model_name("openai/gpt-5").kind
        'served'
    """

    text: str
    """The name as the user wrote it."""
    kind: str
    """Name of the kind in the registry: "hf", "sam", "served", "builtin/oracle"."""
    location: str = ""
    """Path, hub id or provider's name; empty for a model that comes with Carina."""
    capabilities: tuple[Capability, ...] = ()
    function: Any = None
    """The Python function that was given in the place of a name (`carina.models.function`)."""

    @property
    def is_served(self) -> bool:
        """Whether the model answers through a server rather than in this process."""
        return self.kind == SERVED

    @property
    def path(self) -> Path:
        """The location as a path of this machine."""
        return Path(self.location).expanduser()

    @property
    def name(self) -> str:
        """The name without the folders above the model, so that it says nothing about the machine."""
        if self.is_served or not self.location or not self.path.exists():
            return self.text
        return f"{self.kind}:{self.path.resolve().name}"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What a kind may need to open a model; each kind reads the options that concern it."""

    needs: Capability = "chat"
    device: str | None = None
    """Device for torch or onnxruntime, such as cpu, cuda or cuda:1; None for the kind's own choice."""
    trust_remote_code: bool = False
    """Whether code that comes with the weights may run."""
    base_url: str | None = None
    """Address of the server of a served model; None for its provider's own."""
    sampling: Sampling = field(default_factory=Sampling)
    request: RequestOptions = field(default_factory=RequestOptions)
    seed: int = 0
    """For models that answer at random."""
    benchmark: Any = None
    """Opened benchmark that will be asked, for models that learn from it or know its answer keys."""
    retries: int = 5
    """Retries after a transport error."""
    timeout: int = 300
    """Seconds for one attempt at an answer."""
    connections: int | None = None
    """Requests at a time."""


Opener = Callable[[ModelName, ModelOptions], object]
"""Opens a model: a function, or a class whose instances are models."""
AnyOpener = TypeVar("AnyOpener", bound=Opener)


@dataclass(frozen=True, kw_only=True)
class ModelKind:
    """One kind of model in the registry."""

    name: str
    """The part before the colon, or the whole name of a built-in model."""
    form: str
    """How users name a model of this kind: "hf:PATH or hf:OWNER/NAME"."""
    description: str
    capabilities: tuple[Capability, ...]
    open: Opener
    extra: str | None = None
    """Extra of Carina that the kind needs."""
    packages: tuple[str, ...] = ()
    """Packages that run the model; a run records their versions."""
    identify: Callable[[ModelName], ModelIdentity] | None = None
    """Identity from the files alone, without loading anything; raises where the model could not be opened."""
    fingerprint: Callable[[ModelName], str] | None = None
    """Quick fingerprint of the files, which tells two folders of one name apart."""
    request_options: tuple[str, ...] = ()
    """Names of the options of `RequestOptions` that models of the kind heed."""
    takes_examples: bool = False
    """Whether its models read `examples` of a turn: cases with right answers, before the case in question."""


_REGISTERED_BY: Final = {
    "builtin": "carina.runs.builtin",
    "onnx": "carina.runs.classifier",
    "control": "carina.explanations.explainer_registry",
    "files": "carina.explanations.explainer_registry",
}
"""Modules outside this package that register models, by kind or by the part before the slash."""
MODELS: Final[Registry[ModelKind]] = Registry(
    "model kind",
    group="carina.models",
    package="carina.models",
    modules=tuple(_REGISTERED_BY.values()),
    entry_type=ModelKind,
)


def model_kind(
    name: str,
    *,
    capabilities: Sequence[Capability],
    form: str | None = None,
    description: str | None = None,
    extra: str | None = None,
    packages: Sequence[str] = (),
    identify: Callable[[ModelName], ModelIdentity] | None = None,
    fingerprint: Callable[[ModelName], str] | None = None,
    request_options: Sequence[str] = (),
    takes_examples: bool = False,
) -> Callable[[AnyOpener], AnyOpener]:
    """Register a function or class that opens models of a kind.

    Args:
        name: What stands before the colon in `NAME:LOCATION`. Models of Carina that need no location have a whole
            name instead, `builtin/NAME` or `control/NAME`.
        capabilities: What models of the kind can do: "chat" (answer questions about images), "text" (answer text
            prompts), "maps" (make localisation maps), "segments" (outline regions).
        form: How users name such a model; `NAME:PATH` by default.
        description: One line for listings; the first line of the docstring by default.
        extra: Extra of Carina that the kind needs.
        packages: Distributions whose versions a run records.
        identify: Gives the identity of a model from its files alone.
        fingerprint: Gives a quick fingerprint of a model's files.
        request_options: Names of the options of `RequestOptions` that models of the kind heed; others are refused.
        takes_examples: Whether models of the kind read `turn.examples`; otherwise `carina run --examples` refuses them.

    Returns:
        A decorator that returns its argument unchanged.

    Raises:
        ValueError: The name is taken, or has a slash and would be taken for a served model.

    Example:
        >>> @model_kind("always-yes", capabilities=["chat"])
        ... class AlwaysYes:
        ...     '''Answers every question with yes.'''
    """

    if "/" in name and name.partition("/")[0] not in _REGISTERED_BY:
        raise ValueError(
            f"model kind {name!r}: names with a slash are served models; expected NAME or builtin/NAME"
        )

    def register(opener: AnyOpener) -> AnyOpener:
        MODELS.register(
            name,
            ModelKind(
                name=name,
                form=form or (name if "/" in name else f"{name}:PATH"),
                description=description or (opener.__doc__ or "").strip().partition("\n")[0],
                capabilities=tuple(capabilities),
                open=opener,
                extra=extra,
                packages=tuple(packages),
                identify=identify,
                fingerprint=fingerprint,
                request_options=tuple(request_options),
                takes_examples=takes_examples,
            ),
        )
        return opener

    return register


def parse_model_name(text: str, *, needs: Capability | None = None) -> ModelName:
    """Parse the name of a model. Nothing is opened, and no file is read.

    Args:
        text: `KIND:LOCATION`, `PROVIDER/NAME`, or the name of a model that comes with Carina.
        needs: What the model must be able to do; None accepts every model.

    Returns:
        The parts of the name.

    Raises:
        CarinaError: The kind is unknown, or models of the kind cannot do what is needed. The message lists the
            models that can.

    Example:
        >>> parse_model_name("builtin/oracle", needs="chat").capabilities
        ('chat',)
    """
    kind, location = _split_name(text, needs)
    found = MODELS[kind]
    if needs is not None and needs not in found.capabilities:
        can = " and ".join(_PHRASES[capability].can for capability in found.capabilities)
        raise CarinaError(
            f"model {text!r}: {_plural(kind)} {can}; they {_PHRASES[needs].cannot}. "
            f"Models that {_PHRASES[needs].can}: {', '.join(_known_forms(needs))}."
        )
    return ModelName(text=text, kind=kind, location=location, capabilities=found.capabilities)


def parse_model_option(value: str, option: str, *, needs: Capability = "text") -> ModelName:
    """Parse the value of an option that takes `model:NAME`, as `--extractor model:openai/gpt-5` does.

    Args:
        value: The value that was given.
        option: The option as error messages name it.
        needs: What the model must be able to do.

    Returns:
        The name of the model in its parts.

    Raises:
        CarinaError: The value has no such prefix, or the model cannot do what is needed; the message names the option.

    Example:
        >>> parse_model_option("model:openai/gpt-5", "--extractor").text
        'openai/gpt-5'
    """
    name = value.removeprefix(OPTION_PREFIX)
    if name == value:
        raise CarinaError(f"{option} {value!r}: expected {OPTION_PREFIX}NAME, such as model:openai/gpt-5")
    try:
        return parse_model_name(name, needs=needs)
    except CarinaError as error:
        raise CarinaError(f"{option} {value!r}: {error}") from None


def open_model(
    name: str | ModelName,
    *,
    needs: Capability = "chat",
    device: str | None = None,
    trust_remote_code: bool = False,
    base_url: str | None = None,
    sampling: Sampling | None = None,
    request: RequestOptions | None = None,
    seed: int = 0,
    benchmark: object = None,
    retries: int = 5,
    timeout: int = 300,
    connections: int | None = None,
) -> Any:  # noqa: ANN401 - depends on what is needed
    """Open a model by its name.

    Args:
        name: Name of the model, or the result of `parse_model_name`.
        needs: What the model must be able to do.
        device: Device for torch or onnxruntime: cpu, cuda, cuda:1, mps; None for the kind's own choice.
        trust_remote_code: Whether code that comes with the weights may run.
        base_url: Address of the server of a served model; None for its provider's own.
        sampling: Temperature, longest answer and seed of a chat model.
        request: Further options of a request to a chat model; those that it does not heed are refused.
        seed: For models that answer at random.
        benchmark: Opened benchmark that will be asked; `builtin/majority` and `builtin/oracle` need it.
        retries: Retries after a transport error, for a served model.
        timeout: Seconds for one attempt at an answer, for a served model.
        connections: Requests at a time, for a served model; None for its provider's default.

    Returns:
        For "segments" a `Segmenter`. For "chat" a `ChatModel`, or a `ServedModel` for a served one; for "text" a
        `ServedModel`. For "maps" a `ClipModel`, a loaded chat model, or an explainer of `carina.explanations`.

    Raises:
        CarinaError: The name is unknown, the model cannot do what is needed, or its files or an extra are missing.

    Example:
        >>> from carina import models
        >>> models.open("builtin/random", seed=1).name
        'builtin/random'
    """
    text = name.text if isinstance(name, ModelName) else name
    parsed = parse_model_name(text, needs=needs)
    request = request or RequestOptions()
    refuse_request_options(parsed, request)
    options = ModelOptions(
        needs=needs,
        device=device,
        trust_remote_code=trust_remote_code,
        base_url=base_url,
        sampling=sampling or Sampling(),
        request=request,
        seed=seed,
        benchmark=benchmark,
        retries=retries,
        timeout=timeout,
        connections=connections,
    )
    return MODELS[parsed.kind].open(parsed, options)


def refuse_request_options(name: ModelName, request: RequestOptions) -> None:
    """Refuse options of a request that models of a kind do not heed.

    Raises:
        CarinaError: An option that is given is not heeded; the message names it and those that are.

    Example:
        >>> refuse_request_options(parse_model_name("builtin/oracle"), RequestOptions(top_p=0.9))
        Traceback (most recent call last):
        carina.store.errors.CarinaError: model 'builtin/oracle': --top-p does not apply; models such as ...
    """
    heeded = MODELS[name.kind].request_options
    unheeded = [option for option in request.to_record() if option not in heeded]
    if unheeded:
        known = f"only {name_options(heeded)}" if heeded else "no such option"
        raise CarinaError(
            f"model {name.text!r}: {name_options(unheeded)} does not apply; {_plural(name.kind)} take {known}"
        )


def name_options(names: Sequence[str]) -> str:
    """Options of a request as the command line spells them."""
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def identify_model(name: str, *, needs: Capability | None = None) -> ModelIdentity:
    """Identify a model from its files alone. Nothing is loaded.

    Args:
        name: Name of the model, such as "hf:PATH".
        needs: What the model must be able to do; None for anything.

    Returns:
        The identity of the model, with the checksum of its weights.

    Raises:
        CarinaError: The name is unknown, files or packages are missing, or models of this kind have no identity.

    Example:
        >>> identify_model("builtin/reader")
        Traceback (most recent call last):
        carina.store.errors.CarinaError: model 'builtin/reader': models such as builtin/reader have no weights ...
    """
    parsed = parse_model_name(name, needs=needs)
    identify = MODELS[parsed.kind].identify
    if identify is None:
        raise CarinaError(f"model {name!r}: {_plural(parsed.kind)} have no weights that could be identified")
    return identify(parsed)


def fingerprint_model(name: ModelName) -> str | None:
    """A quick fingerprint of a model's files; None for models without files on this machine."""
    fingerprint = MODELS[name.kind].fingerprint
    return None if fingerprint is None else fingerprint(name)


def _split_name(text: str, needs: Capability | None) -> tuple[str, str]:
    """Kind and location; the kind is in the registry."""
    head, colon, location = text.partition(":")
    if colon and "/" not in head:
        if location and head != SERVED and _is_registered(head, head):
            return head, location
        raise CarinaError(_unknown(text, needs))
    provider, slash, rest = text.partition("/")
    if provider in _REGISTERED_BY:
        if _is_registered(text, provider):
            return text, ""
    elif slash and provider and rest.strip("/"):
        return SERVED, text
    raise CarinaError(_unknown(text, needs))


def _is_registered(name: str, group: str) -> bool:
    """Whether there is such a kind; imports no more modules than it needs to find it."""
    if group in _REGISTERED_BY:
        import_module(_REGISTERED_BY[group])
    try:
        MODELS[name]
    except CarinaError:
        return False
    return True


def _unknown(text: str, needs: Capability | None) -> str:
    which = "Known models" if needs is None else f"Models that {_PHRASES[needs].can}"
    forms = _known_forms(needs)
    close = get_close_matches(text, forms, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    return f"model {text!r}: unknown.{hint} {which}: {', '.join(forms)}."


def _known_forms(needs: Capability | None) -> list[str]:
    kinds = MODELS.entries().values()
    return [kind.form for kind in kinds if needs is None or needs in kind.capabilities]


def _plural(kind: str) -> str:
    """The plural name of a kind for messages."""
    if kind == SERVED:
        return "served models"
    return f"models such as {kind}" if "/" in kind else f"{kind}: models"


def count_processes(model: str | ModelName, processes: int | None, engine: str = "local") -> int:
    """Number of processes that can run a model.

    Args:
        model: Name of the model.
        processes: Number that the caller wants; None for one per core.
        engine: "local" or "ray".

    Returns:
        The number; 1 by default for a Python function, and for a kind of model that the running script or notebook has
        registered, because other processes do not know it.

    Raises:
        CarinaError: Other processes are wanted for such a model.

    Example:
        >>> count_processes("builtin/oracle", 4)
        4
    """
    name = model if isinstance(model, ModelName) else parse_model_name(model)
    is_function = name.kind == "function"
    if not is_function and getattr(MODELS[name.kind].open, "__module__", "") != "__main__":
        return processes or os.cpu_count() or 1
    if (processes or 1) > 1 or engine != "local":
        if is_function:
            raise CarinaError(
                f"model {name.text!r}: a Python function runs in this process alone; use one local process"
            )
        raise CarinaError(
            f"model {name.text!r}: kind {name.kind!r} is registered by the running script, so other processes do not "
            "know it. Use one local process, or put the kind into a module of an installed package with an entry point"
        )
    return 1
