#!/usr/bin/env python3
"""How fast Outrider and llama-server read prompts, which `outrider bench` does not measure, and decode without drafts: same
model, same flags, same prompts, run by run in rotating order.

Variants: outrider as it comes (exact: bf16 KV), llama-server with the same KV type, llama-server with its own
defaults (f16 KV). All are started once and stay idle unless measured; a server that uses the CPU while another is
measured is named in the report. Per run and concurrency each variant answers, first, short prompts with many tokens
(decode speed, time to first token) and then long prompts with one token (prefill speed). No prompt occurs twice for a
server, and prefix caches are off. A ratio compares two variants within the same run, so that drift of the machine
cancels out.

  bench/prompt_speed.py --model M.gguf --outrider build/release/bin/outrider --llama-server DIR/bin/llama-server
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import random
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

WORDS = (
    "harbour lamp river stone bread winter letter garden engine window market silver road forest cloud paper bridge "
    "story morning kitchen sailor mountain question answer number colour music animal doctor village train island "
    "summer history"
).split()
SPINNING = 0.02  # share of one core that an idle server may use


class Server:
    """One variant: a process, its address, and what /proc says of it."""

    def __init__(self, name: str, command: list[str], log_dir: str):
        self.name = name
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.command = [*command, "--port", str(port)]
        self.log_path = Path(log_dir) / f"{name.replace(' ', '-')}.log"
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600)
        self.idle_cpu = 0.0  # largest share of a core seen while another variant was measured

    def wait_ready(self):
        deadline = time.monotonic() + 120
        while True:
            with contextlib.suppress(httpx.TransportError):
                if self.http.get("/health").status_code == 200:
                    return
            if self.process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{self.name} did not start: {shlex.join(self.command)}\n{self.log_path.read_text()[-3000:]}")
            time.sleep(0.05)

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime, stime

    def peak_rss_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def stop(self):
        self.http.close()
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()


def prompt_of(words: int, *key) -> str:
    """Random words; the same for all variants of a run, different everywhere else from the first word on."""
    source = random.Random(repr(key))
    return " ".join(source.choice(WORDS) for _ in range(words))


def generate(server: Server, prompt: str, tokens: int) -> dict:
    """One streamed completion: when its first and last token arrived, and the server's own timings."""
    body = {
        "prompt": prompt,
        "n_predict": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "cache_prompt": False,
        "stream": True,
    }
    sent, first, last_event = time.monotonic(), None, None
    with server.http.stream("POST", "/completion", json=body) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if line.startswith("data: {"):
                first = first or time.monotonic()
                last_event = line
    end = time.monotonic()
    final = json.loads(last_event[6:])
    return {"sent": sent, "first": first, "end": end, "tokens": final["tokens_predicted"], "timings": final["timings"]}


def measure(server: Server, run: int, concurrency: int, tokens: int, prompt_words: int) -> dict[str, float]:
    """Metrics of one variant in one run; speeds in tokens/s over all requests together, times in ms."""

    def all_at_once(kind: str, words: int, count: int) -> list[dict]:
        prompts = [prompt_of(words, run, kind, concurrency, i) for i in range(concurrency)]
        with ThreadPoolExecutor(concurrency) as pool:
            return list(pool.map(lambda prompt: generate(server, prompt, count), prompts))

    decode = all_at_once("decode", 16, tokens)
    prefill = all_at_once("prefill", prompt_words, 1)
    decode_wall = max(r["end"] for r in decode) - min(r["first"] for r in decode)
    prefill_wall = max(r["end"] for r in prefill) - min(r["sent"] for r in prefill)
    return {
        "decode": sum(r["tokens"] - 1 for r in decode) / decode_wall,
        "decode (server)": sum(r["timings"]["predicted_per_second"] for r in decode),
        "prefill": sum(r["timings"]["prompt_n"] for r in prefill) / prefill_wall,
        "prefill (server)": statistics.median(r["timings"]["prompt_per_second"] for r in prefill),
        "ttft short": 1000 * statistics.median(r["first"] - r["sent"] for r in decode),
        "ttft long": 1000 * statistics.median(r["first"] - r["sent"] for r in prefill),
    }


def measure_among(servers: list[Server], server: Server, *arguments) -> dict[str, float]:
    """measure(), and how busy the servers were that should have been idle."""
    others = [other for other in servers if other is not server]
    before, start = [other.cpu_seconds() for other in others], time.monotonic()
    metrics = measure(server, *arguments)
    wall = time.monotonic() - start
    for other, used in zip(others, before, strict=True):
        other.idle_cpu = max(other.idle_cpu, (other.cpu_seconds() - used) / wall)
    return metrics


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "p10": percentile(values, 0.1), "p90": percentile(values, 0.9)}


def commands(options) -> dict[str, list[str]]:
    shared = [
        "-m",
        options.model,
        "-c",
        str(options.ctx_size),
        "-np",
        str(options.parallel),
        "-t",
        str(options.threads),
        "-tb",
        str(options.threads),
        "-b",
        "2048",
        "-ub",
        "512",
    ]
    same = ["-fa", "on", "-ctk", "bf16", "-ctv", "bf16"]
    # Its cache of idle prompts in main memory would copy every slot after each request; without it, it is faster here.
    llama = [options.llama_server, *shared, "--cache-ram", "0"]
    return {
        "outrider": [options.outrider, "serve", *shared, *same],
        "llama-server bf16": [*llama, *same, "--no-kv-unified"],
        "llama-server f16": llama,
    }


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def run_all(options, servers: list[Server]) -> list[dict]:
    """Rows of {run, variant, concurrency, metrics} of whole runs; a first round warms up and is not kept. Ctrl-C ends
    it with what there is."""
    rows: list[dict] = []
    start = time.monotonic()
    try:
        for run in range(options.runs + 1):
            rows += run_once(options, servers, run)
            left = (time.monotonic() - start) / (run + 1) * (options.runs - run)
            print(f"\rrun {run} of {options.runs}, about {left:.0f} s left ", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        if not rows:
            raise
        print("\ninterrupted; the report is of the runs that were finished", file=sys.stderr)
    print(file=sys.stderr)
    return rows


def run_once(options, servers: list[Server], run: int) -> list[dict]:
    turn = run % len(servers)
    rows = []
    for concurrency in options.concurrency:
        for server in servers[turn:] + servers[:turn]:
            metrics = measure_among(servers, server, run, concurrency, options.tokens, options.prompt_words)
            rows.append({"run": run, "variant": server.name, "concurrency": concurrency, "metrics": metrics})
    return rows if run else []


def summarise(rows: list[dict], servers: list[Server]) -> dict:
    def series(variant: str, concurrency: int, metric: str) -> list[float]:
        return [r["metrics"][metric] for r in rows if (r["variant"], r["concurrency"]) == (variant, concurrency)]

    names = [server.name for server in servers]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    summary = {
        "medians": [],
        "ratios": [],
        "peak_rss_mib": {s.name: s.peak_rss_mib() for s in servers},
        "idle_cpu": {s.name: s.idle_cpu for s in servers},
    }
    for concurrency in sorted({r["concurrency"] for r in rows}):
        for metric in rows[0]["metrics"]:
            values = {name: series(name, concurrency, metric) for name in names}
            key = {"concurrency": concurrency, "metric": metric}
            summary["medians"].append({**key, **{name: statistics.median(values[name]) for name in names}})
            for a, b in pairs:
                ratios = [x / y for x, y in zip(values[a], values[b], strict=True)]
                summary["ratios"].append({**key, "of": a, "to": b, **spread(ratios)})
    return summary


def print_report(options, facts: dict, summary: dict, servers: list[Server]):
    names = [server.name for server in servers]
    for name, value in facts.items():
        print(f"{name}: {value}")
    for server in servers:
        print(f"{server.name}: {shlex.join(server.command)}")
    print(f"\nMedians of {options.runs} runs (speeds in tokens/s over all requests together, ttft in ms)\n")
    print(f"| requests | metric | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
    for row in summary["medians"]:
        print(f"| {row['concurrency']} | {row['metric']} | {' | '.join(f'{row[name]:.1f}' for name in names)} |")
    rss = summary["peak_rss_mib"]
    print(f"| | peak RSS, MiB | {' | '.join(f'{rss[name]:.0f}' for name in names)} |")
    print("\nRatios within a run: median (p10 … p90); above 1 is better for speeds, below 1 for ttft\n")
    pairs = list(dict.fromkeys((row["of"], row["to"]) for row in summary["ratios"]))
    print(f"| requests | metric | {' | '.join(f'{a} / {b}' for a, b in pairs)} |\n|---|---|{'---|' * len(pairs)}")
    cells: dict[tuple, dict] = {}
    for row in summary["ratios"]:
        text = f"{row['median']:.3f} ({row['p10']:.3f} … {row['p90']:.3f})"
        cells.setdefault((row["concurrency"], row["metric"]), {})[row["of"], row["to"]] = text
    for (concurrency, metric), by_pair in cells.items():
        print(f"| {concurrency} | {metric} | {' | '.join(by_pair[pair] for pair in pairs)} |")
    print(f"| | peak RSS | {' | '.join(f'{rss[a] / rss[b]:.3f}' for a, b in pairs)} |")
    for name, share in summary["idle_cpu"].items():
        if share > SPINNING:
            print(
                f"\nWarning: {name} used {share:.0%} of a core while another server was measured: it spins when idle."
            )


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--outrider", required=True, help="the binary outrider")
    parser.add_argument("--llama-server", required=True, help="the binary llama-server, built from the same source")
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--tokens", type=int, default=128, help="tokens generated per request of the decode part")
    parser.add_argument(
        "--prompt-words", type=int, default=1000, help="words, about as many tokens, of the prefill part"
    )
    parser.add_argument("--concurrency", type=lambda text: [int(n) for n in text.split(",")], default=[1, 4])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--ctx-size", type=int, default=8192, help="over all slots")
    parser.add_argument("--parallel", type=int, default=4, help="slots")
    parser.add_argument("--json", type=Path, help="write settings, every run and the summary here")
    return parser.parse_args()


def main():
    options = parse_arguments()
    facts = {
        "machine": f"{cpu_name()}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}",
        "load before": f"{os.getloadavg()[0]:.2f}",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": shlex.join(sys.argv),
    }
    servers: list[Server] = []
    with tempfile.TemporaryDirectory() as log_dir:
        try:
            for name, command in commands(options).items():
                servers.append(Server(name, command, log_dir))
                servers[-1].wait_ready()
            rows = run_all(options, servers)
            summary = summarise(rows, servers)
            print_report(options, facts, summary, servers)
        finally:
            for server in servers:
                server.stop()
    if options.json:
        commands_used = {server.name: server.command for server in servers}
        options.json.write_text(
            json.dumps({**facts, "commands": commands_used, "summary": summary, "runs": rows}, indent=1)
        )


if __name__ == "__main__":
    main()
