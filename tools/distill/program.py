"""Outrider itself: the server that writes the text, the export of what the model computes, the benchmark."""

import http.client
import json
import os
import re
import signal
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from .problem import Problem

READY = re.compile(r"listening on http://([\w.\-]+):(\d+)")


def binary() -> Path:
    path = os.environ.get("OUTRIDER_BIN")
    if not path or not os.access(path, os.X_OK):
        raise Problem(f"OUTRIDER_BIN is '{path or ''}', which is no program: start with ./run distill, which builds it")
    return Path(path)


def _start(arguments: list[str], **options: Any) -> subprocess.Popen[bytes]:
    # In a session of its own: Ctrl-C in a terminal must not reach it before we have what we need.
    return subprocess.Popen([str(binary()), *arguments], stdin=subprocess.DEVNULL, start_new_session=True, **options)


def why(lines: list[str]) -> str:
    told = [line for line in lines if line.startswith("outrider: ")] or lines
    return told[-1].removeprefix("outrider: ") if told else "it said nothing"


class Server:
    """`outrider serve` on a free port; requests may come from several threads."""

    def __init__(self, flags: list[str], log: Path):
        self._log = log.open("ab")
        self._connections = threading.local()
        self._child = _start(["serve", "--port", "0", *flags], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        lines: list[str] = []
        assert self._child.stderr is not None
        for raw in self._child.stderr:
            self._log.write(raw)
            lines.append(raw.decode("utf-8", "replace").rstrip())
            if match := READY.search(lines[-1]):
                self._address = (match[1], int(match[2]))
                break
        else:
            self._child.wait()
            raise Problem(why(lines))
        self._copier = threading.Thread(target=self._copy_log, daemon=True)
        self._copier.start()

    def _copy_log(self) -> None:
        assert self._child.stderr is not None
        for raw in self._child.stderr:
            self._log.write(raw)
        self._log.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        """At once: it has nothing to keep, and nobody waits for the answers that it is writing."""
        self._child.kill()
        self._child.wait()

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Raises RuntimeError with the server's reason if it refuses."""
        connection = getattr(self._connections, "open", None)
        if connection is None:
            connection = self._connections.open = http.client.HTTPConnection(*self._address, timeout=600)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self._connections.open = None
            connection.close()
            if self._child.poll() is not None:
                raise Problem(f"the server ended with exit code {self._child.returncode}; its log is {self._log.name}") from None
            raise
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {content.decode('utf-8', 'replace')[:500]}")
        value: dict[str, Any] = json.loads(content)
        return value


def export_states(model: Path, texts: Path, out: Path, layers: list[int], top: int, device: str) -> subprocess.Popen[bytes]:
    flags = ["states", "-m", str(model), "--in", str(texts), "--out", str(out), "--top", str(top), *device_flags(device)]
    if layers:
        flags += ["--layers", ",".join(map(str, layers))]
    return _start(flags, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def device_flags(device: str) -> list[str]:
    return ["-ngl", "0"] if device == "cpu" else []


def run_bench(model: Path, draft: Path, out: Path, count: int, tokens: int, device: str) -> subprocess.Popen[bytes]:
    flags = ["bench", "-m", str(model), "-md", str(draft), "--count", str(count), "--tokens", str(tokens), "--temp", "0,0.8"]
    return _start([*flags, "--out", str(out), *device_flags(device)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def interrupt(child: subprocess.Popen[bytes]) -> None:
    child.send_signal(signal.SIGINT)
    child.wait()
