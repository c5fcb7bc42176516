"""What every end-to-end test stands on: where things are, a running server, and how to talk to it without a library.

Set by ./test, with defaults for a run by hand:
  OUTRIDER_BIN             the binary (build/release/bin/outrider)
  OUTRIDER_BUILD_DIR       has bin/ggml-rpc-server (the binary's build)
  OUTRIDER_MODELS_DIR      the two in-repo models (models/)
  OUTRIDER_DEFAULT_MODEL   the model ./run serves; the in-repo draft model stands in where it is missing
  OUTRIDER_CLIENTS_PYTHON  a Python with the packages of tests/e2e/clients/requirements.txt
  OUTRIDER_DISTILL_PYTHON  a Python with the packages of tools/distill/requirements.txt
  OUTRIDER_TEST_SLOWDOWN   how much slower than a release build this one is (sanitizers); stretches every time limit
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

REPO = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("OUTRIDER_BIN") or REPO / "build/release/bin/outrider").resolve()
BUILD_DIR = Path(os.environ.get("OUTRIDER_BUILD_DIR") or BINARY.parents[1]).resolve()
MODELS_DIR = Path(os.environ.get("OUTRIDER_MODELS_DIR") or REPO / "models").resolve()
DRAFT_MODEL = MODELS_DIR / "smollm2-draft-16m.gguf"
HYBRID_MODEL = MODELS_DIR / "smollm2-hybrid-19m.gguf"
DEFAULT_MODEL = Path(os.environ.get("OUTRIDER_DEFAULT_MODEL") or DRAFT_MODEL).resolve()
SLOWDOWN = float(os.environ.get("OUTRIDER_TEST_SLOWDOWN") or 1)
ONE_SLOT = ("-np", "1", "-c", "8192")  # as long as the model was trained for: a stream without end lasts some seconds


def seconds(release: float) -> float:
    """A time limit that holds for a release build, stretched for the build under test."""
    return release * SLOWDOWN


def eventually(condition, what: str, timeout: float = 10):
    """Asks until the answer is true, for state that only a poll can see; returns the answer."""
    deadline = time.monotonic() + seconds(timeout)
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"waited {seconds(timeout):.0f} s for {what}"
        time.sleep(0.01)
    return answer


def quick_once(attempt, limit: float, what: str, prepare=lambda: None, tries: int = 5):
    """Some try takes less than `limit` seconds. A busy machine may be slow now and then; code that waits for something
    is slow each time."""
    taken = []
    for _ in range(tries):
        prepare()
        start = time.monotonic()
        attempt()
        taken.append(time.monotonic() - start)
        if taken[-1] < limit:
            return
    raise AssertionError(f"{what}: never within {limit:.0f} s, but {', '.join(f'{each:.1f}' for each in taken)} s")


class Process:
    """A child process whose standard error is collected line by line."""

    def __init__(self, *command, env=None):
        self.command = [str(part) for part in command]
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._ended = False
        environment = {**os.environ, **env} if env else None
        self.child = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.child.stderr:
            with self._changed:
                self.lines.append(line.decode("utf-8", "replace").rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for_line(self, pattern: str, timeout: float = 60) -> re.Match:
        """The first line that matches; fails with the log if the process ends or the time is up before."""
        seen, deadline = 0, time.monotonic() + seconds(timeout)
        with self._changed:
            while True:
                for line in self.lines[seen:]:
                    if match := re.search(pattern, line):
                        return match
                seen = len(self.lines)
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    why = "ended" if self._ended else "was not there in time"
                    raise AssertionError(f"{why} before a line with {pattern!r}:\n{self.log()}")
                self._changed.wait(left)

    def wait_for_lines(self, count: int, timeout: float = 10):
        with self._changed:
            arrived = self._changed.wait_for(lambda: len(self.lines) >= count, seconds(timeout))
        assert arrived, f"fewer than {count} lines:\n{self.log()}"

    def wait_exit(self, timeout: float = 30) -> int:
        try:
            code = self.child.wait(seconds(timeout))
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still running after {seconds(timeout):.0f} s:\n{self.log()}") from None
        self._reader.join()
        return code

    def terminate(self):
        self.child.send_signal(signal.SIGTERM)

    def kill(self):
        self.child.kill()
        self.child.wait()
        self._reader.join()

    def cpu_seconds(self) -> float:
        """Computing time of all its threads so far, which other processes on the machine do not change."""
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def log(self, first: int = 0) -> str:
        return "\n".join([f"$ {' '.join(self.command)}", *self.lines[first:]])


class Server(Process):
    """`outrider serve` on a free port; as a context manager it must end with exit code 0 on SIGTERM. Without a `model`
    the flags or the environment must name one."""

    running: list["Server"] = []  # for the log that a failed test shows

    def __init__(self, *flags, model=DRAFT_MODEL, env=None):
        models = ("-m", model) if model else ()
        super().__init__(BINARY, "serve", *models, "--port", "0", *flags, env=env)
        self.running.append(self)
        try:
            ready = self.wait_for_line(r"listening on https?://[\w.\-]+:(\d+)")
        except BaseException:
            self.running.remove(self)
            self.kill()
            raise
        self.lines_at_start = len(self.lines)
        self.port = int(ready[1])
        self.url = f"http://127.0.0.1:{self.port}"
        # One pool for all threads. It drops idle connections before the server does (5 s), so that they never race.
        limits = httpx.Limits(max_connections=64, keepalive_expiry=2)
        self.http = httpx.Client(base_url=self.url, timeout=seconds(120), limits=limits)

    def __enter__(self):
        return self

    def __exit__(self, error_type, error, traceback):
        if error_type:
            self.abandon()
        else:
            self.stop()

    def stop(self):
        self.terminate()
        code = self.wait_exit()
        self.abandon()
        assert code == 0, f"exit code {code} on SIGTERM:\n{self.log()}"

    def abandon(self):
        self.http.close()
        self.kill()
        if self in self.running:
            self.running.remove(self)

    def get(self, path: str, **options):
        return checked(self.http.get(path, **options)).json()

    def post(self, path: str, body: dict, **options) -> dict:
        return checked(self.http.post(path, json=body, **options)).json()

    def stream(self, path: str, body: dict):
        """Context manager; gives an iterator over the events' data. Leaving it early closes the connection."""
        return event_stream(self.http, path, {**body, "stream": True})

    def chat(self, prompt: str, **fields) -> dict:
        return self.post("/v1/chat/completions", chat_request(prompt, **fields))

    def metrics(self) -> dict[str, float]:
        return {name: value for name, (_, value) in parse_prometheus(checked(self.http.get("/metrics")).text).items()}

    def slots_idle(self) -> bool:
        return not any(slot["is_processing"] for slot in self.get("/slots"))


def checked(response: httpx.Response) -> httpx.Response:
    assert response.status_code == 200, f"{response.status_code} for {response.url}: {response.text}"
    return response


def chat_request(prompt: str, **fields) -> dict:
    return {"messages": [{"role": "user", "content": prompt}], "max_tokens": 32, "temperature": 0, **fields}


def text_of(answer: dict) -> str:
    return answer["choices"][0]["message"]["content"]


def endless(prompt: str = "Write a very long story about the sea.", **fields) -> dict:
    """A /completion request that only the context, a limit or a closed connection ends."""
    return {"prompt": prompt, "n_predict": -1, "ignore_eos": True, "temperature": 0, **fields}


@contextlib.contextmanager
def event_stream(http: httpx.Client, path: str, body: dict):
    with http.stream("POST", path, json=body) as response:
        if response.status_code != 200:
            response.read()
        checked(response)
        assert response.headers["content-type"].startswith("text/event-stream"), response.headers
        yield events_in(response.iter_bytes())


def events_in(blocks):
    """Data of each event as JSON, without the closing [DONE]. Bytes that are not UTF-8 or not JSON fail the test."""
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            if line.startswith(b"data:") and (data := line[5:].decode("utf-8", "strict").strip()) != "[DONE]":
                yield json.loads(data)
    assert not rest.strip(), f"the stream was cut inside a line: {rest!r}"


def streamed_chat(server: Server, body: dict) -> tuple[str, str]:
    """Text and finish_reason of a streamed chat completion."""
    text, reason = "", None
    with server.stream("/v1/chat/completions", body) as events:
        for event in events:
            for choice in event["choices"]:
                text += choice["delta"].get("content") or ""
                reason = choice["finish_reason"] or reason
    return text, reason


def at_once(count: int, function, items) -> list:
    """function over items in `count` threads, results in order."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(function, items))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_outrider(*arguments, timeout: float = 30, env=None) -> subprocess.CompletedProcess:
    """Runs the binary to its end; stdout and stderr as text."""
    command = [str(part) for part in (BINARY, *arguments)]
    environment = {**os.environ, **env} if env else None
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds(timeout), env=environment
    )


def assert_refused(*arguments, saying: str, timeout: float = 30, env=None):
    """The command ends with exit code 2 and one sentence that matches, before a port was opened."""
    result = run_outrider(*arguments, timeout=timeout, env=env)
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert result.returncode == 2, f"exit code {result.returncode}:\n{result.stderr}"
    assert lines and re.search(saying, lines[-1], re.IGNORECASE), f"no {saying!r} at the end of:\n{result.stderr}"
    assert len(lines) <= 3, f"more than a sentence:\n{result.stderr}"
    assert "listening" not in result.stderr, f"the port was open already:\n{result.stderr}"


SAMPLE = re.compile(
    r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*\})? (\S+)(?: (-?\d+))?$'
)


def parse_prometheus(text: str) -> dict[str, tuple[str, float]]:
    """Name with labels → (type, value). Insists on the format: a TYPE before each sample, one sample per name."""
    assert text.endswith("\n"), "the last line must end too"
    types: dict[str, str] = {}
    samples: dict[str, tuple[str, float]] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in ("counter", "gauge", "histogram", "summary", "untyped"), line
            assert name not in types, f"second TYPE: {line}"
            types[name] = kind
        elif line and not line.startswith("#"):
            match = SAMPLE.match(line)
            assert match, f"not a sample: {line!r}"
            name, labels = match[1], match[2] or ""
            family = name if name in types else re.sub(r"_(bucket|sum|count)$", "", name)
            assert family in types, f"no TYPE before {line!r}"
            assert name + labels not in samples, f"twice: {line!r}"
            samples[name + labels] = (types[family], float(match[3]))
    return samples
