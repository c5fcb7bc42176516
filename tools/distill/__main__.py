"""From one stage to the next. What is done already, by an earlier run with the same settings, is not done again."""

import json
import os
import subprocess
import sys
from pathlib import Path

from . import states, text
from .problem import Problem, Stopped
from .settings import Settings, read_settings
from .target import Target, read_target
from .work import Work, say

TRIAL_TOKENS = [1, 2, 3, 4]


def check_target(work: Work, target: Target) -> None:
    """Before any time is spent: whether this program can load the model and export what is needed."""
    trial, out = work.path("trial.jsonl"), work.path("trial.states")
    trial.write_text(json.dumps({"tokens": TRIAL_TOKENS, "own": 0}) + "\n")
    try:
        states.export(work, target.path, trial, out, target.layers_to_read() if work.settings.kind == "eagle3" else [])
    except Problem as problem:
        advice = "; --kind model works with every model" if "hidden states" in str(problem) else ""
        raise Problem(f"{problem}{advice}") from None
    found = states.read_states(out)
    if found.vocabulary != target.vocabulary or len(found.records) != len(TRIAL_TOKENS):
        raise Problem(f"outrider states and the gguf package read {target.path} differently: is OUTRIDER_BIN of this version?")
    out.unlink()
    trial.unlink()


def prepare_jax(work: Work) -> None:
    """Sets what JAX reads when it is first imported, and looks whether it has the device: in another process, because JAX takes
    most of a GPU's memory at once, and the server needs some before."""
    device = work.settings.device
    os.environ["JAX_PLATFORMS"] = device
    # What is compiled once need not be compiled again when the run is continued.
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(work.path("compiled").absolute())
    if device == "cuda" and subprocess.run([sys.executable, "-c", "import jax; jax.devices()"], capture_output=True).returncode != 0:
        raise Problem("--device cuda: JAX has no such device here. It needs an NVIDIA driver and a JAX with CUDA "
                      "(docs/DISTILL.md); --device cpu works everywhere")


def distill(settings: Settings) -> None:
    text.read_data(settings.data)  # before anything else: what is wrong there is quickly found
    target = read_target(settings.model)
    work = Work(settings)
    work.catch_signals()
    prepare_jax(work)
    check_target(work, target)
    say(f"{target.name}: {target.architecture}, {target.parameters() / 1e6:,.0f}M parameters, {target.vocabulary:,} tokens; "
        f"{settings.hours:g} hours, of which {work.seconds() / 3600:.2f} are spent")

    texts = text.write_texts(work)
    exported = states.export_all(work, target, texts)
    make(work, target, texts, exported)


def make(work: Work, target: Target, texts: list[Path], exported: list[Path]) -> None:
    from . import curve, draft_model, eagle3_head, export, training, verdict

    settings = work.settings
    data, held_out = states.Data(texts, exported, False), states.Data(texts, exported, True)
    part = settings.out.with_name(settings.out.name + ".part")
    if settings.kind == "eagle3":
        head = eagle3_head.Eagle3Head(settings, target, data)
        weights, points = training.train(work, head, data, held_out)
        export.write_eagle3_head(part, head, target, weights)
    else:
        model = draft_model.DraftModel(settings, target)
        weights, points = training.train(work, model, data, held_out)
        export.write_draft_model(part, model, target, weights)
    part.replace(settings.out)
    picture = settings.out.with_suffix(".svg")
    curve.write_curve(picture, points, f"{settings.out.name} for {target.name}")
    say(f"wrote {settings.out} ({settings.out.stat().st_size / 1e6:.1f} MB) and its curve, {picture}")
    verdict.measure(work, settings.model, settings.out)
    work.keep_time()


def main() -> int:
    try:
        distill(read_settings(sys.argv[1:]))
    except Problem as problem:
        print(f"outrider distill: {problem}", file=sys.stderr)
        return 2
    except Stopped:
        print("outrider distill: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
