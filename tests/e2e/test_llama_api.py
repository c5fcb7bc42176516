"""llama.cpp's own endpoints with the field names its users know."""

import json
import math
import re

import pytest

from harness import DRAFT_MODEL, HYBRID_MODEL, ONE_SLOT, REPO, chat_request, checked, events_in, parse_prometheus, text_of

PROMPT = "Once upon a time there was a lighthouse keeper who"
BODY = {"prompt": PROMPT, "n_predict": 16, "temperature": 0}
TIMINGS = {
    "cache_n",
    "prompt_n",
    "prompt_ms",
    "prompt_per_token_ms",
    "prompt_per_second",
    "predicted_n",
    "predicted_ms",
    "predicted_per_token_ms",
    "predicted_per_second",
}


def check_timings(timings: dict, generated: int):
    assert TIMINGS <= set(timings)
    assert timings["predicted_n"] == generated
    assert timings["prompt_n"] >= 1
    assert all(math.isfinite(timings[name]) and timings[name] >= 0 for name in TIMINGS)
    assert timings["prompt_per_second"] == pytest.approx(timings["prompt_n"] / timings["prompt_ms"] * 1000, rel=0.05)


class TestCompletion:
    def test_fields(self, server):
        answer = server.post("/completion", BODY)
        assert answer["content"] and answer["stop"] is True
        assert answer["stop_type"] == "limit" and answer["stopping_word"] == ""
        assert answer["tokens_predicted"] == 16 and answer["tokens_evaluated"] > 5
        assert answer["truncated"] is False
        assert 0 <= answer["id_slot"] < 4
        settings = answer["generation_settings"]
        assert settings["n_predict"] == 16 and settings["temperature"] == 0 and settings["top_k"] == 40
        check_timings(answer["timings"], 16)

    def test_stream_equals_whole(self, server):
        with server.stream("/completion", BODY) as events:
            *pieces, last = events
        assert "".join(piece["content"] for piece in [*pieces, last]) == server.post("/completion", BODY)["content"]
        assert not any(piece["stop"] for piece in pieces)
        assert last["stop"] and last["tokens_predicted"] == 16
        check_timings(last["timings"], 16)

    def test_prompt_of_tokens(self, server):
        tokens = server.post("/tokenize", {"content": PROMPT})["tokens"]
        assert (
            server.post("/completion", {**BODY, "prompt": tokens})["content"]
            == server.post("/completion", BODY)["content"]
        )

    def test_prompt_of_tokens_and_text(self, server):
        head, tail = PROMPT[:23], PROMPT[23:]
        mixed = server.post(
            "/completion", {**BODY, "prompt": [*server.post("/tokenize", {"content": head})["tokens"], tail]}
        )
        assert mixed["content"] == server.post("/completion", BODY)["content"]

    def test_returned_tokens(self, server):
        answer = server.post("/completion", {**BODY, "return_tokens": True})
        assert len(answer["tokens"]) == 16
        assert server.post("/detokenize", {"tokens": answer["tokens"]})["content"] == answer["content"]

    def test_n_probs(self, server):
        entries = server.post("/completion", {**BODY, "n_probs": 4})["completion_probabilities"]
        assert len(entries) == 16
        for entry in entries:
            assert {"id", "token", "bytes", "logprob", "top_logprobs"} <= set(entry)
            best = [top["logprob"] for top in entry["top_logprobs"]]
            assert len(best) == 4 and best == sorted(best, reverse=True)
            assert entry["logprob"] == best[0]
            assert sum(math.exp(x) for x in best) <= 1.001

    def test_n_probs_after_sampling(self, server):
        body = {**BODY, "n_probs": 4, "temperature": 0.8, "seed": 1, "post_sampling_probs": True}
        entries = server.post("/completion", body)["completion_probabilities"]
        for entry in entries:
            best = [top["prob"] for top in entry["top_probs"]]
            assert 0 < entry["prob"] <= 1 and best == sorted(best, reverse=True)

    def test_grammar(self, server):
        answer = server.post("/completion", {**BODY, "grammar": 'root ::= "yes" | "no"'})
        assert answer["content"] in ("yes", "no")

    def test_json_schema(self, server):
        properties = {"n": {"type": "integer", "minimum": 0, "maximum": 99}, "ok": {"type": "boolean"}}
        schema = {"type": "object", "properties": properties, "required": ["n", "ok"]}
        data = json.loads(server.post("/completion", {**BODY, "json_schema": schema, "n_predict": 128})["content"])
        assert type(data["n"]) is int and type(data["ok"]) is bool

    def test_logit_bias_bans_and_forces(self, server):
        (first,) = server.post("/completion", {**BODY, "n_predict": 1, "return_tokens": True})["tokens"]
        banned = server.post(
            "/completion", {**BODY, "n_predict": 1, "return_tokens": True, "logit_bias": [[first, False]]}
        )["tokens"]
        assert banned != [first]
        forced = server.post(
            "/completion", {**BODY, "n_predict": 3, "return_tokens": True, "logit_bias": [[banned[0], 100]]}
        )["tokens"]
        assert forced == banned * 3

    def test_id_slot(self, server):
        for slot in (2, 0, 3):
            assert server.post("/completion", {**BODY, "n_predict": 1, "id_slot": slot})["id_slot"] == slot

    def test_ignore_eos(self, server):
        assert server.post("/completion", {**BODY, "n_predict": 64, "ignore_eos": True})["tokens_predicted"] == 64

    def test_repetition_is_penalised(self, server):
        plain = server.post("/completion", {**BODY, "n_predict": 64})["content"]
        assert server.post("/completion", {**BODY, "n_predict": 64, "repeat_penalty": 1.5})["content"] != plain

    def test_timings_in_chat(self, server):
        answer = server.post("/v1/chat/completions", chat_request("Hi", max_tokens=8, ignore_eos=True))
        check_timings(answer["timings"], 8)


class TestTokens:
    @pytest.mark.parametrize(
        "text", ["Hello, world!", "  spaces  and\n\ttabs ", "你好 🚀 naïve", "", "a" * 500, "<|im_start|>user"]
    )
    def test_round_trip(self, server, text):
        tokens = server.post("/tokenize", {"content": text, "parse_special": False})["tokens"]
        assert server.post("/detokenize", {"tokens": tokens})["content"] == text

    def test_special_tokens(self, server):
        assert len(server.post("/tokenize", {"content": "<|im_end|>", "parse_special": True})["tokens"]) == 1
        assert len(server.post("/tokenize", {"content": "<|im_end|>", "parse_special": False})["tokens"]) > 1

    def test_pieces(self, server):
        pieces = server.post("/tokenize", {"content": "Hello 🚀", "with_pieces": True})["tokens"]
        raw = b"".join(p["piece"].encode() if isinstance(p["piece"], str) else bytes(p["piece"]) for p in pieces)
        assert raw.decode() == "Hello 🚀"

    def test_apply_template(self, server):
        prompt = server.post("/apply-template", {"messages": [{"role": "user", "content": "Hi there"}]})["prompt"]
        assert "<|im_start|>user\nHi there<|im_end|>" in prompt
        assert prompt.endswith("<|im_start|>assistant\n")
        chat = server.chat("Hi there")
        assert server.post("/completion", {"prompt": prompt, "n_predict": 32, "temperature": 0})["content"] == text_of(
            chat
        )


class TestState:
    def test_health(self, server):
        assert server.get("/health") == {"status": "ok"}
        assert server.get("/v1/health") == {"status": "ok"}

    def test_props(self, server):
        props = server.get("/props")
        assert props["total_slots"] == 4
        assert props["model_path"].endswith("smollm2-draft-16m.gguf")
        assert "im_start" in props["chat_template"]
        assert props["default_generation_settings"]["n_ctx"] >= 512
        assert props["build_info"]

    def test_slots(self, server):
        server.post("/completion", {**BODY, "id_slot": 1})
        slots = server.get("/slots")
        assert [slot["id"] for slot in slots] == [0, 1, 2, 3]
        assert all(slot["n_ctx"] >= 512 and slot["is_processing"] is False for slot in slots)

    def test_busy_slot(self, serve):
        server = serve(*ONE_SLOT)
        with server.stream("/completion", {**BODY, "n_predict": -1, "ignore_eos": True}) as events:
            next(events)
            assert [slot["is_processing"] for slot in server.get("/slots")] == [True]
            assert server.metrics()["llamacpp:requests_processing"] == 1

    def test_grafana_dashboard_uses_metrics_that_exist(self, server):
        """docs/grafana.json asks for nothing that /metrics does not have, and labels that the metrics carry."""
        samples = parse_prometheus(checked(server.http.get("/metrics")).text)
        names = {name.partition("{")[0] for name in samples}
        dashboard = json.loads((REPO / "docs/grafana.json").read_text())
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        queries.append(dashboard["templating"]["list"][1]["definition"])
        asked = {name for query in queries for name in re.findall(r"\b(?:llamacpp:|outrider_)\w+", query)}
        assert len(asked) > 15 and asked <= names, asked - names
        for query in queries:
            for label in re.findall(r"by \((\w+)\)", query):
                labelled = re.findall(r"\b((?:llamacpp:|outrider_)\w+)", query)
                assert all(f'{name}{{{label}="' in " ".join(samples) for name in labelled), query

    def test_live_tells_the_metrics_as_they_are(self, server):
        server.post("/completion", BODY)
        with server.http.stream("GET", "/live") as response:
            live = next(events_in(response.iter_bytes()))
        assert live["metrics"] == checked(server.http.get("/metrics")).text
        assert [slot["id"] for slot in live["slots"]] == [slot["id"] for slot in server.get("/slots")]
        rows = [point[0] for point in live["costs"]["curve"]]
        assert rows == list(range(1, 33)) and all(seconds > 0 and spread >= 0 for _, seconds, spread in live["costs"]["curve"])
        assert live["memory"]["resident"] > 1e6 and live["draft_servers"] == []

    def test_metrics(self, server):
        before = server.metrics()
        answer = server.post("/completion", {**BODY, "cache_prompt": False})
        response = checked(server.http.get("/metrics"))
        assert response.headers["content-type"].startswith("text/plain")
        samples = parse_prometheus(response.text)
        kinds = {
            "llamacpp:prompt_tokens_total": "counter",
            "llamacpp:prompt_seconds_total": "counter",
            "llamacpp:tokens_predicted_total": "counter",
            "llamacpp:tokens_predicted_seconds_total": "counter",
            "llamacpp:requests_processing": "gauge",
            "llamacpp:requests_deferred": "gauge",
        }
        for name, kind in kinds.items():
            assert samples[name][0] == kind, name
            assert math.isfinite(samples[name][1])
        after = {name: value for name, (_, value) in samples.items()}
        assert after["llamacpp:tokens_predicted_total"] - before["llamacpp:tokens_predicted_total"] == 16
        assert (
            after["llamacpp:prompt_tokens_total"] - before["llamacpp:prompt_tokens_total"] == answer["tokens_evaluated"]
        )
        assert after["llamacpp:requests_processing"] == after["llamacpp:requests_deferred"] == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("slots")


@pytest.fixture(scope="module", params=[DRAFT_MODEL, HYBRID_MODEL], ids=["draft", "hybrid"])
def savers(request, serve, folder):
    """Two servers with one folder for slots."""
    path = ("--slot-save-path", folder)
    return serve(*path, model=request.param), serve(*path, "--queue", "8", model=request.param)


class TestSlotFiles:
    """A conversation is put on disk and taken up again, here and in another server."""

    story = " ".join(["The keeper wrote in his diary every evening."] * 12)

    def act(self, server, slot: int, action: str, **body):
        return server.http.post(f"/slots/{slot}", params={"action": action}, json=body)

    def test_save_and_restore(self, savers, folder):
        body = {"prompt": self.story, "n_predict": 12, "temperature": 0}
        more = {**body, "prompt": self.story + " One night the lamp went out, and"}
        for here, there in ((savers[0], savers[0]), savers):
            fresh = here.post("/completion", {**more, "cache_prompt": False})
            here.post("/completion", {**body, "n_predict": 1, "id_slot": 0, "cache_prompt": False})
            saved = checked(self.act(here, 0, "save", filename="diary.bin")).json()
            assert saved["id_slot"] == 0 and saved["filename"] == "diary.bin"
            assert saved["n_saved"] > 100 and saved["n_written"] == (folder / "diary.bin").stat().st_size
            assert checked(self.act(there, 1, "erase")).json()["id_slot"] == 1
            restored = checked(self.act(there, 1, "restore", filename="diary.bin")).json()
            assert restored["n_restored"] == saved["n_saved"] and restored["n_read"] == saved["n_written"]
            continued = there.post("/completion", {**more, "id_slot": 1})
            assert continued["content"] == fresh["content"]
            assert continued["timings"]["cache_n"] >= saved["n_saved"] - 2

    def test_erase(self, savers):
        server = savers[0]
        server.post("/completion", {"prompt": self.story, "n_predict": 1, "id_slot": 2})
        assert checked(self.act(server, 2, "erase")).json()["n_erased"] > 100
        answer = server.post("/completion", {"prompt": self.story, "n_predict": 1, "id_slot": 2})
        assert answer["timings"]["cache_n"] == 0

    @pytest.mark.parametrize("name", ["../escape.bin", "/tmp/escape.bin", "a/b.bin", "..", "", "a\x00b", "x" * 5000])
    def test_bad_filename(self, savers, folder, name):
        for action in ("save", "restore"):
            response = self.act(savers[0], 0, action, filename=name)
            assert response.status_code == 400, response.text
            assert response.json()["error"]["message"]
        assert not (folder.parent / "escape.bin").exists()

    def test_bad_requests(self, savers, folder):
        server = savers[0]
        (folder / "junk.bin").write_bytes(b"junk" * 1000)
        (folder / "empty.bin").write_bytes(b"")
        for slot, action, body in [
            (0, "restore", {"filename": "junk.bin"}),
            (0, "restore", {"filename": "empty.bin"}),
            (0, "restore", {"filename": "missing.bin"}),
            (0, "juggle", {"filename": "x.bin"}),
            (0, "save", {}),
            (0, "save", {"filename": 5}),
            (99, "erase", {}),
            (-1, "erase", {}),
        ]:
            response = self.act(server, slot, action, **body)
            assert response.status_code in (400, 404), (slot, action, body, response.text)
        assert server.post("/completion", BODY)["tokens_predicted"] == 16

    def test_cut_file(self, savers, folder):
        server = savers[0]
        server.post("/completion", {"prompt": self.story, "n_predict": 1, "id_slot": 0})
        checked(self.act(server, 0, "save", filename="cut.bin"))
        content = (folder / "cut.bin").read_bytes()
        (folder / "cut.bin").write_bytes(content[: len(content) // 2])
        assert self.act(server, 3, "restore", filename="cut.bin").status_code == 400
        fresh = server.post("/completion", {**BODY, "cache_prompt": False})["content"]
        assert server.post("/completion", {**BODY, "id_slot": 3})["content"] == fresh

    def test_refused_without_the_flag(self, server):
        response = self.act(server, 0, "save", filename="x.bin")
        assert response.status_code in (400, 501)
        assert "--slot-save-path" in response.json()["error"]["message"]
