"""The locked door, requests: those that are built to be expensive cost nobody else more than one of them does.

OUTRIDER_DEAR=20 sends as many of each kind as docs/SECURITY.md reports; here fewer do, since a limit that does not hold shows
with them, too.
"""

import http.client
import os
import resource
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from abuse import DEAR, MIB, Probes, post, probe, resident
from harness import Server, eventually, seconds, text_of

KEY = "correct-horse"
COUNT = int(os.environ.get("OUTRIDER_DEAR", "2"))


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


def test_memory_of_20_clients_at_once_comes_back():
    """Each of them has a thread of its own here, and no thread may keep what it needed once (base/freed_memory)."""
    names = ("a prompt of 8 MiB", "a million values")
    with Server() as server:
        for name in names:
            send_all(server, name, 1, None)
        time.sleep(3)  # freed memory is given back after a second
        before = resident(server)
        for name in names:
            send_all(server, name, 20, None)
        print(f"memory: {before / MIB:.0f} MiB before, {resident(server) / MIB:.0f} after the last answer")
        eventually(lambda: resident(server) < 1.1 * before + 8 * MIB, "the memory to come back", timeout=20)
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
