"""The kinds of CLIP-style models: `clip:PATH`, `chexzero:PATH` and the others, each declared once.

Needs no torch before a model is opened. A declaration names the module and function of this package that open the
kind from its folder and weights.
"""

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, cast

from carina.models.clip.interface import ClipModel
from carina.models.clip.model_folder import TEXT, ModelFolder, list_checkpoints
from carina.models.device import select_device
from carina.models.extra import check, require
from carina.models.registry import ModelIdentity, ModelName, ModelOptions, model_kind, parse_model_name
from carina.models.weights import Checkpoint
from carina.store.errors import CarinaError


@dataclass(frozen=True)
class ClipKind:
    """One kind of CLIP-style model."""

    opened_by: str
    """Module of this package and function in it, imported when the first model of the kind is opened."""
    download: str
    """What to download when there are no weights."""
    has_text_weights: bool = False
    """Whether its text tower is published apart, as `TEXT`."""
    native_options: Mapping[str, str | float] = field(default_factory=dict)
    """Options of its native method, where its publication chose others than the method's defaults."""


KINDS: Final[dict[str, ClipKind]] = {
    "clip": ClipKind(
        "transformers_layout:open_clip",
        "download a CLIP with a vision transformer, in the layout of transformers or open_clip, with its config and "
        "tokenizer files (openai/clip-vit-base-patch32, StanfordAIMI's XrayCLIP) and put all into this folder",
    ),
    "siglip": ClipKind(
        "transformers_layout:open_siglip",
        "download a SigLIP with config.json, preprocessor_config.json and tokenizer.json (google/medsiglip-448, "
        "StanfordAIMI's XraySigLIP) and put all into this folder",
    ),
    "biomedclip": ClipKind(
        "openclip:open_biomedclip",
        "download microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224, convert its weights with `carina "
        "convert-checkpoint --kind biomedclip` and put them here with open_clip_config.json and tokenizer.json",
    ),
    "chexzero": ClipKind(
        "chexzero:open_model",
        "download a checkpoint that github.com/rajpurkarlab/CheXzero links to, convert it with `carina "
        "convert-checkpoint --kind chexzero` and put it here with vocab.json and merges.txt of "
        "openai/clip-vit-base-patch32",
    ),
    "medclip": ClipKind(
        "medclip:open_model",
        "download the checkpoint that github.com/RyanWangZf/MedCLIP links to, convert it with `carina "
        "convert-checkpoint --kind medclip` and put it here with vocab.txt of emilyalsentzer/Bio_ClinicalBERT",
    ),
    "biovil": ClipKind(
        "biovil:open_model",
        "download biovil_image_resnet50_proj_size_128.pt of microsoft/BiomedVLP-CXR-BERT-specialized, convert it "
        "with `carina convert-checkpoint --kind biovil` to model.safetensors and the weights of the text model "
        f"with `--kind bert` to {TEXT}, and put both here with its vocab.txt",
        has_text_weights=True,
    ),
    "biovil-t": ClipKind(
        "biovil:open_temporal",
        "download biovil_t_image_model_proj_size_128.pt of microsoft/BiomedVLP-BioViL-T, convert it with `carina "
        "convert-checkpoint --kind biovil-t` to model.safetensors and the weights of the text model with `--kind "
        f"bert` to {TEXT}, and put both here with its vocab.txt",
        has_text_weights=True,
    ),
    "gloria": ClipKind(
        "gloria:open_gloria",
        "download chexpert_resnet50.ckpt, which github.com/marshuang80/gloria links to, convert it with `carina "
        "convert-checkpoint --kind gloria` and put it here with vocab.txt of emilyalsentzer/Bio_ClinicalBERT",
    ),
    "afloc": ClipKind(
        "gloria:open_afloc",
        "download the checkpoint that github.com/YH0517/AFLoc links to, convert it with `carina convert-checkpoint "
        "--kind afloc` and put it here with vocab.txt of emilyalsentzer/Bio_ClinicalBERT",
        native_options={"measure": "dot", "sigma": 1.5},
    ),
    "medklip": ClipKind(
        "medklip:open_model",
        "download the checkpoint that github.com/MediaBrain-SJTU/MedKLIP links to, convert it with `carina "
        "convert-checkpoint --kind medklip` to model.safetensors and the weights of "
        f"emilyalsentzer/Bio_ClinicalBERT with `--kind bert` to {TEXT}, and put both here with the vocab.txt of the "
        "latter and 'observation explanation.json' of the former",
        has_text_weights=True,
    ),
    "kad": ClipKind(
        "kad:open_model",
        "download a checkpoint that github.com/xiaoman-zhang/KAD links to, convert it with `carina "
        "convert-checkpoint --kind kad` and put it here with vocab.txt of "
        "microsoft/BiomedNLP-PubMedBERT-base-uncased-abstract-fulltext",
        native_options={"layers": "last"},
    ),
    "mavl": ClipKind(
        "mavl:open_model",
        "download the checkpoint that github.com/HieuPhan33/CVPR2024_MAVL links to, convert it with `carina "
        "convert-checkpoint --kind mavl` to model.safetensors and the weights of emilyalsentzer/Bio_ClinicalBERT "
        f"with `--kind bert` to {TEXT}, and put both here with the vocab.txt of the latter and 'observation "
        "explanation.json' and gpt4_mimic.json of the former",
        has_text_weights=True,
    ),
    "carzero": ClipKind(
        "carzero:open_model",
        "download the checkpoint that github.com/laihaoran/CARZero links to, convert it with `carina "
        "convert-checkpoint --kind carzero` and put it here with vocab.txt of Laihaoran/BioClinicalMPBERT",
    ),
}


def open_clip_model(name: str, device: str | None = None) -> ClipModel:
    """Open the model of a name such as "chexzero:weights/chexzero", in single precision; on the CPU by default."""
    return _open_checkpoint(*_split_name(name), device)


def open_ensemble(name: str, device: str | None = None) -> tuple[ClipModel, ...]:
    """Open a model for every weight file of a folder, in the order of their names; CheXzero is published as several.

    A folder that holds one model gives that model alone.
    """
    kind, path = _split_name(name)
    files = list_checkpoints(path)
    return tuple(_open_checkpoint(kind, file, device) for file in files or (path,))


def native_options(name: str) -> Mapping[str, str | float]:
    """Options with which a model's native method makes the maps of its publication, beyond the method's defaults."""
    kind, _ = _split_name(name)
    return KINDS[kind].native_options


def _split_name(name: str) -> tuple[str, Path]:
    parsed = parse_model_name(name, needs="maps")
    if parsed.kind not in KINDS:
        raise CarinaError(f"model {name!r}: not a CLIP-style model; expected one of {', '.join(KINDS)}")
    return parsed.kind, parsed.path


def _find_folder(kind: str, path: Path) -> ModelFolder:
    declared = KINDS[kind]
    folder = ModelFolder.find(kind, path, download=declared.download)
    if not declared.has_text_weights:
        return folder
    if not folder.has(TEXT):
        raise CarinaError(f"{folder.path / TEXT}: missing; {declared.download}")
    return replace(folder, checkpoint=Checkpoint(folder.path, (*folder.checkpoint.files, folder.path / TEXT)))


def _open_checkpoint(kind: str, path: Path, device: str | None) -> ClipModel:
    folder = _find_folder(kind, path)
    torch, _ = require("torch", "transformers")
    where = select_device(torch, device, default="cpu")
    package = __name__.rpartition(".")[0]
    weights = importlib.import_module(f"{package}.state_dict").Weights.read(folder.checkpoint.files, where)
    module, _, function = KINDS[kind].opened_by.partition(":")
    open_model = getattr(importlib.import_module(f"{package}.{module}"), function)
    try:
        # Within the device, every layer and every buffer is made there.
        with _without_warnings(), where:
            return cast(ClipModel, open_model(folder, weights))
    except (CarinaError, KeyboardInterrupt):
        raise
    except Exception as error:
        # Torch, transformers and tokenizers raise many kinds of errors on foreign files; all are about this folder.
        what = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise CarinaError(f"{folder.path}: cannot be opened as {kind}: {what}") from error


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence transformers' warnings about its own defaults, which the sizes of the weights replace."""
    (transformers,) = require("transformers")
    logging = transformers.utils.logging
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _open(name: ModelName, options: ModelOptions) -> ClipModel:
    """CLIP-style model: scores images against texts."""
    return _open_checkpoint(name.kind, name.path, options.device)


def _identify(name: ModelName) -> ModelIdentity:
    folder = _find_folder(name.kind, name.path)
    check("torch", "transformers")
    return folder.identity


for _kind in KINDS:
    model_kind(
        _kind, capabilities=["maps"], extra="torch", packages=("torch", "transformers"), identify=_identify
    )(_open)
