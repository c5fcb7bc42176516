"""An EAGLE-3 head: one layer that reads, for each token, the inputs of three layers of the target.

Row i has token i + 1 and the target's states of token i, and says token i + 2. In a draft, the target's states are not
there yet, so a row takes what the row before it put out. The head is trained for that: `unroll` times over, each row gets
the output of the row before from the time before. What it then sees is exactly what it sees when it drafts: of the rows
before the draft those with the target's states, of the draft's rows those with its own."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .network import (EPSILON, HEAD, Batch, Constants, Guesses, feed_forward, heads_of, matrix, norm, project, repeat_heads, rotate)
from .optimiser import Weights
from .problem import Problem
from .settings import Settings
from .states import Data
from .target import Array, Target

ROPE_BASE = 10000.0
WEIGHT_OF_NEXT = 0.8  # of each further step in the loss: it counts only if those before were right
SAMPLE = 1 << 16  # records for statistics


def choose_shortlist(data: Data, size: int, vocabulary: int) -> Array:
    """The tokens that the target is likeliest to say, in ascending order."""
    mass = np.zeros(vocabulary)
    for file in data.files:
        for begin in range(0, len(file.records), SAMPLE):
            part = file.records[begin : begin + SAMPLE]
            np.add.at(mass, part["ids"], np.exp(part["logs"].astype(np.float32)))
    return np.sort(np.argsort(-mass, kind="stable")[:size])


class Eagle3Head:
    output_name = "output.weight"

    def __init__(self, settings: Settings, target: Target, data: Data):
        self.ahead = settings.unroll
        self.width, self.vocabulary = target.width, target.vocabulary
        self.layers_read = data.files[0].layers
        self.heads = max(1, self.width // HEAD)
        self.kv_heads = next((self.heads // group for group in (4, 3, 2) if self.heads % group == 0), self.heads)
        self.shortlist = choose_shortlist(data, min(settings.shortlist, self.vocabulary), self.vocabulary)
        fixed = self._fixed_parameters()
        self.feed_forward = 2 * self.width
        if settings.size:
            self.feed_forward = round((settings.size - fixed) / (3 * self.width) / 32) * 32
            if self.feed_forward < 32:
                raise Problem(f"--size: a head for this model has at least {(fixed + 96 * self.width) / 1e6:.1f}m parameters "
                              f"with --shortlist {len(self.shortlist)}; give more, or a smaller --shortlist")
        self._quant = settings.quant
        self._target = target
        sample = data.sample(SAMPLE)["states"].astype(np.float32)
        # Some channels of a model's states are thousands of times larger than others, so the head learns with states that
        # are divided by this, and the file has the quotient in `fc`.
        self.scale = np.sqrt((sample**2).mean(0) + 1e-6).astype(np.float32)

    def _fixed_parameters(self) -> int:
        attention = 2 * self.width * (self.heads + 2 * self.kv_heads) * HEAD + self.heads * HEAD * self.width
        return 3 * self.width**2 + attention + len(self.shortlist) * self.width

    def describe(self) -> str:
        count = self._fixed_parameters() + 3 * self.width * self.feed_forward
        return (f"an EAGLE-3 head of {count / 1e6:.1f}M parameters, which reads layers {', '.join(map(str, self.layers_read))} "
                f"and says {len(self.shortlist):,} of {self.vocabulary:,} tokens")

    def begin(self, key: jax.Array) -> Weights:
        """Passes the states of the last layer that it reads to the target's own output layer: a good guess already."""
        d, keys = self.width, iter(jax.random.split(key, 8))
        last = self.scale[2 * d :]
        known = self._target.output()[self.shortlist]
        if self._target.has("output_norm.weight"):
            known = known * self._target.tensor("output_norm.weight")
        output = known * last / np.sqrt((last**2).mean())
        fc = jnp.concatenate([matrix(next(keys), d, 2 * d, 0.1), jnp.eye(d)], 1)
        q, kv = self.heads * HEAD, self.kv_heads * HEAD
        layer = {"attn_q": matrix(next(keys), q, 2 * d), "attn_k": matrix(next(keys), kv, 2 * d),
                 "attn_v": matrix(next(keys), kv, 2 * d), "attn_output": matrix(next(keys), d, q, 0.2),
                 "ffn_gate": matrix(next(keys), self.feed_forward, d), "ffn_up": matrix(next(keys), self.feed_forward, d),
                 "ffn_down": matrix(next(keys), d, self.feed_forward, 0.2), "attn_norm": jnp.ones(d),
                 "attn_norm_2": jnp.ones(d), "ffn_norm": jnp.ones(d)}
        return {"fc.weight": fc, "output.weight": jnp.asarray(output, jnp.float32), "output_norm.weight": jnp.ones(d),
                **{f"blk.0.{name}.weight": value for name, value in layer.items()}}

    def constants(self) -> Constants:
        places = np.full(self.vocabulary, -1, np.int32)
        places[self.shortlist] = np.arange(len(self.shortlist))
        embeddings = self._target.embeddings()
        embeddings = embeddings / np.sqrt((embeddings**2).mean(-1, keepdims=True) + EPSILON)
        return {"places": jnp.asarray(places), "embeddings": jnp.asarray(embeddings, jnp.bfloat16), "scale": jnp.asarray(self.scale)}

    def types(self) -> dict[str, str]:
        names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
        return {f"blk.0.{name}.weight": self._quant for name in names} | {"output.weight": self._quant}

    def guess(self, weights: Weights, constants: Constants, batch: Batch, precision: Any) -> list[Guesses]:
        segment, own = batch["segment"][:, :-1], batch["own"]  # the last row of a text has a token of the next one
        own = jnp.concatenate([own[:, 2:], own[:, -1:]], 1)
        whole = segment == batch["segment"][:, 1:]
        words = constants["embeddings"][batch["token"][:, 1:]].astype(precision)
        words = words * weights["blk.0.attn_norm.weight"].astype(precision)
        state = project((batch["states"][:, :-1].astype(jnp.float32) / constants["scale"]).astype(precision), weights["fc.weight"])
        guesses: list[Guesses] = []
        keys: list[jax.Array] = []
        values: list[jax.Array] = []
        for step in range(self.ahead):
            said, key, value = self._layer(weights, words, state, segment, keys, values)
            keys.append(key)
            values.append(value)
            valid = whole & (_later(segment, step, -1) == segment)
            hidden = norm(said, weights["output_norm.weight"])
            guesses.append(Guesses(hidden, batch["ids"][:, 1:], batch["logs"][:, 1:], valid, own, WEIGHT_OF_NEXT**step))
            state = _later(said, 1)
        return guesses

    def _layer(self, weights: Weights, words: jax.Array, state: jax.Array, segment: jax.Array,
               keys: list[jax.Array], values: list[jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        """One more time over all rows. `keys` and `values`: of the times before, the first of which had the target's states."""
        step, row = len(keys), words.shape[1]
        state = norm(state, weights["blk.0.attn_norm_2.weight"])
        both = jnp.concatenate([words, state], -1)
        q = rotate(heads_of(both, weights["blk.0.attn_q.weight"]), ROPE_BASE)
        key = repeat_heads(rotate(heads_of(both, weights["blk.0.attn_k.weight"]), ROPE_BASE), self.heads)
        value = repeat_heads(heads_of(both, weights["blk.0.attn_v.weight"]), self.heads)
        keys, values = [*keys, key], [*values, value]
        # Of the rows before the draft, which has the last `step` rows.
        sees = (segment[:, :, None] == segment[:, None, :]) & jnp.tril(jnp.ones((row, row), bool), -step)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, keys[0]).astype(jnp.float32) / HEAD**0.5
        parts = [jnp.where(sees[:, None], scores, -1e9)]
        drafted = range(1, step + 1)  # row i of the draft's time s stands at i - step + s
        for s in drafted:
            parts.append(jnp.einsum("bqhd,bqhd->bhq", q, _later(keys[s], step - s)).astype(jnp.float32)[..., None] / HEAD**0.5)
        shares = jax.nn.softmax(jnp.concatenate(parts, -1), -1).astype(words.dtype)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", shares[..., :row], values[0])
        for s in drafted:
            mixed = mixed + jnp.moveaxis(shares[..., row + s - 1], 1, 2)[..., None] * _later(values[s], step - s)
        x = state + project(mixed.reshape(*words.shape[:2], -1), weights["blk.0.attn_output.weight"])
        x = x + feed_forward(norm(x, weights["blk.0.ffn_norm.weight"]), weights, "blk.0")
        return x, key, value


def _later(x: jax.Array, rows: int, fill: int = 0) -> jax.Array:
    """What was in row i is in row i + rows."""
    if rows == 0:
        return x
    padding = [(0, 0), (rows, 0)] + [(0, 0)] * (x.ndim - 2)
    return jnp.pad(x, padding, constant_values=fill)[:, : x.shape[1]]
