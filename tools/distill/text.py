"""Stage 1: the text. The model writes it itself, in conversations about what prompts.py draws or what the user gives, on
our own server, which decodes many of them at a time. A drafter learns best from what it will meet: the model's own words.

Texts are kept in parts, texts-0000.jsonl and so on; a line is {"tokens": […], "own": number of the first token that is
the model's answer, "kind": …}. The next stage takes a part once it is complete."""

import json
import os
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import prompts
from .problem import Problem
from .program import Server, device_flags
from .work import Work, say

PART_TOKENS = 1 << 18
SHARE_OF_TIME = 0.35  # training needs the rest
MARK = "\u2402user\u2402"  # stands for the user's words while we look how the template frames them
ANSWER_TOKENS, USER_TOKENS, DOCUMENT_TOKENS = 384, 96, 320
MOST_FAILURES = 20


@dataclass
class Text:
    tokens: list[int]
    own: int
    kind: str

    def line(self) -> str:
        return json.dumps({"tokens": self.tokens, "own": self.own, "kind": self.kind}, separators=(",", ":")) + "\n"


class Writer:
    """Conversations with the model."""

    def __init__(self, server: Server, context: int):
        self._server, self._context = server, context
        try:
            self._before, self._after = self._frame(None)
            self._has_template = True
        except (RuntimeError, ValueError):  # a base model: it goes on with what it gets
            self._has_template = False

    def _frame(self, system: str | None) -> tuple[str, str]:
        text = self._render(([{"role": "system", "content": system}] if system else []) + [{"role": "user", "content": MARK}])
        before, after = text.split(MARK)
        return before, after

    def _render(self, messages: list[dict[str, str]]) -> str:
        return str(self._server.post("/apply-template", {"messages": messages})["prompt"])

    def tokenize(self, text: str) -> list[int]:
        return list(self._server.post("/tokenize", {"content": text, "add_special": True, "parse_special": True})["tokens"])

    def _complete(self, tokens: list[int], temperature: float, limit: int, seed: int) -> tuple[str, list[int]]:
        limit = min(limit, self._context - len(tokens))
        if limit < 8:
            return "", []
        answer = self._server.post("/completion", {"prompt": tokens, "n_predict": limit, "temperature": temperature,
                                                   "seed": seed, "return_tokens": True, "cache_prompt": True})
        return answer["content"], answer["tokens"]

    def _finish_user(self, system: str | None, opening: str, seed: int) -> str:
        before = self._frame(system)[0]
        text, _ = self._complete(self.tokenize(before + opening), prompts.USER_TEMPERATURE, USER_TOKENS, seed)
        return opening + text

    def _answer(self, messages: list[dict[str, str]], temperature: float, kind: str, seed: int) -> tuple[str, Text | None]:
        given = self.tokenize(self._render(messages))
        text, own = self._complete(given, temperature, ANSWER_TOKENS, seed)
        return text, Text(given + own, len(given), kind) if own else None

    def converse(self, prompt: prompts.Prompt, seed: int) -> list[Text]:
        if not self._has_template:
            opening = (prompt.document or prompt.user).replace("{text}", "")
            given = self.tokenize(opening) or self.tokenize("The")
            _, own = self._complete(given, prompt.temperature, ANSWER_TOKENS, seed)
            return [Text(given + own, len(given), prompt.kind)] if own else []
        user = prompt.user
        if prompt.document:
            document, _ = self._complete(self.tokenize(self._render([{"role": "user", "content": prompt.document}])), 0.8,
                                         DOCUMENT_TOKENS, seed)
            user = user.replace("{text}", document)
        if prompt.unfinished:
            user = self._finish_user(prompt.system, user, seed)
        messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
        messages.append({"role": "user", "content": user})
        answer, text = self._answer(messages, prompt.temperature, prompt.kind, seed)
        if text is None:
            return []
        if prompt.follow_up is None:
            return [text]
        messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": prompt.follow_up}]
        _, second = self._answer(messages, prompt.temperature, prompt.kind, seed)
        return [text, second] if second else [text]

    def take(self, line: dict[str, Any], number: int) -> list[Text]:
        """What a line of the user's files gives."""
        if "turns" in line:
            texts, messages = [], []
            temperature = prompts.TEMPERATURES[number % len(prompts.TEMPERATURES)]
            for turn in line["turns"]:
                messages.append({"role": "user", "content": turn})
                answer, text = self._answer(messages, temperature, str(line.get("category", "data")), number)
                if text is None:
                    break
                texts.append(text)
                messages.append({"role": "assistant", "content": answer})
            return texts
        tokens = self.tokenize(self._render(line["messages"]) if "messages" in line else line["text"])
        return [Text(piece, 0, "data") for at in range(0, len(tokens), self._context)
                if len(piece := tokens[at : at + self._context]) > 1]


def read_data(files: list[Path]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for path in files:
        for number, raw in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if not raw.strip():
                continue
            try:
                line = json.loads(raw)
                good = isinstance(line, dict) and (
                    isinstance(line.get("text"), str) or isinstance(line.get("messages"), list)
                    or (isinstance(line.get("turns"), list) and all(isinstance(turn, str) for turn in line["turns"])))
            except ValueError:
                good = False
            if not good:
                raise Problem(f'{path}, line {number}: not an object with "turns", "messages" or "text"')
            lines.append(line)
    if files and not lines:
        raise Problem("the files of --data have no lines")
    return lines


class Parts:
    """The files of texts in the working folder, in order; only the last one is written to."""

    def __init__(self, work: Work):
        self._work = work
        self.tokens = 0
        self.prompts: set[int] = set()  # that have been answered
        self._part, self._part_tokens = 0, 0
        for path in self.all():
            self._part, self._part_tokens = int(path.stem[-4:]), 0
            for line in self._whole_lines(path):
                self.prompts.add(line["prompt"])
                self._part_tokens += len(line["tokens"])
            self.tokens += self._part_tokens

    @staticmethod
    def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
        """Cuts off a line that was not written to its end."""
        raw = path.read_bytes()
        if not raw.endswith(b"\n"):
            raw = raw[: raw.rfind(b"\n") + 1]
            os.truncate(path, len(raw))
        return map(json.loads, raw.splitlines())

    def all(self) -> list[Path]:
        return sorted(self._work.folder.glob("texts-[0-9][0-9][0-9][0-9].jsonl"))

    def add(self, texts: list[Text], prompt: int) -> None:
        if self._part_tokens >= PART_TOKENS:
            self._part, self._part_tokens = self._part + 1, 0
        lines = "".join(text.line()[:-2] + f',"prompt":{prompt}}}\n' for text in texts)
        with self._work.path(f"texts-{self._part:04}.jsonl").open("a") as file:
            file.write(lines)
        count = sum(len(text.tokens) for text in texts)
        self.tokens += count
        self._part_tokens += count


def _write_side_by_side(work: Work, server: Server, data: list[dict[str, Any]], parts: Parts) -> None:
    """Threads take the next prompt and hand in texts; this thread keeps them."""
    settings, writer = work.settings, Writer(server, work.settings.context)
    done: queue.Queue[tuple[int, list[Text]] | Exception] = queue.Queue()
    enough, answered = threading.Event(), parts.prompts
    numbers = (number for number in range(len(data) if data else 1 << 60) if number not in answered)
    lock = threading.Lock()

    def converse() -> None:
        while not enough.is_set():
            with lock:
                number = next(numbers, None)
            if number is None:
                break
            try:
                done.put((number, writer.take(data[number], number) if data
                          else writer.converse(prompts.draw(settings.seed, number), settings.seed + number)))
            except Exception as error:  # noqa: BLE001  one conversation may fail; those below are counted
                if not enough.is_set():
                    done.put(error)

    threads = [threading.Thread(target=converse) for _ in range(settings.parallel)]
    for thread in threads:
        thread.start()
    failures, last_said, begun, tokens_before = 0, work.seconds(), work.seconds(), parts.tokens
    try:
        while not work.stopping and not enough.is_set() and (any(thread.is_alive() for thread in threads) or not done.empty()):
            try:
                got = done.get(timeout=0.2)
            except queue.Empty:
                continue
            if isinstance(got, Problem):
                raise got
            if isinstance(got, Exception):
                failures += 1
                say(f"a conversation failed: {got}")
                if failures > MOST_FAILURES:
                    raise Problem(f"{failures} conversations failed; the last one: {got}")
                continue
            number, texts = got
            if texts:
                parts.add(texts, number)
            now = work.seconds()
            if now - last_said > 10:
                last_said = now
                say(f"text: {parts.tokens:,} tokens, {(parts.tokens - tokens_before) / (now - begun):,.0f} a second")
                work.keep_time()
            if now > SHARE_OF_TIME * work.budget() or (settings.tokens and parts.tokens >= settings.tokens):
                enough.set()
    finally:
        enough.set()
        server.end()  # conversations that are not finished are not waited for
        for thread in threads:
            thread.join()


def write_texts(work: Work) -> list[Path]:
    """All parts, when there is enough text."""
    settings, parts, finished = work.settings, Parts(work), work.path("texts.done")
    if not finished.exists():
        data = read_data(settings.data)
        say(f"text: {settings.model.name} writes it itself, {settings.parallel} conversations at a time")
        flags = ["-m", str(settings.model), "-np", str(settings.parallel), "-c", str(settings.parallel * (settings.context + 32)),
                 "--spec", "none", "--exact", "off", *device_flags(settings.device)]
        with Server(flags, work.path("server.log")) as server:
            _write_side_by_side(work, server, data, parts)
        work.check_stop()
        if parts.tokens < 256:
            raise Problem(f"there are only {parts.tokens} tokens of text: give more --hours, or --data with more lines")
        finished.touch()
        work.keep_time()
    say(f"text: {parts.tokens:,} tokens")
    return parts.all()

