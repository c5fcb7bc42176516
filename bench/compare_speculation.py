#!/usr/bin/env python3
"""What speculation brings: Outrider plain and with drafters, beside llama-server plain and with its own.

Every prompt is answered by every variant before the next prompt, in rotating order, so that the machine's noise hits all
alike; ratios are taken prompt by prompt. All servers are started once and idle unless measured. The texts of Outrider's
variants must be the same; llama-server's differences are counted.

  bench/compare_speculation.py --model M.gguf --draft D.gguf --outrider build/release/bin/outrider \\
      --llama-server DIR/bin/llama-server --prompts bench/prompts.jsonl

A line of the prompts is {"category": "code", "turns": ["…"]}; the first turn is asked.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compare_llama_server import Server, cpu_name, percentile


SAME_KV = ["-fa", "on", "-ctk", "f16", "-ctv", "f16", "--cache-ram", "0", "--no-kv-unified"]  # llama-server, as ours


def add_server_arguments(parser: argparse.ArgumentParser):
    parser.add_argument("--model", required=True)
    parser.add_argument("--draft")
    parser.add_argument("--outrider", required=True)
    parser.add_argument("--llama-server")
    parser.add_argument("--only", type=lambda text: text.split(","), help="names of variants")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ctx-size", type=int, default=4096, help="of each sequence")
    parser.add_argument("--parallel", type=int, default=1, help="prompts at a time")


def server_flags(options) -> list[str]:
    slots, context = str(options.parallel), str(options.ctx_size * options.parallel)
    return ["-m", options.model, "-c", context, "-np", slots, "-t", str(options.threads)]


def chat(server: Server, prompt: str, **fields) -> dict:
    body = {"messages": [{"role": "user", "content": prompt}], **fields}
    response = server.http.post("/v1/chat/completions", json=body)
    response.raise_for_status()
    return response.json()


def variants(options) -> dict[str, list[str]]:
    shared = server_flags(options)
    ours = [options.outrider, "serve", *shared, "--spec-forget"]  # a prompt that comes again must not flatter us
    all_variants = {"plain": [*ours, "--spec", "none"], "auto": ours}
    if options.draft:
        all_variants["auto+model"] = [*ours, "-md", options.draft]
    if options.llama_server:
        llama = [options.llama_server, *shared, *SAME_KV]
        all_variants["llama plain"] = llama
        all_variants["llama ngram-mod"] = [*llama, "--spec-type", "ngram-mod"]
        if options.draft:
            draft = [*llama, "-md", options.draft, "--spec-type", "draft-simple"]
            all_variants["llama draft 3"] = [*draft, "--spec-draft-n-max", "3"]
            all_variants["llama draft 7 p.6"] = [*draft, "--spec-draft-n-max", "7", "--spec-draft-p-min", "0.6"]
        all_variants["llama defaults"] = [options.llama_server, *shared, "--cache-ram", "0"]
    return {name: flags for name, flags in all_variants.items() if not options.only or name in options.only}


def ask(server: Server, prompt: str, options) -> dict:
    start = time.monotonic()
    answer = chat(server, prompt, max_tokens=options.tokens, temperature=options.temp, seed=7, cache_prompt=False)
    seconds = time.monotonic() - start
    timings = answer["timings"]
    return {
        "text": answer["choices"][0]["message"]["content"],
        "tokens": answer["usage"]["completion_tokens"],
        "seconds": seconds,
        "speed": timings["predicted_per_second"],
        "prompt_ms": timings["prompt_ms"],
        "draft_n": timings.get("draft_n", 0),
        "draft_n_accepted": timings.get("draft_n_accepted", 0),
        "drafters": timings.get("drafters", {}),
        "stages": timings.get("stages", {}),
    }


def run(options, servers: list[Server], prompts: list[dict]) -> list[dict]:
    rows = []
    for server in servers:  # warm up
        ask(server, "Say hello.", options)
    try:
        for turn, first in enumerate(range(0, len(prompts), options.parallel)):
            group = prompts[first : first + options.parallel]
            order = servers[turn % len(servers) :] + servers[: turn % len(servers)]
            for server in order:
                with ThreadPoolExecutor(len(group)) as pool:
                    results = list(pool.map(lambda prompt: ask(server, prompt["turns"][0], options), group))
                for number, (prompt, result) in enumerate(zip(group, results, strict=True), first):
                    rows.append({"variant": server.name, "number": number, "category": prompt["category"], **result})
            print(f"\r{first + len(group)} of {len(prompts)} prompts ", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("\ninterrupted: reporting what there is", file=sys.stderr)
    whole = min((sum(row["variant"] == s.name for row in rows) for s in servers), default=0)
    return [row for row in rows if row["number"] < whole]


def ratios(rows: list[dict], variant: str, base: str, category: str | None) -> list[float]:
    speed = {(r["variant"], r["number"]): r["speed"] for r in rows if r["tokens"] > 4}
    numbers = {r["number"] for r in rows if category in (None, r["category"])}
    pairs = [(speed.get((variant, n)), speed.get((base, n))) for n in sorted(numbers)]
    return [a / b for a, b in pairs if a and b]


def report(options, rows: list[dict], names: list[str]):
    base = names[0]
    categories = [*dict.fromkeys(row["category"] for row in rows), None]
    print(f"\n{cpu_name()}, {options.threads} threads, {Path(options.model).name}, temperature {options.temp}, ", end="")
    print(f"{options.tokens} tokens, {options.parallel} at a time. Median ratio of decode speed to '{base}' (p10 … p90); median t/s of '{base}'.\n")
    print("| category | " + base + " t/s | " + " | ".join(names[1:]) + " |")
    print("|---|---|" + "---|" * (len(names) - 1))
    for category in categories:
        own = [r["speed"] for r in rows if r["variant"] == base and category in (None, r["category"])]
        cells = []
        for name in names[1:]:
            values = ratios(rows, name, base, category)
            cells.append(
                f"{statistics.median(values):.2f} ({percentile(values, 0.1):.2f} … {percentile(values, 0.9):.2f})"
                if values
                else ""
            )
        print(f"| {category or '**all**'} | {statistics.median(own):.1f} | " + " | ".join(cells) + " |")
    total = {n: sum(r["tokens"] - 1 for r in rows if r["variant"] == n) for n in names}
    spent = {n: sum((r["tokens"] - 1) / r["speed"] for r in rows if r["variant"] == n and r["speed"]) for n in names}
    print("| total t/s | | " + " | ".join(f"{total[n] / spent[n]:.1f}" for n in names[1:]) + " |")
    print(f"\nTotal t/s of {base}: {total[base] / spent[base]:.1f}")

    print(f"\n| variant | same text as {base} | drafted | accepted | draft share of time | prompt time / {base} |")
    print("|---|---|---|---|---|---|")
    texts = {(r["variant"], r["number"]): r["text"] for r in rows}
    prompt_ms = {(r["variant"], r["number"]): r["prompt_ms"] for r in rows}
    for name in names:
        mine = [r for r in rows if r["variant"] == name]
        same = sum(r["text"] == texts[(base, r["number"])] for r in mine)
        drafted, accepted = sum(r["draft_n"] for r in mine), sum(r["draft_n_accepted"] for r in mine)
        time_ms = sum((r["tokens"] - 1) / r["speed"] * 1000 for r in mine if r["speed"])
        share = sum(r["stages"].get("draft_ms", 0) for r in mine) / time_ms
        rate = f"{accepted / drafted:.2f}" if drafted else ""
        waits = [r["prompt_ms"] / prompt_ms[(base, r["number"])] for r in mine]
        print(f"| {name} | {same} of {len(mine)} | {drafted} | {accepted} {rate} | {share:.3f} | ", end="")
        print(f"{statistics.median(waits):.2f} ({percentile(waits, 0.1):.2f} … {percentile(waits, 0.9):.2f}) |")
    ours = [n for n in names if not n.startswith("llama")]
    return all(texts[(n, r["number"])] == r["text"] for r in rows if r["variant"] == base for n in ours)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_server_arguments(parser)  # of the variants the first is the base
    parser.add_argument("--prompts", type=Path, required=True)
    parser.add_argument("--categories", type=lambda text: text.split(","))
    parser.add_argument("--limit", type=int, default=1000, help="prompts per category")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--temp", type=float, default=0)
    parser.add_argument("--repeat", type=int, default=1, help="rounds over all prompts")
    parser.add_argument("--json", type=Path, help="write every answer here")
    options = parser.parse_args()

    prompts, seen = [], {}
    for line in options.prompts.read_text().splitlines():
        prompt = json.loads(line)
        if options.categories and prompt["category"] not in options.categories:
            continue
        seen[prompt["category"]] = seen.get(prompt["category"], 0) + 1
        if seen[prompt["category"]] <= options.limit:
            prompts.append(prompt)
    prompts *= options.repeat
    commands = variants(options)
    with tempfile.TemporaryDirectory() as logs:
        servers = []
        try:
            for name, command in commands.items():  # one after the other: each calibrates on a quiet machine
                servers.append(Server(name, command, logs))
                servers[-1].wait_ready()
            rows = run(options, servers, prompts)
        finally:
            for server in servers:
                server.stop()
    if options.json:
        options.json.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    same = report(options, rows, list(commands))
    if not same:
        sys.exit("Outrider's variants differ in text")


if __name__ == "__main__":
    main()
