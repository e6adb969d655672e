"""Several checkpoints of one model as one explainer, as CheXzero is published: maps and probabilities are averaged."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from carina.errors import CarinaError
from carina.ground.explain.clip import ClipExplainer, clip_explainer
from carina.ground.explain.explainer import Asked, Explainer, Shown
from carina.ground.explain.maps import logistic
from carina.models.clip.named import open_ensemble

_LEAST = 1e-12
"""Of a probability, so that its logarithm is a number."""


@dataclass(frozen=True)
class EnsembleExplainer:
    """Explainers by one method, of models with the same grid in the same frame."""

    members: tuple[ClipExplainer, ...]

    @property
    def name(self) -> str:
        """Of the folder that holds the members."""
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

    def explain(self, asked: Sequence[Asked]) -> list[Shown]:
        answers = zip(*(member.explain(asked) for member in self.members), strict=True)
        return [_mean(said) for said in answers]


def _mean(said: Sequence[Shown]) -> Shown:
    """The mean map; and the mean probability of the finding and of its absence, as logarithms.

    So the difference of the two scores is the logit of the mean probability, as it is of a single model. Scores without
    negative prompts are no probabilities, and their mean is taken as they are.
    """
    values = np.asarray(np.mean([one.values for one in said], axis=0, dtype=np.float64), np.float32)
    if any(one.against is None for one in said):
        return replace(said[0], values=values, score=sum(one.score or 0.0 for one in said) / len(said))
    there = sum(_probability(one) for one in said) / len(said)
    return replace(
        said[0],
        values=values,
        score=math.log(max(there, _LEAST)),
        against=math.log(max(1 - there, _LEAST)),
    )


def _probability(one: Shown) -> float:
    return logistic((one.score or 0.0) - (one.against or 0.0))


def open_member_or_all(model: str, method: str | None, options: Mapping[str, Any], *, seed: int) -> Explainer:
    """The model of a name; all of them together where a folder holds several checkpoints and none is named."""
    members = tuple(clip_explainer(one, model, method, options, seed=seed) for one in open_ensemble(model))
    first = members[0].model
    for other in members[1:]:
        if (other.model.grid, other.model.side) != (first.grid, first.side):
            raise CarinaError(
                f"{other.name}: its grid is {other.model.grid} on {other.model.side} pixels, that of {members[0].name} "
                f"{first.grid} on {first.side}; expected checkpoints of one model"
            )
    return EnsembleExplainer(members) if len(members) > 1 else members[0]
