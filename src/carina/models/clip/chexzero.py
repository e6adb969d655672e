"""CheXzero: OpenAI's CLIP ViT-B/32 fine-tuned on chest radiographs, or a ViT-B/16 of 320 pixels trained from nothing.

Its publication averages the probabilities of several checkpoints; a model here is one of them. Imported only where
torch and transformers are.
"""

from functools import partial
from typing import Final

from carina.models.clip.dual_encoder import DualEncoder, vit_images
from carina.models.clip.interface import ClipModel
from carina.models.clip.model_folder import ModelFolder
from carina.models.clip.openclip import ARCHIVED, Settings, openai_text_tower, openai_tower
from carina.models.clip.preprocessing import Preparation
from carina.models.clip.state_dict import Weights
from carina.models.frame import Frame

LONGEST: Final = 320
"""Images are stored as squares of this side, padded with black; sides are cut after the decimal point exactly,
where its authors' floating-point numbers lose a pixel now and then."""
MEAN: Final = 101.48761
STD: Final = 83.43944
"""Mean and standard deviation of the training images, in grey values."""
PAIR: Final = ("{}", "no {}")


def open_model(folder: ModelFolder, weights: Weights) -> ClipModel:
    """Open one checkpoint."""
    settings = Settings.of(folder)
    tower = openai_tower(settings, weights)
    text = openai_text_tower(settings, weights)
    # Its probability is the softmax of two cosines as they are: the scale that was trained is left out.
    weights.number("logit_scale")
    weights.close(ARCHIVED)
    return DualEncoder(
        folder=folder,
        preparation=Preparation(
            fit=partial(Frame.letterboxed, longest=LONGEST),
            side=tower.shape.side,
            resample="pil lanczos",
            again="cv2 cubic",
            mean=(MEAN,) * 3,
            std=(STD,) * 3,
            scale=1.0,
        ),
        image=vit_images(tower),
        text=text,
        tower=tower,
        grid=tower.grid,
        trained_on="chest x-ray",
        pair=PAIR,
    )
