"""The locked door, requests: those that are built to be expensive cost nobody else more than one of them does.

OUTRIDER_DEAR=20 sends as many of each kind as docs/SECURITY.md reports; here fewer do, since a limit that does not hold shows
with them, too.
"""

import contextlib
import http.client
import json
import os
import random
import resource
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import Process, Server, chat_request, eventually, seconds, text_of
from test_slow_senders import probe

KEY = "correct-horse"
COUNT = int(os.environ.get("OUTRIDER_DEAR", "2"))
MIB = 1 << 20


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
    "60 objects of 1,000 keys": ("/completion", json.dumps({"prompt": "x", "n_predict": 1, "a": [object_of_keys(1000)] * 60}), {200, 429}),
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
    "8 MiB of one letter to tokenize": ("/tokenize", json.dumps({"content": "a" * (8 * MIB - 100), "with_pieces": True}), {400}),
}


def resident(server: Process) -> int:
    with open(f"/proc/{server.child.pid}/statm") as file:
        return int(file.read().split()[1]) * 4096


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


def send_all(server: Server, name: str, count: int, key: str | None) -> tuple[list[int], float, float]:
    """The answers, seconds, and seconds of CPU time of each."""
    path, body, _ = DEAR[name]
    encoded, cpu, start = body.encode(), server.cpu_seconds(), time.monotonic()
    assert len(encoded) <= 8 * MIB, name
    with ThreadPoolExecutor(count) as pool:
        codes = list(pool.map(lambda _: post(server.port, path, encoded, key), range(count)))
    return codes, time.monotonic() - start, (server.cpu_seconds() - cpu) / count


def test_expensive_requests_cost_one_of_them():
    with Server("--api-key", KEY) as server:
        server.http.headers["Authorization"] = f"Bearer {KEY}"
        assert text_of(server.chat("Hi", max_tokens=4)) is not None
        for name in DEAR:  # once, so that what is kept for ever is there: the slots' memory, threads, drafters
            send_all(server, name, 1, KEY)
        time.sleep(3)  # freed memory is given back after a second
        before = resident(server)
        highest = 0
        for name, (_, _, allowed) in DEAR.items():
            probes = Probes(server.port, KEY)
            try:
                codes, took, cpu = send_all(server, name, COUNT, KEY)
                anonymous, _, _ = send_all(server, name, 1, None)
            finally:
                taken = probes.end()
            highest = max(highest, resident(server))
            median, slowest = statistics.median(taken), taken[-1]
            print(
                f"{name}: {sorted(set(codes))} in {took:.1f} s, {1e3 * cpu:.0f} ms of CPU time each, "
                f"probes {1e3 * median:.1f} ms, slowest {1e3 * slowest:.1f} ms, {resident(server) / MIB:.0f} MiB"
            )
            assert set(codes) <= allowed, name
            assert set(anonymous) <= {401, 0}, name
            assert median < seconds(0.1), f"{name}: a probe took {median:.3f} s"
            assert slowest < seconds(2), f"{name}: a probe took {slowest:.3f} s once"
        print(f"memory: {before / MIB:.0f} MiB before, {highest / MIB:.0f} at most seen")
        eventually(lambda: resident(server) < 1.1 * before + 8 * MIB, "the memory to come back", timeout=60)
        print(f"memory in the end: {resident(server) / MIB:.0f} MiB")


def test_a_client_that_is_gone_costs_nothing_more():
    """20 that send expensive requests and leave at once: nearly nothing is computed for them."""
    path, body, _ = DEAR["a MiB of text to tokenize"]
    with Server() as server:
        start = server.cpu_seconds()
        assert post(server.port, path, body.encode(), None) in {200, 400}
        one = server.cpu_seconds() - start
        peers = []
        for _ in range(20):
            connection = http.client.HTTPConnection("127.0.0.1", server.port)
            connection.request("POST", path, body.encode(), {"Content-Type": "application/json"})
            peers.append(connection)
        start = server.cpu_seconds()
        for connection in peers:
            connection.close()
        assert text_of(server.chat("Hi", max_tokens=4)) is not None
        eventually(server.slots_idle, "the slots to be idle")
        time.sleep(seconds(0.5))
        spent = server.cpu_seconds() - start
        print(f"one request: {one:.2f} s of CPU time; 20 that left: {spent:.2f} s")
        assert spent < 5 * one + seconds(1)


def test_want_of_memory_costs_requests_and_not_the_server():
    """With room for little more than the model, requests are refused with 503, or their connections end; the server stays."""
    if os.environ.get("OUTRIDER_TEST_SLOWDOWN"):
        pytest.skip("sanitizers need memory of their own")
    with Server() as server:
        used = resident(server)
        # As a limit of the running process: to load a model must not depend on how much is left.
        data = int(next(line for line in open(f"/proc/{server.child.pid}/status") if line.startswith("VmData")).split()[1]) << 10
        room = data + 40 * MIB
        resource.prlimit(server.child.pid, resource.RLIMIT_DATA, (room, resource.RLIM_INFINITY))
        codes = set()
        for name in ("a prompt of 8 MiB", "a million values", "a MiB of text to tokenize", "10,000 messages", "8 MiB of one letter to tokenize"):
            answers, _, _ = send_all(server, name, 4, None)
            codes |= set(answers)
        print(f"{used / MIB:.0f} MiB used; answers {sorted(codes)}")
        assert server.child.poll() is None, "it has ended"
        assert codes & {503, 0}, "there was enough memory for all"
        resource.prlimit(server.child.pid, resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert probe(server.port, "/health") < seconds(5), "there is enough again"
        assert text_of(server.chat("Hi", max_tokens=4)) is not None
