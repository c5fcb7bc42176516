"""Whose kernels multiply: the choice is said, and with either a text depends on nothing but its request."""

import pytest

from harness import DRAFT_MODEL, HYBRID_MODEL, run_outrider
from test_exact import PROMPTS, texts

MEMORIES = [(), ("-ctk", "q8_0", "-ctv", "q8_0"), ("-ctk", "bf16", "-ctv", "bf16")]


@pytest.mark.parametrize("model", [DRAFT_MODEL, HYBRID_MODEL])
@pytest.mark.parametrize("kernels", ["ggml", "outrider"])
def test_texts_depend_on_the_request_alone(serve, kernels, model):
    plain = serve("--kernels", kernels, "--spec", "none", model=model)
    expected = texts(plain, PROMPTS[:24], temperature=0)
    assert texts(plain, PROMPTS[:24], parallel=4, temperature=0) == expected
    eager = serve("--kernels", kernels, "--spec", "suffix", "--spec-always", "--draft-max", "8", model=model)
    assert texts(eager, PROMPTS[:24], parallel=4, temperature=0) == expected


@pytest.mark.parametrize("memory", MEMORIES)
def test_every_memory_is_exact(serve, memory):
    """Past 256 cells ggml computes f16 attention otherwise for one row than for more; ours does not."""
    server = serve("--kernels", "outrider", *memory)
    assert server.get("/props")["exactness"] == {"holds": True, "reason": ""}
    long = PROMPTS[15:28]
    assert texts(server, long, parallel=4, temperature=0) == texts(server, long, temperature=0, cache_prompt=False)


def test_the_choice_is_said(serve):
    assert serve("--kernels", "ggml", "--spec", "none").get("/props")["kernels"] == "ggml"
    forced = serve("--kernels", "outrider")
    chosen = forced.get("/props")["kernels"]
    assert chosen.endswith("for q8_0, q4_K and attention")
    assert f"kernels: {chosen}" in forced.log()
    refused = run_outrider("serve", "-m", DRAFT_MODEL, "--kernels", "magic")
    assert refused.returncode != 0 and "--kernels" in refused.stderr
