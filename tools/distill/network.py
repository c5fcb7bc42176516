"""What the two kinds of drafters have in common: parts of a transformer as libllama computes it, and how rows are compared
with the model. Weights have the names and shapes of the tensors in the file."""

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from . import losses
from .optimiser import Weights

EPSILON = 1e-5
HEAD = 64  # numbers of an attention head
CHUNK_LOGITS = 1 << 27  # logits in memory at once

Batch = dict[str, jax.Array]
Constants = dict[str, jax.Array]


@dataclass
class Guesses:
    """What a drafter says about tokens that are so many steps ahead, and what the model says about the same ones."""

    hidden: jax.Array  # [batch, row, width], what the output layer reads
    ids: jax.Array  # [batch, row, top]
    logs: jax.Array
    valid: jax.Array  # [batch, row]
    own: jax.Array  # [batch, row] the token is one that the model wrote itself
    weight: float  # in the loss


class Network(Protocol):
    output_name: str
    ahead: int  # steps of drafting that it is trained for

    def begin(self, key: jax.Array) -> Weights: ...
    def constants(self) -> Constants: ...
    def guess(self, weights: Weights, constants: Constants, batch: Batch, precision: Any) -> list[Guesses]: ...
    def types(self) -> dict[str, str]: ...  # of matrices in the file
    def describe(self) -> str: ...


def norm(x: jax.Array, weight: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + EPSILON)
    return (wide * weight).astype(x.dtype)


def rotate(x: jax.Array, base: float) -> jax.Array:
    """Positions into pairs of neighbours, as libllama does for llama and eagle3. `x` [batch, row, heads, HEAD]."""
    frequencies = base ** (-jnp.arange(0, HEAD, 2) / HEAD)
    angles = jnp.arange(x.shape[1])[:, None] * frequencies
    cos, sin = jnp.cos(angles)[:, None, :], jnp.sin(angles)[:, None, :]
    even, odd = x[..., 0::2].astype(jnp.float32), x[..., 1::2].astype(jnp.float32)
    turned = jnp.stack([even * cos - odd * sin, even * sin + odd * cos], -1)
    return turned.reshape(x.shape).astype(x.dtype)


def project(x: jax.Array, weight: jax.Array) -> jax.Array:
    return x @ weight.astype(x.dtype).T


def heads_of(x: jax.Array, weight: jax.Array) -> jax.Array:
    made: jax.Array = project(x, weight).reshape(*x.shape[:-1], -1, HEAD)
    return made


def repeat_heads(x: jax.Array, heads: int) -> jax.Array:
    return jnp.repeat(x, heads // x.shape[2], axis=2)


def feed_forward(x: jax.Array, weights: Weights, block: str) -> jax.Array:
    gate, up = project(x, weights[f"{block}.ffn_gate.weight"]), project(x, weights[f"{block}.ffn_up.weight"])
    return project(jax.nn.silu(gate) * up, weights[f"{block}.ffn_down.weight"])


def matrix(key: jax.Array, rows: int, columns: int, gain: float = 1.0) -> jax.Array:
    made: jax.Array = jax.random.normal(key, (rows, columns), jnp.float32) * (gain / columns**0.5)
    return made


def compare(guesses: Guesses, output: jax.Array, places: jax.Array) -> dict[str, jax.Array]:
    """Distances for each row, the logits a chunk at a time. `places`: of each of the model's tokens in the output layer."""
    count = guesses.valid.size
    chunk = max(1, min(count, CHUNK_LOGITS // output.shape[0]))
    chunks = -(-count // chunk)

    def cut(x: jax.Array) -> jax.Array:
        flat = x.reshape(count, -1)
        return jnp.pad(flat, ((0, chunks * chunk - count), (0, 0))).reshape(chunks, chunk, -1)

    @jax.checkpoint
    def one(part: tuple[jax.Array, jax.Array, jax.Array]) -> dict[str, jax.Array]:
        hidden, ids, logs = part
        logits = jnp.matmul(hidden, output.astype(hidden.dtype).T, preferred_element_type=jnp.float32)
        return losses.distances(logits, places[ids], logs)

    parts = jax.lax.map(one, (cut(guesses.hidden), cut(guesses.ids), cut(guesses.logs)))
    return {name: value.reshape(-1)[:count].reshape(guesses.valid.shape) for name, value in parts.items()}
