"""A model spread over machines: llama.cpp's own rpc-server, here one process on loopback."""

import re
import socket
from pathlib import Path

import pytest

from harness import BUILD_DIR, DRAFT_MODEL, Process, Server, assert_refused, eventually, free_port, text_of


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def worker():
    program = BUILD_DIR / "bin/ggml-rpc-server"
    assert program.exists(), f"{program} is missing: build the target ggml-rpc-server"
    port = free_port()
    process = Process(program, "-H", "127.0.0.1", "-p", port, "-t", "2")
    try:
        eventually(lambda: accepts(port), "the rpc-server's port")
        yield f"127.0.0.1:{port}", process
    finally:
        process.kill()


def resident_bytes(process: Process) -> int:
    status = Path(f"/proc/{process.child.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


def test_chat_through_a_worker(worker):
    address, process = worker
    before = resident_bytes(process)
    with Server("--rpc", address, "-ngl", "99") as server:
        assert resident_bytes(process) - before > DRAFT_MODEL.stat().st_size / 4, "the worker holds layers"
        assert server.get("/props")["exactness"]["holds"] is False
        assert "Paris" in text_of(server.chat("What is the capital of France?"))
        assert text_of(server.chat("List five colours."))


def test_weights_that_stay_here_have_our_kernels(worker):
    address, _ = worker
    with Server("--rpc", address, "-ngl", "99", "-ot", "ffn_.*=CPU", "--kernels", "outrider") as server:
        props = server.get("/props")
        assert re.fullmatch(r"outrider \(.+\) for q8_0 on the CPU; RPC.* computes the rest", props["kernels"])
        assert props["exactness"]["holds"] is False
        assert "Paris" in text_of(server.chat("What is the capital of France?"))


def test_dead_worker():
    address = f"127.0.0.1:{free_port()}"
    assert_refused(
        "serve", "-m", DRAFT_MODEL, "--port", "0", "--rpc", address, "-ngl", "99", saying=address, timeout=20
    )


def test_nonsense_address():
    assert_refused("serve", "-m", DRAFT_MODEL, "--port", "0", "--rpc", "somewhere", saying="somewhere", timeout=20)
