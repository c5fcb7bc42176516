"""Endpoints and fields of llama-server and OpenAI beyond a single answer: n, several prompts, /infill, /rerank, llama.cpp's
embeddings, token counts, progress. Texts are the same with drafts and without, and the same as alone."""

import sys
from pathlib import Path

import httpx
import pytest

from harness import Server

sys.path.insert(0, str(Path(__file__).parents[1] / "compat"))
from stand_ins import write_infill_model, write_rerank_model  # noqa: E402

STORY = "The cat sat on the mat. The dog sat on the mat. The bird sat on the mat. The cat sat on"
PLAIN = ("--spec", "none")
DRAFTING = ("--spec-always",)  # every draft is verified, so that there are some


@pytest.fixture(scope="module")
def infill_model(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("models") / "infill.gguf"
    write_infill_model(path)
    return path


def drafted(answer: dict) -> int:
    return answer["timings"]["draft_n"]


class TestChoices:
    body = {"prompt": STORY, "max_tokens": 24, "temperature": 0.8, "seed": 11, "ignore_eos": True}

    def test_n_answers_are_those_of_n_seeds(self, serve):
        server = serve()
        answer = server.post("/v1/completions", {**self.body, "n": 3})
        texts = [choice["text"] for choice in answer["choices"]]
        alone = [server.post("/v1/completions", {**self.body, "seed": 11 + i})["choices"][0]["text"] for i in range(3)]
        assert texts == alone
        assert len(set(texts)) == 3
        assert answer["usage"]["completion_tokens"] == 72
        assert answer["usage"]["prompt_tokens"] == server.post("/v1/completions", self.body)["usage"]["prompt_tokens"]

    def test_the_prompt_is_read_once(self, serve):
        server = serve()
        prompt = "Once upon a time there was a king who counted: " + " ".join(str(i) for i in range(150))
        before = server.metrics()["llamacpp:prompt_tokens_total"]
        answer = server.post("/completion", {"prompt": prompt, "n_predict": 4, "n": 3, "cache_prompt": True})
        read = server.metrics()["llamacpp:prompt_tokens_total"] - before
        assert read <= answer[0]["tokens_evaluated"] + 2, "the others copy the memory of the first"

    def test_texts_do_not_depend_on_drafts(self, serve):
        plain, drafting = serve(*PLAIN), serve(*DRAFTING)
        for body in (
            {**self.body, "n": 2},
            {**self.body, "prompt": [STORY, "One, two, three, one, two,", [504, 253, 28]], "temperature": 0},
        ):
            with_drafts = drafting.post("/v1/completions", body)
            without = plain.post("/v1/completions", body)
            assert [each["text"] for each in with_drafts["choices"]] == [each["text"] for each in without["choices"]]
            assert drafted(with_drafts) > 0 and drafted(without) == 0

    def test_a_stream_has_the_same_texts(self, server):
        body = {"messages": [{"role": "user", "content": "Tell me a story."}], "n": 2, "seed": 3, "max_tokens": 24}
        whole = [choice["message"]["content"] for choice in server.post("/v1/chat/completions", body)["choices"]]
        texts, ends = ["", ""], 0
        with server.stream("/v1/chat/completions", {**body, "stream_options": {"include_usage": True}}) as events:
            for event in events:
                for choice in event["choices"]:
                    texts[choice["index"]] += choice["delta"].get("content") or ""
                    ends += choice["finish_reason"] is not None
                usage = event.get("usage")
        assert texts == whole
        assert ends == 2
        assert usage["completion_tokens"] <= 48 and usage["total_tokens"] > usage["prompt_tokens"]

    def test_leaving_cancels_all_choices(self, server):
        body = {"prompt": "Once", "n_predict": -1, "ignore_eos": True, "n": 3}
        with server.stream("/completion", body) as events:
            next(iter(events))
        for _ in range(100):
            if server.slots_idle():
                return
            httpx.get(f"{server.url}/health")
        assert server.slots_idle()


class TestInfill:
    body = {
        "input_prefix": "def add(a, b):\n    return a",
        "input_suffix": "\n\nprint(add(1, 2))\n",
        "input_extra": [{"filename": "util.py", "text": "def add(a, b):\n    return a + b\n" * 4}],
        "prompt": "    # add(a, b)",
        "n_predict": 24,
        "ignore_eos": True,
        "temperature": 0,
    }

    def test_texts_do_not_depend_on_drafts(self, infill_model):
        with Server(*PLAIN, model=infill_model) as plain:
            expected = plain.post("/infill", self.body)
        with Server(*DRAFTING, model=infill_model) as drafting:
            answer = drafting.post("/infill", self.body)
            streamed = ""
            with drafting.stream("/infill", self.body) as events:
                streamed = "".join(event["content"] for event in events)
            swapped = drafting.post("/infill", {**self.body, "input_prefix": "x"})
        assert answer["content"] == expected["content"] == streamed
        assert drafted(answer) > 0
        assert "util.py" in answer["prompt"] and swapped["prompt"] != answer["prompt"]

    def test_a_model_without_the_tokens_says_so(self, server):
        response = server.http.post("/infill", json=self.body)
        assert response.status_code == 501
        assert "fill gaps" in response.json()["error"]["message"]


class TestRerank:
    def test_ranks_by_its_model(self, tmp_path):
        write_rerank_model(tmp_path / "rank.gguf")
        with Server("--reranking", model=tmp_path / "rank.gguf") as server:
            documents = ["Paris is in France.", "A cat", "Machine learning is fun", "one two three"]
            body = {"query": "Where is Paris?", "documents": documents}
            answer = server.post("/v1/rerank", body)
            scores = [result["relevance_score"] for result in answer["results"]]
            assert scores == sorted(scores, reverse=True) and len(set(scores)) == 4
            assert all(0 <= score <= 1 for score in scores), "the share of the label yes"
            assert sorted(result["index"] for result in answer["results"]) == [0, 1, 2, 3]
            assert server.post("/v1/rerank", body) == answer, "the same every time"
            one = server.post("/rerank", {**body, "documents": documents[2:3]})["results"][0]["relevance_score"]
            assert one == next(each["relevance_score"] for each in answer["results"] if each["index"] == 2)
            tei = server.post("/rerank", {"query": body["query"], "texts": documents, "top_n": 1, "return_text": True})
            assert tei[0]["text"] == documents[answer["results"][0]["index"]]
            assert server.http.post("/rerank", json={"query": "a", "documents": ["x " * 5000]}).status_code == 400


class TestEmbeddings:
    def test_llamas_shapes(self, serve):
        server = serve("--embeddings")
        vector = server.post("/v1/embeddings", {"input": "Hello"})["data"][0]["embedding"]
        assert server.post("/embedding", {"content": "Hello"}) == [{"index": 0, "embedding": [vector]}]
        assert len(server.post("/embeddings", {"content": ["a", "b", [1, 2, "c"]]})) == 3

    def test_fewer_dimensions(self, serve):
        server = serve("--embeddings")
        whole = server.post("/v1/embeddings", {"input": "Hello"})["data"][0]["embedding"]
        some = server.post("/v1/embeddings", {"input": "Hello", "dimensions": 8})["data"][0]["embedding"]
        assert len(some) == 8
        assert sum(x * x for x in some) == pytest.approx(1, abs=1e-4)
        scale = some[0] / whole[0]
        assert some == pytest.approx([x * scale for x in whole[:8]], rel=1e-3)

    def test_one_for_each_token(self):
        with Server("--embeddings", "--pooling", "none") as server:
            tokens = server.post("/tokenize", {"content": "hello hello hello"})["tokens"]
            (answer,) = server.post("/embeddings", {"input": "hello hello hello"})
            assert len(answer["embedding"]) == len(tokens)
            assert all(abs(sum(x * x for x in vector) - 1) > 1e-3 for vector in answer["embedding"]), "as the model has it"
            assert server.http.post("/v1/embeddings", json={"input": "hello"}).status_code == 400


class TestCounting:
    def test_counts_are_what_is_used(self, server):
        messages = [{"role": "user", "content": "How many tokens is this?"}]
        used = server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 1})["usage"]["prompt_tokens"]
        assert server.post("/v1/chat/completions/input_tokens", {"messages": messages})["input_tokens"] == used
        assert server.post("/v1/responses/input_tokens", {"input": messages[0]["content"]})["input_tokens"] == used
        assert server.post("/v1/messages/count_tokens", {"messages": messages})["input_tokens"] == used
        long = [{"role": "user", "content": "word " * 20000}]
        assert server.post("/chat/completions/input_tokens", {"messages": long})["input_tokens"] > 20000

    def test_progress_of_a_long_prompt(self, server):
        prompt = "Progress: " + " ".join(str(i) for i in range(400))
        body = {"prompt": prompt, "max_tokens": 2, "return_progress": True, "cache_prompt": False}
        with server.stream("/v1/completions", body) as events:
            reports = [event["prompt_progress"] for event in events if "prompt_progress" in event]
        assert reports[0]["processed"] == reports[0]["cache"] == 0
        assert reports[-1]["processed"] == reports[-1]["total"]
        assert all(a["processed"] < b["processed"] for a, b in zip(reports, reports[1:]))

    def test_nothing_is_generated_for_max_tokens_zero(self, server):
        answer = server.post("/v1/completions", {"prompt": "Hello", "max_tokens": 0})
        assert answer["choices"][0]["text"] == "" and answer["choices"][0]["finish_reason"] == "length"
        assert answer["usage"]["completion_tokens"] == 0

    def test_a_full_context_is_told(self, serve):
        server = serve("-c", "256", "-np", "1", *PLAIN)
        answer = server.post("/completion", {"prompt": "one two three four " * 60, "ignore_eos": True})
        assert answer["truncated"] is True and answer["stop_type"] == "limit"
        assert answer["tokens_evaluated"] + answer["tokens_predicted"] == 256
        assert server.post("/completion", {"prompt": "Once", "n_predict": 4})["truncated"] is False


def test_browsers_ask_before_they_call(serve):
    server = serve("--cors-origins", "localhost")
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,x-stainless-lang"}
    response = server.http.options("/v1/chat/completions", headers={"Origin": "http://127.0.0.1:3000", **asked})
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == "http://127.0.0.1:3000"
    assert response.headers["access-control-allow-headers"] == "authorization,x-stainless-lang"
    refused = server.http.options("/v1/chat/completions", headers={"Origin": "http://localhost.evil.com", **asked})
    assert "access-control-allow-origin" not in refused.headers


def test_thinking_of_earlier_turns_reaches_the_template(serve, tmp_path):
    template = tmp_path / "template.jinja"
    template.write_text(
        "{% for m in messages %}[{{ m.role }}{% if m.reasoning_content %} thought {{ m.reasoning_content }}{% endif %}] "
        "{{ m.content }}\n{% endfor %}"
    )
    with Server("--chat-template-file", template) as server:
        messages = [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "They greet me."}, {"type": "text", "text": "Hello"}]},
            {"role": "user", "content": "Go on"},
        ]  # fmt: skip
        with_thoughts = server.post("/v1/messages/count_tokens", {"messages": messages})["input_tokens"]
        messages[1]["content"] = messages[1]["content"][1:]
        assert with_thoughts > server.post("/v1/messages/count_tokens", {"messages": messages})["input_tokens"]
