"""Models that somebody serves, local or paid for: prompts in, answers out, through inspect-ai's model layer.

Optional: `pip install 'carina[served]'`. Keys and addresses come from the environment variables that inspect-ai
documents for each provider, an address also as `base_url`. Not here: images, conversations, scoring.
"""

from carina.models.served.asking import ask
from carina.models.served.cache import AnswerCache
from carina.models.served.named import model_named
from carina.models.served.records import Prompt, Reply, Sampling, key_of

__all__ = ["AnswerCache", "Prompt", "Reply", "Sampling", "ask", "key_of", "model_named"]
