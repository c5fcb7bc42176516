"""-hf, -hff, -mu, --hf-token, --offline: against a server that speaks the hub's API."""

import hashlib
import http.server
import json
import re
import threading

import pytest

from harness import DRAFT_MODEL, HYBRID_MODEL, Server, assert_refused, run_outrider, text_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_" + "a" * 34


class Hub:
    """Repositories of files in memory. `cut`: how many answers break off in the middle; `damage`: a byte is wrong."""

    def __init__(self):
        hub = self
        self.files: dict[str, bytes] = {"model-Q8_0.gguf": HYBRID_MODEL.read_bytes(), "model-Q4_1.gguf": DRAFT_MODEL.read_bytes()}
        self.requests: list[tuple[str, str, dict]] = []
        self.cut = 0
        self.damage = False
        self.needs_token = False

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.answer(with_body=False)

            def do_GET(self):
                self.answer(with_body=True)

            def send(self, status, body, headers=(), with_body=True):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                for name, value in headers:
                    self.send_header(name, value)
                self.end_headers()
                if with_body:
                    self.wfile.write(body)

            def answer(self, with_body):
                hub.requests.append((self.command, self.path, dict(self.headers)))
                if hub.needs_token and self.headers.get("Authorization") != f"Bearer {TOKEN}":
                    return self.send(401, b'{"error": "not allowed"}')
                if self.path == "/api/models/user/model/refs":
                    refs = {"branches": [{"name": "main", "ref": "refs/heads/main", "targetCommit": COMMIT}]}
                    return self.send(200, json.dumps(refs).encode())
                if self.path.startswith(f"/api/models/user/model/tree/{COMMIT}"):
                    tree = [
                        {"type": "file", "path": name, "size": len(data), "lfs": {"oid": hashlib.sha256(data).hexdigest()}}
                        for name, data in hub.files.items()
                    ]
                    return self.send(200, json.dumps(tree).encode())
                name = self.path.partition("?")[0].rpartition("/")[2]
                if name not in hub.files:
                    return self.send(404, b'{"error": "not found"}')
                data = hub.files[name]
                if hub.damage:
                    data = data[:-1] + bytes([data[-1] ^ 1])
                begin, status = 0, 200
                if asked := re.match(r"bytes=(\d+)-", self.headers.get("Range") or ""):
                    begin, status = int(asked[1]), 206
                body = data[begin:]
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Accept-Ranges", "bytes")
                self.send_header("ETag", f'"{name}"')
                self.end_headers()
                if not with_body:
                    return
                if hub.cut > 0:
                    hub.cut -= 1
                    self.wfile.write(body[: len(body) // 2])
                    self.wfile.flush()
                    self.close_connection = True
                    self.connection.close()
                    return
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def fetched(self) -> list[str]:
        """The files whose bytes were asked for."""
        return [path.rpartition("/")[2] for method, path, _ in self.requests if method == "GET" and ".gguf" in path]


@pytest.fixture
def hub():
    hub = Hub()
    yield hub
    hub.stop()


@pytest.fixture
def env(hub, tmp_path):
    return {"HF_ENDPOINT": hub.url, "MODEL_ENDPOINT": "", "LLAMA_CACHE": str(tmp_path / "cache"), "HF_TOKEN": ""}


def serve(env, *flags):
    return Server("-t", "2", "-np", "1", *flags, model=None, env=env)


def test_a_repository_is_fetched_once(hub, env, tmp_path):
    with serve(env, "-hf", "user/model:Q4_1") as server:
        assert text_of(server.chat("Hi", max_tokens=4)) is not None
        assert server.get("/v1/models")["data"][0]["id"] == "model-Q4_1"
        assert any("downloading" in line for line in server.lines), server.log()
    assert hub.fetched() == ["model-Q4_1.gguf"]
    # Hugging Face's own layout, which llama.cpp and others share.
    snapshot = tmp_path / "cache" / "models--user--model" / "snapshots" / COMMIT / "model-Q4_1.gguf"
    assert snapshot.read_bytes() == DRAFT_MODEL.read_bytes()
    with serve(env, "--hf-repo", "user/model:q4_1") as server:
        assert server.get("/health")["status"] == "ok"
    assert hub.fetched() == ["model-Q4_1.gguf"], "the second start has it"
    assert "user/model:Q4_1" in run_outrider("serve", "--cache-list", env=env).stdout
    hub.stop()
    with serve(env, "-hf", "user/model:Q4_1", "--offline") as server:
        assert server.get("/health")["status"] == "ok"
    hub.server.server_close()


def test_a_broken_download_goes_on_where_it_ended(hub, env):
    hub.cut = 1
    with serve(env, "-hf", "user/model:Q4_1") as server:
        assert server.get("/health")["status"] == "ok"
    ranges = [headers.get("Range") for method, path, headers in hub.requests if method == "GET" and ".gguf" in path]
    half = len(DRAFT_MODEL.read_bytes()) // 2
    assert ranges[0] is None and len(ranges) == 2
    begin = int(re.fullmatch(r"bytes=(\d+)-", ranges[1])[1])
    assert 0 < begin <= half


def test_a_damaged_file_is_refused_and_removed(hub, env):
    hub.damage = True
    assert_refused("serve", "-hf", "user/model:Q4_1", "--port", "0", saying="model-Q4_1.gguf.*damaged", env=env)
    hub.damage = False
    with serve(env, "-hf", "user/model:Q4_1") as server:
        assert server.get("/health")["status"] == "ok"
    assert hub.fetched() == ["model-Q4_1.gguf"] * 2


def test_files_drafts_and_addresses(hub, env, tmp_path):
    with serve(env, "-hf", "user/model", "-hff", "model-Q4_1.gguf", "-hfd", "user/model:Q4_1") as server:
        assert any("model" in line and "speculation" in line for line in server.lines)
    assert hub.fetched() == ["model-Q4_1.gguf"]
    path = tmp_path / "chosen.gguf"
    with serve(env, "-mu", f"{hub.url}/somewhere/model-Q4_1.gguf?download=true", "-m", path) as server:
        assert server.get("/health")["status"] == "ok"
    assert path.read_bytes() == DRAFT_MODEL.read_bytes()


def test_a_token_is_sent_and_not_logged(hub, env):
    hub.needs_token = True
    assert_refused("serve", "-hf", "user/model", "--port", "0", saying="--hf-token", env=env)
    with serve({**env, "HF_TOKEN": TOKEN}, "-hf", "user/model:Q4_1") as server:
        assert TOKEN not in server.log()


def test_what_is_not_there(hub, env):
    arguments = ("serve", "--port", "0", "--offline")
    assert_refused(*arguments, "-hf", "user/model", saying="no model of 'user/model'.*--offline", env=env)
    assert_refused("serve", "--port", "0", "-hf", "user/model:Q3_K", saying="no model of 'user/model:Q3_K'", env=env)
    assert_refused("serve", "--port", "0", "-hf", "nonsense", saying="<user>/<model>", env=env)
    assert_refused("serve", "--port", "0", "-mu", f"{hub.url}/missing.gguf", saying="404", env=env)
