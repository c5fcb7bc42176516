#!/usr/bin/env python3
"""What a draft server brings over the round trip to it, and what travels.

Starts a draft server, the target, and Toxiproxy between them, on this machine; for each round trip the prompts are answered with the
remote drafter and without, in turn. One thread for each side, so that they do not take each other's cores.

  bench/remote_speed.py --model big.gguf --draft models/smollm2-draft-16m.gguf --outrider build/release/bin/outrider \\
      --toxiproxy ~/.cache/outrider/toxiproxy-v2.5.0 --prompts bench/prompts.jsonl --rtt 0,5,10,20,40,80,100

The prediction beside each measured speed is that of a target that waits a round trip and the drafting of four tokens after each draft that
was wrong, or takes a plain step where that is shorter:
  t/s = tokens per step / (step + share of wrong drafts * min(wait, plain step)), all from the run without a round trip but the wait.
"""

import argparse
import contextlib
import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx

from compare_llama_server import Server, cpu_name


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

    def set_round_trip(self, milliseconds: float):
        for stream in ("upstream", "downstream"):
            self.http.delete(f"/proxies/draft/toxics/{stream}")
            body = {"name": stream, "type": "latency", "stream": stream, "attributes": {"latency": round(milliseconds / 2)}}
            self.http.post("/proxies/draft/toxics", json=body).raise_for_status()

    def stop(self):
        self.process.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--draft", required=True)
    parser.add_argument("--outrider", required=True)
    parser.add_argument("--toxiproxy", required=True)
    parser.add_argument("--prompts", required=True)
    parser.add_argument("--rtt", type=lambda text: [float(part) for part in text.split(",")], default=[0, 5, 10, 20, 40, 80, 100])
    parser.add_argument("--count", type=int, default=6, help="prompts")
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--threads", type=int, default=1, help="of the target")
    options = parser.parse_args()
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
    server = Server("outrider", [options.outrider, "serve", "-m", options.model, "--spec", f"remote:127.0.0.1:{proxy.port}", *flags], folder)
    server.wait_ready()

    def ask(prompt: str, speculate: bool) -> dict:
        body = {"messages": [{"role": "user", "content": prompt}], "max_tokens": options.tokens, "temperature": 0,
                "cache_prompt": False, "speculative": {"enabled": speculate}}  # fmt: skip
        answer = server.http.post("/v1/chat/completions", json=body)
        answer.raise_for_status()
        return {**answer.json()["timings"], "text": answer.json()["choices"][0]["message"]["content"]}

    def drafted() -> float:
        return float(re.search(r"^outrider_draft_tokens_sent_total (\S+)$", httpx.get("http://127.0.0.1:18192/metrics").text, re.M)[1])

    print(f"{cpu_name()}, {options.threads} thread for the target and 1 for the draft, {Path(options.model).name}, {len(prompts)} prompts\n")
    print("| round trip, ms | plain t/s | remote t/s | ratio | of no round trip | predicted t/s | right of drafted | bytes for each drafted token, both ways |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    first = None
    try:
        for rtt in options.rtt:
            proxy.set_round_trip(rtt)
            time.sleep(1)
            for _ in range(2):
                ask(prompts[0], True)  # the new round trip is learned
            results, plain, sent, tokens = [], [], 0.0, 0.0
            for prompt in prompts:
                before = counter.bytes, drafted()
                results.append(ask(prompt, True))
                time.sleep(0.3 + rtt / 500)  # what is on its way arrives
                sent, tokens = sent + counter.bytes - before[0], tokens + drafted() - before[1]
                plain.append(ask(prompt, False))
                assert results[-1]["text"] == plain[-1]["text"], "the text changed"
            total = lambda rows, key: sum(row[key] for row in rows)  # noqa: E731
            speed = lambda rows: total(rows, "predicted_n") / total(rows, "predicted_ms") * 1000  # noqa: E731
            remote, alone = speed(results), speed(plain)
            steps = total(results, "predicted_n") - total(results, "draft_n_accepted")
            if first is None:
                step = total(results, "predicted_ms") / steps
                first = (remote, rtt, total(results, "predicted_n") / steps, step)
            wrong = 1 - total(results, "draft_n_accepted") / max(1, total(results, "draft_n"))
            wait = min(rtt - first[1], 1000 / alone)
            predicted = first[2] / (first[3] + wrong * wait) * 1000
            print(f"| {rtt:g} | {alone:.1f} | {remote:.1f} | {remote / alone:.2f} | {remote / first[0]:.2f} | {predicted:.1f} | "
                  f"{total(results, 'draft_n_accepted')} of {total(results, 'draft_n')} | {sent / max(tokens, 1):.1f} |", flush=True)  # fmt: skip
    finally:
        server.stop()
        proxy.stop()
        draft.terminate()
        draft.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
