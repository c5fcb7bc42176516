"""A small llama model with the vocabulary of the target."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .network import (HEAD, Batch, Constants, Guesses, feed_forward, heads_of, matrix, norm, project, repeat_heads, rotate)
from .optimiser import Weights
from .settings import Settings
from .target import Array, Target

ROPE_BASE = 100000.0


def shape_of(size: int, vocabulary: int) -> tuple[int, int]:
    """Width and layers. At most four fifths of the parameters are embeddings: they cost a look-up and an output layer."""
    width = max(HEAD, int(0.8 * size / vocabulary) // HEAD * HEAD)
    while width * vocabulary + 2 * 12 * width**2 > size and width > HEAD:
        width -= HEAD
    layers = round((size - width * vocabulary) / (12 * width**2))
    return width, int(np.clip(layers, 1, max(6, width // 32)))


class DraftModel:
    output_name = "token_embd.weight"
    ahead = 1

    def __init__(self, settings: Settings, target: Target):
        size = settings.size or int(np.clip(target.parameters() // 8, 16_000_000, 600_000_000))
        self.width, self.layers = shape_of(size, target.vocabulary)
        self.vocabulary = target.vocabulary
        self.heads = self.width // HEAD
        self.kv_heads = self.heads // 2 if self.heads % 2 == 0 else self.heads
        self.feed_forward = 3 * self.width
        self._quant, self._embedding_quant = settings.quant, settings.embedding_quant
        self._target = target

    def describe(self) -> str:
        count = self.width * self.vocabulary + self.layers * 12 * self.width**2
        return f"a llama model of {count / 1e6:.1f}M parameters: {self.layers} layers, {self.width} wide"

    def _first_embeddings(self) -> Array:
        """The target's, in the directions in which they differ most, turned at random so that no column is larger than
        others: that suits types with one scale for 32 of them."""
        known = self._target.embeddings()
        values, vectors = np.linalg.eigh(known.T @ known)
        kept = known @ vectors[:, np.argsort(values)[::-1][: self.width]]
        random = np.random.default_rng(7)
        if kept.shape[1] < self.width:
            kept = np.hstack([kept, random.normal(0, kept.std(), (len(kept), self.width - kept.shape[1]))])
        turn, _ = np.linalg.qr(random.normal(size=(self.width, self.width)))
        return np.asarray(kept @ turn / kept.std() * 0.05, np.float32)

    def begin(self, key: jax.Array) -> Weights:
        d, kv = self.width, self.kv_heads * HEAD
        weights = {"token_embd.weight": jnp.asarray(self._first_embeddings()), "output_norm.weight": jnp.ones(d)}
        for layer in range(self.layers):
            keys = iter(jax.random.split(jax.random.fold_in(key, layer), 7))
            made = {"attn_q": matrix(next(keys), d, d), "attn_k": matrix(next(keys), kv, d), "attn_v": matrix(next(keys), kv, d),
                    "attn_output": matrix(next(keys), d, d, 0.2), "ffn_gate": matrix(next(keys), self.feed_forward, d),
                    "ffn_up": matrix(next(keys), self.feed_forward, d), "ffn_down": matrix(next(keys), d, self.feed_forward, 0.2),
                    "attn_norm": jnp.ones(d), "ffn_norm": jnp.ones(d)}
            weights |= {f"blk.{layer}.{name}.weight": value for name, value in made.items()}
        return weights

    def constants(self) -> Constants:
        return {"places": jnp.arange(self.vocabulary)}

    def types(self) -> dict[str, str]:
        names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
        types = {f"blk.{layer}.{name}.weight": self._quant for layer in range(self.layers) for name in names}
        return types | {"token_embd.weight": self._embedding_quant}

    def guess(self, weights: Weights, constants: Constants, batch: Batch, precision: Any) -> list[Guesses]:
        x = weights["token_embd.weight"][batch["token"]].astype(precision)
        row = x.shape[1]
        sees = (batch["segment"][:, :, None] == batch["segment"][:, None, :]) & jnp.tril(jnp.ones((row, row), bool))
        for layer in range(self.layers):
            block = f"blk.{layer}"
            h = norm(x, weights[f"{block}.attn_norm.weight"])
            q = rotate(heads_of(h, weights[f"{block}.attn_q.weight"]), ROPE_BASE)
            k = repeat_heads(rotate(heads_of(h, weights[f"{block}.attn_k.weight"]), ROPE_BASE), self.heads)
            v = repeat_heads(heads_of(h, weights[f"{block}.attn_v.weight"]), self.heads)
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / HEAD**0.5
            shares = jax.nn.softmax(jnp.where(sees[:, None], scores, -1e9), -1).astype(precision)
            mixed = jnp.einsum("bhqk,bkhd->bqhd", shares, v).reshape(x.shape)
            x = x + project(mixed, weights[f"{block}.attn_output.weight"])
            x = x + feed_forward(norm(x, weights[f"{block}.ffn_norm.weight"]), weights, block)
        own = jnp.concatenate([batch["own"][:, 1:], batch["own"][:, -1:]], 1)
        hidden = norm(x, weights["output_norm.weight"])
        return [Guesses(hidden, batch["ids"], batch["logs"], jnp.ones_like(own), own, 1.0)]
