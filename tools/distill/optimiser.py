"""Muon for matrices, Adam for the rest: embeddings, output layers, norms."""

from typing import Any

import jax
import jax.numpy as jnp

Weights = dict[str, jax.Array]
MUON_RATE, ADAM_RATE = 0.02, 3e-3
MOMENTUM, BETA1, BETA2, SMALL, DECAY = 0.95, 0.9, 0.95, 1e-8, 0.01
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


def is_muons(name: str, weight: jax.Array) -> bool:
    return weight.ndim == 2 and name not in ("token_embd.weight", "output.weight")


def begin(weights: Weights) -> dict[str, Any]:
    return {name: {"m": jnp.zeros_like(w)} if is_muons(name, w) else {"m": jnp.zeros_like(w), "v": jnp.zeros_like(w)}
            for name, w in weights.items()}


def orthogonal(matrix: jax.Array) -> jax.Array:
    """Close to the nearest matrix with orthonormal rows or columns."""
    tall = matrix.shape[0] > matrix.shape[1]
    x: jax.Array = matrix.T if tall else matrix
    x = x / (jnp.linalg.norm(x) + 1e-7)
    a, b, c = NEWTON_SCHULZ
    for _ in range(5):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if tall else x


def step(weights: Weights, gradients: Weights, state: dict[str, Any], rate: jax.Array, number: jax.Array) -> tuple[Weights, dict[str, Any]]:
    """`rate`: 0 to 1, of the highest rates. `number`: steps so far."""
    norm = jnp.sqrt(sum((g.astype(jnp.float32) ** 2).sum() for g in gradients.values()))
    shrink = jnp.where(jnp.isfinite(norm), jnp.minimum(1.0, 1.0 / (norm + 1e-6)), 0.0)
    new_weights, new_state = {}, {}
    for name, w in weights.items():
        g = jnp.where(jnp.isfinite(norm), gradients[name] * shrink, 0.0)
        s = state[name]
        if is_muons(name, w):
            m = MOMENTUM * s["m"] + g
            update = orthogonal(g + MOMENTUM * m)
            size = max(1.0, w.shape[0] / w.shape[1]) ** 0.5
            new_weights[name] = w * (1 - rate * MUON_RATE * DECAY) - rate * MUON_RATE * size * update
            new_state[name] = {"m": m}
        else:
            m = BETA1 * s["m"] + (1 - BETA1) * g
            v = BETA2 * s["v"] + (1 - BETA2) * g * g
            t = number + 1.0
            new_weights[name] = w - rate * ADAM_RATE * (m / (1 - BETA1**t)) / (jnp.sqrt(v / (1 - BETA2**t)) + SMALL)
            new_state[name] = {"m": m, "v": v}
    return new_weights, new_state
