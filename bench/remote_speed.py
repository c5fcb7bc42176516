#!/usr/bin/env python3
"""The speed-up of a draft server by the round trip to it, and the bytes that are sent.

Starts a draft server, the target, and Toxiproxy between them, on this machine. Each prompt is answered without the draft server, and with it at
every round trip, before the next prompt, in rotating order. One thread for each side, so that they do not compete for cores.
With --networks the networks are bad in other ways instead, and the question is whether that makes answers slower than without a draft server.
With --replica a second server, with another copy of the target, answers each prompt at each round trip, too.

  bench/remote_speed.py --model big.gguf --draft models/smollm2-draft-16m.gguf --outrider build/release/bin/outrider \\
      --toxiproxy ~/.cache/outrider/toxiproxy-v2.5.0 --rtt 0,5,10,20,40,80,100

The predicted time is that of the first round trip plus, for each draft that was rejected, the difference of the round trips, or the time of a
plain step where that is shorter.
"""

import argparse
import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx

from prompt_speed import Server, cpu_name

PROMPTS = Path(__file__).resolve().parent.parent / "src/bench/text/prompts.jsonl"


class Counter:
    """Passes bytes on to `upstream` and counts them, both ways."""

    def __init__(self, upstream: tuple[str, int]):
        self.bytes = 0
        self.upstream = upstream
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(self.upstream)
            for one, other in ((client, server), (server, client)):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket):
        with contextlib.suppress(OSError):
            while part := source.recv(1 << 16):
                self.bytes += len(part)
                target.sendall(part)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Proxy:
    def __init__(self, program: str, upstream: str, log):
        self.api, self.port = 18474, 18190
        self.process = subprocess.Popen(
            [program, "-host", "127.0.0.1", "-port", str(self.api)], stdout=log, stderr=log
        )
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.api}", timeout=10)
        for _ in range(100):
            try:
                self.http.get("/version")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        body = {"name": "draft", "listen": f"127.0.0.1:{self.port}", "upstream": upstream}
        self.http.post("/proxies", json=body).raise_for_status()

    def set(self, kind: str, attributes: dict):
        for toxic in self.http.get("/proxies/draft/toxics").json():
            self.http.delete(f"/proxies/draft/toxics/{toxic['name']}")
        for stream in ("upstream", "downstream"):
            body = {"name": stream, "type": kind, "stream": stream, "attributes": attributes}
            self.http.post("/proxies/draft/toxics", json=body).raise_for_status()

    def stop(self):
        self.process.kill()


NETWORKS = {
    "good": ("latency", {"latency": 0}),
    "5 ms": ("latency", {"latency": 5}),
    "20 ms": ("latency", {"latency": 20}),
    "80 ms": ("latency", {"latency": 80}),
    "20 ms, jitter 20": ("latency", {"latency": 20, "jitter": 20}),
    "1 Mbit/s": ("bandwidth", {"rate": 125}),
    "reset after 100 ms": ("reset_peer", {"timeout": 100}),
    "black hole": ("timeout", {"timeout": 0}),
    "3 bytes at a time": ("slicer", {"average_size": 3, "size_variation": 1, "delay": 500}),
}


FLOWING = 5  # pieces of an answer, after which its prompt has been sent


class Runs:
    """Answers under one condition."""

    def __init__(self):
        self.rows: list[dict] = []
        self.bytes = self.drafted = 0.0

    def add(self, row: dict):
        self.rows.append(row)

    def total(self, key: str) -> float:
        return sum(row[key] for row in self.rows)

    def speed(self) -> float:
        return self.total("predicted_n") / self.total("predicted_ms") * 1000

    def ratios(self, plain: "Runs") -> list[float]:
        return [alone["predicted_ms"] / row["predicted_ms"] for alone, row in zip(plain.rows, self.rows)]

    def wrong_drafts(self) -> float:
        """Steps whose draft was not right to its end, about: each token of a text that no draft had follows such a draft."""
        return self.total("predicted_n") - self.total("draft_n_accepted")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--draft", required=True)
    parser.add_argument("--outrider", required=True)
    parser.add_argument("--toxiproxy", required=True)
    parser.add_argument("--prompts", default=PROMPTS, help="default: those of outrider bench")
    parser.add_argument("--rtt", type=lambda text: [float(part) for part in text.split(",")], default=[0, 5, 10, 20, 40, 80, 100])
    parser.add_argument("--networks", action="store_true", help="bad networks instead of round trips")
    parser.add_argument("--replica", help="devices of another copy of the target, as outrider serve takes them")
    parser.add_argument("--count", type=int, default=6, help="prompts")
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--threads", type=int, default=1, help="of the target")
    options = parser.parse_args()
    if options.networks and options.replica:
        parser.error("--replica is measured over round trips, not on bad networks")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # what was started is stopped too
    prompts = [json.loads(line)["turns"][0] for line in Path(options.prompts).read_text().splitlines()]
    prompts = prompts[:: max(1, len(prompts) // options.count)][: options.count]

    folder = tempfile.mkdtemp(prefix="remote_speed")
    log = (Path(folder) / "draft-and-proxy.log").open("w")
    draft = subprocess.Popen(
        [options.outrider, "draft", "-m", options.draft, "--listen", "127.0.0.1:18191", "-t", "1", "-np", "2",
         "--metrics", "127.0.0.1:18192"], stdout=log, stderr=log
    )  # fmt: skip
    counter = Counter(("127.0.0.1", 18191))
    proxy = Proxy(options.toxiproxy, counter.address, log)
    flags = ["-t", str(options.threads), "-np", "1", "-c", "4096"]
    command = [options.outrider, "serve", "-m", options.model, "--spec", f"remote:127.0.0.1:{proxy.port}", *flags]
    server = Server("outrider", command, folder)
    replicated = Server("replicated", [*command, "--replica", options.replica], folder) if options.replica else None
    servers = [each for each in (server, replicated) if each]
    for each in servers:
        each.wait_ready()

    def request(prompt: str, speculate: bool) -> dict:
        return {"messages": [{"role": "user", "content": prompt}], "max_tokens": options.tokens, "temperature": 0,
                "cache_prompt": False, "speculative": {"enabled": speculate}}  # fmt: skip

    def ask(prompt: str, speculate: bool, of: Server) -> dict:
        answer = of.http.post("/v1/chat/completions", json=request(prompt, speculate))
        answer.raise_for_status()
        return {**answer.json()["timings"], "text": answer.json()["choices"][0]["message"]["content"]}

    def learn(prompt: str, runs: Runs, of: Server):
        """An answer by which the network is learned, and what travels for it once it flows."""
        body = {**request(prompt, True), "stream": True}
        pieces, before = 0, (0.0, 0.0)
        with of.http.stream("POST", "/v1/chat/completions", json=body) as answer:
            for line in answer.iter_lines():
                pieces += '"content"' in line
                if pieces == FLOWING and before == (0.0, 0.0):
                    before = counter.bytes, drafted()
                if '"finish_reason":"' in line.replace(" ", "") and before != (0.0, 0.0):
                    runs.bytes += counter.bytes - before[0]
                    runs.drafted += drafted() - before[1]

    def drafted() -> float:
        return float(re.search(r"^outrider_draft_tokens_sent_total (\S+)$", httpx.get("http://127.0.0.1:18192/metrics").text, re.M)[1])

    print(f"{cpu_name()}, {options.threads} thread for the target and 1 for the draft, {Path(options.model).name}, {len(prompts)} prompts\n")
    conditions = {f"{rtt:g}": ("latency", {"latency": round(rtt / 2)}) for rtt in options.rtt}
    if options.networks:
        conditions = NETWORKS
    runs = {name: Runs() for name in conditions}
    runs_replicated = {name: Runs() for name in conditions}
    plain = Runs()
    try:
        for turn, prompt in enumerate(prompts):
            plain.add(ask(prompt, False, server))
            order = list(conditions)
            for name in order[turn % len(order) :] + order[: turn % len(order)]:
                proxy.set(*conditions[name])
                for each, kept in zip(servers, (runs, runs_replicated)):
                    learn(prompt, kept[name], each)
                    kept[name].add(ask(prompt, True, each))
                    assert kept[name].rows[-1]["text"] == plain.rows[-1]["text"], "the text changed"
            print(f"{turn + 1} of {len(prompts)} prompts", end="\r", file=sys.stderr, flush=True)
        base = next(iter(runs.values()))
        if options.networks:
            print("| network | t/s, of plain | slowest answer, of plain |\n|---|---|---|")
            for name, each in runs.items():
                print(f"| {name} | {each.speed() / plain.speed():.2f} | {min(each.ratios(plain)):.2f} |")
            return 0
        print(f"Plain: {plain.speed():.1f} t/s\n")
        print("| round trip, ms | t/s | of plain | of the first | predicted t/s | right of drafted | bytes for each drafted token, both ways |")
        print("|---|---|---|---|---|---|---|")
        for rtt, each in zip(options.rtt, runs.values()):
            wait = min(rtt - options.rtt[0], 1000 / plain.speed())
            predicted = base.total("predicted_n") / (base.total("predicted_ms") + base.wrong_drafts() * wait) * 1000
            print(f"| {rtt:g} | {each.speed():.1f} | {each.speed() / plain.speed():.2f} | {each.speed() / base.speed():.2f} | {predicted:.1f} | "
                  f"{each.total('draft_n_accepted')} of {each.total('draft_n')} | {each.bytes / max(each.drafted, 1):.1f} |")  # fmt: skip
        if replicated:
            print("\n| round trip, ms | t/s | with another copy of the target | of without, prompt by prompt |\n|---|---|---|---|")
            for name, each in runs_replicated.items():
                ratios = sorted(each.ratios(runs[name]))
                print(f"| {name} | {runs[name].speed():.1f} | {each.speed():.1f} ({each.speed() / runs[name].speed():.2f}) | "
                      f"{ratios[0]:.2f} to {ratios[-1]:.2f}, median {ratios[len(ratios) // 2]:.2f} |")  # fmt: skip
    finally:
        for each in servers:
            each.stop()
        proxy.stop()
        draft.terminate()
        draft.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
