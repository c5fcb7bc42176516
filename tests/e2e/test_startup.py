"""Starting: one clear sentence and exit code 2 where it cannot, a handful of lines where it can."""

import re
import socket
import struct
from pathlib import Path

import pytest

from harness import DEFAULT_MODEL, DRAFT_MODEL, Server, assert_refused, checked, quick_once, run_outrider, seconds, text_of


def serve_arguments(model, *flags):
    return ("serve", "-m", model, "--port", "0", *flags)


def gguf_of_architecture(name: str) -> bytes:
    """The smallest well-formed GGUF: version 3, no tensors, one key."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    string_type = 8
    header = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)
    return header + text("general.architecture") + struct.pack("<I", string_type) + text(name)


BROKEN_FILES = {
    "empty": lambda: b"",
    "not a GGUF": lambda: b"This is a text file, not a model.\n" * 100,
    "magic only": lambda: b"GGUF",
    "cut in the header": lambda: DRAFT_MODEL.read_bytes()[:100_000],
    "cut in the weights": lambda: DRAFT_MODEL.read_bytes()[:-1_000_000],
    "unknown architecture": lambda: gguf_of_architecture("nonsense"),
    "huge counts": lambda: b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1 << 60),
}


class TestRefusals:
    def test_empty_key(self):
        assert_refused(*serve_arguments(DRAFT_MODEL), "--host", "0.0.0.0", "--api-key", "", saying="--api-key is empty", timeout=10)

    def test_impossible_slot_path(self):
        assert_refused(*serve_arguments(DRAFT_MODEL), "--slot-save-path", "x" * 300, saying="is not a directory", timeout=10)

    def test_missing_file(self):
        assert_refused(*serve_arguments("/nowhere/model.gguf"), saying=r"/nowhere/model\.gguf", timeout=5)

    def test_directory(self, tmp_path):
        assert_refused(*serve_arguments(tmp_path), saying=re.escape(str(tmp_path)), timeout=5)

    @pytest.mark.parametrize("name", BROKEN_FILES)
    def test_broken_file(self, tmp_path, name):
        path = tmp_path / "broken.gguf"
        path.write_bytes(BROKEN_FILES[name]())
        assert_refused(
            *serve_arguments(path),
            saying=r"nonsense" if name == "unknown architecture" else r"broken\.gguf",
            timeout=10,
        )

    def test_context_larger_than_trained(self):
        assert_refused(*serve_arguments(DRAFT_MODEL, "-c", "1000000", "-np", "1"), saying=r"8,?192", timeout=10)

    def test_unknown_flag_suggests_the_nearest(self):
        assert_refused(*serve_arguments(DRAFT_MODEL, "--temprature", "1"), saying=r"did you mean.*--temp", timeout=5)

    @pytest.mark.parametrize(
        "flags",
        [
            ("-np", "0"),
            ("-np", "many"),
            ("-c", "-5"),
            ("--port", "99999"),
            ("-ctk", "f17"),
            ("-fa", "maybe"),
            ("--exact", "perhaps"),
            ("--temp", "warm"),
            ("--api-key-file", "/nowhere/keys"),
            ("--config", "/nowhere/outrider.toml"),
            ("-t", "-3"),
        ],
        ids=" ".join,
    )
    def test_bad_value_names_its_flag(self, flags):
        names = {
            "-np": "parallel|-np",
            "-c": "ctx|-c",
            "-ctk": "cache-type-k|-ctk",
            "-fa": "flash|-fa",
            "-t": "threads|-t",
        }
        saying = names.get(flags[0], flags[1] if flags[1].startswith("/") else flags[0].lstrip("-"))
        assert_refused(*serve_arguments(DRAFT_MODEL, *flags), saying=saying, timeout=10)

    def test_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            result = run_outrider("serve", "-m", DRAFT_MODEL, "--port", port)
        lines = result.stderr.splitlines()
        assert result.returncode == 2, result.stderr
        assert str(port) in lines[-1]
        assert len(lines) <= 10

    def test_no_model(self):
        assert_refused("serve", "--port", "0", saying="-m|--model", timeout=5)

    def test_slot_save_path_that_is_not_there(self):
        assert_refused(
            *serve_arguments(DRAFT_MODEL, "--slot-save-path", "/nowhere/slots"), saying="/nowhere/slots", timeout=10
        )


class TestHelp:
    @pytest.mark.parametrize("arguments", [("--help",), ("serve", "--help"), ("serve", "-h")], ids=" ".join)
    def test_help(self, arguments):
        result = run_outrider(*arguments, timeout=5)
        assert result.returncode == 0
        assert "serve" in result.stdout
        assert not result.stderr

    def test_serve_help_names_the_flags(self):
        text = run_outrider("serve", "--help", timeout=5).stdout
        for flag in (
            "--model",
            "--ctx-size",
            "--parallel",
            "--queue",
            "--api-key",
            "--exact",
            "--drain-seconds",
            "--prompt-slice",
            "--rpc",
        ):
            assert flag in text, flag

    def test_version(self):
        result = run_outrider("--version", timeout=5)
        assert result.returncode == 0
        assert re.search(r"\d+\.\d+\.\d+", result.stdout)


class TestLog:
    def test_few_lines_at_start_and_one_per_request(self):
        with Server() as server:
            assert server.lines_at_start <= 10
            lines = server.lines_at_start
            for i in range(3):
                server.chat(f"Hello {i}", max_tokens=4)
                lines += 1
                server.wait_for_lines(lines)
            server.http.get("/health")
            server.get("/slots")
            server.chat("The end.", max_tokens=4)
            server.wait_for_lines(lines + 1)
            assert len(server.lines) == lines + 1, server.log()

    def test_a_prompt_is_not_logged(self):
        with Server() as server:
            server.chat("My password is xyzzy-plugh.", max_tokens=4)
            server.wait_for_lines(server.lines_at_start + 1)
            assert "xyzzy" not in server.log()


class TestConfig:
    TOML = "parallel = 2\nctx-size = 1024\ntemp = 0.25\n"

    def test_toml_sets_flags(self, tmp_path):
        path = tmp_path / "outrider.toml"
        path.write_text(self.TOML)
        with Server("--config", path) as server:
            props = server.get("/props")
            assert props["total_slots"] == 2
            assert props["default_generation_settings"]["n_ctx"] == 512
            assert props["default_generation_settings"]["params"]["temperature"] == pytest.approx(0.25)

    def test_command_line_wins(self, tmp_path):
        path = tmp_path / "outrider.toml"
        path.write_text(self.TOML)
        with Server("--config", path, "-np", "1") as server:
            assert server.get("/props")["total_slots"] == 1

    @pytest.mark.parametrize(
        "content", ["parralel = 2\n", "parallel = [\n", "parallel = maybe\n"], ids=["unknown key", "syntax", "type"]
    )
    def test_bad_config(self, tmp_path, content):
        path = tmp_path / "bad.toml"
        path.write_text(content)
        assert_refused(*serve_arguments(DRAFT_MODEL, "--config", path), saying="parallel|parralel|bad.toml", timeout=10)


def test_flags_copied_from_llama_server():
    flags = "--alias tiny --seed 3 --top-k 20 --no-mmap --temp 0.5 "
    flags += "-c 2048 -b 256 -ub 128 -t 2 -tb 2 -ngl 0 -fa on -ctk q8_0 -ctv q8_0 -np 2"
    with Server(*flags.split()) as server:
        assert server.get("/props")["total_slots"] == 2
        assert server.get("/v1/models")["data"][0]["id"] == "tiny"
        assert text_of(server.chat("Hi"))


@pytest.mark.skipif(DEFAULT_MODEL == DRAFT_MODEL, reason="sanitizer runs have only the models of this repository")
def test_default_model():
    def start_and_stop():
        with Server(model=DEFAULT_MODEL):
            pass

    quick_once(start_and_stop, seconds(5), "a second start")
    with Server(model=DEFAULT_MODEL) as server:
        checked(server.http.get("/health"))
        # A small model: it knows colours, but not France (llama-server's answer to that is as wrong as ours).
        assert "red" in text_of(server.chat("Name three colours.", max_tokens=24)).lower()


def test_flags_page_is_what_the_program_says():
    page = Path(__file__).parents[2] / "docs" / "FLAGS.md"
    assert run_outrider("serve", "--help-markdown").stdout == page.read_text(), "run: outrider serve --help-markdown > docs/FLAGS.md"
