"""Speculation never shows in the answer: every drafter, every feature, alone and beside others, against plain decoding."""

import re

import pytest

from harness import (
    DEFAULT_MODEL,
    DRAFT_MODEL,
    HYBRID_MODEL,
    SLOWDOWN,
    Server,
    assert_refused,
    at_once,
    run_outrider,
    streamed_chat,
    text_of,
)
from other_vocabulary import write_with_other_vocabulary
from test_exact import PROMPTS

CODE = """def area(width, height):
    if width < 0 or height < 0:
        raise ValueError("lengths must not be negative")
    return width * height

def volume(width, height, depth):
    if width < 0 or height < 0 or depth < 0:
        raise ValueError("lengths must not be negative")
    return width * height * depth
"""
COPYING = [
    f"Repeat this code exactly, changing nothing:\n{CODE}",
    f"Rewrite this code with `depth` renamed to `length`:\n{CODE}",
    'Continue: [{"name": "oak", "kind": "tree", "tall": true}, {"name": "fir", "kind": "tree", "tall": true}, ',
    "Say after me: red, green, blue, red, green, blue, red, green, blue, red, green, blue, red,",
]
SPOKEN = PROMPTS[::9] if SLOWDOWN <= 1 else PROMPTS[::15]
REQUESTS = [*COPYING, *SPOKEN]

# What is remembered of earlier answers would make every draft right, which tests little.
ALWAYS = ("--spec-always", "--spec-forget")
LOOKUPS = {  # with the small model as the target: they do not care, and it is fast
    "suffix": ("--spec", "suffix"),
    "ngram-simple": ("--spec", "ngram-simple:size_n=2,size_m=8"),
    "ngram-map-k": ("--spec", "ngram-map-k:size_n=2,size_m=8"),
    "ngram-map-k4v": ("--spec", "ngram-map-k4v:size_n=2,size_m=8"),
    "ngram-mod": ("--spec", "ngram-mod:n_match=2,n_min=1,n_max=8"),
    "ngram-cache": ("--spec", "ngram-cache"),
}
MODELS = {
    "model": ("-md", DRAFT_MODEL, "--spec", "model", *ALWAYS, "--draft-max", "3"),
    "model with a window": ("-md", DRAFT_MODEL, "--spec", "model:window=96", *ALWAYS, "--draft-max", "3"),
    "all, always": ("-md", DRAFT_MODEL, "--spec", "auto", *ALWAYS, "--draft-max", "5"),
    "auto": (),
    "auto with a model": ("-md", DRAFT_MODEL),
}
DRAFTERS = {
    **{name: (DRAFT_MODEL, (*flags, *ALWAYS, "--draft-max", "8")) for name, flags in LOOKUPS.items()},
    **{name: (DEFAULT_MODEL, flags) for name, flags in MODELS.items()},
}


def answers(server: Server, parallel: int, **fields) -> list[dict]:
    return at_once(parallel, lambda prompt: server.chat(prompt, max_tokens=40, **fields), REQUESTS)


@pytest.fixture(scope="module")
def plain(serve) -> Server:
    return serve("--spec", "none", model=DEFAULT_MODEL)


@pytest.fixture(scope="module")
def expected(serve) -> dict[tuple, list[str]]:
    """Texts of plain decoding, by target and kind; made when first asked for."""

    class Texts(dict):
        def __missing__(self, key):
            target, kind = key
            self[key] = [text_of(answer) for answer in answers(serve("--spec", "none", model=target), 1, **KINDS[kind])]
            return self[key]

    return Texts()


KINDS = {"greedy": {"temperature": 0}, "sampled": {"temperature": 0.8, "seed": 11}}


@pytest.fixture(scope="module")
def other_draft(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("models") / "other-vocabulary.gguf"
    write_with_other_vocabulary(str(DRAFT_MODEL), str(path))
    return str(path)


@pytest.fixture(scope="module")
def eager(serve) -> Server:
    return serve(*MODELS["all, always"], model=DEFAULT_MODEL)


class TestSameText:
    @pytest.mark.parametrize("parallel", [1, 4])
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("drafter", DRAFTERS)
    def test_with_every_drafter(self, serve, expected, drafter, kind, parallel):
        target, flags = DRAFTERS[drafter]
        results = answers(serve(*flags, model=target), parallel, **KINDS[kind])
        assert [text_of(answer) for answer in results] == expected[target, kind]
        drafted = sum(answer["timings"]["draft_n"] for answer in results)
        accepted = sum(answer["timings"]["draft_n_accepted"] for answer in results)
        assert 0 <= accepted <= drafted
        if "--spec-always" in flags:
            for_itself = "-md" in flags and target == DRAFT_MODEL  # sanitizer runs, without the default model
            assert 0 < accepted < drafted + for_itself, "a test in which nothing or everything is right shows little"

    @pytest.mark.parametrize("kind", KINDS)
    def test_with_a_draft_of_another_vocabulary(self, serve, expected, other_draft, kind):
        flags = ("-md", other_draft, "--spec", "model", *ALWAYS, "--draft-max", "3")
        server = serve(*flags, model=DEFAULT_MODEL)
        results = answers(server, 4, **KINDS[kind])
        assert [text_of(answer) for answer in results] == expected[DEFAULT_MODEL, kind]
        drafted = sum(answer["timings"]["draft_n"] for answer in results)
        accepted = sum(answer["timings"]["draft_n_accepted"] for answer in results)
        assert drafted / 8 < accepted < drafted, "it drafts nearly as well as the model it was made from"
        assert "drafts through text" in server.log()

    def test_rejection_sampling_keeps_what_has_no_choice(self, serve, expected):
        server = serve(*MODELS["all, always"], "--verify", "reject", model=DEFAULT_MODEL)
        results = answers(server, 4, temperature=0)
        assert [text_of(answer) for answer in results] == expected[DEFAULT_MODEL, "greedy"]
        drawn = answers(server, 4, temperature=0.8, seed=11)
        assert sum(answer["timings"]["draft_n_accepted"] for answer in drawn) > 0
        assert all(text_of(answer) for answer in drawn)

    def test_what_was_answered_before_is_drafted(self):
        with Server("--spec", "suffix", "--spec-always") as server:
            first, second = (server.chat(COPYING[0], max_tokens=40) for _ in range(2))
        assert text_of(first) == text_of(second)
        assert second["timings"]["draft_n_accepted"] > first["timings"]["draft_n_accepted"]

    @pytest.mark.parametrize("drafter", ["suffix", "ngram-mod", "ngram-cache"])  # those that remember
    def test_but_not_for_others(self, drafter):
        with Server(*LOOKUPS[drafter], "--spec-always", "--api-key", "ada", "--api-key", "ben") as server:
            body = {"messages": [{"role": "user", "content": PROMPTS[0]}], "max_tokens": 40, "temperature": 0, "speculative": {"provenance": True}}

            def told(key: str) -> list:
                """All that an answer tells but times: cached, drafted and accepted tokens, and who drafted which of them."""
                answer = server.post("/v1/chat/completions", body, headers={"Authorization": f"Bearer {key}"})
                timings = answer["timings"]
                steps = [step[:3] + step[4:] for step in timings["steps"]]  # without its time
                return [timings["draft_n_accepted"], timings["draft_n"], timings["cache_n"], steps, answer["provenance"]]

            first = told("ada")
            assert told("ben") == first
            assert told("ada")[0] > first[0]


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "colours": {"type": "array", "items": {"type": "string"}, "maxItems": 3}},
    "required": ["name", "colours"],
}
FEATURES = {
    "logprobs": {"logprobs": True, "top_logprobs": 3},
    "sampled logprobs": {"logprobs": True, "top_logprobs": 2, "temperature": 1.0, "seed": 3},
    "stop strings": {"stop": ["width", "ee", "two"]},
    "json schema": {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
    "json object": {"response_format": {"type": "json_object"}, "temperature": 0.7, "seed": 5},
    "grammar": {"grammar": 'root ::= ("red" | "green" | "blue" | ", ")+', "max_tokens": 24},
    "tool call": {"tools": [WEATHER], "tool_choice": "required", "max_tokens": 64},
    "logit bias": {"logit_bias": {"260": -100, "264": 4}},
    "penalties": {"repeat_penalty": 1.3, "frequency_penalty": 0.5, "presence_penalty": 0.5},
    "dry": {"dry_multiplier": 0.8},
    "xtc": {"xtc_probability": 0.5, "temperature": 0.9, "seed": 9},
    "top-n-sigma, typical": {"top_n_sigma": 2, "typical_p": 0.9, "temperature": 0.9, "seed": 4},
    "ignore end": {"ignore_eos": True, "max_tokens": 48},
}


class TestFeatures:
    """All of the answer is the same, not only its text."""

    @pytest.mark.parametrize("feature", FEATURES)
    def test_is_the_same(self, plain, eager, feature):
        fields = {"max_tokens": 40, "temperature": 0, **FEATURES[feature]}
        for prompt in (COPYING[0], "What is the weather in Oslo?"):
            alone, drafted = (server.chat(prompt, **fields) for server in (plain, eager))
            for answer in (alone, drafted):
                for call in answer["choices"][0]["message"].get("tool_calls", []):
                    del call["id"]  # random
            assert drafted["choices"] == alone["choices"]
            for field in ("prompt_tokens", "completion_tokens", "total_tokens"):
                assert drafted["usage"][field] == alone["usage"][field], field

    def test_streams_say_the_same(self, plain, eager):
        body = {"messages": [{"role": "user", "content": COPYING[1]}], "max_tokens": 60, "temperature": 0}
        assert streamed_chat(eager, body) == streamed_chat(plain, body)

    def test_llama_probabilities(self, plain, eager):
        body = {"prompt": COPYING[3], "n_predict": 24, "n_probs": 3, "temperature": 0.8, "seed": 2}
        for extra in ({}, {"post_sampling_probs": True}):
            alone, drafted = (server.post("/completion", {**body, **extra}) for server in (plain, eager))
            assert drafted["completion_probabilities"] == alone["completion_probabilities"]


class TestLimits:
    @pytest.mark.parametrize("max_tokens", [1, 2, 3, 7])
    def test_max_tokens_is_exact(self, eager, max_tokens):
        answer = eager.chat(COPYING[0], max_tokens=max_tokens, ignore_eos=True)
        assert answer["usage"]["completion_tokens"] == max_tokens
        assert answer["choices"][0]["finish_reason"] == "length"

    def test_the_context_ends_where_it_ends_without(self, serve):
        flags = ("-np", "1", "-c", "256")
        body = {"prompt": COPYING[3] * 3, "n_predict": -1, "ignore_eos": True, "temperature": 0}
        alone = serve(*flags, "--spec", "none", model=DEFAULT_MODEL).post("/completion", body)
        drafted = serve(*flags, *MODELS["all, always"], model=DEFAULT_MODEL).post("/completion", body)
        assert drafted["content"] == alone["content"]
        assert drafted["tokens_predicted"] == alone["tokens_predicted"]
        assert drafted["timings"]["draft_n_accepted"] > 0

    @pytest.mark.parametrize("n_max", [1, 4])
    def test_drafts_are_no_longer_than_asked(self, n_max):
        with Server("--spec", "suffix", "--spec-always", "-np", "1", model=DEFAULT_MODEL) as server:
            server.chat(COPYING[0], max_tokens=60, speculative={"n_max": n_max})
            metrics = server.metrics()
        longer = metrics["outrider_accepted_length_count"] - metrics[f'outrider_accepted_length_bucket{{le="{n_max}"}}']
        assert longer == 0
        assert metrics["outrider_accepted_length_count"] > 0


class TestRequestControl:
    def drafters(self, server, **fields) -> dict:
        timings = server.chat(COPYING[0], max_tokens=40, **fields)["timings"]
        return {name for name, did in timings["drafters"].items() if did["proposed"] > 0}

    def test_off(self, eager):
        for fields in ({"speculative": {"enabled": False}}, {"speculative": {"n_max": 0}}, {"speculative.n_max": 0}):
            timings = eager.chat(COPYING[0], max_tokens=20, **fields)["timings"]
            assert (timings["draft_n"], timings["drafters"]) == (0, {}), fields

    def test_choosing_drafters(self, eager):
        assert self.drafters(eager, speculative={"types": ["suffix"]}) == {"suffix"}
        assert self.drafters(eager, speculative={"types": "model"}) == {"model"}
        assert self.drafters(eager, **{"speculative.types": ["model"]}) == {"model"}

    @pytest.mark.parametrize(
        "speculative,field",
        [
            ({"n_max": -1}, "speculative.n_max"),
            ({"n_max": "many"}, "speculative.n_max"),
            ({"p_min": 2}, "speculative.p_min"),
            ({"enabled": "yes"}, "speculative.enabled"),
            ({"types": ["crystal-ball"]}, "speculative.types"),
            ({"provenance": 1}, "speculative.provenance"),
            (7, "speculative"),
        ],
    )
    def test_nonsense_is_refused(self, eager, speculative, field):
        body = {"messages": [{"role": "user", "content": "Hi"}], "speculative": speculative}
        response = eager.http.post("/v1/chat/completions", json=body)
        assert response.status_code == 400
        assert response.json()["error"]["param"] == field

    def test_provenance_tells_who_drafted_each_token(self, eager):
        answer = eager.chat(COPYING[0], max_tokens=40, speculative={"provenance": True})
        assert "".join(token["text"] for token in answer["provenance"]) == text_of(answer)
        drafted = [token["drafter"] for token in answer["provenance"] if token["drafter"]]
        assert len(drafted) == answer["timings"]["draft_n_accepted"] > 0
        assert set(drafted) <= {"suffix", "ngram-map-k", "model"}

        body = {"messages": [{"role": "user", "content": COPYING[0]}], "max_tokens": 40, "temperature": 0}
        with eager.stream("/v1/chat/completions", {**body, "speculative": {"provenance": True}}) as events:
            pieces = [token["text"] for event in events for token in event.get("provenance", [])]
        assert "".join(pieces) == text_of(answer)


class TestVisibility:
    def test_timings_log_and_metrics(self):
        with Server(*MODELS["all, always"], model=DEFAULT_MODEL) as server:
            timings = server.chat(COPYING[0], max_tokens=40)["timings"]
            server.wait_for_line(r"\d+ of \d+ drafted accepted \(.*(suffix|model) \d+.*\), about \d\.\d\dx plain")
            metrics = server.metrics()
            props = server.get("/props")
        assert props["drafters"] == ["suffix", "ngram-map-k", "model"]
        assert sum(did["proposed"] for did in timings["drafters"].values()) == timings["draft_n"]
        assert sum(did["accepted"] for did in timings["drafters"].values()) == timings["draft_n_accepted"]
        stages = timings["stages"]
        assert set(stages) == {"prefill_ms", "draft_ms", "verify_ms", "sample_ms", "rollback_ms"}
        parts = stages["draft_ms"] + stages["verify_ms"] + stages["sample_ms"] + stages["rollback_ms"]
        assert 0 < parts <= timings["predicted_ms"] * 1.05
        for name, did in timings["drafters"].items():
            assert metrics[f'outrider_draft_tokens_proposed_total{{drafter="{name}"}}'] == did["proposed"]
            assert metrics[f'outrider_draft_tokens_accepted_total{{drafter="{name}"}}'] == did["accepted"]

    def test_nothing_of_it_without_drafters(self, plain):
        answer = plain.chat("Name three colours.", max_tokens=8)
        assert answer["timings"]["draft_n"] == 0
        assert plain.get("/props")["drafters"] == []


class TestStart:
    def test_a_draft_alone_turns_it_on(self):
        with Server("-md", DRAFT_MODEL, model=DEFAULT_MODEL) as server:
            assert "model" in server.get("/props")["drafters"]
            assert re.search(r"speculation: suffix, ngram-map-k, model", server.log())

    @pytest.mark.parametrize(
        "flags,saying",
        [
            (("-md", "/no/such/file.gguf"), "draft model .*/no/such/file.gguf"),
            (("--spec", "crystal-ball"), "no drafter 'crystal-ball'.*suffix"),
            (("--spec", "suffix:depth=3"), "no parameter depth"),
            (("--spec", "ngram-simple:size_n=many"), "size_n"),
            (("--spec", "model"), "-md"),
            (("--spec", "none", "--spec", "suffix"), "none"),
            (("--spec", "suffix", "--spec", "suffix"), "twice"),
            (("-lcs", "/no/such/cache"), "/no/such/cache"),
            (("--draft-p-min", "2"), "p-min|range"),
        ],
    )
    def test_mistakes_get_a_sentence(self, flags, saying):
        assert_refused("serve", "-m", DRAFT_MODEL, "--port", "0", *flags, saying=saying)


class TestCheck:
    def test_finds_no_difference(self):
        result = run_outrider("check", "-m", DRAFT_MODEL, "-md", DRAFT_MODEL, timeout=120)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "No difference found: all logits and texts compared were identical." in result.stdout
        for line in ("32 rows at once", "slices of 64", "beside other sequences", "after rejected drafts", "text with suffix"):
            assert re.search(rf"{line}.*exact", result.stdout), result.stdout

    def test_a_drafter_without_drafts_is_skipped(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # where verdicts are kept
        result = run_outrider("check", "-m", DRAFT_MODEL, "--spec", "suffix", "--draft-max", "0", timeout=120)
        assert result.returncode == 0, result.stdout + result.stderr
        line = r"text with suffix, temperature 0\.[08] +SKIPPED +this drafter made no draft for these texts"
        assert len(re.findall(line, result.stdout)) == 2, result.stdout
        assert not list(tmp_path.glob("**/exactness/*")), "nothing was tested that could be kept"

    def test_rejection_sampling_has_nothing_to_compare(self):
        assert_refused("check", "-m", DRAFT_MODEL, "--verify", "reject", saying="--verify reject")

    def test_says_when_there_is_one(self):
        flags = ("--exact", "off", "--kernels", "ggml", "--spec", "none")
        result = run_outrider("check", "-m", DRAFT_MODEL, *flags, timeout=120)
        assert result.returncode == 1, result.stdout + result.stderr
        assert "DIFFERS" in result.stdout
        assert "Not exact: exactness was switched off" in result.stdout

    def test_padding_helps_where_settings_do_not(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # where verdicts are kept
        flags = ("--kernels", "ggml", "-ctk", "f16", "-ctv", "f16")
        with Server(*flags) as server:
            assert server.get("/props")["exactness"]["holds"] is False

        result = run_outrider("check", "-m", DRAFT_MODEL, *flags, timeout=240)
        assert result.returncode == 0, result.stdout + result.stderr
        plain, padded = result.stdout.split("Once more, with every step padded to one shape")
        assert "DIFFERS" in plain and "DIFFERS" not in padded
        assert "--exact pad" in padded and "bf16 or q8_0" in padded, "it must say what helps"

        with Server(*flags) as server:
            assert "every step is padded" in server.log()
            assert server.get("/props")["exactness"]["holds"] is True
            assert text_of(server.chat(PROMPTS[0]))

    def test_padding_keeps_texts(self, serve):
        padded = ("--exact", "pad", "--kernels", "ggml", "-ctk", "f16", "-ctv", "f16")
        plain = [text_of(answer) for answer in answers(serve(*padded, "--spec", "none"), 1, temperature=0)]
        drafting = serve(*padded, "--spec", "suffix", *ALWAYS, "--draft-max", "8")
        for parallel in (1, 4):
            results = answers(drafting, parallel, temperature=0)
            assert [text_of(answer) for answer in results] == plain
            assert sum(answer["timings"]["draft_n_accepted"] for answer in results) > 0

    def test_padding_needs_a_memory_that_takes_tokens_back(self):
        assert_refused("serve", "-m", HYBRID_MODEL, "--port", "0", "--exact", "pad", saying="--exact pad does not work")
