"""CLIP-style models by the names that the command line knows them by: `clip:PATH`.

Needs no torch before a model is opened. A kind is an entry of the table: where the function is that opens it
from its folder and weights.
"""

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, cast

from carina.errors import CarinaError
from carina.models.clip.folder import TEXT, Folder, checkpoints
from carina.models.clip.interface import ClipModel
from carina.models.extra import check, require
from carina.models.named import ModelIdentity
from carina.models.weights import Checkpoint


@dataclass(frozen=True)
class Kind:
    """One kind of model."""

    opened_by: str
    """Module of this package and function in it; imported when the first of its kind is opened."""
    where: str
    """What to download when there are no weights."""
    text: bool = False
    """Whether its text tower is published apart, as `TEXT`."""
    options: Mapping[str, str | float] = field(default_factory=dict)
    """Of its native method, where its publication chose others than the method's own."""


KINDS: Final = {
    "clip": Kind(
        "hub:open_clip",
        "download a CLIP with a vision transformer, in the layout of transformers or open_clip, with its config and "
        "tokenizer files (openai/clip-vit-base-patch32, StanfordAIMI's XrayCLIP) and put all into this folder",
    ),
    "siglip": Kind(
        "hub:open_siglip",
        "download a SigLIP with config.json, preprocessor_config.json and tokenizer.json (google/medsiglip-448, "
        "StanfordAIMI's XraySigLIP) and put all into this folder",
    ),
    "biomedclip": Kind(
        "openclip:open_biomedclip",
        "download microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224, convert its weights to safetensors and put "
        "them here with open_clip_config.json and tokenizer.json",
    ),
    "chexzero": Kind(
        "chexzero:open_model",
        "download a checkpoint that github.com/rajpurkarlab/CheXzero links to, convert it to safetensors and put it "
        "here with vocab.json and merges.txt of openai/clip-vit-base-patch32",
    ),
    "medclip": Kind(
        "medclip:open_model",
        "download the checkpoint that github.com/RyanWangZf/MedCLIP links to, convert it to safetensors and put it "
        "here with vocab.txt of emilyalsentzer/Bio_ClinicalBERT",
    ),
    "biovil": Kind(
        "biovil:open_model",
        "download biovil_image_resnet50_proj_size_128.pt of microsoft/BiomedVLP-CXR-BERT-specialized, convert it to "
        f"model.safetensors and the weights beside it to {TEXT}, and put both here with its vocab.txt",
        text=True,
    ),
    "biovil-t": Kind(
        "biovil:open_temporal",
        "download biovil_t_image_model_proj_size_128.pt of microsoft/BiomedVLP-BioViL-T, convert it to "
        f"model.safetensors and the weights beside it to {TEXT}, and put both here with its vocab.txt",
        text=True,
    ),
    "gloria": Kind(
        "gloria:open_gloria",
        "download chexpert_resnet50.ckpt, which github.com/marshuang80/gloria links to, convert it to safetensors and "
        "put it here with vocab.txt of emilyalsentzer/Bio_ClinicalBERT",
    ),
    "afloc": Kind(
        "gloria:open_afloc",
        "download the checkpoint that github.com/YH0517/AFLoc links to, convert it to safetensors and put it here with "
        "vocab.txt of emilyalsentzer/Bio_ClinicalBERT",
        options={"measure": "dot", "sigma": 1.5},
    ),
    "medklip": Kind(
        "medklip:open_model",
        "download the checkpoint that github.com/MediaBrain-SJTU/MedKLIP links to, convert it to model.safetensors and "
        f"the weights of emilyalsentzer/Bio_ClinicalBERT to {TEXT}, and put both here with the vocab.txt of the latter "
        "and 'observation explanation.json' of the former",
        text=True,
    ),
    "kad": Kind(
        "kad:open_model",
        "download a checkpoint that github.com/xiaoman-zhang/KAD links to, convert it to safetensors and put it here "
        "with vocab.txt of microsoft/BiomedNLP-PubMedBERT-base-uncased-abstract-fulltext",
        options={"layers": "last"},
    ),
    "mavl": Kind(
        "mavl:open_model",
        "download the checkpoint that github.com/HieuPhan33/CVPR2024_MAVL links to, convert it to model.safetensors "
        f"and the weights of emilyalsentzer/Bio_ClinicalBERT to {TEXT}, and put both here with the vocab.txt of the "
        "latter and 'observation explanation.json' and gpt4_mimic.json of the former",
        text=True,
    ),
    "carzero": Kind(
        "carzero:open_model",
        "download the checkpoint that github.com/laihaoran/CARZero links to, convert it to safetensors and put it here "
        "with vocab.txt of Laihaoran/BioClinicalMPBERT",
    ),
}


def open_clip_model(name: str) -> ClipModel:
    """The model of a name such as "chexzero:weights/chexzero"; on the CPU, in single precision."""
    kind, path = _parsed(name)
    return _opened(kind, path)


def open_ensemble(name: str) -> tuple[ClipModel, ...]:
    """A model for every weight file of a folder, by their names, as CheXzero is published; else the one it holds."""
    kind, path = _parsed(name)
    files = checkpoints(path)
    return tuple(_opened(kind, file) for file in files) if files else (_opened(kind, path),)


def identify_clip_model(name: str) -> ModelIdentity:
    """What a name stands for, from its files alone. Nothing is loaded; that it could be is checked."""
    kind, path = _parsed(name)
    folder = _found(kind, path)
    check("torch", "transformers")
    return folder.identity


def native_options(name: str) -> Mapping[str, str | float]:
    """With which a model's native method makes the maps of its publication, beyond the method's own."""
    kind, _ = _parsed(name)
    return KINDS[kind].options


def _found(kind: str, path: Path) -> Folder:
    folder = Folder.find(kind, path, where=KINDS[kind].where)
    if not KINDS[kind].text:
        return folder
    if not folder.has(TEXT):
        raise CarinaError(f"{folder.path / TEXT}: missing; {KINDS[kind].where}")
    return replace(folder, checkpoint=Checkpoint(folder.path, (*folder.checkpoint.files, folder.path / TEXT)))


def _opened(kind: str, path: Path) -> ClipModel:
    folder = _found(kind, path)
    check("torch", "transformers")
    package = __name__.rpartition(".")[0]
    weights = importlib.import_module(f"{package}.state").Weights.read(folder.checkpoint.files)
    module, _, function = KINDS[kind].opened_by.partition(":")
    with _quiet():
        opened = getattr(importlib.import_module(f"{package}.{module}"), function)(folder, weights)
    return cast(ClipModel, opened)


@contextmanager
def _quiet() -> Iterator[None]:
    """transformers warns of its own defaults, which the weights' sizes replace."""
    (transformers,) = require("transformers")
    logging = transformers.utils.logging
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _parsed(name: str) -> tuple[str, Path]:
    kind, colon, path = name.partition(":")
    if not colon or kind not in KINDS or not path:
        known = ", ".join(f"{kind}:PATH" for kind in KINDS)
        raise CarinaError(f"model {name!r}: unknown; known are {known}")
    return kind, Path(path)
