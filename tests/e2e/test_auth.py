"""Who may ask: keys, the refusal to serve the world without one, and which web pages may call."""

import httpx
import pytest

from harness import DRAFT_MODEL, Server, assert_refused, chat_request, checked

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


ORIGIN = {"Origin": "https://example.org"}
PREFLIGHT = {**ORIGIN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}


def cors_headers(response: httpx.Response) -> dict:
    return {name: value for name, value in response.headers.items() if name.startswith("access-control-")}


def test_no_cors_by_default(server):
    assert not cors_headers(post(server, ORIGIN))
    assert not cors_headers(server.http.options("/v1/chat/completions", headers=PREFLIGHT))


def test_cors_when_asked_for(serve):
    server = serve("--cors-origin", "https://example.org")
    assert cors_headers(post(server, ORIGIN))["access-control-allow-origin"] == "https://example.org"
    preflight = server.http.options("/v1/chat/completions", headers=PREFLIGHT)
    assert preflight.status_code in (200, 204)
    allowed = cors_headers(preflight)
    assert allowed["access-control-allow-origin"] == "https://example.org"
    assert "POST" in allowed["access-control-allow-methods"]
    assert (
        "content-type" in allowed["access-control-allow-headers"].lower()
        or allowed["access-control-allow-headers"] == "*"
    )
