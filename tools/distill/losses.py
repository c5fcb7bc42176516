"""How far a drafter is from the model, where of the model only the likeliest tokens are known.

Drafts are accepted with probability sum(min(p, q)) if both draw with the same noise as well as can be, so the loss to be
made small is 1 - sum(min(p, q)), the total variation. It says nothing where p and q do not overlap, so the divergence
(Kullback-Leibler) leads at first, and the total variation takes over as the two come to overlap."""

import jax
import jax.numpy as jnp

LEAST = 1e-6
MOST_VARIATION = 0.9


def distances(logits: jax.Array, places: jax.Array, logs: jax.Array) -> dict[str, jax.Array]:
    """For each row. `logits` [rows, outputs]; `places` [rows, top] where in the outputs the model's likeliest tokens are, -1
    if they are not among them; `logs` [rows, top] logarithms of the model's probabilities, likeliest first.

    All other tokens count as one: the model's probability that is left and the drafter's that is left."""
    logits = logits.astype(jnp.float32)
    known = places >= 0
    p = jnp.exp(logs.astype(jnp.float32))
    log_q = jnp.take_along_axis(logits, jnp.maximum(places, 0), -1) - jax.nn.logsumexp(logits, -1, keepdims=True)
    q = jnp.where(known, jnp.exp(log_q), 0.0)
    rest_p = jnp.clip(1 - p.sum(-1), LEAST, 1.0)
    rest_q = jnp.clip(1 - q.sum(-1), LEAST, 1.0)
    divergence = jnp.where(known, p * (logs - log_q), 0.0).sum(-1) + rest_p * (jnp.log(rest_p) - jnp.log(rest_q))
    overlap = jnp.where(known, jnp.minimum(p, q), 0.0).sum(-1)
    return {
        "divergence": divergence,
        "overlap": overlap,
        "agrees": (jnp.argmax(logits, -1) == places[..., 0]).astype(jnp.float32),
    }


def mean_loss(parts: dict[str, jax.Array], counts: jax.Array) -> jax.Array:
    """Over all rows, each of which counts so much."""
    total = jnp.maximum(counts.sum(), 1.0)
    overlap = (parts["overlap"] * counts).sum() / total
    divergence = (parts["divergence"] * counts).sum() / total
    variation = jnp.minimum(MOST_VARIATION, jax.lax.stop_gradient(overlap))  # its share
    mixed: jax.Array = (1 - variation) * divergence + variation * (1 - overlap)
    return mixed
