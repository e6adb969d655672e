"""CLIP-style models as explainers: maps by a method, and scores of the same prompts; one checkpoint or several."""

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from carina.explanations.explainer import Explainer, MapResult, Probe
from carina.explanations.maps import logistic
from carina.explanations.methods import METHODS, Method
from carina.models.clip.interface import ClipModel, PromptPair
from carina.models.clip.kinds import native_options, open_ensemble
from carina.models.clip.recognition import combine_scores
from carina.models.clip.recognition import list_prompts as all_prompts
from carina.models.extra import require
from carina.store.errors import CarinaError

_MIN_PROBABILITY: Final = 1e-12
"""Lower bound of a probability before its logarithm is taken."""


@dataclass(frozen=True)
class ClipExplainer:
    """A CLIP-style model with one explanation method and its options."""

    model: ClipModel
    explanation_method: Method
    options: Any
    device: str = "cpu"
    """Device of torch on which the model was opened."""

    @property
    def name(self) -> str:
        return self.model.identity.name

    @property
    def method(self) -> str:
        return self.explanation_method.name

    @property
    def settings(self) -> Mapping[str, Any]:
        return {
            **asdict(self.model.identity),
            "pretraining": self.model.pretraining,
            "grid": list(self.model.grid),
            "side": self.model.side,
            "options": asdict(self.options),
            # Stated only where it is another: maps of other calls keep their fingerprints.
            **({} if self.device == "cpu" else {"device": self.device}),
        }

    def explain(self, probes: Sequence[Probe]) -> list[MapResult]:
        results: list[MapResult | None] = [None] * len(probes)
        by_prompts: dict[PromptPair, list[int]] = {}
        for index, probe in enumerate(probes):
            by_prompts.setdefault(self.prompts(probe), []).append(index)
        for prompts, indices in by_prompts.items():
            group = self._explain_same_prompts([probes[index] for index in indices], prompts)
            for index, result in zip(indices, group, strict=True):
                results[index] = result
        return [result for result in results if result is not None]

    def prompts(self, probe: Probe) -> PromptPair:
        """The model's prompts for a finding; a phrase from a report is its own prompt."""
        return (
            self.model.prompts(probe.target) if probe.phrase == probe.target else PromptPair((probe.phrase,))
        )

    def _explain_same_prompts(self, probes: Sequence[Probe], prompts: PromptPair) -> list[MapResult]:
        (torch,) = require("torch")
        prepared = [torch.from_numpy(self.model.prepare(probe.image)) for probe in probes]
        # Within the device, tokens and whatever else a method makes are there too.
        with nullcontext() if self.device == "cpu" else torch.device(self.device):
            pixels = torch.stack(prepared).to(self.device)
            maps = self.explanation_method.maps(self.model, pixels, prompts, self.options).cpu().numpy()
            with torch.no_grad():
                texts = self.model.encode_text(all_prompts(prompts))
                scores = self.model.score(self.model.encode_image(pixels), texts).cpu()
        n_positive = len(prompts.positive)
        positive = combine_scores(scores[:, :n_positive], prompts.several).tolist()
        against = (
            combine_scores(scores[:, n_positive:], prompts.several).tolist() if prompts.negative else None
        )
        return [
            MapResult(
                values=values,
                frame=self.model.frame(*probe.image.shape),
                positive=prompts.positive,
                negative=prompts.negative,
                score=positive[index],
                against=None if against is None else against[index],
            )
            for index, (probe, values) in enumerate(zip(probes, maps, strict=True))
        ]


def make_clip_explainer(
    opened: ClipModel,
    model: str,
    method: str | None,
    options: Mapping[str, Any],
    *,
    seed: int,
    device: str | None = None,
) -> ClipExplainer:
    """Make an explainer of an opened model.

    Args:
        opened: The model.
        model: Its name.
        method: Name of the explanation method; None for the one that the model was published with.
        options: Options of the method by name.
        seed: Seed for methods that sample at random.
        device: Device of torch on which the model was opened; None for the CPU.

    Raises:
        CarinaError: The method or an option is unknown, or the model lacks what the method needs.
    """
    name = method or opened.native
    registered = METHODS[name]
    published = native_options(model) if name == opened.native else {}
    parsed = registered.parse_options({**published, **options}, seed=seed)
    (torch,) = require("torch")
    with torch.device(device or "cpu"):
        missing_need = registered.find_missing_need(opened)
    if missing_need is not None:
        raise CarinaError(f"{opened.identity.name}: cannot be explained by {name}: {missing_need}")
    return ClipExplainer(opened, registered, parsed, device or "cpu")


# ---- several checkpoints --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EnsembleExplainer:
    """Several checkpoints of one model, such as those of CheXzero, whose maps and probabilities are averaged."""

    members: tuple[ClipExplainer, ...]

    @property
    def name(self) -> str:
        """Name of the folder that holds the checkpoints."""
        return self.members[0].name.rpartition("/")[0]

    @property
    def method(self) -> str:
        return self.members[0].method

    @property
    def settings(self) -> Mapping[str, Any]:
        shared = {name: self.members[0].settings[name] for name in ("pretraining", "grid", "side", "options")}
        identities = [
            {name: member.settings[name] for name in ("name", "weights", "settings")}
            for member in self.members
        ]
        return {**shared, "name": self.name, "members": identities}

    def explain(self, probes: Sequence[Probe]) -> list[MapResult]:
        by_probe = zip(*(member.explain(probes) for member in self.members), strict=True)
        return [_average_results(results) for results in by_probe]


def _average_results(results: Sequence[MapResult]) -> MapResult:
    """The mean map, with the logarithms of the mean probabilities that the finding is present and absent as scores.

    The difference of the two scores is then the logit of the mean probability, as for a single model. Scores without
    negative prompts are not probabilities and are averaged as they are.
    """
    values = np.asarray(np.mean([result.values for result in results], axis=0, dtype=np.float64), np.float32)
    if any(result.against is None for result in results):
        mean_score = sum(result.score or 0.0 for result in results) / len(results)
        return replace(results[0], values=values, score=mean_score)
    present = sum(_probability(result) for result in results) / len(results)
    return replace(
        results[0],
        values=values,
        score=math.log(max(present, _MIN_PROBABILITY)),
        against=math.log(max(1 - present, _MIN_PROBABILITY)),
    )


def _probability(result: MapResult) -> float:
    return logistic((result.score or 0.0) - (result.against or 0.0))


def open_clip_or_ensemble(
    model: str, method: str | None, options: Mapping[str, Any], *, seed: int, device: str | None = None
) -> Explainer:
    """Open a CLIP-style model by its name; all checkpoints where its folder holds several and the name has none.

    Raises:
        CarinaError: The checkpoints differ in their grid, or the method cannot explain the model.
    """
    members = tuple(
        make_clip_explainer(checkpoint, model, method, options, seed=seed, device=device)
        for checkpoint in open_ensemble(model, device)
    )
    first = members[0].model
    for other in members[1:]:
        if (other.model.grid, other.model.side) != (first.grid, first.side):
            raise CarinaError(
                f"{other.name}: expected checkpoints of one model, with a grid of {first.grid} on {first.side} pixels "
                f"as {members[0].name}; found {other.model.grid} on {other.model.side}"
            )
    return EnsembleExplainer(members) if len(members) > 1 else members[0]
