#!/usr/bin/env python3
"""What clients that mean harm cost the others (docs/SECURITY.md): slow senders, dear requests, and both at once, from one address.

While they attack, a process of its own asks /health and /metrics over a new connection each time, and one well-behaved client reads a
stream. The same stream, with the same tokens and without drafts, is read without the attack before each run; the ratio of the two speeds is
reported, and at the end how much memory the server has kept. Attackers have a low priority, because they would be on other machines. With
more than one core the model leaves one free (-t), since what the attackers make the server do needs a place.

Dear requests are sent by --dear clients at once, which send the next one when one was answered. Those that are refused, or that only
parse or tokenise, are compared with a stream alone; those that the model answers, with as many ordinary requests of the same length,
because they have a right to their share of the model. Then --streams clients read streams for a minute.

  bench/locked_door.py --outrider build/release/bin/outrider --model M.gguf
"""

import argparse
import contextlib
import itertools
import json
import multiprocessing
import os
import statistics
import sys
import threading
import time
from pathlib import Path

import httpx

REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests/e2e"))

USER, ATTACKER = "a-user", "an-attacker"  # their keys
PAUSE = 0.2  # s between two requests of a dear client, so that it is no flood


def is_answered_by_model(allowed: set[int], path: str) -> bool:
    return 200 in allowed and path in ("/completion", "/v1/completions", "/v1/chat/completions")


def kept_prompts(server) -> float:
    from harness import parse_prometheus

    text = server.http.get("/metrics", headers={"Authorization": f"Bearer {USER}"}).text
    return parse_prometheus(text)["outrider_prompt_cache_bytes"][1]


def drip(port: int, key: str | None, count: int, ready, stop):
    from abuse import KINDS, Drips

    os.nice(19)
    with Drips(port, list(KINDS), key, count, interval=0.25):
        ready.set()
        stop.wait()


def send_dear(port: int, key: str | None, bodies: list[tuple[str, bytes]], clients: int, ready, stop, codes):
    """All kinds in turn, each client beginning with another one. In the end how many answers of which status there were."""
    from abuse import post

    os.nice(19)
    all_seen = []

    def run(first: int):
        all_seen.append(seen := {})
        for path, body in itertools.islice(itertools.cycle(bodies), first, None):
            if stop.is_set():
                break
            code = post(port, path, body, key)
            seen[code] = seen.get(code, 0) + 1
            ready.set()
            stop.wait(PAUSE)

    threads = [threading.Thread(target=run, args=(i * len(bodies) // clients,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    codes.put({code: sum(seen.get(code, 0) for seen in all_seen) for code in set().union(*all_seen)})


def ask(port: int, key: str, ready, stop, taken):
    """Probes all the time; in the end the times they took, in milliseconds."""
    from abuse import probe

    times = {"/health": [], "/metrics": []}
    while not stop.is_set():
        for path, mine in times.items():
            mine.append(1e3 * probe(port, path, key))
        ready.set()
        stop.wait(0.02)
    taken.put(times)


def read_streams(port: int, key: str, clients: int, ready, stop, outcomes):
    """Chats that are streamed, one after the other by each client. In the end how many ended in which way; 200 means to the last event."""
    seen = []

    def run():
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {key}"}, timeout=300) as client:
            while not stop.is_set():
                body = {"messages": [{"role": "user", "content": "Tell me about the sea."}], "max_tokens": 16, "stream": True}
                try:
                    answer = client.post("/v1/chat/completions", json=body)
                    whole = answer.text.rstrip().endswith("data: [DONE]") if answer.status_code == 200 else "retry-after" in answer.headers
                    seen.append(answer.status_code if whole else "not whole")
                except httpx.HTTPError as error:
                    seen.append(type(error).__name__)
                ready.set()
                if seen[-1] == 429:
                    stop.wait(1)

    threads = [threading.Thread(target=run) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    outcomes.put({outcome: seen.count(outcome) for outcome in set(seen)})


class Helpers:
    """Processes that run until the block ends."""

    def __init__(self):
        self.context = multiprocessing.get_context("spawn")
        self.stop = self.context.Event()
        self.running = []
        self.queues = []

    def start(self, target, *arguments, tells: bool = False):
        ready = self.context.Event()
        queue = [self.context.Queue()] if tells else []
        process = self.context.Process(target=target, args=(*arguments, ready, self.stop, *queue))
        process.start()
        self.running.append(process)
        self.queues += queue
        ready.wait(120)

    def end(self) -> list:
        self.stop.set()
        told = [queue.get(timeout=300) for queue in self.queues]
        for process in self.running:
            process.join()
        return told


def stream_speed(url: str, tokens: int) -> float:
    """Tokens per second from the first token of a stream to its last."""
    body = {"prompt": "Write a very long story about the sea.", "n_predict": tokens, "ignore_eos": True, "temperature": 0, "stream": True,
            "cache_prompt": False, "speculative": {"enabled": False}}  # fmt: skip
    first, last, seen = 0.0, 0.0, 0
    with httpx.stream("POST", f"{url}/completion", json=body, headers={"Authorization": f"Bearer {USER}"}, timeout=300) as response:
        assert response.status_code == 200, response.read()
        for line in response.iter_lines():
            if line.startswith("data:") and json.loads(line[5:])["tokens"]:
                last = time.monotonic()
                first = first or last
                seen += 1
    assert seen > tokens / 2, f"only {seen} events"
    return (seen - 1) / (last - first)


class Measurement:
    def __init__(self, name: str):
        self.name, self.ratios, self.times, self.codes = name, [], {"/health": [], "/metrics": []}, {}

    def row(self) -> str:
        def shown(times):
            return f"{statistics.median(times):.1f} ms, {max(times):.1f} ms of {len(times)}"

        ratio = f"{statistics.median(self.ratios):.2f} ({', '.join(f'{each:.2f}' for each in self.ratios)})"
        codes = ", ".join(f"{count} × {code or 'closed'}" for code, count in sorted(self.codes.items())) or "–"
        return f"| {self.name} | {shown(self.times['/health'])} | {shown(self.times['/metrics'])} | {ratio} | {codes} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outrider", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--senders", type=int, default=128, help="slow senders of each kind")
    parser.add_argument("--dear", type=int, default=20, help="clients that send dear requests")
    parser.add_argument("--tokens", type=int, default=1500, help="of the well-behaved stream")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--streams", type=int, default=200, help="streams at once, for a minute; 0 = do not measure that")
    parser.add_argument("--only", default="", help="measure what has this in its name")
    options = parser.parse_args()
    os.environ["OUTRIDER_BIN"] = options.outrider

    from abuse import DEAR, MIB, resident
    from harness import Server

    dear, answered, ordinary = [], [], []
    for name, (path, text, allowed) in DEAR.items():
        body = text.encode()
        if not is_answered_by_model(allowed, path):
            dear.append((path, body))
            continue
        answered.append((path, body))
        tokens = json.loads(text).get("n_predict") or json.loads(text)["max_tokens"]
        plain = json.dumps({"prompt": "x", "n_predict": tokens}).encode()
        ordinary.append((path, body) if name == "a conversation that just fits" else ("/completion", plain))

    keys = ("--api-key", USER, "--api-key", ATTACKER)
    all_stay = ("--max-connections-per-peer", str(4 * options.senders))
    with Server(*keys, *all_stay, "-t", options.threads, "-np", "4", "-c", "8192", model=options.model) as server:
        port = server.port

        def attack(helpers: Helpers, key: str | None, slow: bool, bodies):
            if slow:
                helpers.start(drip, port, key, options.senders)
            if bodies:
                helpers.start(send_dear, port, key, bodies, options.dear, tells=True)

        def measure(name: str, key: str | None, slow: bool, bodies, reference=None):
            if options.only not in name:
                return
            measurement = Measurement(name)
            for _ in range(options.runs):
                with contextlib.ExitStack() as ending:
                    quiet = Helpers()
                    ending.callback(quiet.end)
                    attack(quiet, ATTACKER, False, reference)
                    undisturbed = stream_speed(server.url, options.tokens)
                helpers = Helpers()
                attack(helpers, key, slow, bodies)
                helpers.start(ask, port, USER, tells=True)
                measurement.ratios.append(stream_speed(server.url, options.tokens) / undisturbed)
                *codes, times = helpers.end()
                for path, mine in times.items():
                    measurement.times[path] += mine
                for seen in codes:
                    for code, count in seen.items():
                        measurement.codes[code] = measurement.codes.get(code, 0) + count
            print(measurement.row(), flush=True)

        # Once, so that what is kept for ever is there: the slots' memory, threads, drafters.
        warm = Helpers()
        attack(warm, ATTACKER, True, answered)
        stream_speed(server.url, options.tokens)
        warm.end()
        time.sleep(3)
        before, kept_before = resident(server), kept_prompts(server)
        print(f"{options.threads} of {os.cpu_count()} cores for the model, {options.runs} runs of {options.tokens} tokens\n")
        print("| attack | /health: median, slowest | /metrics: median, slowest | speed of the stream (runs) | answers to the attackers |")
        print("|---|---|---|---|---|")
        for who, key in (("with a key", ATTACKER), ("without one", None)):
            measure(f"{options.senders} slow senders of each kind, {who}", key, True, None)
            measure(f"{options.dear} dear clients, {who}", key, False, dear)
            measure(f"both at once, {who}", key, True, dear)
        name = f"{options.dear} clients with dear requests that the model answers, beside as many ordinary ones"
        measure(name, ATTACKER, False, answered, ordinary)
        if options.streams and options.only in "streams":
            helpers = Helpers()
            helpers.start(read_streams, port, USER, options.streams, tells=True)
            helpers.start(ask, port, USER, tells=True)
            time.sleep(60)
            outcomes, times = helpers.end()
            worst = ", ".join(f"{path} {statistics.median(each):.1f} ms, {max(each):.1f} ms" for path, each in times.items())
            print(f"\n{options.streams} streams at once for a minute: {outcomes}; {worst}", flush=True)
        highest = resident(server)
        time.sleep(60)
        after, kept = resident(server), kept_prompts(server)
        print(f"\nmemory: {before / MIB:.0f} MiB before, {highest / MIB:.0f} after the last attack, {after / MIB:.0f} a minute later; "
              f"of these {kept_before / MIB:.0f} and {kept / MIB:.0f} are prompts that are kept for later requests (--cache-ram)")


if __name__ == "__main__":
    main()
