"""GLoRIA and AFLoc: a ResNet-50, whose third stage gives patches and whose last gives the image, and Bio_ClinicalBERT.

GLoRIA's score is the mean of two: the cosine of image and prompt, and five times the best cosine of a word with what
it attends to. Its own function counts a prompt's characters where it means its words, so that empty places take part;
here words do. AFLoc's score is a product, its map that of patches with the prompt. Weights are named as in their code,
which loads GLoRIA's without exceptions; the files themselves were not at hand. Imported only where torch and
transformers are.
"""

from functools import partial
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from carina.models.clip.dual_encoder import DualEncoder, ImageTower, Scoring, cosines
from carina.models.clip.fixed_queries import CLINICAL_BERT
from carina.models.clip.gloria_text import MergedBertText
from carina.models.clip.interface import ClipModel, Images, Texts
from carina.models.clip.model_folder import DEFAULT_PAIR, ModelFolder
from carina.models.clip.preprocessing import Fit, Preparation
from carina.models.clip.resnet import ResNetTower, read_resnet, to_patches
from carina.models.clip.state_dict import COUNTERS, Weights, read_linear, read_pointwise
from carina.models.clip.text import bert_tokenizer, check_vocabulary, read_bert
from carina.models.frame import Frame

SIDE: Final = 224
LONGEST: Final = 256
"""Longer side in pixels to which GLoRIA resizes an image before it crops the margins; AFLoc resizes to `SIDE`."""
INNER: Final = 299
"""Side in pixels to which the network enlarges its input."""
TEMPERATURE: Final = 4.0
SHARPNESS: Final = 5.0
AFLOC_PAIR: Final = ("Findings suggesting {}", "no {}")
"""Prompts of AFLoc for findings without a list of phrases."""
_AFLOC_UNUSED: Final = rf"({COUNTERS}|afloc\.img_encoder\.(local2|local_f)_embedder\..*)"
"""Weights of patches at other scales, which only training uses."""


def open_gloria(folder: ModelFolder, weights: Weights) -> ClipModel:
    tower, image = _read_image_tower(weights, "gloria.img_encoder.")
    text = _read_text_tower(folder, weights, "gloria.text_encoder.model.")
    weights.close()
    fit = partial(Frame.letterboxed, longest=LONGEST, side=SIDE)
    return _make_model(folder, tower, image, text, fit, scoring=score_gloria, native="word-attention")


def open_afloc(folder: ModelFolder, weights: Weights) -> ClipModel:
    tower, image = _read_image_tower(weights, "afloc.img_encoder.")
    text = _read_text_tower(folder, weights, "afloc.text_encoder.model.")
    weights.close(_AFLOC_UNUSED)
    fit = partial(Frame.letterboxed, longest=SIDE)
    return _make_model(
        folder, tower, image, text, fit, scoring=score_afloc, native="similarity", pair=AFLOC_PAIR
    )


def score_gloria(images: Images, texts: Texts) -> Tensor:
    """Mean of the global score and the word-patch score."""
    if images.patches is None or texts.words is None or texts.kept is None:
        raise TypeError("expected images and texts of this model")
    patches = images.patches.flatten(1, 2)
    unkept = ~texts.kept[None, :, :, None]
    # A softmax over words for each patch, then an attention of each word over patches with these shares.
    shares = torch.einsum("npd,mwd->nmwp", patches, texts.words).masked_fill(unkept, -torch.inf).softmax(2)
    attended = torch.einsum("nmwp,npd->nmwd", (shares * TEMPERATURE).softmax(-1), patches)
    similarity = functional.cosine_similarity(attended, texts.words[None], dim=-1)
    best = similarity.masked_fill(unkept[..., 0], -torch.inf).amax(-1)
    return (SHARPNESS * best + cosines(images.pooled, texts.pooled)) / 2


def score_afloc(images: Images, texts: Texts) -> Tensor:
    """Scalar product without normalisation, as AFLoc classifies."""
    return images.pooled @ texts.pooled.T


def _read_image_tower(weights: Weights, prefix: str) -> tuple[ResNetTower, ImageTower]:
    tower = read_resnet(weights, f"{prefix}model.")
    whole = read_linear(weights, f"{prefix}global_embedder.", tower.shape.channels(4))
    local = read_pointwise(weights, f"{prefix}local_embedder.", tower.shape.channels(3), bias=False)

    def encode(pixels: Tensor) -> Images:
        enlarged = functional.interpolate(pixels, (INNER, INNER), mode="bilinear", align_corners=True)
        taps = tower(enlarged)
        return Images(whole(taps.last.mean((2, 3))), to_patches(local(taps.layer3)))

    return tower, encode


def _read_text_tower(folder: ModelFolder, weights: Weights, prefix: str) -> MergedBertText:
    model = read_bert(weights, prefix, pooler=True)
    tokenizer = bert_tokenizer(folder, CLINICAL_BERT)
    check_vocabulary(folder, tokenizer, model.config.vocab_size)
    return MergedBertText(tokenizer, model)


def _make_model(
    folder: ModelFolder,
    tower: ResNetTower,
    image: ImageTower,
    text: MergedBertText,
    fit: Fit,
    *,
    scoring: Scoring,
    native: str,
    pair: tuple[str, ...] = DEFAULT_PAIR,
) -> ClipModel:
    return DualEncoder(
        folder=folder,
        preparation=Preparation(
            fit=fit, side=SIDE, resample="cv2 area", mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5)
        ),
        image=image,
        text=text,
        tower=tower,
        grid=tower.grid(INNER, 3),
        trained_on="chest x-ray",
        pair=pair,
        native=native,
        scoring=scoring,
    )
