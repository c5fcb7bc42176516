"""Flags of llama-server whose effect shows only in answers: prompts kept beyond the slots, Mirostat, where reasoning goes
and how long it may be, TLS, a prefix for all paths; and the memory for responses. Texts are the same with drafts and
without."""

import ssl
import subprocess

import httpx
import openai
import pytest

from harness import DRAFT_MODEL, HYBRID_MODEL, Server, chat_request, checked, endless, eventually, seconds

STORY = "The cat sat on the mat. The dog sat on the mat. The bird sat on the mat. The cat sat on"
PLAIN = ("--spec", "none")
DRAFTING = ("--spec-always",)  # every draft is verified, so that there are some

# ChatML of a model that thinks before each answer.
THINKING = (
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.role == 'assistant' and message.reasoning_content %}"
    "{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}"
    "{{- message.content + '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>\\n' }}{%- endif %}"
)


class TestCacheRam:
    ONE_SLOT = ("-np", "1", "-c", "2048", "-t", "2")

    @pytest.mark.parametrize("model", [DRAFT_MODEL, HYBRID_MODEL], ids=["attention", "hybrid"])
    def test_conversations_that_take_turns_are_not_read_again(self, model):
        """Three conversations in one slot: each turn goes on where the last one ended, with the text that a server without
        such a memory gives."""

        def talk(server):
            def tokens(text):
                return server.post("/tokenize", {"content": text})["tokens"]

            told = [tokens(text) for text in ("Once upon a time." * 10, "The sea is blue." * 10, "One, two, three." * 10)]
            answers, cached = [], []
            common = {"n_predict": 12, "temperature": 0.7, "seed": 3, "return_tokens": True, "ignore_eos": True}
            for turn in range(3):
                for i, prompt in enumerate(told):
                    answer = server.post("/completion", {**common, "prompt": prompt})
                    answers.append(answer["content"])
                    told[i] = prompt + answer["tokens"] + tokens(" And then")
                    if turn > 0:
                        cached.append(answer["timings"]["cache_n"])
            return answers, cached

        with Server(*self.ONE_SLOT, model=model) as with_cache:
            answers, cached = talk(with_cache)
            assert all(count > 40 for count in cached), cached
            assert with_cache.metrics()["outrider_prompt_cache_bytes"] > 0
        with Server(*self.ONE_SLOT, "-cram", "0", *PLAIN, model=model) as without:
            expected, cached = talk(without)
            assert all(count < 10 for count in cached), cached
            assert without.metrics()["outrider_prompt_cache_bytes"] == 0
        assert answers == expected

    def test_owners_have_caches_of_their_own(self):
        with Server(*self.ONE_SLOT, "--api-key", "ann", "--api-key", "bob") as server:

            def cached(key, prompt):
                headers = {"Authorization": f"Bearer {key}"}
                body = {"prompt": prompt, "n_predict": 4, "temperature": 0}
                return server.post("/completion", body, headers=headers)["timings"]["cache_n"]

            first, second = "Once upon a time there was a king." * 5, "The sea is deep and blue." * 6
            assert cached("ann", first) == 0
            assert cached("ann", second) <= 1
            assert cached("bob", first) == 0
            assert cached("ann", first) > 30


@pytest.mark.parametrize("version", [1, 2])
def test_mirostat_gives_the_same_text_with_drafts(serve, version):
    body = {"prompt": STORY, "n_predict": 48, "ignore_eos": True, "seed": 5, "temperature": 0.9}
    asked = {**body, "mirostat": version, "mirostat_tau": 3, "mirostat_eta": 0.2}
    plain, drafting = serve(*PLAIN).post("/completion", asked), serve(*DRAFTING).post("/completion", asked)
    assert plain["content"] == drafting["content"]
    assert drafting["timings"]["draft_n"] > 0
    assert plain["content"] != serve(*PLAIN).post("/completion", body)["content"]
    settings = plain["generation_settings"]
    assert (settings["mirostat"], settings["mirostat_tau"]) == (version, 3)


class TestReasoning:
    @pytest.fixture(scope="class")
    def template(self, tmp_path_factory):
        path = tmp_path_factory.mktemp("templates") / "thinking.jinja"
        path.write_text(THINKING)
        return path

    def ask(self, server, **fields):
        return server.chat("Why is the sky blue?", max_tokens=40, ignore_eos=True, **fields)["choices"][0]["message"]

    def test_a_budget_ends_the_thinking(self, serve, template):
        texts = []
        for spec in (PLAIN, DRAFTING):
            server = serve("--chat-template-file", str(template), *spec)
            thought = self.ask(server, reasoning_budget_tokens=6, reasoning_budget_message=" Enough.")
            assert thought["reasoning_content"].endswith(" Enough.")
            assert thought["content"]
            free = self.ask(server)
            assert free["content"] == "" and len(free["reasoning_content"]) > len(thought["reasoning_content"])
            assert free["reasoning_content"].startswith(thought["reasoning_content"].removesuffix(" Enough."))
            none = self.ask(server, thinking_budget_tokens=0)
            assert not none.get("reasoning_content") and none["content"]
            texts.append((thought, free, none))
        assert texts[0] == texts[1]

    def test_the_server_has_a_default_and_anthropic_a_field(self, serve, template):
        flags = ("--chat-template-file", str(template), "--reasoning-budget", "6", "--reasoning-budget-message", " Enough.")
        server = serve(*flags)
        assert self.ask(server)["reasoning_content"].endswith(" Enough.")
        body = {
            "model": "any",
            "max_tokens": 40,
            "temperature": 0,
            "messages": [{"role": "user", "content": "Why is the sky blue?"}],
            "thinking": {"type": "enabled", "budget_tokens": 3},
        }
        blocks = server.post("/v1/messages", body)["content"]
        assert [block["type"] for block in blocks] == ["thinking", "text"]
        assert blocks[0]["thinking"].endswith(" Enough.")
        assert len(blocks[0]["thinking"]) < len(self.ask(server)["reasoning_content"])

    def test_reasoning_stays_in_the_content_if_asked(self, serve, template):
        server = serve("--chat-template-file", str(template), "--reasoning-format", "none")
        apart = self.ask(server, reasoning_budget_tokens=6, reasoning_format="auto")
        inside = self.ask(server, reasoning_budget_tokens=6)
        assert "reasoning_content" not in inside
        assert apart["reasoning_content"].strip() in inside["content"] and "</think>" in inside["content"]
        body = {**chat_request("Why is the sky blue?"), "reasoning_budget_tokens": 6, "reasoning_format": "deepseek-legacy"}
        with server.stream("/v1/chat/completions", body) as events:
            deltas = [choice["delta"] for event in events for choice in event["choices"]]
        assert not any("reasoning_content" in delta for delta in deltas)
        assert "</think>" in "".join(delta.get("content") or "" for delta in deltas)


class TestTls:
    @pytest.fixture(scope="class")
    def certificate(self, tmp_path_factory):
        folder = tmp_path_factory.mktemp("tls")
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        files = ["-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
        subprocess.run([*command, *names, *files], check=True, capture_output=True)
        return folder

    @pytest.fixture(scope="class")
    def server(self, certificate):
        flags = ("--ssl-key-file", certificate / "key.pem", "--ssl-cert-file", certificate / "cert.pem", "-t", "2")
        with Server(*flags, "--http-idle", "60") as server:
            server.url = server.url.replace("http://", "https://")
            server.trust = ssl.create_default_context(cafile=certificate / "cert.pem")
            server.http = httpx.Client(base_url=server.url, verify=server.trust, timeout=seconds(120))
            yield server

    def test_clients_work(self, server):
        plain = server.chat("Hi", max_tokens=8)
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", http_client=server.http, max_retries=0) as client:
            messages = [{"role": "user", "content": "Hi"}]
            stream = client.chat.completions.create(model="any", messages=messages, max_tokens=8, temperature=0, stream=True)
            pieces = [event.choices[0].delta.content or "" for event in stream if event.choices]
            assert "".join(pieces) == plain["choices"][0]["message"]["content"]
        server.http = httpx.Client(base_url=server.url, verify=server.trust, timeout=seconds(120))

    def test_large_requests_and_answers_and_kept_connections(self, server):
        text = "word " * 200_000  # many records of TLS
        for _ in range(3):
            tokens = server.post("/tokenize", {"content": text})["tokens"]
            assert len(tokens) >= 200_000
            assert server.post("/detokenize", {"tokens": tokens[:1000]})["content"].startswith("word word")

    def test_what_is_not_tls_is_dropped(self, server):
        with pytest.raises(httpx.HTTPError):
            httpx.get(server.url.replace("https://", "http://") + "/health", timeout=seconds(10))
        untrusted = ssl.create_default_context()
        with pytest.raises(httpx.ConnectError):
            httpx.get(server.url + "/health", verify=untrusted, timeout=seconds(10))
        assert server.get("/health") == {"status": "ok"}

    def test_a_client_that_leaves_frees_its_slot(self, server):
        with server.stream("/completion", endless()) as events:
            next(iter(events))
        eventually(server.slots_idle, "the slot to be free")


class TestApiPrefix:
    def test_all_paths_have_it(self, serve):
        server = serve("--api-prefix", "/llm/v2", "--api-key", "secret")
        headers = {"Authorization": "Bearer secret"}
        answer = checked(httpx.post(f"{server.url}/llm/v2/v1/chat/completions", json=chat_request("Hi"), headers=headers, timeout=60))
        assert answer.json()["choices"]
        assert checked(httpx.get(f"{server.url}/llm/v2/health")).json() == {"status": "ok"}, "needs no key"
        assert httpx.get(f"{server.url}/llm/v2/slots").status_code == 401
        assert httpx.post(f"{server.url}/v1/chat/completions", json=chat_request("Hi"), headers=headers).status_code == 404
        assert httpx.get(f"{server.url}/llm/v2x/health", headers=headers).status_code == 404
        assert "<html" in checked(httpx.get(f"{server.url}/llm/v2/", headers={"Accept": "text/html"})).text


class TestResponseMemory:
    def test_the_openai_client_goes_on_from_a_response(self, serve):
        texts = []
        for spec in (PLAIN, DRAFTING):
            server = serve("--response-memory", "4", *spec)
            with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=seconds(120), max_retries=0) as client:
                common = {"model": "any", "temperature": 0, "max_output_tokens": 24}
                first = client.responses.create(**common, input="My name is Ann.", instructions="Be brief.")
                second = client.responses.create(**common, input="What is my name?", previous_response_id=first.id)
                assert second.previous_response_id == first.id
                whole = client.responses.create(
                    **common,
                    store=False,
                    input=[
                        {"role": "user", "content": "My name is Ann."},
                        {"role": "assistant", "content": first.output_text},
                        {"role": "user", "content": "What is my name?"},
                    ],
                )
                assert second.output_text == whole.output_text
                asked = {**common, "input": "And yours?", "previous_response_id": second.id}
                streamed = list(client.responses.create(**asked, stream=True))[-1].response
                assert streamed.usage.input_tokens > second.usage.input_tokens > first.usage.input_tokens
                with pytest.raises(openai.NotFoundError, match="not remembered"):
                    client.responses.create(**common, input="And?", previous_response_id=whole.id)
                texts.append((first.output_text, second.output_text, streamed.output_text))
                assert client.responses.retrieve(first.id).output_text == first.output_text
                client.responses.delete(first.id)
                with pytest.raises(openai.NotFoundError):
                    client.responses.retrieve(first.id)
        assert texts[0] == texts[1]

    def test_without_a_memory_the_error_says_how_to_get_one(self, server):
        refused = server.http.post("/v1/responses", json={"input": "And?", "previous_response_id": "resp_1"})
        assert refused.status_code == 400 and "--response-memory" in refused.json()["error"]["message"]
        assert refused.json()["error"]["param"] == "previous_response_id"
