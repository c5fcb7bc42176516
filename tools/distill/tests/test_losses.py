"""Losses against what they mean, computed the long way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from distill.losses import distances, mean_loss


def of_model(p: np.ndarray, top: int) -> tuple[jax.Array, jax.Array]:
    ids = np.argsort(-p, axis=-1)[:, :top]
    return jnp.asarray(ids), jnp.asarray(np.log(np.take_along_axis(p, ids, -1)))


def random_rows(rows: int, tokens: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    return r.dirichlet(np.full(tokens, 0.3), rows).astype(np.float32) + 1e-9, r.normal(0, 2, (rows, tokens)).astype(np.float32)


def softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def test_with_all_tokens_known_they_are_the_textbooks() -> None:
    p, logits = random_rows(20, 12, 1)
    q = softmax(logits)
    got = distances(jnp.asarray(logits), *of_model(p, 12))
    np.testing.assert_allclose(got["divergence"], (p * np.log(p / q)).sum(-1), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(got["overlap"], np.minimum(p, q).sum(-1), rtol=1e-4)
    np.testing.assert_array_equal(got["agrees"], p.argmax(-1) == q.argmax(-1))


def test_the_rest_counts_as_one_token() -> None:
    p, logits = random_rows(20, 12, 2)
    q = softmax(logits)
    ids, logs = of_model(p, 4)
    got = distances(jnp.asarray(logits), ids, logs)
    kept = np.asarray(ids)
    pk, qk = np.take_along_axis(p, kept, -1), np.take_along_axis(q, kept, -1)
    rest_p, rest_q = 1 - pk.sum(-1), 1 - qk.sum(-1)
    expected = (pk * np.log(pk / qk)).sum(-1) + rest_p * np.log(rest_p / rest_q)
    np.testing.assert_allclose(got["divergence"], expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(got["overlap"], np.minimum(pk, qk).sum(-1), rtol=1e-4)


def test_tokens_that_the_drafter_cannot_say_never_agree() -> None:
    p, logits = random_rows(20, 12, 3)
    ids, logs = of_model(p, 4)
    got = distances(jnp.asarray(logits[:, :3]), jnp.where(ids < 3, ids, -1), logs)
    outside = np.asarray(ids[:, 0]) >= 3
    assert outside.any() and not np.asarray(got["agrees"])[outside].any()
    assert np.isfinite(got["divergence"]).all()
    assert (np.asarray(got["overlap"]) <= 1).all()


@pytest.mark.parametrize("apart", [1.0, 4.0])
def test_following_the_gradient_leads_to_the_model(apart: float) -> None:
    """Even from where the two hardly overlap, and the total variation has no gradient."""
    p, logits = random_rows(8, 12, 4)
    logits = logits - np.log(p) * apart
    target = of_model(p, 12)

    def loss(x: jax.Array) -> jax.Array:
        return mean_loss(distances(x, *target), jnp.ones(8))

    x = jnp.asarray(logits)
    x = jax.jit(lambda x: jax.lax.fori_loop(0, 2000, lambda _, x: x - 4.0 * jax.grad(loss)(x), x))(x)
    assert np.isfinite(x).all()
    assert distances(x, *target)["overlap"].mean() > 0.9
