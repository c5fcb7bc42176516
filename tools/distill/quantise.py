"""The types of the file: what rounding does to weights, in training and when the file is written."""

import jax
import jax.numpy as jnp
from gguf import GGMLQuantizationType

BLOCK = 32
TYPES = {"q4_0": GGMLQuantizationType.Q4_0, "q8_0": GGMLQuantizationType.Q8_0, "f16": GGMLQuantizationType.F16}


def rounded(weights: jax.Array, kind: str) -> jax.Array:
    """As they will be in the file. Rows whose length is not a whole number of blocks stay F16 there."""
    if kind == "f16" or weights.shape[-1] % BLOCK:
        return weights.astype(jnp.float16).astype(weights.dtype)
    blocks = weights.reshape(-1, BLOCK)
    if kind == "q8_0":
        scale = jnp.abs(blocks).max(-1, keepdims=True) / 127
        inverse = jnp.where(scale == 0, 0, 1 / scale)
        return (jnp.round(blocks * inverse) * _half(scale)).reshape(weights.shape)
    largest = jnp.take_along_axis(blocks, jnp.abs(blocks).argmax(-1, keepdims=True), -1)
    scale = largest / -8
    inverse = jnp.where(scale == 0, 0, 1 / scale)
    levels = jnp.clip(jnp.floor(blocks * inverse + 8.5), 0, 15) - 8
    return (levels * _half(scale)).reshape(weights.shape)


def _half(values: jax.Array) -> jax.Array:
    return values.astype(jnp.float16).astype(values.dtype)


def straight_through(weights: jax.Array, kind: str) -> jax.Array:
    """Rounded going forward; gradients pass as if they were not."""
    return weights + jax.lax.stop_gradient(rounded(weights, kind) - weights)
