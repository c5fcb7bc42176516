"""Whatever comes in: a 4xx in the client's own shape that names the field, and a server that goes on."""

import json
import socket

import pytest

from harness import chat_request, seconds, text_of

CHAT, TEXT, RESPONSES, MESSAGES, LLAMA = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/completion",
)
USER = [{"role": "user", "content": "Hi"}]
CYCLE = {"$ref": "#/nowhere"}

# path, what is wrong, error.param; fields that are not mentioned are those of a good request.
BAD_FIELDS = [
    (CHAT, {"messages": "hello"}, "messages"),
    (CHAT, {"messages": None}, "messages"),
    (CHAT, {"messages": []}, "messages"),
    (CHAT, {"messages": [3]}, "messages"),
    (CHAT, {"messages": [{"content": "no role"}]}, "messages"),
    (CHAT, {"messages": [{"role": "wizard", "content": "Hi"}]}, "messages"),
    (CHAT, {"messages": [{"role": 1, "content": "Hi"}]}, "messages"),
    (CHAT, {"messages": [{"role": "user", "content": 17}]}, "messages"),
    (
        CHAT,
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
        "messages",
    ),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages"),
    (CHAT, {"messages": [{"role": "user", "content": "word " * 20000}]}, "messages"),
    (CHAT, {"max_tokens": -5}, "max_tokens"),
    (CHAT, {"max_tokens": 10**12}, "max_tokens"),
    (CHAT, {"max_tokens": 1.5}, "max_tokens"),
    (CHAT, {"max_tokens": "many"}, "max_tokens"),
    (CHAT, {"max_completion_tokens": -2}, "max_completion_tokens"),
    (CHAT, {"temperature": "hot"}, "temperature"),
    (CHAT, {"temperature": -1}, "temperature"),
    (CHAT, {"temperature": 1e300}, "temperature"),
    (CHAT, {"top_p": 2}, "top_p"),
    (CHAT, {"top_p": [0.5]}, "top_p"),
    (CHAT, {"top_k": "all"}, "top_k"),
    (CHAT, {"frequency_penalty": "x"}, "frequency_penalty"),
    (CHAT, {"seed": "lucky"}, "seed"),
    (CHAT, {"stream": "yes"}, "stream"),
    (CHAT, {"stream_options": 5, "stream": True}, "stream_options"),
    (CHAT, {"n": 65}, "n"),
    (CHAT, {"n": 0}, "n"),
    (CHAT, {"stop": 5}, "stop"),
    (CHAT, {"stop": ["a", 5]}, "stop"),
    (CHAT, {"logprobs": "yes"}, "logprobs"),
    (CHAT, {"logprobs": True, "top_logprobs": 99}, "top_logprobs"),
    (CHAT, {"logprobs": True, "top_logprobs": -1}, "top_logprobs"),
    (CHAT, {"logit_bias": {"99999999": 1}}, "logit_bias"),
    (CHAT, {"logit_bias": {"-4": 1}}, "logit_bias"),
    (CHAT, {"logit_bias": {"5": "much"}}, "logit_bias"),
    (CHAT, {"logit_bias": "none"}, "logit_bias"),
    (CHAT, {"response_format": "json"}, "response_format"),
    (CHAT, {"response_format": {"type": "xml"}}, "response_format"),
    (CHAT, {"response_format": {"type": "json_schema"}}, "response_format"),
    (
        CHAT,
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nonsense"}}}},
        "response_format",
    ),
    (
        CHAT,
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": CYCLE}}},
        "response_format",
    ),
    (CHAT, {"grammar": "root ::= ("}, "grammar"),
    (CHAT, {"grammar": 5}, "grammar"),
    (CHAT, {"tools": "hammer"}, "tools"),
    (CHAT, {"tools": [5]}, "tools"),
    (CHAT, {"tools": [{"type": "function"}]}, "tools"),
    (CHAT, {"tools": [{"type": "function", "function": {"parameters": {}}}]}, "tools"),
    (CHAT, {"tool_choice": "required"}, "tool_choice"),
    (
        CHAT,
        {
            "tool_choice": 5,
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        },
        "tool_choice",
    ),
    (TEXT, {"prompt": None}, "prompt"),
    (TEXT, {"prompt": {"text": "Hi"}}, "prompt"),
    (TEXT, {"prompt": [99999999]}, "prompt"),
    (TEXT, {"prompt": "word " * 20000}, "prompt"),
    (TEXT, {"max_tokens": -7}, "max_tokens"),
    (TEXT, {"n": "two"}, "n"),
    (TEXT, {"n": 3, "best_of": 2}, "best_of"),
    (LLAMA, {"mirostat": 3}, "mirostat"),
    (RESPONSES, {"n": 2}, "n"),
    (RESPONSES, {"previous_response_id": "resp_1"}, "previous_response_id"),
    (LLAMA, {"prompt": True}, "prompt"),
    (LLAMA, {"prompt": [-1]}, "prompt"),
    (LLAMA, {"prompt": [1, {"deep": []}]}, "prompt"),
    (LLAMA, {"n_predict": "lots"}, "n_predict"),
    (LLAMA, {"grammar": "root ::= undefined-rule"}, "grammar"),
    (LLAMA, {"grammar": "not even a rule"}, "grammar"),
    (LLAMA, {"json_schema": {"type": 5}}, "json_schema"),
    (LLAMA, {"id_slot": 99}, "id_slot"),
    (LLAMA, {"n_probs": -3}, "n_probs"),
    (RESPONSES, {"input": None}, "input"),
    (RESPONSES, {"input": [{"type": "telepathy"}]}, "input"),
    (RESPONSES, {"max_output_tokens": -1}, "max_output_tokens"),
    (RESPONSES, {"temperature": "hot"}, "temperature"),
    (RESPONSES, {"text": {"format": {"type": "xml"}}}, "text"),
    (RESPONSES, {"tools": [{"type": "function"}]}, "tools"),
]
GOOD = {
    CHAT: chat_request("Hi", max_tokens=1),
    TEXT: {"prompt": "Hi", "max_tokens": 1},
    LLAMA: {"prompt": "Hi", "n_predict": 1},
    RESPONSES: {"input": "Hi", "max_output_tokens": 1},
    MESSAGES: {"messages": USER, "max_tokens": 1},
}


def label(value) -> str:
    return value if isinstance(value, str) else json.dumps(value)[:50]


def assert_error(response, status: int = 400, param: str | None = None) -> dict:
    assert response.status_code == status, response.text[:500]
    error = response.json()["error"]
    assert error["message"] and isinstance(error["message"], str)
    if param:
        # messages[0].content is blamed on messages, too.
        assert (error["param"] or "").split("[")[0].split(".")[0] == param, error
        assert error["type"] == ("exceed_context_size_error" if "n_ctx" in error else "invalid_request_error")
    return error


@pytest.fixture(autouse=True)
def still_there(server):
    yield
    assert server.child.poll() is None, "the server died"


@pytest.mark.parametrize("path", GOOD)
def test_the_good_request_is_good(server, path):
    assert server.http.post(path, json=GOOD[path]).status_code == 200


@pytest.mark.parametrize(("path", "fields", "param"), BAD_FIELDS, ids=label)
def test_bad_field(server, path, fields, param):
    assert_error(server.http.post(path, json={**GOOD[path], **fields}), param=param)


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": []},
        {"max_tokens": -1},
        {"max_tokens": None},
        {"messages": [{"role": "oracle", "content": "Hi"}]},
        {"system": 4},
        {"tools": [{"name": 5}]},
        {"stop_sequences": "x"},
        {"temperature": "hot"},
    ],
    ids=label,
)
def test_bad_field_of_anthropic(server, fields):
    response = server.http.post(MESSAGES, json={**GOOD[MESSAGES], **fields})
    assert response.json()["type"] == "error"
    assert assert_error(response)["type"] == "invalid_request_error"


DEEP = 10_000
BAD_BODIES = {
    "empty": b"",
    "truncated": b'{"messages": [{"role": "us',
    "not json": b"hello",
    "not an object": b"[1, 2]",
    "a number": b"42",
    "null": b"null",
    "invalid utf-8": b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}',
    "overlong utf-8": b'{"messages": [{"role": "user", "content": "\xc0\xaf"}]}',
    "a lone surrogate": b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
    "deep arrays": b"[" * DEEP + b"]" * DEEP,
    "deep message": b'{"messages": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep objects": b'{"messages": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
    "unclosed depth": b"[" * DEEP * 10,
    "deep schema": b'{"messages": [{"role": "user", "content": "Hi"}], '
    b'"response_format": {"type": "json_schema", "json_schema": {"schema": '
    + b'{"items":' * DEEP
    + b"{}"
    + b"}" * DEEP
    + b"}}}",
    "huge number": b'{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1' + b"0" * 400 + b"}",
    "nul bytes": b"\x00" * 64,
}


@pytest.mark.parametrize("name", BAD_BODIES)
@pytest.mark.parametrize("path", [CHAT, LLAMA])
def test_bad_body(server, path, name):
    assert_error(server.http.post(path, content=BAD_BODIES[name], headers={"Content-Type": "application/json"}))


@pytest.mark.parametrize(
    "path", ["/tokenize", "/detokenize", "/apply-template", RESPONSES, MESSAGES, TEXT, "/v1/messages/count_tokens"]
)
def test_empty_body_elsewhere(server, path):
    assert_error(server.http.post(path, content=b""))


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/tokenize", {"content": {}}, "content"),
        ("/detokenize", {"tokens": "abc"}, "tokens"),
        ("/detokenize", {"tokens": [99999999]}, "tokens"),
        ("/apply-template", {"messages": 5}, "messages"),
    ],
    ids=label,
)
def test_bad_field_of_the_small_endpoints(server, path, body, param):
    assert_error(server.http.post(path, json=body), param=param)


@pytest.mark.parametrize(
    "path",
    ["/nowhere", "/v1/nowhere", "/v1/chat/completions/", "/slots/0/x", "/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd"],
)
def test_unknown_endpoint(server, path):
    assert_error(server.http.get(path), status=404)
    assert_error(server.http.post(path, json={}), status=404)


@pytest.mark.parametrize(
    ("method", "path"), [("GET", CHAT), ("DELETE", CHAT), ("PUT", LLAMA), ("POST", "/health"), ("PATCH", "/v1/models")]
)
def test_wrong_method(server, method, path):
    response = server.http.request(method, path)
    assert response.status_code == 405
    assert response.json()["error"]["message"]


def test_body_over_8_mib(server):
    big = b'{"messages": [{"role": "user", "content": "' + b"x" * (9 << 20) + b'"}]}'
    assert server.http.post(CHAT, content=big).status_code == 413


def test_embeddings_without_the_flag_say_which_flag(server):
    response = server.http.post("/v1/embeddings", json={"input": "Hi"})
    assert response.status_code == 501
    assert "--embeddings" in response.json()["error"]["message"]


def test_garbage_instead_of_http(server):
    with socket.create_connection(("127.0.0.1", server.port), seconds(10)) as peer:
        peer.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) + b"\r\n\r\n")
        answer = peer.recv(4096)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), answer


def test_endless_header_is_refused(server):
    with socket.create_connection(("127.0.0.1", server.port), seconds(20)) as peer:
        peer.sendall(b"GET /health HTTP/1.1\r\nX: ")
        try:
            for _ in range(64):
                peer.sendall(b"x" * 65536)
        except OSError:
            return  # closed in our face: just as well
        answer = peer.recv(4096)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), answer


def test_a_good_request_after_all_that(server):
    answer = server.chat("What is the capital of France?")
    assert "Paris" in text_of(answer)
    assert server.slots_idle()


# Requests that once killed a server, or libllama with it. Each must cost its sender a 400 and nobody else anything.
KILLERS = {
    "end token in the prefill of a schema": {
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "<|im_end|>"}],
        "response_format": {"type": "json_object"},
    },
    "prefill outside of the schema": {
        "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Sure: "}],
        "response_format": {"type": "json_object"},
    },
    "rule that may be empty, through another one": {"grammar": 'root ::= a root\na ::= b\nb ::= ""'},
    "endless beginning": {"grammar": 'root ::= a root "x"\na ::= "" | "y"'},
    "deep nesting": {"grammar": "root ::= " + "(" * 300_000},
    "exponentially many paths": {"grammar": "\n".join(f"r{i} ::= r{i + 1} | r{i + 1}" for i in range(32)) + '\nr32 ::= "x"\nroot ::= r0'},
    "huge repetition": {"grammar": 'root ::= (("a"{1,1000}){1,1000}){1,1000}'},
}


@pytest.mark.parametrize("name", KILLERS)
def test_killers(server, name):
    body = chat_request("Hi", max_tokens=4) | KILLERS[name]
    before = server.cpu_seconds()
    response = server.http.post("/v1/chat/completions", json=body)
    assert response.status_code == 400, response.text
    assert server.cpu_seconds() - before < seconds(2)
    assert text_of(server.chat("What is the capital of France?"))


def test_windows_longer_than_any_context_cost_no_memory(server):
    for fields in ({"repeat_last_n": 2**31 - 1, "repeat_penalty": 1.1}, {"dry_penalty_last_n": 2**31 - 1, "dry_multiplier": 0.5}):
        assert text_of(server.chat("Hi", max_tokens=4, **fields)) is not None
