"""Stage 5: whether it was worth it, measured by `outrider bench` with the drafter and without."""

import json
import shutil
import statistics
import subprocess
from pathlib import Path
from typing import Any

from . import program
from .problem import Problem
from .work import Work, say

WITHOUT, LOOKUPS, WITH = "plain", "auto", "auto + draft"  # the variants of outrider bench -m … -md …
WORTH = 1.03


def _answers(path: Path) -> dict[str, dict[Any, dict[str, Any]]]:
    """By variant and question."""
    found: dict[str, dict[Any, dict[str, Any]]] = {}
    for raw in path.read_text().splitlines():
        line = json.loads(raw)
        if "variant" in line and not line.get("error"):
            question = (line["prompt"], line["turn"], line["temperature"])
            found.setdefault(line["variant"], {})[question] = line
    return found


def ratio(answers: dict[Any, dict[str, Any]], others: dict[Any, dict[str, Any]]) -> float:
    """The median over questions of how many times as fast."""
    ratios = [answers[question]["tokens_per_second"] / others[question]["tokens_per_second"] for question in answers
              if question in others and others[question]["tokens_per_second"] > 0]
    return statistics.median(ratios) if ratios else 0.0


def judge(results: Path) -> tuple[str, dict[str, float]]:
    """A sentence for people, and its numbers."""
    answers = _answers(results)
    if WITH not in answers or WITHOUT not in answers:
        raise Problem(f"{results} has no answers with and without the draft; the logs of the servers lie beside it")
    plain, lookups = ratio(answers[WITH], answers[WITHOUT]), ratio(answers[WITH], answers.get(LOOKUPS, {}))
    same = sum(answers[WITH][question]["text"] == answers[WITHOUT][question]["text"]
               for question in answers[WITH] if question in answers[WITHOUT])
    numbers = {"of_plain": round(plain, 3), "of_auto": round(lookups, 3), "same_texts": same, "texts": len(answers[WITH])}
    told = f"{plain:.2f} times as fast as without drafts, {lookups:.2f} times as fast as with lookups alone"
    worth = plain >= WORTH and lookups >= WORTH
    verdict = "It was worth it" if worth else "It was not worth it on this machine"
    advice = "" if worth else "; a larger --size, more --hours or a larger model may change that (docs/DISTILL.md)"
    return f"{verdict}: {told}; {same} of {len(answers[WITH])} texts are the same{advice}.", numbers


def measure(work: Work, model: Path, draft: Path) -> None:
    settings = work.settings
    if settings.bench_count == 0:
        return
    folder = work.path("bench")
    shutil.rmtree(folder, ignore_errors=True)
    say(f"bench: {settings.bench_count} prompts, with and without the draft")
    child = program.run_bench(model, draft, folder, settings.bench_count, settings.bench_tokens, settings.device)
    output = b""
    while True:
        try:
            output, _ = child.communicate(timeout=0.2)
            break
        except subprocess.TimeoutExpired:
            if work.stopping:
                program.interrupt(child)
                work.check_stop()
    work.path("bench.log").write_bytes(output)
    if child.returncode != 0:
        raise Problem(f"the benchmark failed: {program.why(output.decode('utf-8', 'replace').splitlines())}")
    sentence, numbers = judge(folder / "results.jsonl")
    work.path("verdict.json").write_text(json.dumps(numbers) + "\n")
    say(f"{sentence} The report is {folder / 'report.html'}")
