"""What the user asks for, from the command line."""

import argparse
import math
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .problem import Problem

KINDS = ("model", "eagle3")
DEVICES = ("cpu", "cuda")
QUANTS = ("q4_0", "q8_0", "f16")


@dataclass
class Settings:
    model: Path
    out: Path
    kind: str = "model"
    size: int = 0  # parameters; 0 = chosen from the model's size
    hours: float = 1.0
    device: str = "cpu"
    data: list[Path] = field(default_factory=list)
    work: Path = Path()
    tokens: int = 0  # of text; 0 = as many as the time allows
    steps: int = 0  # of training; 0 = as many as the time allows
    parallel: int = 0  # conversations at a time; 0 = 64 on a GPU, else 4
    context: int = 1024  # tokens of a conversation
    row: int = 512  # tokens of a row of a training batch
    batch: int = 0  # rows of a training batch; 0 = 64 on a GPU, else 8
    top: int = 64  # most likely tokens of which the model's probabilities are kept
    shortlist: int = 8192  # eagle3: tokens that the head can say
    unroll: int = 4  # eagle3: drafted tokens in a row that it is trained for
    quant: str = "q8_0"
    embedding_quant: str = "q4_0"
    seed: int = 1
    bench_count: int = 16  # prompts that the result is measured with; 0 = not measured
    bench_tokens: int = 96

    def lasting(self) -> dict[str, object]:
        """Those that must be the same when a run is continued."""
        changing = {"out", "work", "hours", "device", "tokens", "steps", "parallel", "bench_count", "bench_tokens"}
        own = {name: value for name, value in asdict(self).items() if name not in changing}
        stat = self.model.stat()
        own["model"] = [str(self.model.resolve()), stat.st_size]
        own["data"] = [str(path.resolve()) for path in self.data]
        return own


def parse_size(text: str) -> int:
    """'16m' or '1.5b' parameters."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmb])", text.strip().lower())
    if not match or float(match[1]) <= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size: write it as 16m, 900k or 1.5b")
    return round(float(match[1]) * {"k": 1e3, "m": 1e6, "b": 1e9}[match[2]])


def _positive(text: str) -> float:
    value = float(text)
    if not (0 < value < math.inf):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return value


def parser() -> argparse.ArgumentParser:
    default = Settings(Path(), Path())
    made = argparse.ArgumentParser(
        prog="outrider distill",
        description="Makes a drafter for a model, from text that the model writes itself. Ctrl-C stops it; the same "
        "command goes on where it stopped. docs/DISTILL.md tells more.",
        allow_abbrev=False,
    )
    add = made.add_argument
    add("-m", "--model", type=Path, required=True, metavar="FILE", help="GGUF file of the model that gets a drafter")
    add("--out", type=Path, required=True, metavar="FILE", help="GGUF file to write")
    add("--kind", choices=KINDS, default=default.kind,
        help="model = a small model of its own (default); eagle3 = a head that reads the model's hidden states")
    add("--size", type=parse_size, default=0, metavar="N",
        help="parameters, as 16m; default: an eighth of the model's for a draft model; what its width asks for, for a head")
    add("--hours", type=_positive, default=default.hours, help="time for all of it, over all continued runs (default 1)")
    add("--device", choices=DEVICES, default=default.device, help="where to compute (default cpu)")
    add("--data", type=Path, nargs="+", action="extend", default=[], metavar="FILE",
        help="JSON lines to use instead of our prompts: {\"turns\": [\"…\"]}, which the model answers, or {\"text\": \"…\"} "
        "or {\"messages\": […]}, which are taken as they are")
    add("--work", type=Path, metavar="FOLDER", help="folder for everything in between; default: the --out file + .work")
    more = made.add_argument_group("for those who want to know")
    add = more.add_argument
    add("--tokens", type=_count, default=0, help="tokens of text; default: as many as a third of the time allows")
    add("--steps", type=_count, default=0, help="steps of training; default: as many as the time allows")
    add("--parallel", type=_count, default=0, help="conversations written at a time; default 64 on a GPU, else 4")
    add("--context", type=_count, default=default.context, help="tokens of a conversation (default 1024)")
    add("--row", type=_count, default=default.row, help="tokens of a row of a training batch (default 512)")
    add("--batch", type=_count, default=0, help="rows of a training batch; default 64 on a GPU, else 8")
    add("--top", type=_count, default=default.top, help="likeliest tokens of each place that are learned from (default 64)")
    add("--shortlist", type=_count, default=default.shortlist, help="eagle3: tokens that the head can say (default 8192)")
    add("--unroll", type=_count, default=default.unroll,
        help="eagle3: length of the drafts that the head is trained for (default 4)")
    add("--quant", choices=QUANTS, default=default.quant, help="type of the matrices in the file (default q8_0)")
    add("--embedding-quant", choices=QUANTS, default=default.embedding_quant,
        help="type of a draft model's embeddings, which are also its output layer (default q4_0)")
    add("--seed", type=int, default=default.seed, help="of prompts and weights (default 1)")
    add("--bench-count", type=_count, default=default.bench_count,
        help="prompts with which the result is measured; 0 = it is not (default 16)")
    add("--bench-tokens", type=_count, default=default.bench_tokens, help="tokens of each answer there (default 96)")
    return made


def read_settings(arguments: list[str]) -> Settings:
    """Exits with code 2 and a sentence if the arguments are wrong."""
    given = vars(parser().parse_args(arguments))
    given["work"] = given["work"] or given["out"].with_name(given["out"].name + ".work")
    settings = Settings(**given)
    gpu = settings.device == "cuda"
    settings.parallel = settings.parallel or (64 if gpu else 4)
    settings.batch = settings.batch or (64 if gpu else 8)
    for name, least, most in (("context", 64, 1 << 20), ("row", 16, 1 << 16), ("top", 1, 1024), ("unroll", 1, 16),
                              ("shortlist", 16, 1 << 20), ("batch", 1, 1 << 16), ("parallel", 1, 256)):
        if not least <= getattr(settings, name) <= most:
            raise Problem(f"--{name} {getattr(settings, name)} is not between {least} and {most}")
    if settings.out.resolve() == settings.model.resolve():
        raise Problem(f"--out {settings.out} is the model itself: name another file")
    if not settings.out.resolve().parent.is_dir():
        raise Problem(f"--out {settings.out}: there is no folder {settings.out.resolve().parent}")
    for path in settings.data:
        if not path.is_file():
            raise Problem(f"--data {path}: there is no such file")
    return settings
