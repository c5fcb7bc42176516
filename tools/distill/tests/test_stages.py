"""What the stages keep, plan and tell, without a model."""

import json
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from distill import prompts
from distill.curve import write_curve
from distill.problem import Problem, Stopped
from distill.settings import Settings, read_settings
from distill.text import Parts, Text
from distill.training import FULL_RATE_UNTIL, rate_at
from distill.verdict import judge
from distill.work import Work


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF")
    return read_settings(["-m", str(model), "--out", str(tmp_path / "draft.gguf")])


def test_too_little_space_is_said_before_it_is_used(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(settings)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**9))
    work.need_space(work.folder, 10**8, "the states")
    with pytest.raises(Problem, match=r"the states need 5.0 GB, but .* has only 1.0 GB free: make room, name another --work"):
        work.need_space(work.folder, 5 * 10**9, "the states")


def test_time_is_counted_over_all_runs(settings: Settings) -> None:
    work = Work(settings)
    work.keep_time()
    kept = json.loads(work.path("progress.json").read_text())["seconds"]
    work.path("progress.json").write_text(json.dumps({"seconds": kept + 100}))
    assert 100 <= Work(settings).seconds() < 160


def test_other_settings_are_not_mixed(settings: Settings) -> None:
    Work(settings)
    settings.hours, settings.tokens, settings.device = 5, 100, "cuda"
    Work(settings)
    settings.top = 3
    with pytest.raises(Problem, match=r"other settings: top \(64, now 3\); give the same ones"):
        Work(settings)


def test_the_first_signal_stops_at_the_next_step(settings: Settings) -> None:
    work = Work(settings)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    try:
        work.catch_signals()
        work.check_stop()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(Stopped):
            work.check_stop()
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])


def test_a_line_that_was_cut_is_dropped_and_prompts_go_on(settings: Settings) -> None:
    work = Work(settings)
    parts = Parts(work)
    parts.add([Text([1, 2, 3], 1, "chat"), Text([4], 1, "chat")], 0)
    parts.add([Text([5, 6], 0, "code")], 3)
    path = work.path("texts-0000.jsonl")
    whole = path.read_text()
    path.write_text(whole + '{"tokens":[7,8')
    again = Parts(work)
    assert (again.tokens, again.prompts, path.read_text()) == (6, {0, 3}, whole)


def test_prompts_depend_on_seed_and_number_only() -> None:
    drawn = [prompts.draw(1, number) for number in range(3000)]
    assert drawn[17] == prompts.draw(1, 17) != prompts.draw(2, 17)
    assert {prompt.kind for prompt in drawn} == set(prompts.SHARES)
    assert {prompt.temperature for prompt in drawn} == set(prompts.TEMPERATURES)
    for prompt in drawn:
        assert ("{text}" in prompt.user) == (prompt.document is not None)
        assert "{" not in prompt.user.replace("{text}", "") or prompt.kind == "json", prompt


def test_the_rate_rises_stays_and_falls() -> None:
    assert 0 < rate_at(0, 0) < rate_at(0, 5) < rate_at(0, 100) == rate_at(FULL_RATE_UNTIL, 100) == 1
    assert rate_at(0.5, 100) > rate_at(0.9, 100) > rate_at(1, 100) == 0


def bench_line(variant: str, prompt: int, speed: float, text: str = "x") -> str:
    return json.dumps({"variant": variant, "prompt": prompt, "turn": 0, "temperature": 0, "tokens_per_second": speed, "text": text})


def test_the_verdict_compares_pairs(tmp_path: Path) -> None:
    lines = [json.dumps({"bench": {}})]
    for prompt, (plain, lookups, draft) in enumerate([(10, 11, 15), (20, 20, 26), (40, 44, 50)]):
        lines += [bench_line("plain", prompt, plain), bench_line("auto", prompt, lookups),
                  bench_line("auto + draft", prompt, draft, "y" if prompt == 2 else "x")]
    results = tmp_path / "results.jsonl"
    results.write_text("\n".join(lines) + "\n")
    sentence, numbers = judge(results)
    assert sentence == ("It was worth it: 1.30 times as fast as without drafts, 1.30 times as fast as with lookups alone; "
                        "2 of 3 texts are the same.")
    assert numbers == {"of_plain": 1.3, "of_auto": 1.3, "same_texts": 2, "texts": 3}
    results.write_text("\n".join([bench_line("plain", 0, 10), bench_line("auto", 0, 12), bench_line("auto + draft", 0, 12)]))
    assert judge(results)[0].startswith("It was not worth it on this machine: 1.20 times as fast as without drafts, 1.00")
    results.write_text(bench_line("plain", 0, 10))
    with pytest.raises(Problem, match="no answers with and without"):
        judge(results)


def test_the_curve_is_a_picture(tmp_path: Path) -> None:
    import xml.etree.ElementTree as ElementTree

    curve = [{"seconds": 60.0 * step, "step": step, "loss": 5 / step, "agrees": [0.1 * step, 0.05], "overlap": [0.2, 0.1]} for step in range(1, 6)]
    write_curve(tmp_path / "curve.svg", curve, "a < b & c")
    lines = ElementTree.parse(tmp_path / "curve.svg").getroot().findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 5 and all(len(line.attrib["points"].split()) == 5 for line in lines)
