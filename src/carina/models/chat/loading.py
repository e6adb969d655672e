"""Find and load a vision-language model in the layout of transformers.

Nothing is downloaded: an error names the missing file, and how to get it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from carina.models.device import select_device
from carina.models.extra import require
from carina.models.weights import CONFIG, WEIGHTS, Checkpoint
from carina.store.errors import CarinaError

_HUB_ID: Final = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_DTYPES: Final = ("auto", "float32", "bfloat16", "float16")
_PARTS: Final = {
    "image_processor": "AutoImageProcessor",
    "tokenizer": "AutoTokenizer",
    "feature_extractor": "AutoFeatureExtractor",
}
"""Parts of a processor, and the class of transformers that loads each."""


@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A loaded model with its processor."""

    name: str
    """Name of the folder, or hub id; not a path of this machine."""
    path: Path
    model: Any
    processor: Any
    torch: Any
    transformers: Any

    @property
    def context(self) -> int | None:
        """Most tokens of prompt and answer together; None if the model does not state it."""
        most = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return most if isinstance(most, int) else None

    @property
    def ends(self) -> frozenset[int]:
        """Tokens that end an answer."""
        tokens = self.model.generation_config.eos_token_id
        if tokens is None:
            tokens = self.processor.tokenizer.eos_token_id
        return frozenset([tokens] if isinstance(tokens, int) else tokens or ())

    def up_to_end(self, row: list[int]) -> list[int]:
        """An answer's tokens up to the one that ends it, without padding."""
        ends = self.ends
        return row[: next((place for place, token in enumerate(row) if token in ends), len(row)) + 1]


def load_model(
    named: str,
    *,
    trust_remote_code: bool,
    device: str | None,
    dtype: str | None,
    attention: str | None = None,
) -> LoadedModel:
    """Load the model of a folder or hub id.

    Args:
        named: Folder, or hub id `OWNER/NAME`.
        trust_remote_code: Whether code that comes with the weights may run.
        device: Device of torch; None takes a GPU where there is one.
        dtype: Number format; None takes the model's own on a GPU, and float32 on the CPU.
        attention: Implementation of attention: "eager" gives attention weights, None is the fastest.
    """
    torch, transformers = require("torch", "transformers")
    name, path = find_model_folder(named)
    checkpoint = Checkpoint.of(path)
    checkpoint.check_settings()
    where = select_device(torch, device)
    if dtype is not None and dtype not in _DTYPES:
        raise CarinaError(f"dtype {dtype!r}: unknown; known are {', '.join(_DTYPES)}")
    if not trust_remote_code:
        _refuse_code(transformers, checkpoint)
    # A GPU is fast at half precision, a CPU is not.
    numbers = dtype or ("float32" if where.type == "cpu" else "auto")
    with silence_transformers(transformers):
        try:
            processor = _load_processor(transformers, checkpoint, trust_remote_code=trust_remote_code)
        except Exception as error:
            raise CarinaError(f"{path}: its processor cannot be loaded: {first_line(error)}") from error
        model = _load_weights(
            transformers, path, dtype=numbers, trust_remote_code=trust_remote_code, attention=attention
        )
    tokenizer = processor.tokenizer
    # Answers are generated at the right end of a prompt, so shorter prompts of a batch are padded on the left.
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return LoadedModel(
        name=name,
        path=path,
        model=model.to(where).eval(),
        processor=processor,
        torch=torch,
        transformers=transformers,
    )


def find_model_folder(named: str) -> tuple[str, Path]:
    """Name and folder of a model: a folder of this machine, or a download from the hub."""
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
    except (OSError, ValueError):  # the errors of the hub's library for missing files
        raise CarinaError(
            f"hf:{named}: neither a folder nor among the downloads in {hub.constants.HF_HUB_CACHE}; "
            f"get it with: hf download {named}"
        ) from None


def _refuse_code(transformers: Any, checkpoint: Checkpoint) -> None:  # noqa: ANN401
    kind = checkpoint.config.get("model_type")
    if kind not in transformers.CONFIG_MAPPING:
        reason = (
            "it comes with its own code, which runs only with --trust-remote-code"
            if "auto_map" in checkpoint.config
            else f"transformers {transformers.__version__} does not know it"
        )
        raise CarinaError(f"{checkpoint.path / CONFIG}: model_type {kind!r}: {reason}")


def _load_processor(transformers: Any, checkpoint: Checkpoint, *, trust_remote_code: bool) -> Any:  # noqa: ANN401
    """Load the processor. Without torchvision, which the extra `torch` lacks, Pillow prepares images."""
    opened, model_type = transformers.AutoProcessor, checkpoint.config.get("model_type")
    if not transformers.utils.is_torchvision_available() and model_type in transformers.CONFIG_MAPPING:
        kind = transformers.PROCESSOR_MAPPING.get(transformers.CONFIG_MAPPING[model_type], None)
        if kind is not None and "video_processor" in kind.get_attributes():
            opened = _remove_video_part(transformers, kind)
    return opened.from_pretrained(
        str(checkpoint.path), local_files_only=True, trust_remote_code=trust_remote_code
    )


def _remove_video_part(transformers: Any, kind: Any) -> Any:  # noqa: ANN401
    """A processor class without its video part, which needs torchvision and is not used here."""

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


def _load_weights(
    transformers: Any,  # noqa: ANN401
    path: Path,
    *,
    dtype: str,
    trust_remote_code: bool,
    attention: str | None,
) -> Any:  # noqa: ANN401
    """Load the model, and refuse missing weights, which transformers would fill with random numbers."""
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
        # Transformers and safetensors raise many kinds of errors; all of them are about this folder.
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
def silence_transformers(transformers: Any) -> Iterator[None]:  # noqa: ANN401
    """Silence the progress bars and warnings of transformers."""
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
    """First line of an error's message."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
