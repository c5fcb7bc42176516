"""Stage 2: what the model computes for each token of the text, exported by `outrider states`, and the reader of its files.

A file has a head of 8 bytes "ORSTATE1" and four 32-bit numbers: layers, width, top, vocabulary; then the numbers of the
layers, 32 bits each; then a record for each token, all little-endian and without gaps:

  int32 text            number of the line in the file of texts
  int32 token
  int32 ids[top]        the likeliest next tokens, likeliest first
  float16 logs[top]     logarithms of their probabilities at temperature 1
  float16 states[layers][width]   the inputs of the layers"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import program
from .problem import Problem
from .target import Array, Target
from .work import Work, say

MAGIC = b"ORSTATE1"
HELD_OUT = 32  # one text of so many is kept for measuring


def record_type(layers: int, width: int, top: int) -> np.dtype[Any]:
    return np.dtype([("text", "<i4"), ("token", "<i4"), ("ids", "<i4", (top,)), ("logs", "<f2", (top,)),
                     ("states", "<f2", (layers * width,))])


@dataclass
class StatesFile:
    layers: list[int]
    width: int
    top: int
    vocabulary: int
    records: Array  # memory-mapped


def read_states(path: Path) -> StatesFile:
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(len(MAGIC) + 16)
        if len(head) < len(MAGIC) + 16 or not head.startswith(MAGIC):
            raise Problem(f"{path} is not a file of states: delete it, and it is made again")
        count, width, top, vocabulary = (int(number) for number in np.frombuffer(head, "<u4", 4, len(MAGIC)))
        if count > 64 or width > 1 << 20 or not 0 < top <= 4096:
            raise Problem(f"{path} has a head that makes no sense: delete it, and it is made again")
        numbers = file.read(4 * count)
    kind, begin = record_type(count, width, top), len(MAGIC) + 16 + 4 * count
    if size < begin or (size - begin) % kind.itemsize:
        raise Problem(f"{path} is cut short: delete it, and it is made again")
    layers = [int(number) for number in np.frombuffer(numbers, "<u4")]
    rows = (size - begin) // kind.itemsize
    records = np.memmap(path, kind, "r", begin, (rows,)) if rows else np.empty(0, kind)
    return StatesFile(layers, width, top, vocabulary, records)


def export_all(work: Work, target: Target, texts: list[Path]) -> list[Path]:
    settings = work.settings
    layers = target.layers_to_read() if settings.kind == "eagle3" else []
    record = record_type(len(layers), target.width, settings.top).itemsize
    for left in work.folder.glob(".texts-*.part.*"):  # by a program that was killed
        left.unlink()
    made = []
    for number, path in enumerate(texts):
        out = path.with_suffix(".states")
        made.append(out)
        if out.exists():
            continue
        work.check_stop()
        tokens = sum(len(json.loads(line)["tokens"]) for line in path.read_bytes().splitlines())
        work.need_space(work.folder, tokens * record, f"the states of {tokens:,} tokens")
        say(f"states: part {number + 1} of {len(texts)}, {tokens:,} tokens, {tokens * record / 1e6:,.0f} MB")
        part = out.with_suffix(".part")
        export(work, target.path, path, part, layers)
        part.replace(out)
        work.keep_time()
    return made


def export(work: Work, model: Path, texts: Path, out: Path, layers: list[int]) -> None:
    child = program.export_states(model, texts, out, layers, work.settings.top, work.settings.device)
    while True:
        try:
            _, errors = child.communicate(timeout=0.2)
            break
        except subprocess.TimeoutExpired:
            if work.stopping:
                program.interrupt(child)
                out.unlink(missing_ok=True)
                work.check_stop()
    if child.returncode != 0:
        out.unlink(missing_ok=True)
        raise Problem(program.why(errors.decode("utf-8", "replace").splitlines()))


class Data:
    """The texts with what the model computes for them, as rows of equal length for training: texts stand one after the
    other in a row, and a number for each token says which text it belongs to."""

    def __init__(self, texts: list[Path], states: list[Path], held_out: bool):
        self.files = [read_states(path) for path in states]
        self.pieces: list[tuple[int, int, int, int]] = []  # file, first record, tokens, first own token
        number = 0
        for index, (path, file) in enumerate(zip(texts, self.files, strict=True)):
            begin = 0
            for raw in path.read_bytes().splitlines():
                line = json.loads(raw)
                if (number % HELD_OUT == 0) == held_out:
                    self.pieces.append((index, begin, len(line["tokens"]), int(line["own"])))
                begin += len(line["tokens"])
                number += 1
            if begin != len(file.records):
                raise Problem(f"{states[index]} has {len(file.records)} records for {begin} tokens: delete it, and it is made again")
        self.tokens = sum(piece[2] for piece in self.pieces)

    def sample(self, count: int) -> Array:
        """Records from the beginning of the text, for statistics."""
        return np.asarray(self.files[0].records[:count])

    def plan(self, row: int, random: np.random.Generator) -> list[list[tuple[int, int, int, int]]]:
        """All texts once, in random order, cut into rows of exactly `row` tokens; what is left over is left out."""
        rows: list[list[tuple[int, int, int, int]]] = []
        now: list[tuple[int, int, int, int]] = []
        room = row
        for index in random.permutation(len(self.pieces)):
            file, begin, left, own = self.pieces[index]
            while left:
                take = min(left, room)
                now.append((file, begin, take, own))
                begin, left, own, room = begin + take, left - take, max(0, own - take), room - take
                if room == 0:
                    rows.append(now)
                    now, room = [], row
        return rows

    def batch(self, rows: list[list[tuple[int, int, int, int]]]) -> dict[str, Array]:
        width = sum(piece[2] for piece in rows[0])
        records: Array = np.empty((len(rows), width), self.files[0].records.dtype)
        segment, own = np.zeros((len(rows), width), np.int32), np.zeros((len(rows), width), np.bool_)
        for r, row in enumerate(rows):
            at = 0
            for number, (file, begin, count, first_own) in enumerate(row):
                records[r, at : at + count] = self.files[file].records[begin : begin + count]
                segment[r, at : at + count] = number
                own[r, at + first_own : at + count] = True
                at += count
        fields = {name: np.ascontiguousarray(records[name]) for name in ("token", "ids", "logs", "states")}
        return fields | {"segment": segment, "own": own}
