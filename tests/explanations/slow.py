"""The tower of `VitTower` again, in plain numpy and one picture at a time, so that any of its parts can be replaced.

Slopes are taken by finite differences: slow, and without a word of autograd.
"""

from dataclasses import dataclass, field

import numpy as np

STEP = 1e-5


def softmax(values, axis=-1):
    powers = np.exp(values - values.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def unit(vector):
    return vector / np.linalg.norm(vector)


def cosine(one, other):
    return float(unit(one) @ unit(other))


def slopes(function, at):
    """Of a number on every element of an array, by central differences."""
    found = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        there = at.copy()
        there[place] += STEP
        above = function(there)
        there[place] -= 2 * STEP
        found[place] = (above - function(there)) / (2 * STEP)
    return found


@dataclass
class SlowVit:
    shape: object
    state: dict
    attention: dict = field(default_factory=dict)
    """Weights (heads, t, t) that stand in for those of a block; those of the pool under "pool"."""

    @classmethod
    def of(cls, tower):
        return cls(tower.shape, {name: value.numpy() for name, value in tower.state_dict().items()})

    def linear(self, name, values):
        bias = self.state.get(f"{name}.bias", 0.0)
        return values @ self.state[f"{name}.weight"].T + bias

    def norm(self, name, tokens):
        mean, spread = tokens.mean(-1, keepdims=True), tokens.var(-1, keepdims=True)
        normed = (tokens - mean) / np.sqrt(spread + self.shape.epsilon)
        return normed * self.state[f"{name}.weight"] + self.state[f"{name}.bias"]

    def heads(self, name, tokens):
        """(t, c) to (heads, t, c / heads)."""
        made = self.linear(name, tokens)
        return np.stack(np.split(made, self.shape.heads, axis=-1))

    def embed(self, picture):
        patch, (rows, columns) = self.shape.patch, self.shape.grid
        tokens = []
        for row in range(rows):
            for column in range(columns):
                cut = picture[:, row * patch : (row + 1) * patch, column * patch : (column + 1) * patch]
                tokens.append(
                    (self.state["patches.weight"] * cut).sum((1, 2, 3)) + self.state["patches.bias"]
                )
        if self.shape.class_token:
            tokens.insert(0, self.state["first"])
        made = np.array(tokens) + self.state["places"]
        return self.norm("first_norm", made) if self.shape.first_norm else made

    def weights(self, index, normed):
        if index in self.attention:
            return self.attention[index]
        query, key = (self.heads(f"blocks.{index}.attention.{part}", normed) for part in ("query", "key"))
        return np.stack([softmax(q @ k.T / np.sqrt(q.shape[-1])) for q, k in zip(query, key, strict=True)])

    def after(self, index, tokens, normed, weights):
        """A block from its norm on."""
        name = f"blocks.{index}"
        value = self.heads(f"{name}.attention.value", normed)
        mixed = np.concatenate([w @ v for w, v in zip(weights, value, strict=True)], axis=-1)
        tokens = tokens + self.linear(f"{name}.attention.out", mixed)
        return tokens + self.perceptron(f"{name}.mlp", self.norm(f"{name}.norm2", tokens))

    def perceptron(self, name, tokens):
        inner = self.linear(f"{name}.first", tokens)
        return self.linear(f"{name}.second", inner / (1 + np.exp(-1.702 * inner)))

    def block(self, index, tokens):
        normed = self.norm(f"blocks.{index}.norm1", tokens)
        return self.after(index, tokens, normed, self.weights(index, normed))

    def run(self, tokens, start=0, stop=None):
        for index in range(start, self.shape.depth if stop is None else stop):
            tokens = self.block(index, tokens)
        return tokens

    def finish(self, tokens):
        tokens = self.norm("norm", tokens)
        if self.shape.pool == "attention":
            tokens = self.linear("head.attention.out", self.linear("head.attention.value", tokens))
            tokens = tokens + self.perceptron("head.mlp", self.norm("head.norm", tokens))
        return self.linear("projection", tokens)

    def pool_weights(self, tokens):
        if "pool" in self.attention:
            return self.attention["pool"]
        query = self.heads("head.attention.query", self.state["head.probe"][0])
        key = self.heads("head.attention.key", tokens)
        return np.stack([softmax(q @ k.T / np.sqrt(q.shape[-1]))[0] for q, k in zip(query, key, strict=True)])

    def attended(self, tokens):
        """The pool of attention, from tokens as they are given."""
        value = self.heads("head.attention.value", tokens)
        weights = self.pool_weights(tokens)
        mixed = np.concatenate([w @ v for w, v in zip(weights, value, strict=True)])
        made = self.linear("head.attention.out", mixed)
        made = made + self.perceptron("head.mlp", self.norm("head.norm", made))
        return self.linear("projection", made)

    def pool(self, tokens):
        if self.shape.pool == "attention":
            return self.attended(self.norm("norm", tokens))
        if self.shape.pool == "class":
            return self.finish(tokens[:1])[0]
        return self.finish(tokens[self.prefix :]).mean(0)

    @property
    def prefix(self):
        return int(self.shape.class_token)

    def at(self, index, weights):
        """With these weights in a block, or in the pool."""
        return SlowVit(self.shape, self.state, {**self.attention, index: weights})

    def grid(self, values):
        """One number a token on the grid."""
        return values[self.prefix :].reshape(self.shape.grid)
