"""CLIP-style models as explainers: maps by a method, and the scores of the same prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from carina.errors import CarinaError
from carina.ground.explain.explainer import Asked, Shown
from carina.ground.explain.methods.registry import METHODS, Method
from carina.models.clip.interface import ClipModel, PromptPair
from carina.models.clip.named import native_options, open_clip_model
from carina.models.clip.recognition import asked as all_prompts
from carina.models.clip.recognition import one_score
from carina.models.extra import require


@dataclass(frozen=True)
class ClipExplainer:
    """A model and one method, with its options."""

    model: ClipModel
    by: Method
    options: Any

    @property
    def name(self) -> str:
        return self.model.identity.name

    @property
    def method(self) -> str:
        return self.by.name

    @property
    def settings(self) -> Mapping[str, Any]:
        return {
            **asdict(self.model.identity),
            "pretraining": self.model.pretraining,
            "grid": list(self.model.grid),
            "side": self.model.side,
            "options": asdict(self.options),
        }

    def explain(self, asked: Sequence[Asked]) -> list[Shown]:
        shown: list[Shown | None] = [None] * len(asked)
        by_prompts: dict[PromptPair, list[int]] = {}
        for place, one in enumerate(asked):
            by_prompts.setdefault(self.prompts(one), []).append(place)
        for prompts, places in by_prompts.items():
            answers = self._shown([asked[place] for place in places], prompts)
            for place, answer in zip(places, answers, strict=True):
                shown[place] = answer
        return [answer for answer in shown if answer is not None]

    def prompts(self, one: Asked) -> PromptPair:
        """What the model asks of a finding; a sentence of a report stands for itself."""
        return self.model.prompts(one.target) if one.phrase == one.target else PromptPair((one.phrase,))

    def _shown(self, asked: Sequence[Asked], prompts: PromptPair) -> list[Shown]:
        (torch,) = require("torch")
        pixels = torch.stack([torch.from_numpy(self.model.prepare(one.image)) for one in asked])
        maps = self.by.maps(self.model, pixels, prompts, self.options).numpy()
        with torch.no_grad():
            texts = self.model.encode_text(all_prompts(prompts))
            scores = self.model.score(self.model.encode_image(pixels), texts)
        many = len(prompts.positive)
        positive = one_score(scores[:, :many], prompts.several).tolist()
        against = one_score(scores[:, many:], prompts.several).tolist() if prompts.negative else None
        return [
            Shown(
                values=values,
                frame=self.model.frame(*one.image.shape),
                positive=prompts.positive,
                negative=prompts.negative,
                score=positive[place],
                against=None if against is None else against[place],
            )
            for place, (one, values) in enumerate(zip(asked, maps, strict=True))
        ]


def open_clip_explainer(
    model: str, method: str | None, options: Mapping[str, Any], *, seed: int
) -> ClipExplainer:
    """The model in a folder, with a method by its name, or the one that it was published with."""
    return clip_explainer(open_clip_model(model), model, method, options, seed=seed)


def clip_explainer(
    opened: ClipModel, model: str, method: str | None, options: Mapping[str, Any], *, seed: int
) -> ClipExplainer:
    """The same for a model that is open, of this name."""
    name = method or opened.native
    if name not in METHODS:
        raise CarinaError(f"method {name!r}: unknown; known are {', '.join(METHODS)}")
    by = METHODS[name]
    own = native_options(model) if name == opened.native else {}
    configured = by.configured({**own, **options}, seed=seed)
    lacking = by.available(opened)
    if lacking is not None:
        raise CarinaError(f"{opened.identity.name}: {name} cannot be shown: {lacking}")
    return ClipExplainer(opened, by, configured)
