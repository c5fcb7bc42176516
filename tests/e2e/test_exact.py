"""Same model, request and seed give the same text: alone or beside others, memory reused or not, in any slices."""

import random

import pytest

from harness import DRAFT_MODEL, HYBRID_MODEL, ONE_SLOT, SLOWDOWN, Server, at_once, text_of

PREAMBLE = (
    "You are the keeper of a small harbour museum. Visitors ask about ships, tides, lighthouses, knots, maps and the "
    "people who lived here. The museum has four rooms: the first shows fishing boats and nets, the second the "
    "lighthouse lamp and its keepers' diaries, the third charts and compasses, the fourth photographs of storms. It "
    "opens at ten, closes at six, and is closed on Mondays. Children enter free; guided tours start at eleven and at "
    "three in front of the old anchor. The oldest boat was built in 1872 from oak and larch; the lamp was lit with "
    "whale oil until 1901, then with paraffin, and with electricity since 1934. The great storm of 1953 took the "
    "pier and eleven boats, but nobody drowned because the keeper's daughter rang the church bell all night. Answer "
    "in complete sentences, and say so when you do not know. "
)
TOPICS = [
    "a heron",
    "the moon",
    "bread",
    "a violin",
    "winter",
    "the number seven",
    "rust",
    "a letter",
    "honey",
    "glass",
]
# Short ones, ones that share a long beginning, and ones past 256 and 512 tokens, where attention kernels change.
PROMPTS = [
    *(f"Tell me something surprising about {topic}." for topic in TOPICS),
    *(f"Write one line of a poem about {topic}, then explain it." for topic in TOPICS[:5]),
    *(f"{PREAMBLE}Visitor: What do you know about {topic}?" for topic in TOPICS[:8]),
    *(
        f"{PREAMBLE * n}Which room would you visit first, and why? Mention {topic}."
        for n, topic in zip((2, 2, 3, 3, 4), TOPICS, strict=False)
    ),
    "List five colours.",
    "def fibonacci(n):",
]
assert len(PROMPTS) == 30
REQUESTS = PROMPTS if SLOWDOWN <= 1 else PROMPTS[::5]


def answers(server: Server, prompts, parallel: int = 1, **fields) -> list[dict]:
    """One answer per prompt, in order; in parallel sent in another one, so that neighbours and slots differ."""
    order = list(range(len(prompts)))
    if parallel > 1:
        random.Random(parallel).shuffle(order)
    results = at_once(parallel, lambda i: server.chat(prompts[i], max_tokens=40, **fields), order)
    by_index = dict(zip(order, results, strict=True))
    return [by_index[i] for i in range(len(prompts))]


def texts(server: Server, prompts, parallel: int = 1, **fields) -> list[str]:
    return [text_of(answer) for answer in answers(server, prompts, parallel, **fields)]


@pytest.fixture(scope="module")
def greedy(server) -> list[str]:
    return texts(server, REQUESTS)


@pytest.fixture(scope="module")
def sampled(server) -> list[str]:
    return texts(server, REQUESTS, temperature=0.8, seed=7)


class TestGreedy:
    def test_repeated(self, server, greedy):
        assert texts(server, REQUESTS) == greedy
        assert len(set(greedy)) > len(greedy) / 2, "the prompts hardly matter: a poor test"

    def test_four_at_a_time(self, server, greedy):
        assert texts(server, REQUESTS, parallel=4) == greedy

    def test_more_than_there_are_slots(self, server, greedy):
        assert texts(server, REQUESTS, parallel=12) == greedy

    def test_without_prefix_reuse(self, server, greedy):
        fresh = answers(server, REQUESTS, cache_prompt=False)
        assert [text_of(answer) for answer in fresh] == greedy
        assert {answer["timings"]["cache_n"] for answer in fresh} == {0}

    def test_other_slices_and_batches(self, serve, greedy):
        small = serve("--prompt-slice", "32", "-b", "64", "-ub", "64")
        assert texts(small, REQUESTS) == greedy
        assert texts(small, REQUESTS, parallel=4) == greedy

    def test_one_slot(self, serve, greedy):
        assert texts(serve(*ONE_SLOT), REQUESTS) == greedy

    def test_even_the_logprobs_are_equal_bit_by_bit(self, server):
        prompts = REQUESTS[::3]
        alone = answers(server, prompts, logprobs=True, top_logprobs=3)
        together = answers(server, prompts, parallel=4, logprobs=True, top_logprobs=3)
        assert [a["choices"][0]["logprobs"] for a in alone] == [a["choices"][0]["logprobs"] for a in together]


class TestSampled:
    def test_repeated(self, server, sampled):
        assert texts(server, REQUESTS, temperature=0.8, seed=7) == sampled

    def test_four_at_a_time(self, server, sampled):
        assert texts(server, REQUESTS, parallel=4, temperature=0.8, seed=7) == sampled

    def test_without_prefix_reuse(self, server, sampled):
        assert texts(server, REQUESTS, temperature=0.8, seed=7, cache_prompt=False) == sampled

    def test_other_slices_and_batches(self, serve, sampled):
        small = serve("--prompt-slice", "32", "-b", "64", "-ub", "64")
        assert texts(small, REQUESTS, parallel=4, temperature=0.8, seed=7) == sampled

    def test_another_seed_gives_other_texts(self, server, sampled):
        assert texts(server, REQUESTS[:5], temperature=0.8, seed=8) != sampled[:5]

    def test_with_every_filter_in_play(self, server):
        fields = {
            "temperature": 1.1,
            "seed": 3,
            "top_k": 30,
            "top_p": 0.9,
            "min_p": 0.02,
            "typical_p": 0.95,
            "repeat_penalty": 1.1,
            "frequency_penalty": 0.2,
            "presence_penalty": 0.2,
            "dry_multiplier": 0.5,
            "xtc_probability": 0.3,
            "top_n_sigma": 3,
        }
        prompts = REQUESTS[::4]
        assert texts(server, prompts, **fields) == texts(server, prompts, parallel=4, **fields)

    def test_reported_seed_replays_the_text(self, server):
        body = {
            "prompt": "My favourite word is",
            "n_predict": 24,
            "temperature": 1.5,
            "top_k": 0,
            "top_p": 1,
            "min_p": 0,
        }
        first, second = server.post("/completion", body), server.post("/completion", body)
        seeds = [answer["generation_settings"]["seed"] for answer in (first, second)]
        assert seeds[0] != seeds[1] and first["content"] != second["content"]
        assert server.post("/completion", {**body, "seed": seeds[0]})["content"] == first["content"]

    def test_reported_seed_of_a_chat_replays_it(self, server):
        fields = {"temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0}
        first = server.chat("Say something.", **fields)
        assert text_of(server.chat("Say something.", seed=first["seed"], **fields)) == text_of(first)


@pytest.mark.parametrize("fields", [{}, {"temperature": 0.8, "seed": 7}], ids=["greedy", "sampled"])
def test_hybrid_model(serve, fields):
    server = serve(model=HYBRID_MODEL)
    prompts = REQUESTS[::5]
    alone = texts(server, prompts, **fields)
    assert texts(server, prompts, **fields) == alone
    assert texts(server, prompts, parallel=4, **fields) == alone
    assert texts(server, prompts, cache_prompt=False, **fields) == alone
    assert texts(serve("--prompt-slice", "32", "-b", "64", "-ub", "64", model=HYBRID_MODEL), prompts, **fields) == alone


def test_hybrid_model_continues_a_conversation_exactly(serve):
    """The second turn reuses recurrent state, or does without; the text is that of a fresh start."""
    server = serve(model=HYBRID_MODEL)
    first = {"role": "user", "content": PREAMBLE + "What is in the second room?"}
    reply = server.post("/v1/chat/completions", {"messages": [first], "max_tokens": 40, "temperature": 0})
    turn = {
        "messages": [first, reply["choices"][0]["message"], {"role": "user", "content": "And the third?"}],
        "max_tokens": 40,
        "temperature": 0,
    }
    reused = server.post("/v1/chat/completions", turn)
    assert text_of(reused) == text_of(server.post("/v1/chat/completions", {**turn, "cache_prompt": False}))


@pytest.mark.parametrize("model", [DRAFT_MODEL, HYBRID_MODEL], ids=["draft", "hybrid"])
def test_exact_off_still_works(serve, model):
    server = serve("--exact", "off", model=model)
    assert all(texts(server, REQUESTS[:4], parallel=4))
