"""How good an answer is: by options, labels, boxes or words, each against the key of its step.

>>> score(case, step, parsed, raw)  # Scores
>>> chance(step)  # probability that a blind draw is right, None where nothing can be drawn
"""

from carina.run.score.answers import score
from carina.run.score.chance import chance, offers_uncertain

__all__ = ["chance", "offers_uncertain", "score"]
