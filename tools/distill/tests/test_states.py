"""The reader of `outrider states`' files, and how texts become rows."""

import json
from pathlib import Path

import numpy as np
import pytest

from distill.problem import Problem
from distill.states import HELD_OUT, MAGIC, Data, read_states, record_type


def write(folder: Path, lengths: list[int], layers: tuple[int, ...] = (1, 2), width: int = 3, top: int = 2) -> tuple[Path, Path]:
    """Texts whose tokens are 1000 * text + place, with states that begin with the token."""
    texts, states = folder / "texts-0000.jsonl", folder / "texts-0000.states"
    records = np.zeros(sum(lengths), record_type(len(layers), width, top))
    lines, at = [], 0
    for number, length in enumerate(lengths):
        tokens = [1000 * number + place for place in range(length)]
        lines.append(json.dumps({"tokens": tokens, "own": length // 2, "kind": "x", "prompt": number}))
        part = records[at : at + length]
        part["text"], part["token"], part["ids"] = number, tokens, np.array(tokens)[:, None] + [1, 2]
        part["logs"] = [-0.5, -1.5]
        part["states"][:, 0] = tokens
        at += length
    texts.write_text("\n".join(lines) + "\n")
    states.write_bytes(MAGIC + np.array([len(layers), width, top, 50000, *layers], "<u4").tobytes() + records.tobytes())
    return texts, states


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = read_states(write(tmp_path, [5, 3])[1])
    assert (file.layers, file.width, file.top, file.vocabulary) == ([1, 2], 3, 2, 50000)
    assert list(file.records["token"]) == [0, 1, 2, 3, 4, 1000, 1001, 1002]
    assert list(file.records["ids"][6]) == [1002, 1003]
    assert file.records["states"].shape == (8, 6)


@pytest.mark.parametrize("cut", [0, 7, 20, 31, 33, 60])
def test_a_file_that_was_cut_or_changed(tmp_path: Path, cut: int) -> None:
    path = write(tmp_path, [5, 3])[1]
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    with pytest.raises(Problem, match="delete it"):
        read_states(path)
    path.write_bytes(b"X" + whole[1:])
    with pytest.raises(Problem, match="delete it"):
        read_states(path)


def test_rows_have_all_texts_in_pieces_that_fit(tmp_path: Path) -> None:
    lengths = [50, 3, 17, 40, 9, 64, 5, 30]
    texts, states = write(tmp_path, lengths)
    data = Data([texts], [states], held_out=False)
    assert data.tokens == sum(lengths[1:]), f"one of {HELD_OUT} is held out, the first one"
    rows = data.plan(16, np.random.default_rng(1))
    assert len(rows) == data.tokens // 16
    batch = data.batch(rows)
    assert batch["token"].shape == (len(rows), 16)
    for row in range(len(rows)):
        for place in range(15):
            token, following = batch["token"][row, place], batch["token"][row, place + 1]
            same = batch["segment"][row, place] == batch["segment"][row, place + 1]
            assert same == (following == token + 1)
            assert batch["own"][row, place] == (token % 1000 >= lengths[token // 1000] // 2)
    np.testing.assert_array_equal(batch["states"][..., 0], batch["token"].astype(np.float16))
    assert len(np.unique(batch["token"])) == batch["token"].size, "each token once"


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    texts, states = write(tmp_path, [5, 3])
    texts.write_text(texts.read_text().splitlines()[0] + "\n")
    with pytest.raises(Problem, match="delete it"):
        Data([texts], [states], held_out=False)
