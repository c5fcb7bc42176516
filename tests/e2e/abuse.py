"""Clients that mean harm, for the tests of docs/SECURITY.md and for bench/locked_door.py: slow senders, dear requests, and probes that tell
whether anybody else notices."""

import contextlib
import http.client
import json
import random
import select
import socket
import threading
import time

from harness import Process, chat_request, seconds

MIB = 1 << 20
SENDERS = 128  # of each kind; once, that many held up the whole server
HEAD = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
KINDS = {"header": "X-Slow: ", "body": "Content-Length: 1000000\r\n\r\n", "chunk": "Transfer-Encoding: chunked\r\n\r\nfffff\r\n"}


class Drips:
    """Connections that send a byte every now and then, for as long as they are let: SENDERS of each kind."""

    def __init__(self, port: int, kinds, key: str | None = None, count: int = SENDERS, interval: float = 0.05):
        head = HEAD + (f"Authorization: Bearer {key}\r\n" if key else "")
        self.peers = []
        for _ in range(count):
            for kind in kinds:
                self.peers.append(socket.create_connection(("127.0.0.1", port), seconds(60)))
                self.peers[-1].sendall((head + KINDS[kind]).encode())
        self._stop, self._interval = threading.Event(), interval
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def _send(self):
        while not self._stop.wait(self._interval):
            for peer in self.peers:
                with contextlib.suppress(OSError):
                    peer.sendall(b"x")

    def connected(self) -> int:
        """How many have heard nothing yet: neither an error nor the end."""
        readable, _, _ = select.select(self.peers, [], [], 0)
        return len(self.peers) - len(readable)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        for peer in self.peers:
            peer.close()


def probe(port: int, path: str, key: str | None = None) -> float:
    """Seconds from a new connection to the whole answer."""
    start = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds(30))
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}"} if key else {})
        response = connection.getresponse()
        response.read()
        assert response.status == 200, path
    finally:
        connection.close()
    return time.monotonic() - start


class Probes:
    """Asks /health and /metrics all the time; in the end, how long that took."""

    def __init__(self, port: int, key: str | None):
        self.taken: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask, args=(port, key))
        self._thread.start()

    def _ask(self, port, key):
        while True:
            self.taken += [probe(port, "/health", key), probe(port, "/metrics", key)]
            if self._stop.wait(0.02):
                return

    def end(self) -> list[float]:
        self._stop.set()
        self._thread.join()
        return sorted(self.taken)


def post(port: int, path: str, body: bytes, key: str | None) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds(300))
    with contextlib.closing(connection):
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused before all was sent
            connection.request("POST", path, body, headers)
        try:
            response = connection.getresponse()
            response.read()
            return response.status
        except (ConnectionError, http.client.HTTPException):
            return 0


def resident(server: Process) -> int:
    with open(f"/proc/{server.child.pid}/statm") as file:
        return int(file.read().split()[1]) * 4096


def object_of_keys(count: int) -> dict:
    return {str(i): 1 for i in range(count)}


def chat_of(messages: int) -> str:
    turns = [{"role": ("user", "assistant")[i % 2], "content": f"This is message number {i}."} for i in range(messages)]
    return json.dumps({"messages": turns, "max_tokens": 1})


def schema_of(properties: int) -> dict:
    names = {f"property {i}": {"type": "string", "pattern": "^[a-z]{1,8}$"} for i in range(properties)}
    return {"type": "object", "properties": names}


def long_grammar(size: int) -> str:
    rules = ["root ::= " + " | ".join(f"r{i}" for i in range(900))]
    rules += [f'r{i} ::= "{i} {"x" * (size // 900)}" [a-z]{{1,50}}' for i in range(900)]
    return "\n".join(rules)


def nested(depth: int) -> dict:
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def tool(number: int) -> dict:
    parameters = {"type": "object", "properties": {f"p{i}": {"type": "string", "enum": ["a", "b"]} for i in range(3)}}
    return {"type": "function", "function": {"name": f"tool_{number}", "parameters": parameters}}


def all_of(target: str) -> dict:
    return {"allOf": [{"$ref": f"#/$defs/{target}"}]}


def back_to_itself() -> dict:
    return {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"p": all_of("a")}}}}


def tower(width: int, height: int) -> dict:
    """What "allOf" refers to is converted at each place: width ** height times."""
    floors = {str(i): {"type": "object", "properties": {f"p{j}": all_of(str(i + 1)) for j in range(width)}} for i in range(height)}
    return {"$ref": "#/$defs/0", "$defs": floors | {str(height): {"type": "object", "properties": {"x": {"type": "string"}}}}}


words = random.Random(1).choices(["the ", "sea ", "Zürich, ", "1234 ", "a", "\n", "<|im_start|>", "🐋"], k=MIB // 6)

# To an endpoint: a body as large as may be, or as small, and what it may be answered with.
DEAR = {
    "an object of 200,000 keys": ("/completion", json.dumps({"prompt": "x", "logit_bias": object_of_keys(200_000)}), {400}),
    "a list of 200,000 biases": ("/completion", json.dumps({"prompt": "x", "logit_bias": [[i % 9000, 1] for i in range(200_000)]}), {400}),
    "800 objects of 1,000 keys": ("/completion", json.dumps({"prompt": "x", "a": [object_of_keys(1000)] * 800}), {400}),
    "30 objects of 1,000 keys": ("/completion", json.dumps({"prompt": "x", "n_predict": 1, "a": [object_of_keys(1000)] * 30}), {200, 429}),
    "brackets": ("/completion", "[" * (8 * MIB), {400}),
    "a million values": ("/completion", '{"prompt": [' + "[]," * 2_700_000 + "[]]}", {400}),
    "a prompt of 8 MiB": ("/completion", json.dumps({"prompt": "x" * (8 * MIB - 100)}), {400}),
    "a million short texts": ("/completion", json.dumps({"prompt": ["a"] * 900_000 + [1]}), {400}),
    "stop strings of 8 MiB": ("/completion", json.dumps({"prompt": "x", "stop": ["a" * 500_000] * 16}), {400}),
    "10,000 messages": ("/v1/chat/completions", chat_of(10_000), {400}),
    "a conversation that just fits": ("/v1/chat/completions", chat_of(200), {200, 429}),
    "a grammar of 900 rules": ("/completion", json.dumps({"prompt": "x", "n_predict": 2, "grammar": long_grammar(50_000)}), {200, 400, 429}),
    "a grammar of 1 MiB": ("/completion", json.dumps({"prompt": "x", "n_predict": 1, "grammar": long_grammar(900_000)}), {200, 400, 429}),
    "a schema of 130 properties": (
        "/v1/chat/completions",
        json.dumps(chat_request("Hi", max_tokens=2) | {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema_of(130)}}}),
        {200, 400, 429},
    ),
    "a schema of 20,000 properties": ("/completion", json.dumps({"prompt": "x", "json_schema": schema_of(20_000)}), {400}),
    "1,000 probabilities": ("/completion", json.dumps({"prompt": "x", "n_predict": 100, "n_probs": 1000}), {200, 429}),
    "a schema that leads back to itself": ("/completion", json.dumps({"prompt": "x", "json_schema": back_to_itself()}), {400}),
    "a schema of 20 ** 5 parts": ("/completion", json.dumps({"prompt": "x", "json_schema": tower(20, 5)}), {400}),
    "16 sequence breakers": (
        "/completion",
        json.dumps({"prompt": "x", "n_predict": 1, "dry_multiplier": 1, "dry_sequence_breakers": [chr(97 + i) + "x" * 30 for i in range(16)]}),
        {200, 429},
    ),
    "a MiB of text to tokenize": ("/tokenize", json.dumps({"content": "".join(words)}), {200}),
    "64 prompts of 120 KB": ("/v1/completions", json.dumps({"prompt": ["sea " * 30_000] * 64, "max_tokens": 1}), {400}),
    "500 objects, 120 deep": ("/completion", json.dumps({"prompt": "x", "n_predict": 1, "a": [nested(120)] * 500}), {200, 400, 429}),
    "4,096 biases in 1,000 texts": (
        "/completion",
        json.dumps({"prompt": "x", "n_predict": 1, "logit_bias": {f"{i} sea": 1 for i in range(1000)}}),
        {200, 400, 429},
    ),
    "256 tools": ("/v1/chat/completions", json.dumps(chat_request("Hi", max_tokens=1) | {"tools": [tool(i) for i in range(256)]}), {200, 400, 429}),
    "4,000 messages to a template": ("/apply-template", chat_of(4000), {200}),
    "500,000 tokens to text": ("/detokenize", json.dumps({"tokens": [i % 9000 for i in range(500_000)]}), {200, 400}),
    "8 MiB of one letter to tokenize": ("/tokenize", json.dumps({"content": "a" * (8 * MIB - 100), "with_pieces": True}), {400}),
}
