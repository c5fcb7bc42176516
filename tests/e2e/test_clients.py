"""The real clients, unchanged, against the in-repo model: openai and anthropic for Python and JavaScript, Vercel's ai, LangChain,
LiteLLM, llm, curl."""

import json
import os
import subprocess
from pathlib import Path

import anthropic
import httpx
import openai
import pytest

from harness import checked, events_in, seconds

QUESTION = "What is the capital of France?"
# Everything in it is bounded, so that a model of 16M parameters cannot ramble inside a string.
WEATHER_SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Paris", "Rome"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
WEATHER = {"name": "get_weather", "description": "Weather forecast for a city", "parameters": WEATHER_SCHEMA}
WEATHER_TOOL = {"type": "function", "function": WEATHER}
ASK_WEATHER = [{"role": "user", "content": "What will the weather be in Paris?"}]


def check_weather(arguments):
    data = json.loads(arguments) if isinstance(arguments, str) else arguments
    assert set(data) == {"city", "days"}
    assert data["city"] in ("Paris", "Rome")
    assert isinstance(data["days"], int) and 1 <= data["days"] <= 9


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=seconds(120), max_retries=0) as client:
        yield client


@pytest.fixture
def claude(server):
    with anthropic.Anthropic(base_url=server.url, api_key="none", timeout=seconds(120), max_retries=0) as client:
        yield client


def ask(client, **fields):
    defaults = {"model": "any", "messages": [{"role": "user", "content": QUESTION}], "max_tokens": 32, "temperature": 0}
    return client.chat.completions.create(**{**defaults, **fields})


class TestOpenAiChat:
    def test_answer(self, client):
        answer = ask(client)
        choice = answer.choices[0]
        assert answer.object == "chat.completion"
        assert answer.id.startswith("chatcmpl-")
        assert choice.message.role == "assistant"
        assert "Paris" in choice.message.content
        assert choice.finish_reason == "stop"
        assert answer.usage.prompt_tokens > 10
        assert 0 < answer.usage.completion_tokens <= 32
        assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens

    def test_stream_equals_answer_and_ends_with_usage(self, client):
        whole = ask(client)
        chunks = list(ask(client, stream=True, stream_options={"include_usage": True}))
        deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        assert deltas[0].role == "assistant"
        assert len({chunk.id for chunk in chunks}) == 1
        assert "".join(delta.content or "" for delta in deltas) == whole.choices[0].message.content
        assert [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason] == ["stop"]
        assert chunks[-1].choices == []
        assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
        assert all(chunk.usage is None for chunk in chunks[:-1])

    def test_long_answer_comes_in_pieces(self, client):
        """Tokens a busy reader finds waiting share a piece, so only an answer of some length must have several."""
        long = {"max_tokens": 256, "extra_body": {"ignore_eos": True}}
        texts = [chunk.choices[0].delta.content for chunk in ask(client, stream=True, **long)]
        assert sum(bool(text) for text in texts) > 3
        assert "".join(text or "" for text in texts) == ask(client, **long).choices[0].message.content

    def test_stream_has_no_usage_unless_asked(self, client):
        assert all(chunk.usage is None and chunk.choices for chunk in ask(client, stream=True))

    def test_tool_call_and_its_result(self, client):
        answer = ask(client, messages=ASK_WEATHER, tools=[WEATHER_TOOL], tool_choice="required", max_tokens=128)
        message = answer.choices[0].message
        assert answer.choices[0].finish_reason == "tool_calls"
        (call,) = message.tool_calls
        assert call.id and call.type == "function" and call.function.name == "get_weather"
        check_weather(call.function.arguments)
        result = {"role": "tool", "tool_call_id": call.id, "content": '{"forecast": "sunny"}'}
        conversation = [*ASK_WEATHER, message.model_dump(exclude_none=True), result]
        final = ask(client, messages=conversation, tools=[WEATHER_TOOL], tool_choice="none")
        assert final.choices[0].message.content
        assert not final.choices[0].message.tool_calls

    def test_streamed_tool_call(self, client):
        name, arguments, call_ids, reasons = "", "", set(), []
        fields = {"messages": ASK_WEATHER, "tools": [WEATHER_TOOL], "tool_choice": "required", "max_tokens": 128}
        for chunk in ask(client, stream=True, **fields):
            reasons.append(chunk.choices[0].finish_reason)
            for piece in chunk.choices[0].delta.tool_calls or []:
                assert piece.index == 0
                name += piece.function.name or ""
                arguments += piece.function.arguments or ""
                call_ids |= {piece.id} - {None}
        assert name == "get_weather"
        assert len(call_ids) == 1
        check_weather(arguments)
        assert reasons[-1] == "tool_calls"

    def test_named_tool_is_the_one_called(self, client):
        other = {"type": "function", "function": {**WEATHER, "name": "get_history"}}
        choice = {"type": "function", "function": {"name": "get_history"}}
        answer = ask(client, messages=ASK_WEATHER, tools=[WEATHER_TOOL, other], tool_choice=choice, max_tokens=128)
        assert [call.function.name for call in answer.choices[0].message.tool_calls] == ["get_history"]

    def test_json_schema(self, client):
        form = {"type": "json_schema", "json_schema": {"name": "weather", "schema": WEATHER_SCHEMA, "strict": True}}
        answer = ask(client, messages=ASK_WEATHER, response_format=form, max_tokens=128)
        check_weather(answer.choices[0].message.content)
        assert answer.choices[0].finish_reason == "stop"

    def test_json_object(self, client):
        messages = [{"role": "user", "content": 'Answer with {"ok": true}.'}]
        content = (
            ask(client, messages=messages, response_format={"type": "json_object"}, max_tokens=256)
            .choices[0]
            .message.content
        )
        assert content.lstrip().startswith("{")

    def test_logprobs(self, client):
        answer = ask(client, logprobs=True, top_logprobs=3)
        entries = answer.choices[0].logprobs.content
        text = b"".join(bytes(entry.bytes) for entry in entries).decode()
        assert text.startswith(answer.choices[0].message.content)
        for entry in entries:
            assert entry.logprob <= 0
            assert len(entry.top_logprobs) == 3
            best = [top.logprob for top in entry.top_logprobs]
            assert best == sorted(best, reverse=True)
            assert entry.logprob == best[0], "T = 0 takes the most likely token"

    def test_streamed_logprobs_equal_whole(self, client):
        whole = [entry.logprob for entry in ask(client, logprobs=True).choices[0].logprobs.content]
        chunks = [chunk.choices[0].logprobs for chunk in ask(client, stream=True, logprobs=True)]
        assert [entry.logprob for piece in chunks if piece for entry in piece.content or []] == whole

    def test_stop(self, client):
        assert "Paris" not in ask(client, stop=["Paris"]).choices[0].message.content

    def test_error_is_the_clients_own(self, client):
        with pytest.raises(openai.BadRequestError) as caught:
            ask(client, max_tokens=-5)
        assert caught.value.param == "max_tokens"
        assert caught.value.type == "invalid_request_error"


class TestOpenAiRest:
    def test_completions(self, client):
        answer = client.completions.create(model="any", prompt="The capital of France is", max_tokens=8, temperature=0)
        assert answer.object == "text_completion"
        assert answer.choices[0].finish_reason == "length"
        assert answer.usage.completion_tokens == 8
        chunks = client.completions.create(
            model="any", prompt="The capital of France is", max_tokens=8, temperature=0, stream=True
        )
        assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == answer.choices[0].text

    def test_completion_logprobs(self, client):
        answer = client.completions.create(model="any", prompt="One two three", max_tokens=4, temperature=0, logprobs=2)
        assert answer.choices[0].logprobs is not None

    def test_models(self, client):
        (model,) = client.models.list().data
        assert model.object == "model"
        assert "smollm2-draft-16m" in model.id
        assert ask(client).model == model.id

    def test_embeddings(self, serve):
        server = serve("--embeddings")
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=seconds(120), max_retries=0) as client:
            # The client asks for base64 unless told otherwise: both ways must give the same vectors.
            texts = ["A cat sat on the mat.", "A cat sat on a mat.", "Quarterly revenue fell by 3 %."]
            packed = client.embeddings.create(model="any", input=texts)
            plain = client.embeddings.create(model="any", input=texts, encoding_format="float")
        vectors = [entry.embedding for entry in plain.data]
        assert [entry.index for entry in plain.data] == [0, 1, 2]
        assert len({len(vector) for vector in vectors}) == 1 and len(vectors[0]) == 256
        for vector, other in zip(vectors, packed.data, strict=True):
            assert vector == pytest.approx(other.embedding, abs=1e-6)
            assert sum(x * x for x in vector) == pytest.approx(1, abs=1e-3)
        near, far = (sum(a * b for a, b in zip(vectors[0], vectors[i], strict=True)) for i in (1, 2))
        assert near > far
        assert plain.usage.prompt_tokens > 10


class TestOpenAiResponses:
    def create(self, client, **fields):
        return client.responses.create(
            **{"model": "any", "input": QUESTION, "max_output_tokens": 32, "temperature": 0, **fields}
        )

    def test_text(self, client):
        response = self.create(client, instructions="You are a helpful assistant.")
        assert response.object == "response"
        assert response.status == "completed"
        assert "Paris" in response.output_text
        assert response.usage.output_tokens > 0
        assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens

    def test_cut_answer_is_incomplete(self, client):
        response = self.create(client, max_output_tokens=2)
        assert response.status == "incomplete"
        assert response.incomplete_details.reason == "max_output_tokens"

    def test_stream(self, client):
        events = list(self.create(client, stream=True))
        kinds = [event.type for event in events]
        assert kinds[0] == "response.created"
        assert kinds[-1] == "response.completed"
        for kind in (
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
        ):
            assert kinds.count(kind) == 1, kind
        text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        assert text == events[-1].response.output_text == self.create(client).output_text
        numbers = [event.sequence_number for event in events]
        assert numbers == sorted(set(numbers))

    def test_function_call_and_its_result(self, client):
        tools = [{"type": "function", **WEATHER, "strict": True}]
        response = self.create(client, input=ASK_WEATHER, tools=tools, tool_choice="required", max_output_tokens=128)
        (call,) = (item for item in response.output if item.type == "function_call")
        assert call.name == "get_weather" and call.call_id
        check_weather(call.arguments)
        asked = {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
        result = {"type": "function_call_output", "call_id": call.call_id, "output": '{"forecast": "sunny"}'}
        final = self.create(client, input=[*ASK_WEATHER, asked, result], tools=tools, tool_choice="none")
        assert final.output_text

    def test_streamed_function_call(self, client):
        tools = [{"type": "function", **WEATHER}]
        events = list(
            self.create(
                client, input=ASK_WEATHER, tools=tools, tool_choice="required", max_output_tokens=128, stream=True
            )
        )
        pieces = "".join(event.delta for event in events if event.type == "response.function_call_arguments.delta")
        (done,) = (event for event in events if event.type == "response.function_call_arguments.done")
        assert pieces == done.arguments
        check_weather(pieces)
        assert events[-1].type == "response.completed"

    def test_json_schema(self, client):
        form = {"type": "json_schema", "name": "weather", "schema": WEATHER_SCHEMA, "strict": True}
        check_weather(self.create(client, input=ASK_WEATHER, text={"format": form}, max_output_tokens=128).output_text)


class TestAnthropic:
    messages = [{"role": "user", "content": QUESTION}]
    # Newer clients have no temperature of their own any more; the protocol still does.
    common = {"model": "any", "max_tokens": 32, "messages": messages, "extra_body": {"temperature": 0}}

    def create(self, claude, **fields):
        return claude.messages.create(**{**self.common, **fields})

    tool = {"name": "get_weather", "description": WEATHER["description"], "input_schema": WEATHER_SCHEMA}

    def test_message(self, claude):
        message = self.create(claude, system="You are a helpful assistant.")
        assert message.type == "message" and message.role == "assistant"
        assert message.content[0].type == "text" and "Paris" in message.content[0].text
        assert message.stop_reason == "end_turn"
        assert message.usage.input_tokens > 0 and message.usage.output_tokens > 0

    def test_stop_reasons(self, claude):
        assert self.create(claude, max_tokens=2).stop_reason == "max_tokens"
        message = self.create(claude, stop_sequences=["Paris"])
        assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "Paris")

    def test_stream(self, claude):
        with claude.messages.stream(**self.common) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        assert text == final.content[0].text == self.create(claude).content[0].text
        assert final.stop_reason == "end_turn"
        assert final.usage.output_tokens > 0

    def test_tool_use_and_its_result(self, claude):
        fields = {"tools": [self.tool], "tool_choice": {"type": "any"}, "max_tokens": 128}
        message = self.create(claude, messages=ASK_WEATHER, **fields)
        assert message.stop_reason == "tool_use"
        (use,) = (block for block in message.content if block.type == "tool_use")
        assert use.name == "get_weather" and use.id
        check_weather(use.input)
        asked = {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": use.id, "name": use.name, "input": use.input}],
        }
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "sunny"}]}
        final = self.create(
            claude, messages=[*ASK_WEATHER, asked, result], tools=[self.tool], tool_choice={"type": "none"}
        )
        assert final.content[0].text

    def test_streamed_tool_use(self, claude):
        fields = {"tools": [self.tool], "tool_choice": {"type": "any"}, "messages": ASK_WEATHER, "max_tokens": 128}
        with claude.messages.stream(**{**self.common, **fields}) as stream:
            (use,) = (block for block in stream.get_final_message().content if block.type == "tool_use")
        check_weather(use.input)

    def test_count_tokens(self, claude):
        count = claude.messages.count_tokens(model="any", messages=self.messages).input_tokens
        usage = self.create(claude).usage
        assert count == usage.input_tokens + (usage.cache_read_input_tokens or 0)

    def test_error_is_the_clients_own(self, claude):
        with pytest.raises(anthropic.BadRequestError) as caught:
            self.create(claude, max_tokens=-1)
        assert caught.value.body["type"] == "error"
        assert caught.value.body["error"]["type"] == "invalid_request_error"
        assert "max_tokens" in caught.value.body["error"]["message"]


def run_client(*command, **environment) -> dict:
    """What a client that is a program of its own prints: JSON."""
    run = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=seconds(120),
        env={**os.environ, **environment},
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def node(script: str, url: str) -> dict:
    here = Path(__file__).parent / "node"
    modules = Path(os.environ.get("OUTRIDER_NODE_MODULES") or here / "node_modules")
    assert (modules / "openai").is_dir(), f"no packages in {modules}: ./test installs them (npm ci in tests/e2e/node)"
    return run_client("node", here / script, url, modules)


def check_result(result: dict, min_pieces: int = 1):
    """What each of these clients asks: a question, the same as a stream, a tool. A short answer may come in one piece."""
    assert "Paris" in result["chat"]
    assert result["stream"] == result["chat"]
    assert result["pieces"] >= min_pieces
    assert result["tool"]["name"] == "get_weather"
    check_weather(result["tool"]["arguments"])


def test_npm_openai(server):
    check_result(node("client.mjs", f"{server.url}/v1"), min_pieces=4)


def test_npm_anthropic(server):
    result = node("anthropic.mjs", server.url)
    check_result(result)
    assert result["final"] == result["chat"]
    assert result["counted"] == 0, "what is counted is what is used"
    assert "prompt is too long" in result["tooLong"], "the words by which agents know that they must shorten it"


def test_npm_ai_of_vercel(server):
    result = node("ai.mjs", server.url)
    check_result(result)
    assert result["usage"] > 0
    check_weather(result["object"])


class TestFrameworks:
    """LangChain, LiteLLM and the command llm, in a Python of their own."""

    @pytest.fixture
    def python(self) -> str:
        python = os.environ.get("OUTRIDER_CLIENTS_PYTHON")
        if not python:
            pytest.skip("OUTRIDER_CLIENTS_PYTHON is not set; ./test sets it")
        return python

    here = Path(__file__).parent / "clients"

    def test_langchain(self, server, serve, python):
        result = run_client(python, self.here / "langchain_client.py", server.url, serve("--embeddings").url)
        check_result(result)
        check_weather(result["object"])
        assert len(result["choices"]) == 2
        assert len(set(result["vectors"])) == 1 and len(result["vectors"]) == 2

    def test_litellm(self, server, python):
        result = run_client(python, self.here / "litellm_client.py", server.url, json.dumps(WEATHER_SCHEMA))
        check_result(result)
        check_weather(result["object"])
        assert result["too_long"] == "ContextWindowExceededError"
        assert result["wrong"] == "BadRequestError"

    def test_llm(self, server, python, tmp_path):
        model = f"- model_id: outrider\n  model_name: any\n  api_base: {server.url}/v1\n  supports_schema: true\n"
        (tmp_path / "extra-openai-models.yaml").write_text(model)

        def llm(*arguments) -> str:
            command = [python, "-m", "llm", "prompt", "-m", "outrider", "-o", "temperature", "0", "--key", "none", *arguments]
            environment = {**os.environ, "LLM_USER_PATH": str(tmp_path)}
            run = subprocess.run(command, capture_output=True, text=True, timeout=seconds(120), env=environment)
            assert run.returncode == 0, run.stderr
            return run.stdout

        streamed = llm("-o", "max_tokens", "64", QUESTION)
        assert "Paris" in streamed
        assert llm("--no-stream", "-o", "max_tokens", "64", QUESTION) == streamed
        check_weather(llm("--schema", json.dumps(WEATHER_SCHEMA), "-o", "max_tokens", "128", ASK_WEATHER[0]["content"]))


class TestCurl:
    body = json.dumps({"messages": [{"role": "user", "content": QUESTION}], "temperature": 0, "max_tokens": 32})

    def curl(self, *arguments) -> bytes:
        command = ["curl", "--silent", "--show-error", "--fail", "--max-time", str(seconds(60)), *arguments]
        return subprocess.run(command, capture_output=True, check=True, timeout=seconds(90)).stdout

    def test_chat(self, server):
        address = f"{server.url}/v1/chat/completions"
        answer = json.loads(self.curl(address, "-H", "Content-Type: application/json", "-d", self.body))
        assert "Paris" in answer["choices"][0]["message"]["content"]

    def test_chat_without_content_type(self, server):
        assert b"Paris" in self.curl(f"{server.url}/v1/chat/completions", "-d", self.body)

    def test_stream(self, server):
        body = json.dumps({**json.loads(self.body), "stream": True})
        output = self.curl("-N", f"{server.url}/v1/chat/completions", "-d", body)
        assert output.endswith(b"data: [DONE]\n\n")
        text = "".join(
            choice["delta"].get("content") or "" for event in events_in([output]) for choice in event["choices"]
        )
        assert "Paris" in text

    def test_connection_lives_on_after_a_stream(self, server):
        """What says keep-alive is kept: clients reuse the connection of a finished stream at once."""
        with httpx.Client(base_url=server.url, timeout=seconds(60), limits=httpx.Limits(max_connections=1)) as one:
            for _ in range(10):
                response = checked(
                    one.post("/v1/chat/completions", json={**json.loads(self.body), "max_tokens": 2, "stream": True})
                )
                assert list(events_in([response.content]))
                checked(one.get("/health"))

    def test_no_keep_alive(self, server):
        assert checked(server.http.get("/health", headers={"Connection": "close"})).json()["status"] == "ok"
