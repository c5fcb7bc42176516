"""outrider distill, from nothing to a drafter that drafts, at a size for toys; and what it says when something is wrong."""

import json
import os
import signal
import sys

import pytest

from harness import BINARY, DRAFT_MODEL, REPO, Process, Server, text_of
from heads import write_eagle3
from random_models import write_random_model

PYTHON = os.environ.get("OUTRIDER_DISTILL_PYTHON") or sys.executable
STEPS = 60
TOY = ("--tokens", "3000", "--context", "160", "--row", "64", "--batch", "4", "--top", "16", "--seed", "3", "--hours", "1")
KINDS = {
    # With texts that are given; eagle3 has our prompts.
    "model": ("--kind", "model", "--data", "DATA", "--tokens", "20000", "--size", "3.3m", "--steps", str(STEPS), "--bench-count", "2",
              "--bench-tokens", "16"),
    "eagle3": ("--kind", "eagle3", "--shortlist", "2048", "--unroll", "2", "--steps", str(STEPS), "--bench-count", "1",
               "--bench-tokens", "16"),
}
PROMPTS = ("What is the capital of France?", "Write a short story about the sea.", "Explain how bread is made.")
MESSAGES = [{"role": "user", "content": "Hello " * 40}, {"role": "assistant", "content": "Good day. " * 40}]
GIVEN = [
    {"text": "The sea is wide. " * 100},
    {"messages": MESSAGES},
    {"turns": ["Name a colour.", "Another one."]},
    *({"turns": [prompt]} for prompt in PROMPTS * 6),
]


def distill(*flags, **more) -> Process:
    environment = more | {"OUTRIDER_BIN": str(BINARY), "PYTHONPATH": str(REPO / "tools"), "PYTHONDONTWRITEBYTECODE": "1"}
    return Process(PYTHON, "-m", "distill", *flags, env=environment)


def interrupt(run: Process):
    run.child.send_signal(signal.SIGINT)
    assert run.wait_exit(60) == 130, run.log()
    assert run.lines[-1] == "outrider distill: stopped; the same command goes on from here"


def check_given_texts(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {line["prompt"] for line in lines} == set(range(len(GIVEN))), "those too that were being answered when it was interrupted"
    for line in lines:
        taken = "turns" not in GIVEN[line["prompt"]]
        assert line["own"] == 0 if taken else 0 < line["own"] < len(line["tokens"])


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_and_continued_it_makes_a_drafter_that_drafts(tmp_path, serve, kind):
    out, work = tmp_path / "draft.gguf", tmp_path / "draft.gguf.work"
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(line) + "\n" for line in GIVEN))
    command = ("-m", DRAFT_MODEL, "--out", out, *TOY, *(data if flag == "DATA" else flag for flag in KINDS[kind]))

    run = distill(*command)
    run.wait_for_line(r"text: .* writes it itself")
    interrupt(run)
    run = distill(*command)
    run.wait_for_line(r"training: step \d", 240)
    interrupt(run)
    assert not out.exists()
    written = {path: path.stat().st_mtime for path in work.glob("texts-*")}
    assert {path.suffix for path in written} == {".jsonl", ".states"}
    if kind == "model":
        check_given_texts(work / "texts-0000.jsonl")

    run = distill(*command)
    step = int(run.wait_for_line(r"training: goes on at step (\d+)")[1])
    assert 0 < step < STEPS
    assert run.wait_exit(240) == 0, run.log()
    assert {path: path.stat().st_mtime for path in work.glob("texts-*")} == written, "nothing was done twice"
    curve = json.loads((work / "curve.json").read_text())
    assert curve[-1]["step"] == STEPS and curve[-1]["loss"] < 0.7 * curve[0]["loss"]
    assert out.with_suffix(".svg").read_text().startswith("<svg")

    drafter = "model" if kind == "model" else "eagle3"
    plain = serve("--spec", "none")
    with Server("-md", out, "--spec", drafter, "--spec-always", "--spec-forget", "--draft-max", "4") as server:
        answers = [server.chat(prompt, max_tokens=48) for prompt in PROMPTS]
    assert [text_of(answer) for answer in answers] == [text_of(plain.chat(prompt, max_tokens=48)) for prompt in PROMPTS]
    assert sum(answer["timings"]["draft_n_accepted"] for answer in answers) > 0

    verdict = json.loads((work / "verdict.json").read_text())
    assert verdict["of_plain"] > 0 and verdict["same_texts"] == verdict["texts"] > 0
    assert any("worth it" in line and f"{verdict['texts']} of {verdict['texts']} texts are the same" in line for line in run.lines)


class TestBadInput:
    @pytest.fixture
    def refused(self, tmp_path):
        def check(*flags, saying: str, **environment):
            run = distill("--out", tmp_path / "draft.gguf", *flags, **environment)
            assert run.wait_exit(60) == 2, run.log()
            assert saying in run.lines[-1], run.log()
            assert not any("Traceback" in line for line in run.lines), run.log()

        return check

    def test_flags(self, tmp_path, refused):
        refused("-m", DRAFT_MODEL, "--kind", "gpt", saying="invalid choice: 'gpt' (choose from")
        refused("-m", DRAFT_MODEL, "--size", "large", saying="'large' is not a size: write it as 16m")
        refused("-m", DRAFT_MODEL, "--hours", "0", saying="0 is not above 0")
        refused("-m", DRAFT_MODEL, "--data", tmp_path / "none.jsonl", saying="there is no such file")
        refused("-m", DRAFT_MODEL, "--out", tmp_path / "none" / "draft.gguf", saying="there is no folder")
        refused("-m", DRAFT_MODEL, "--out", DRAFT_MODEL, saying="is the model itself: name another file")

    def test_a_device_that_is_not_there(self, refused):
        refused("-m", DRAFT_MODEL, "--device", "cuda", saying="--device cpu works everywhere", CUDA_VISIBLE_DEVICES="")

    def test_models(self, tmp_path, refused):
        refused("-m", tmp_path / "none.gguf", saying="there is no such file")
        text = tmp_path / "text.gguf"
        text.write_text("This is no model.")
        refused("-m", text, saying="is not a GGUF file that can be read")
        cut = tmp_path / "cut.gguf"
        cut.write_bytes(DRAFT_MODEL.read_bytes()[:3_000_000])
        refused("-m", cut, saying="is not a GGUF file that can be read")
        head = tmp_path / "head.gguf"
        write_eagle3(DRAFT_MODEL, head, own_tokens=32)
        refused("-m", head, saying="is a head that drafts for another model: give the model itself")
        mamba = tmp_path / "mamba.gguf"
        write_random_model("mamba", mamba)
        refused("-m", mamba, "--kind", "eagle3", saying="hidden states of mamba models; --kind model works with every model")

    def test_data(self, tmp_path, refused):
        data = tmp_path / "data.jsonl"
        data.write_text('{"text": "good"}\n{"txt": "bad"}\n')
        refused("-m", DRAFT_MODEL, "--data", data, saying=f'{data}, line 2: not an object with "turns", "messages" or "text"')

    def test_other_settings_in_the_same_folder(self, tmp_path, refused):
        work = tmp_path / "work"
        work.mkdir()
        (work / "settings.json").write_text("{}")
        refused("-m", DRAFT_MODEL, "--work", work, saying="has a run with other settings")
