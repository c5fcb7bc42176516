"""Servers shared by the session: one per set of flags, started when first asked for, stopped cleanly at the end."""

import pytest

from harness import BINARY, DRAFT_MODEL, Server


def pytest_configure(config):
    if not BINARY.exists():
        pytest.exit(f"{BINARY} is missing: ./test builds it, or set OUTRIDER_BIN", returncode=2)


@pytest.fixture(scope="session")
def serve():
    """serve(*flags, model=…) → a running server that tests share; do not leave requests running on it."""
    servers: dict[tuple, Server] = {}
    failures: list[str] = []

    def get(*flags, model=DRAFT_MODEL) -> Server:
        key = (model, *flags)
        if key in servers and (code := servers[key].child.poll()) is not None:
            dead = servers.pop(key)
            dead.abandon()
            failures.append(f"died with exit code {code}:\n{dead.log()}")
        if key not in servers:
            servers[key] = Server(*flags, model=model)
        return servers[key]

    yield get
    for server in servers.values():
        try:
            server.stop()
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, "\n\n".join(failures)


@pytest.fixture(scope="session")
def server(serve) -> Server:
    """The server a newcomer gets: no flags at all."""
    return serve()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    item.first_lines = {id(each): len(each.lines) for each in Server.running}
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        for each in Server.running:
            report.sections.append((f"server on port {each.port}", each.log(item.first_lines.get(id(each), 0))))
    return report
