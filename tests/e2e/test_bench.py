"""outrider bench: real servers, servers of known speed, and servers that break."""

import json
import re
import signal
import socket
import statistics
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness import BINARY, DRAFT_MODEL, REPO, Process, eventually, free_port, run_outrider, seconds

PROMPTS = [{"category": "chat", "turns": ["Hello, who are you?"]}, {"category": "count", "turns": ["Count to ten.", "And back."]}]


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps(prompt) + "\n" for prompt in PROMPTS))
    return path


class FakeServer:
    """Speaks as an OpenAI-compatible server: `words`, one every `pause` seconds. Breaks in the middle of the answers that `breaks` lists,
    and says nothing any more from `silent_from` on. `spans` has the seconds that each answer took from its first word to its last."""

    def __init__(self, words=("one ", "two ", "three ", "four ", "five "), pause=0.01, breaks=(), silent_from=1000):
        self.asked = 0
        self.spans: list[float] = []
        self.closing = threading.Event()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                body = b'{"data": [{"id": "the-model"}]}' if self.path == "/v1/models" else b"{}"
                self.send_response(200 if self.path == "/v1/models" else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert "cache_prompt" not in request, "that is llama.cpp's, and other servers refuse what they do not know"
                assert request["model"] == "the-model", "others have no default"
                number = fake.asked
                fake.asked += 1
                if number >= silent_from:
                    fake.closing.wait()
                    return
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                start = time.monotonic()
                for i, word in enumerate(words):
                    if number in breaks and i == 2:
                        self.connection.close()
                        return
                    self.event({"choices": [{"delta": {"content": word}}]})
                    if i == 0:
                        start = time.monotonic()
                    if i < len(words) - 1:
                        time.sleep(pause)
                fake.spans.append(time.monotonic() - start)
                self.event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
                self.event({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": len(words)}})
                self.wfile.write(b"data: [DONE]\n\n")
                self.close_connection = True

            def event(self, data):
                self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
                self.wfile.flush()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()


def results(folder) -> list[dict]:
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert "bench" in lines[0], "the heading"
    return [line for line in lines if "bench" not in line]


def report(folder) -> dict:
    page = (folder / "report.html").read_text()
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)[1])


def bench(*arguments, timeout=120) -> subprocess.CompletedProcess:
    return run_outrider("bench", *arguments, timeout=timeout)


def refused(*arguments, saying: str):
    run = run_outrider(*arguments, timeout=60)
    assert run.returncode == 2, run.stderr
    assert saying in run.stderr


def test_with_and_without_drafts(prompts, tmp_path):
    out = tmp_path / "out"
    run = bench("-m", DRAFT_MODEL, "--prompts", prompts, "--out", out, "-n", "24", "--runs", "2", "--temp", "0,0.8", "--context", "0,1k",
                "--variant", "suffix only=--spec suffix", timeout=seconds(300))  # fmt: skip
    assert run.returncode == 0, run.stderr
    rows = results(out)
    assert len(rows) == 3 * 3 * 2 * 2 * 2
    for row in rows:
        assert 0 < row["tokens"] <= 24
        assert 0 < row["first_token_seconds"] <= row["seconds"]
        assert row["timings"]["stages"]["verify_ms"] >= 0
        steps = row["timings"]["steps"]
        assert sum(drafted for _, drafted, _, _, _ in steps) == row["timings"]["draft_n"]
        assert sum(accepted for _, _, accepted, _, _ in steps) == row["timings"]["draft_n_accepted"]
        assert sum(ms for _, _, _, ms, _ in steps) == pytest.approx(row["timings"]["predicted_ms"], abs=0.1)
        assert all((drafter is None) == (drafted == 0) for drafter, drafted, _, _, _ in steps)
        assert all(len(rejected) == min(drafted - accepted, 16) for _, drafted, accepted, _, rejected in steps)
    deep = [row["prompt_tokens"] for row in rows if row["context"] == 1024]
    assert 900 < min(deep) and max(deep) < 1400
    # Taking turns: between two answers of one variant to different prompts are all the others.
    firsts = [(row["prompt"], row["context"], row["temperature"], row["run"]) for row in rows]
    assert firsts == sorted(firsts, key=lambda key: (key[3], key[2], key[1], key[0]))
    data = report(out)
    assert data["variants"] == ["plain", "auto", "suffix only"]
    assert all(each["identical"] == each["compared"] == 24 for each in data["parity"])
    assert "text identical to 'plain' in all 24 answers" in run.stdout
    assert {row["slice"] for row in data["speeds"]} >= {"all", "chat", "count", "temperature 0.8", "context 1024"}
    assert data["command"].startswith("outrider bench -m ")
    assert not list(re.finditer(r'(src|href)="https?:', (out / "report.html").read_text())), "the page works offline"


def test_text_is_compared_over_concurrencies(prompts, tmp_path):
    out = tmp_path / "out"
    run = bench("-m", DRAFT_MODEL, "--prompts", prompts, "--out", out, "-n", "16", "--concurrency", "1,2",
                "--variant", "always=--spec suffix --spec-always --draft-max 8", timeout=seconds(300))  # fmt: skip
    assert run.returncode == 0, run.stderr
    for name in ("plain", "auto", "always"):
        assert re.search(rf"^{name} +text independent of concurrency in all 3 answers$", run.stdout, re.M), run.stdout
    assert report(out)["concurrency_parity"] == [{"variant": name, "compared": 3, "identical": 3} for name in ("plain", "auto", "always")]


def test_pictures(prompts, tmp_path):
    out = tmp_path / "out"
    assert bench("-m", DRAFT_MODEL, "--prompts", prompts, "--out", out, "-n", "48", timeout=seconds(300)).returncode == 0
    made = subprocess.run(["node", REPO / "bench/plots.mjs", out / "report.html", tmp_path / "plots"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-2000:]
    names = {path.stem for path in (tmp_path / "plots").glob("*.svg")}
    assert names >= {"speed-up", "cost-curve", "stages"}
    for path in (tmp_path / "plots").glob("*.svg"):
        assert path.read_text().startswith("<svg") and path.stat().st_size > 2000


def test_recovers_a_known_ratio(tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text('{"turns": ["x"]}\n' * 12)
    with FakeServer(pause=0.08) as slow, FakeServer(pause=0.04) as quick:
        run = bench("--url", f"slow={slow.url}", "--url", f"quick={quick.url}/v1", "--prompts", path, "--out", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    data = report(tmp_path / "out")
    ratio = next(each for each in data["speed_ups"] if each["variant"] == "quick")
    assert ratio["count"] == 12
    # What it should be, by the servers' own clocks: about 2, but on a busy machine pauses are longer than they were meant to be.
    paired = zip(slow.spans[-12:], quick.spans[-12:], strict=True)
    assert ratio["median"] == pytest.approx(statistics.median(one / other for one, other in paired), rel=0.1)
    assert slow.spans and min(slow.spans) >= 4 * 0.08 and min(quick.spans) >= 4 * 0.04
    assert ratio["low"] <= ratio["median"] <= ratio["high"]


def test_another_text_is_told_with_how_near_it_was(prompts, tmp_path):
    with FakeServer(words=("Yes", ", it", " is")) as other, FakeServer(words=("N", "o")) as third:
        run = bench("-m", DRAFT_MODEL, "--url", f"other={other.url}", "--url", f"third={third.url}", "--prompts", prompts,
                    "--out", tmp_path / "out", "-n", "8", timeout=seconds(120))  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert re.search(r"other +text differs from 'plain' in 2 of 2 answers, first for prompt 1 after 0 bytes", run.stdout), "a second turn follows another first one"
    assert re.search(r'other: First in prompt 1 after 0 bytes: plain says ".*", other says "Yes, it is"\. Token ".*" against ".*": '
                     r"the two best logits are \d+\.\d+ apart", run.stdout)  # fmt: skip


def test_a_server_that_drops_connections(prompts, tmp_path):
    out = tmp_path / "out"
    with FakeServer() as good, FakeServer(breaks={2}) as bad:
        run = bench("--url", f"good={good.url}", "--url", f"bad={bad.url}", "--prompts", prompts, "--out", out)
    assert run.returncode == 1
    assert "dropped the connection in the middle of an answer" in run.stderr
    rows = results(out)
    assert sum("error" in row for row in rows) == 1
    assert sum("text" in row for row in rows) >= 4
    assert "1 of " in run.stdout and "failed" in run.stdout
    assert report(out)["speed_ups"]


def test_a_server_that_stays_broken_ends_it(tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text('{"turns": ["x"]}\n' * 12)
    out = tmp_path / "out"
    with FakeServer() as good, FakeServer(breaks=set(range(3, 100))) as bad:
        run = bench("--url", f"good={good.url}", "--url", f"bad={bad.url}", "--prompts", path, "--out", out)
    assert run.returncode == 2
    assert "'bad': " in run.stderr
    rows = results(out)
    assert 5 <= len(rows) < 24, "what was done is kept, and it does not go on for ever"
    assert report(out)["speeds"]


def test_ctrl_c_keeps_what_is_done(prompts, tmp_path):
    out = tmp_path / "out"
    process = Process(BINARY, "bench", "-m", DRAFT_MODEL, "--prompts", prompts, "--out", out, "--runs", "500")
    try:
        process.wait_for_line("[1-9][0-9]* of 3000 answers", timeout=seconds(120))
        servers = subprocess.run(["pgrep", "-P", str(process.child.pid)], capture_output=True, text=True).stdout.split()
        assert len(servers) == 2
        process.child.send_signal(signal.SIGINT)
        assert process.wait_exit(timeout=seconds(30)) == 1
    finally:
        process.kill()
    assert "Stopped early" in process.log()
    rows = results(out)
    assert 10 < len(rows) < 3000
    assert all("error" not in row for row in rows)
    assert report(out)["speed_ups"]
    for server in servers:
        assert not Path(f"/proc/{server}").exists(), "no server outlives the bench"


def test_ctrl_c_while_a_server_is_silent(prompts, tmp_path):
    with FakeServer(silent_from=2) as silent:
        process = Process(BINARY, "bench", "--url", silent.url, "--prompts", prompts, "--out", tmp_path / "out")
        try:
            process.wait_for_line("1 of 3 answers", timeout=seconds(30))
            eventually(lambda: silent.asked == 3, "the question that is never answered")
            process.child.send_signal(signal.SIGINT)
            assert process.wait_exit() == 1
        finally:
            process.kill()
    assert len(results(tmp_path / "out")) == 1
    assert report(tmp_path / "out")["speeds"]


def test_the_report_can_be_made_again(prompts, tmp_path):
    secret = "do-not-tell"
    with FakeServer() as one, FakeServer(pause=0.02) as two:
        first = bench("--url", f"one={one.url}", "--url", f"two={two.url}", "--api-key", secret, "--prompts", prompts, "--out", tmp_path / "a")
    assert first.returncode == 0, first.stderr
    again = bench("--from", tmp_path / "a/results.jsonl", "--out", tmp_path / "b")
    assert again.returncode == 0, again.stderr
    before, after = report(tmp_path / "a"), report(tmp_path / "b")
    for key in ("title", "command", "date", "variants", "parity", "timeline"):
        assert before[key] == after[key]
    assert [each["median"] for each in before["speed_ups"]] == pytest.approx([each["median"] for each in after["speed_ups"]], rel=1e-3)
    assert secret not in (tmp_path / "a/report.html").read_text() + (tmp_path / "a/results.jsonl").read_text()


class TestBadInput:
    def test_prompts(self, tmp_path):
        path = tmp_path / "prompts.jsonl"
        path.write_text('{"turns": ["fine"]}\n{"turns": "not a list"}\n')
        refused("bench", "-m", DRAFT_MODEL, "--prompts", path, saying='prompts.jsonl, line 2: "turns" must be a list')
        refused("bench", "-m", DRAFT_MODEL, "--prompts", tmp_path / "none", saying="cannot read the prompts in")

    def test_servers(self, tmp_path, prompts):
        out = ("--out", tmp_path / "out", "--prompts", prompts)
        nowhere = f"http://127.0.0.1:{free_port()}"
        refused("bench", "--url", nowhere, *out, saying=f"cannot reach {nowhere}")
        refused("bench", "--url", "ftp://x", *out, saying="is not an address like http://host:port/v1")
        refused("bench", *out, saying="there is nothing to measure: give -m FILE.gguf or --url")
        refused("bench", "-m", tmp_path / "none.gguf", *out, saying="none.gguf' does not exist")
        refused("bench", "-m", DRAFT_MODEL, "--variant", "odd=--no-such-flag", *out, saying="'odd' ended instead of serving:\noutrider: '--no-such-flag'")
        refused("bench", "-m", DRAFT_MODEL, "--against", "x=/no/such/program", *out, saying="No such file")
        refused("bench", "-m", DRAFT_MODEL, "--variant", "nameless", *out, saying="--variant needs NAME=FLAGS")
        refused("bench", "-m", DRAFT_MODEL, "--variant", "plain=--spec none", *out, saying="two variants are called 'plain'")

    def test_numbers(self, prompts):
        refused("bench", "-m", DRAFT_MODEL, "--prompts", prompts, "--context", "2q", saying="not '2q'")
        refused("bench", "-m", DRAFT_MODEL, "--prompts", prompts, "--context", "32k", saying="the built-in prose has only")
        refused("bench", "-m", DRAFT_MODEL, "--prompts", prompts, "--concurrency", "3", saying="there are only 2 prompts")
        refused("bench", "-m", DRAFT_MODEL, "--prompts", prompts, "--concurrency", "0", saying="--concurrency")

    def test_folder(self, prompts):
        refused("bench", "-m", DRAFT_MODEL, "--prompts", prompts, "--out", "/proc/none", saying="cannot make the folder /proc/none")


class TestPlan:
    def test_from_measured_acceptance(self, prompts, tmp_path):
        out = tmp_path / "out"
        run = bench("-m", DRAFT_MODEL, "--prompts", prompts, "--out", out, "-n", "64", timeout=seconds(300))
        assert run.returncode == 0, run.stderr
        assert re.search(r"auto: measured \d+\.\d\dx over all answers; \d+\.\d\dx predicted from the measured cost of steps", run.stdout)
        assert report(out)["predictions"][0]["variant"] == "auto"
        plan = run_outrider("plan", "-m", DRAFT_MODEL, "-md", DRAFT_MODEL, "--from", out / "results.jsonl", timeout=120)
        assert plan.returncode == 0, plan.stderr
        assert re.search(r"suffix of 'auto' +0\.\d\d +(\d+|none) +\d+\.\d\dx +\d+\.\d\dx", plan.stdout)

    def test_of_several_models_and_distances(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            plan = run_outrider("plan", "-m", f"{DRAFT_MODEL},{DRAFT_MODEL}", "-md", DRAFT_MODEL, "--acceptance", "0.9", "--remote",
                                "127.0.0.1:%d" % listener.getsockname()[1], timeout=120)  # fmt: skip
        assert plan.returncode == 0, plan.stderr
        rows = [float(cell) for cell in re.search(r"of one row +(.*)", plan.stdout)[1].split()]
        assert rows[0] == 1 and rows[-1] > rows[0]
        assert re.search(r"looked up \(suffix, n-grams\) +0\.90 +\d+ +[1-9]\.\d\dx", plan.stdout)
        assert "draft model, 0 ms away" in plan.stdout
        assert "draft model  " in plan.stdout and "side by side" in plan.stdout

    def test_bad_input(self, tmp_path):
        (tmp_path / "not.jsonl").write_text("nonsense\n")
        refused("plan", saying="which model?")
        refused("plan", "-m", DRAFT_MODEL, "--from", tmp_path / "none", saying="cannot read")
        refused("plan", "-m", DRAFT_MODEL, "--from", tmp_path / "not.jsonl", saying="not.jsonl, line 1")
        refused("plan", "-m", DRAFT_MODEL, "--remote", f"127.0.0.1:{free_port()}", saying="nothing listens on")
        refused("plan", "-m", tmp_path / "none.gguf", saying="none.gguf")
        refused("plan", "-m", DRAFT_MODEL, "--acceptance", "2", saying="--acceptance")
