#!/usr/bin/env python3
"""Whether speculation ever shows: the texts of many prompts, plain and with every drafter, one and several at a time.

Each variant answers all prompts at temperature 0 and at 0.8 with a seed, first one after the other, then --parallel at
once; every text must be that of plain decoding, one after the other. llama-server, if given, is counted against its own
plain texts.

  bench/compare_texts.py --model M.gguf --draft D.gguf --outrider build/release/bin/outrider \\
      --llama-server DIR/bin/llama-server --prompts bench/prompts.jsonl [--prompts MORE.jsonl]

A line of the prompts is {"category": "code", "turns": ["…"]}; the first turn is asked.
"""

import argparse
import json
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compare_llama_server import Server
from compare_speculation import SAME_KV, add_server_arguments, chat, server_flags

KINDS = {"T=0": {"temperature": 0}, "T=0.8": {"temperature": 0.8, "seed": 11}}


def variants(options) -> dict[str, list[str]]:
    """By name; a variant is compared with the last one before it whose name ends in "plain"."""
    shared = server_flags(options)
    ours = [options.outrider, "serve", *shared]
    always = ["--spec-always", "--spec-forget", "--draft-max"]
    found = {
        "plain": [*ours, "--spec", "none"],
        "suffix": [*ours, "--spec", "suffix", *always, "8"],
        "ngram-simple": [*ours, "--spec", "ngram-simple:size_n=2,size_m=8", *always, "8"],
        "ngram-map-k": [*ours, "--spec", "ngram-map-k:size_n=2,size_m=8", *always, "8"],
        "ngram-map-k4v": [*ours, "--spec", "ngram-map-k4v:size_n=2,size_m=8", *always, "8"],
        "ngram-mod": [*ours, "--spec", "ngram-mod:n_match=2,n_min=1,n_max=8", *always, "8"],
        "ngram-cache": [*ours, "--spec", "ngram-cache", *always, "8"],
        "auto": ours,
    }
    if options.draft:
        found["model"] = [*ours, "-md", options.draft, "--spec", "model", *always, "3"]
        found["auto+model"] = [*ours, "-md", options.draft]
    if options.llama_server:
        llama = [options.llama_server, *shared, *SAME_KV]
        found["llama plain"] = llama
        if options.draft:
            found["llama draft 3"] = [*llama, "-md", options.draft, "--spec-type", "draft-simple", "--spec-draft-n-max", "3"]
    return {name: flags for name, flags in found.items() if not options.only or name in options.only or name.endswith("plain")}


def texts(server: Server, prompts: list[str], options, fields: dict, parallel: int) -> tuple[list[str], int]:
    """What the server says, and how many drafted tokens were right."""

    with ThreadPoolExecutor(parallel) as pool:
        answers = list(pool.map(lambda prompt: chat(server, prompt, max_tokens=options.tokens, **fields), prompts))
    accepted = sum(answer.get("timings", {}).get("draft_n_accepted", 0) for answer in answers)
    return [answer["choices"][0]["message"]["content"] for answer in answers], accepted


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_server_arguments(parser)
    parser.set_defaults(parallel=4, ctx_size=2048)
    parser.add_argument("--prompts", type=Path, action="append", required=True)
    parser.add_argument("--limit", type=int, default=1000, help="prompts of each file")
    parser.add_argument("--tokens", type=int, default=48)
    options = parser.parse_args()

    prompts = []
    for file in options.prompts:
        prompts += [json.loads(line)["turns"][0] for line in file.read_text().splitlines()[: options.limit]]
    print(f"{len(prompts)} prompts, {options.tokens} tokens, {Path(options.model).name}\n")
    print("| variant | " + " | ".join(f"{kind}, {n} at a time" for kind in KINDS for n in (1, options.parallel)), end="")
    print(" | draft tokens right |\n|---|" + "---|" * (2 * len(KINDS) + 1))
    expected: dict[str, list[str]] = {}
    changed = 0
    with tempfile.TemporaryDirectory() as logs:
        for name, command in variants(options).items():
            server = Server(name, command, logs)
            try:
                server.wait_ready()
                cells, right, start = [], 0, time.monotonic()
                for kind, fields in KINDS.items():
                    for parallel in (1, options.parallel):
                        found, accepted = texts(server, prompts, options, fields, parallel)
                        right += accepted
                        if parallel == 1 and name.endswith("plain"):
                            expected[kind] = found
                        different = sum(a != b for a, b in zip(found, expected[kind], strict=True))
                        cells.append(f"{different} changed" if different else "same")
                        changed += 0 if name.startswith("llama") else different
                print(f"| {name} | " + " | ".join(cells) + f" | {right} |", flush=True)
                print(f"  {name}: {time.monotonic() - start:.0f} s", file=sys.stderr)
            finally:
                server.stop()
    if changed:
        sys.exit("Outrider's texts differ")


if __name__ == "__main__":
    main()
