"""Toxiproxy: a TCP proxy that makes a network bad in known ways. ./test installs it and says where in OUTRIDER_TOXIPROXY."""

import contextlib
import os

import httpx

from harness import Process, eventually, free_port


class Proxy:
    """A way to `upstream`, as good as the toxics on it let it be."""

    def __init__(self, http: httpx.Client, upstream: str):
        self._http = http
        self.address = f"127.0.0.1:{free_port()}"
        self._name = self.address
        self._call("POST", "/proxies", {"name": self._name, "listen": self.address, "upstream": upstream})

    def _call(self, method: str, path: str, body: dict | None = None):
        answer = self._http.request(method, path, json=body)
        assert answer.status_code < 300, f"toxiproxy: {answer.status_code} {answer.text}"
        return answer

    @contextlib.contextmanager
    def toxic(self, kind: str, **attributes):
        """On both directions while the block runs; connections that are open feel it too."""
        names = []
        for stream in ("upstream", "downstream"):
            names.append(f"{kind}_{stream}")
            self._call(
                "POST",
                f"/proxies/{self._name}/toxics",
                {"name": names[-1], "type": kind, "stream": stream, "attributes": attributes},
            )
        try:
            yield
        finally:
            for name in names:
                self._call("DELETE", f"/proxies/{self._name}/toxics/{name}")


@contextlib.contextmanager
def toxiproxy():
    program = os.environ.get("OUTRIDER_TOXIPROXY")
    assert program, "OUTRIDER_TOXIPROXY is not set: run ./test e2e, which installs toxiproxy"
    port = free_port()
    process = Process(program, "-host", "127.0.0.1", "-port", port)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=10) as http:

            def answers():
                with contextlib.suppress(httpx.TransportError):
                    return http.get("/version").status_code == 200

            eventually(answers, "toxiproxy")
            yield lambda upstream: Proxy(http, upstream)
    finally:
        process.kill()
