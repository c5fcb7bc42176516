"""Whose kernels multiply: the choice is said, and with either a text depends on nothing but its request."""

import pytest

from harness import DRAFT_MODEL, HYBRID_MODEL, Server, run_outrider
from random_models import MIXTURES, write_random_model
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
    exactness = server.get("/props")["exactness"]
    assert exactness["holds"] is True
    assert any("outrider" in reason for reason in exactness["rests_on"])
    long = PROMPTS[15:28]
    assert texts(server, long, parallel=4, temperature=0) == texts(server, long, temperature=0, cache_prompt=False)


@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures_of_experts_are_exact(tmp_path, name):
    """Routers are F32, which ggml computes otherwise for one row than for more; ours does not."""
    path = tmp_path / f"{name}.gguf"
    write_random_model(name, path)
    prompts = PROMPTS[::3]
    flags = ("--kernels", "outrider", "--spec", "suffix", "--spec-always", "--draft-max", "8")
    with Server("--kernels", "outrider", "--spec", "none", model=path) as plain:
        assert plain.get("/props")["exactness"]["holds"] is True
        expected = texts(plain, prompts, temperature=0)
        assert texts(plain, prompts, parallel=4, temperature=0) == expected
    with Server(*flags, model=path) as eager:
        assert texts(eager, prompts, parallel=4, temperature=0) == expected


def test_the_choice_is_said(serve):
    assert serve("--kernels", "ggml", "--spec", "none").get("/props")["kernels"] == "ggml"
    forced = serve("--kernels", "outrider")
    chosen = forced.get("/props")["kernels"]
    assert chosen.endswith("for q8_0, q4_K and attention")
    assert f"kernels: {chosen}" in forced.log()
    refused = run_outrider("serve", "-m", DRAFT_MODEL, "--kernels", "magic")
    assert refused.returncode != 0 and "--kernels" in refused.stderr
