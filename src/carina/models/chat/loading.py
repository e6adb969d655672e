"""A vision-language model in the layout in which transformers publishes it: found on this machine, and loaded.

Nothing is fetched from anywhere: what is not here is named, with how to get it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from carina.errors import CarinaError
from carina.models.extra import require
from carina.models.weights import CONFIG, WEIGHTS, Checkpoint

_HUB_ID: Final = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_DTYPES: Final = ("auto", "float32", "bfloat16", "float16")
_PARTS: Final = {
    "image_processor": "AutoImageProcessor",
    "tokenizer": "AutoTokenizer",
    "feature_extractor": "AutoFeatureExtractor",
}
"""What a processor is made of, and which class of transformers loads it."""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A model and what prepares its input."""

    name: str
    """Of the folder or on the hub: says nothing of the machine."""
    path: Path
    model: Any
    processor: Any
    torch: Any
    transformers: Any

    @property
    def context(self) -> int | None:
        """How many tokens prompt and answer may have together; None where the model does not say."""
        most = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return most if isinstance(most, int) else None

    @property
    def ends(self) -> frozenset[int]:
        """Tokens that end an answer."""
        told = self.model.generation_config.eos_token_id
        if told is None:
            told = self.processor.tokenizer.eos_token_id
        return frozenset([told] if isinstance(told, int) else told or ())

    def up_to_end(self, row: list[int]) -> list[int]:
        """An answer's tokens with the one that ends it, without what fills up a batch."""
        ends = self.ends
        return row[: next((place for place, token in enumerate(row) if token in ends), len(row)) + 1]


def load(
    named: str,
    *,
    trust_remote_code: bool,
    device: str | None,
    dtype: str | None,
    attention: str | None = None,
) -> Loaded:
    """The model of a folder or hub id. Code that comes with it is run only where the caller trusts it.

    `attention` is how transformers computes it: "eager" for weights that can be looked at, None for the fastest.
    """
    torch, transformers = require("torch", "transformers")
    name, path = folder_of(named)
    checkpoint = Checkpoint.of(path)
    where = _device(torch, device)
    if dtype is not None and dtype not in _DTYPES:
        raise CarinaError(f"dtype {dtype!r}: unknown; known are {', '.join(_DTYPES)}")
    if not trust_remote_code:
        _refuse_code(transformers, checkpoint)
    # Half precision is what a GPU is fast at and a CPU is not.
    numbers = dtype or ("float32" if where.type == "cpu" else "auto")
    with quiet(transformers):
        try:
            processor = _processor(transformers, checkpoint, trust_remote_code=trust_remote_code)
        except Exception as error:
            raise CarinaError(
                f"{path}: what prepares its input cannot be loaded: {first_line(error)}"
            ) from error
        model = _model(
            transformers, path, dtype=numbers, trust_remote_code=trust_remote_code, attention=attention
        )
    tokenizer = processor.tokenizer
    # Answers are written at the right end of a prompt: short ones of a batch are filled up on the left.
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return Loaded(
        name=name,
        path=path,
        model=model.to(where).eval(),
        processor=processor,
        torch=torch,
        transformers=transformers,
    )


def folder_of(named: str) -> tuple[str, Path]:
    """Name and folder of a model: a folder of this machine, or what was downloaded from the hub."""
    path = Path(named).expanduser()
    if path.is_dir():
        return path.resolve().name, path
    if not _HUB_ID.fullmatch(named):
        raise CarinaError(
            f"{path}: no such folder; expected one with {CONFIG} and {WEIGHTS} as transformers saves, "
            "or the id of a model on the hub, OWNER/NAME"
        )
    (hub,) = require("huggingface_hub")
    try:
        return named, Path(hub.snapshot_download(named, local_files_only=True))
    except (OSError, ValueError):  # all that the hub's library raises where something is not there
        raise CarinaError(
            f"hf:{named}: neither a folder nor among the downloads in {hub.constants.HF_HUB_CACHE}; "
            f"get it with: hf download {named}"
        ) from None


def _device(torch: Any, device: str | None) -> Any:  # noqa: ANN401 - torch is not there for everybody
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        where = torch.device(device)
    except RuntimeError:
        raise CarinaError(f"device {device!r}: unknown; expected cpu, cuda, cuda:1 or mps") from None
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there.get(where.type, False):
        raise CarinaError(f"device {device!r}: not on this machine, or torch was built without it")
    return where


def _refuse_code(transformers: Any, checkpoint: Checkpoint) -> None:  # noqa: ANN401
    kind = checkpoint.config.get("model_type")
    if kind not in transformers.CONFIG_MAPPING:
        told = (
            "it brings code of its own, which is run only with --trust-remote-code"
            if "auto_map" in checkpoint.config
            else f"transformers {transformers.__version__} does not know it"
        )
        raise CarinaError(f"{checkpoint.path / CONFIG}: model_type {kind!r}: {told}")


def _processor(transformers: Any, checkpoint: Checkpoint, *, trust_remote_code: bool) -> Any:  # noqa: ANN401
    """Pictures are prepared with Pillow where torchvision is absent, as it is in the extra `torch`."""
    opened, model_type = transformers.AutoProcessor, checkpoint.config.get("model_type")
    if not transformers.utils.is_torchvision_available() and model_type in transformers.CONFIG_MAPPING:
        kind = transformers.PROCESSOR_MAPPING.get(transformers.CONFIG_MAPPING[model_type], None)
        if kind is not None and "video_processor" in kind.get_attributes():
            opened = _without_films(transformers, kind)
    return opened.from_pretrained(
        str(checkpoint.path), local_files_only=True, trust_remote_code=trust_remote_code
    )


def _without_films(transformers: Any, kind: Any) -> Any:  # noqa: ANN401
    """A class of processor without its part for films, which torchvision alone can prepare and nobody shows here."""

    def check_argument_for_proper_class(self: Any, name: str, part: object) -> object:  # noqa: ANN401
        return None if part is None else kind.check_argument_for_proper_class(self, name, part)

    @classmethod  # type: ignore[misc]  # becomes a method of the class below
    def _get_arguments_from_pretrained(
        cls: Any,  # noqa: ANN401
        path: str,
        processor_dict: object = None,
        **options: object,
    ) -> list[object]:
        del processor_dict
        return [
            getattr(transformers, _PARTS[name]).from_pretrained(path, **options) if name in _PARTS else None
            for name in cls.get_attributes()
        ]

    methods = {
        "check_argument_for_proper_class": check_argument_for_proper_class,
        "_get_arguments_from_pretrained": _get_arguments_from_pretrained,
    }
    return type(kind.__name__, (kind,), methods)


def _model(
    transformers: Any,  # noqa: ANN401
    path: Path,
    *,
    dtype: str,
    trust_remote_code: bool,
    attention: str | None,
) -> Any:  # noqa: ANN401
    """The model with every one of its weights from the folder; transformers would fill gaps with random numbers."""
    try:
        model, info = transformers.AutoModelForImageTextToText.from_pretrained(
            str(path),
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=trust_remote_code,
            dtype=dtype,
            attn_implementation=attention,
            output_loading_info=True,
        )
    except Exception as error:
        # Whatever transformers or safetensors raise on foreign files, the place to look is this folder.
        raise CarinaError(
            f"{path}: cannot be loaded as a model that takes images and text: {first_line(error)}"
        ) from error
    missing = sorted(map(str, [*info["missing_keys"], *info["mismatched_keys"]]))
    if missing:
        raise CarinaError(
            f"{path}: {len(missing)} weights of {type(model).__name__} are missing or of another shape, "
            f"first {missing[0]}"
        )
    return model


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:  # noqa: ANN401
    """Without the bars and remarks of transformers."""
    logging = transformers.utils.logging
    verbosity, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()


def first_line(error: BaseException) -> str:
    """What an error says, for a sentence."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
