"""Who may ask: keys, the refusal to serve the world without one, and which web pages may call."""

import hashlib
import socket
from collections.abc import Iterator

import httpx
import pytest

from harness import DRAFT_MODEL, Server, assert_refused, chat_request, checked, eventually, run_outrider

QUESTION = chat_request("Hi", max_tokens=1)
KEY = "correct-horse"


@pytest.fixture(params=["flag", "file"])
def locked(request, serve, tmp_path_factory) -> tuple[Server, list[str]]:
    """A server that wants a key, and those it accepts."""
    if request.param == "flag":
        return serve("--api-key", KEY), [KEY]
    file, keys = tmp_path_factory.getbasetemp() / "keys.txt", ["first-key", "second-key"]
    file.write_text("\n".join(keys) + "\n")
    return serve("--api-key-file", file), keys


def post(server: Server, headers: dict | None = None) -> httpx.Response:
    return server.http.post("/v1/chat/completions", json=QUESTION, headers=headers)


def test_without_the_key(locked):
    server, (key, *_) = locked
    wrong_ones = [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {key}x"},
        {"Authorization": f"Bearer {key[:-1]}"},
        {"Authorization": f"Basic {key}"},
    ]
    for headers in wrong_ones:
        response = post(server, headers)
        assert response.status_code == 401, headers
        assert response.json()["error"]["type"] == "authentication_error"
        assert key not in response.text
    for path in ("/props", "/slots", "/metrics", "/v1/models"):
        assert server.http.get(path).status_code == 401, path


def test_with_a_key(locked):
    server, keys = locked
    for key in keys:
        checked(post(server, {"Authorization": f"Bearer {key}"}))
        checked(post(server, {"X-Api-Key": key}))  # Anthropic's clients


def test_health_is_open(locked):
    server, _ = locked
    assert server.get("/health") == {"status": "ok"}


def test_the_key_is_not_logged(locked):
    server, (key, *_) = locked
    checked(post(server, {"Authorization": f"Bearer {key}"}))
    assert not any(key in line for line in server.lines)


def test_all_interfaces_need_a_key():
    assert_refused("serve", "-m", DRAFT_MODEL, "--host", "0.0.0.0", "--port", "0", saying="--api-key")


def test_all_interfaces_with_a_key():
    with Server("--host", "0.0.0.0", "--api-key", KEY) as server:
        checked(post(server, {"Authorization": f"Bearer {KEY}"}))


def test_all_interfaces_if_one_insists():
    with Server("--host", "0.0.0.0", "--insecure-no-auth") as server:
        checked(post(server))


@pytest.mark.parametrize("content", [None, "", "\n\n"], ids=["missing", "empty", "blank"])
def test_key_file_without_a_key(tmp_path, content):
    path = tmp_path / "keys.txt"
    if content is not None:
        path.write_text(content)
    assert_refused("serve", "-m", DRAFT_MODEL, "--port", "0", "--api-key-file", path, saying="keys.txt")


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


@pytest.fixture(scope="module")
def team(tmp_path_factory) -> Iterator[Server]:
    """A server that a small team shares: everybody has a hashed key with a name."""
    lines = [
        "# the team",
        f"sha256:{digest('anna-key')} name=anna admin",
        f"sha256:{digest('ben-key')} name=ben requests-per-minute=5",
        f"sha256:{digest('cleo-key')} name=cleo tokens-per-minute=40 slots=1",
        "a-plain-key",
    ]
    file = tmp_path_factory.mktemp("team") / "keys.txt"
    file.write_text("\n".join(lines) + "\n")
    with Server("--api-key-file", file) as server:
        yield server


def with_key(key: str) -> dict:
    return {"Authorization": f"Bearer {key}"}


class TestTeam:
    def test_hashed_and_plain_keys_open(self, team):
        for key in ("anna-key", "a-plain-key"):
            checked(post(team, with_key(key)))
        for wrong in (digest("anna-key"), f"sha256:{digest('anna-key')}", "anna", "key 5"):
            assert post(team, with_key(wrong)).status_code == 401, wrong

    def test_slot_actions_need_an_admin(self, team):
        for action in ("save", "restore", "erase"):
            refused = team.http.post(f"/slots/0?action={action}", json={"filename": "x"}, headers=with_key("a-plain-key"))
            assert refused.status_code == 403, refused.text
            assert "--admin-key" in refused.json()["error"]["message"]
        checked(team.http.post("/slots/0?action=erase", headers=with_key("anna-key")))

    def test_requests_per_minute(self, team):
        codes = [team.http.get("/v1/models", headers=with_key("ben-key")).status_code for _ in range(5)]
        assert codes == [200] * 5
        refused = post(team, with_key("ben-key"))
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert "requests-per-minute=5" in refused.json()["error"]["message"]
        checked(team.http.get("/metrics", headers=with_key("ben-key")))

    def test_tokens_per_minute(self, team):
        checked(team.http.post("/completion", json={"prompt": "Hi", "n_predict": 48, "ignore_eos": True}, headers=with_key("cleo-key")))
        refused = post(team, with_key("cleo-key"))
        assert refused.status_code == 429
        assert "tokens-per-minute=40" in refused.json()["error"]["message"]
        assert int(refused.headers["retry-after"]) >= 1

    def test_audit(self, team):
        first = len(team.lines)
        checked(post(team, with_key("anna-key")))
        assert post(team, with_key("wrong-key")).status_code == 401
        team.wait_for_line(r"POST /v1/chat/completions 401 by nobody from 127\.0\.0\.1")
        eventually(lambda: "POST /v1/chat/completions 200 by anna from 127.0.0.1" in team.log(first), "anna's line")
        assert "-key" not in "\n".join(team.lines), "a key in the log"


@pytest.mark.parametrize(
    ("line", "saying"),
    [
        ("sha256:abc name=x", "line 2: sha256: needs 64"),
        ("key:very-secret slots=many", "line 2: slots needs"),
        ("key:very-secret role=king", "line 2: after the key"),
        ("key:other name=anna", "two API keys have the name 'anna'"),
    ],
)
def test_a_bad_line_is_named_and_not_shown(tmp_path, line, saying):
    path = tmp_path / "keys.txt"
    path.write_text(f"key:first name=anna\n{line}\n")
    arguments = ("serve", "-m", DRAFT_MODEL, "--port", "0", "--api-key-file", path)
    assert_refused(*arguments, saying=saying)
    assert "very-secret" not in run_outrider(*arguments).stderr


ORIGIN = {"Origin": "https://example.org"}
PREFLIGHT = {
    **ORIGIN,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,x-stainless-lang",
}
FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:3000"},
    {"Host": "evil.example"},
    {"Host": "evil.example", "Origin": "http://evil.example"},  # DNS rebinding
    {"Host": "localhost.evil.example"},
    {"Host": "evil.example", "X-Forwarded-Host": "localhost", "Forwarded": "host=localhost"},  # anybody can send these
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
]


def cors_headers(response: httpx.Response) -> dict:
    return {name: value for name, value in response.headers.items() if name.startswith("access-control-")}


class TestPages:
    @pytest.mark.parametrize("headers", FOREIGN, ids=str)
    def test_those_of_others_are_refused(self, server, headers):
        for path in ("/v1/chat/completions", "/v1/messages", "/slots/0?action=erase"):
            response = server.http.post(path, json=QUESTION, headers=headers)
            assert response.status_code == 403, f"{path}: {response.text}"
            assert "start the server with" in response.json()["error"]["message"]
            assert not cors_headers(response)
        assert server.http.get("/props", headers=headers).status_code == 403
        preflight = server.http.options("/v1/chat/completions", headers={**PREFLIGHT, **headers})
        assert not cors_headers(preflight)

    def test_the_own_page_works(self, server):
        for host in (f"127.0.0.1:{server.port}", f"localhost:{server.port}", f"[::1]:{server.port}", "192.168.1.7", socket.gethostname()):
            own = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
            checked(post(server, own))
        # The address bar, and a link on another page.
        for site in ("none", "cross-site"):
            checked(server.http.get("/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}))

    def test_pages_send_json(self, server):
        body = b'{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}'
        for content_type in ("text/plain", "application/x-www-form-urlencoded", ""):
            headers = {"Content-Type": content_type}
            own = {**headers, "Origin": server.url}
            assert server.http.post("/v1/chat/completions", content=body, headers=own).status_code == 415
            checked(server.http.post("/v1/chat/completions", content=body, headers=headers))

    def test_configured_origins_and_names(self, serve):
        server = serve("--cors-origin", "https://example.org,https://two.example", "--allowed-host", "llm.example")
        assert cors_headers(post(server, ORIGIN))["access-control-allow-origin"] == "https://example.org"
        checked(post(server, {"Origin": "https://two.example", "Host": "llm.example:8080"}))
        assert post(server, {"Origin": "https://three.example"}).status_code == 403
        preflight = server.http.options("/v1/chat/completions", headers=PREFLIGHT)
        assert preflight.status_code == 200
        allowed = cors_headers(preflight)
        assert allowed["access-control-allow-origin"] == "https://example.org"
        assert "POST" in allowed["access-control-allow-methods"]
        assert allowed["access-control-allow-headers"] == PREFLIGHT["Access-Control-Request-Headers"]

    def test_any_origin(self, serve):
        server = serve("--cors-origin", "*")
        assert cors_headers(post(server, {"Origin": "https://anybody.example"}))["access-control-allow-origin"] == "*"

    def test_no_cors_headers_by_default(self, server):
        assert not cors_headers(post(server))


def test_paths_are_shown_only_when_asked_for(server, serve):
    folder = str(DRAFT_MODEL.parent)
    assert server.get("/props")["model_path"] == DRAFT_MODEL.name
    assert folder not in server.log().split("\n", 1)[1]
    shown = serve("--show-paths")
    assert shown.get("/props")["model_path"] == str(DRAFT_MODEL)
