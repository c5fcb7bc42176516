"""An EAGLE-3 head unrolled over a whole text sees what it sees when it drafts, and weights are rounded as in the file."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gguf.quants import dequantize, quantize

from distill import eagle3_head, optimiser
from distill.draft_model import shape_of
from distill.eagle3_head import Eagle3Head
from distill.network import HEAD, feed_forward, heads_of, norm, project, repeat_heads, rotate
from distill.quantise import TYPES, rounded, straight_through

WIDTH, ROW, AHEAD, SECOND = 128, 9, 3, 4


def small_head() -> tuple[Eagle3Head, dict[str, jax.Array], dict[str, jax.Array]]:
    head = Eagle3Head.__new__(Eagle3Head)
    head.ahead, head.width, head.heads, head.kv_heads, head.feed_forward = AHEAD, WIDTH, 2, 1, 64
    shapes = {"fc": (WIDTH, 3 * WIDTH), "output": (30, WIDTH), "output_norm": (WIDTH,), "blk.0.attn_q": (WIDTH, 2 * WIDTH),
              "blk.0.attn_k": (HEAD, 2 * WIDTH), "blk.0.attn_v": (HEAD, 2 * WIDTH), "blk.0.attn_output": (WIDTH, WIDTH),
              "blk.0.ffn_gate": (64, WIDTH), "blk.0.ffn_up": (64, WIDTH), "blk.0.ffn_down": (WIDTH, 64), "blk.0.attn_norm": (WIDTH,),
              "blk.0.attn_norm_2": (WIDTH,), "blk.0.ffn_norm": (WIDTH,)}
    keys = jax.random.split(jax.random.key(1), len(shapes))
    weights = {f"{name}.weight": jax.random.normal(key, shape) * (shape[-1] ** -0.5 if len(shape) > 1 else 1.0)
               for key, (name, shape) in zip(keys, shapes.items(), strict=True)}
    constants = {"embeddings": jax.random.normal(jax.random.key(2), (40, WIDTH)), "scale": jnp.linspace(0.5, 2, 3 * WIDTH),
                 "places": jnp.arange(40)}
    return head, weights, constants


def batch_of(segments: list[int]) -> dict[str, Any]:
    r = np.random.default_rng(3)
    return {"token": jnp.asarray(r.integers(0, 40, (1, ROW))), "states": jnp.asarray(r.normal(0, 1, (1, ROW, 3 * WIDTH)), jnp.float32),
            "segment": jnp.asarray([segments]), "own": jnp.ones((1, ROW), bool), "ids": jnp.zeros((1, ROW, 2), int),
            "logs": jnp.zeros((1, ROW, 2))}


def drafted(head: Eagle3Head, weights: dict[str, jax.Array], constants: dict[str, jax.Array], batch: dict[str, Any], first: int,
            last: int, steps: int) -> jax.Array:
    """What the head puts out after `steps` drafted rows, row by row as the engine does it. Rows first … last - steps have the
    target's states; rows after them the head's own."""
    scaled = batch["states"][0] / constants["scale"]
    keys, values = np.zeros((ROW, head.heads, HEAD)), np.zeros((ROW, head.heads, HEAD))
    said = jnp.zeros(WIDTH)
    for place in range(first, last + 1):
        state = project(scaled[place], weights["fc.weight"]) if place <= last - steps else said
        state = norm(state, weights["blk.0.attn_norm_2.weight"])
        word = constants["embeddings"][batch["token"][0, place + 1]] * weights["blk.0.attn_norm.weight"]
        stack = jnp.zeros((1, ROW, 2 * WIDTH)).at[0, place].set(jnp.concatenate([word, state]))
        q = rotate(heads_of(stack, weights["blk.0.attn_q.weight"]), eagle3_head.ROPE_BASE)[0, place]
        keys[place] = repeat_heads(rotate(heads_of(stack, weights["blk.0.attn_k.weight"]), eagle3_head.ROPE_BASE), head.heads)[0, place]
        values[place] = repeat_heads(heads_of(stack, weights["blk.0.attn_v.weight"]), head.heads)[0, place]
        scores = np.exp(np.einsum("hd,thd->ht", np.asarray(q), keys[first : place + 1]) / HEAD**0.5)
        shares = scores / scores.sum(-1, keepdims=True)
        mixed = jnp.asarray(np.einsum("ht,thd->hd", shares, values[first : place + 1]).reshape(-1), jnp.float32)
        said = state + project(mixed, weights["blk.0.attn_output.weight"])
        said = said + feed_forward(norm(said, weights["blk.0.ffn_norm.weight"]), weights, "blk.0")
    return norm(said, weights["output_norm.weight"])


@pytest.mark.parametrize("steps", range(AHEAD))
def test_unrolled_it_sees_what_it_sees_when_it_drafts(steps: int) -> None:
    head, weights, constants = small_head()
    batch = batch_of([0] * SECOND + [1] * (ROW - SECOND))
    guesses = head.guess(weights, constants, batch, jnp.float32)[steps]
    for last in range(ROW - 1):
        first = 0 if last < SECOND else SECOND
        valid = last != SECOND - 1 and last - steps >= first
        assert bool(guesses.valid[0, last]) == valid, last
        if valid and last in (SECOND - 2, ROW - 2):
            expected = drafted(head, weights, constants, batch, first, last, steps)
            np.testing.assert_allclose(guesses.hidden[0, last], expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("kind", ["q4_0", "q8_0"])
def test_rounded_as_in_the_file(kind: str) -> None:
    weights = np.random.default_rng(1).normal(0, 1, (20, 64)).astype(np.float32)
    weights[3] = 0
    in_file = dequantize(quantize(weights, TYPES[kind]), TYPES[kind])
    np.testing.assert_allclose(rounded(jnp.asarray(weights), kind), in_file, atol=1e-6)
    gradient = jax.grad(lambda w: (straight_through(w, kind) * 3).sum())(jnp.asarray(weights))
    np.testing.assert_array_equal(gradient, np.full_like(weights, 3))


def test_muon_makes_steps_of_equal_length_in_all_directions() -> None:
    matrix = jax.random.normal(jax.random.key(1), (32, 96)) * jnp.logspace(-1, 1, 32)[:, None]
    sizes = jnp.linalg.svd(optimiser.orthogonal(matrix), compute_uv=False)
    assert 0.4 < float(sizes.min()) and float(sizes.max()) < 1.4


def test_a_gradient_that_is_no_number_changes_nothing() -> None:
    weights = {"a.weight": jnp.ones((4, 4)), "b.weight": jnp.ones(4)}
    gradients = {"a.weight": jnp.full((4, 4), jnp.nan), "b.weight": jnp.ones(4)}
    after, state = optimiser.step(weights, gradients, optimiser.begin(weights), jnp.float32(0), jnp.float32(0))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((after, state)))


@pytest.mark.parametrize(("size", "vocabulary", "expected"), [(16_000_000, 49152, (256, 4)), (100_000_000, 151936, (512, 7)),
                                                              (1_000_000, 49152, (64, 1))])
def test_shapes(size: int, vocabulary: int, expected: tuple[int, int]) -> None:
    assert shape_of(size, vocabulary) == expected
