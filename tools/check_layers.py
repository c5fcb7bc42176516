#!/usr/bin/env python3
"""Holds the includes under src/ to the table of rooms of docs/ARCHITECTURE.md.

A room is a folder of src/; engine/llama is a room of its own inside engine. Prints each violation as file:line: include: rule, and
exits with 1 if there is any. --self-test checks the checker on a made-up tree.
"""
import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import Dict, Iterator, Optional, Set, Tuple

ROOT = Path(__file__).resolve().parent.parent


def read_table(text: str) -> Tuple[Dict[str, Set[str]], Dict[str, Set[str]]]:
    """The rooms of the table in docs/ARCHITECTURE.md: which rooms each may include besides itself, and which libraries."""
    rows = re.findall(r"^\| `src/([a-z/]+)` \|.*\| ([^|]*) \|$", text, re.MULTILINE)
    rooms: Dict[str, Set[str]] = {}
    libraries: Dict[str, Set[str]] = {}
    for room, may_include in rows:
        names, _, others = may_include.partition(";")
        rooms[room] = {name.strip() for name in names.split(",")} - {"nothing", "every room"}
        if names.strip() == "every room":
            rooms[room] = {other for other, _ in rows} - {room}
        libraries[room] = {name.strip() for name in others.split(",") if name.strip()}
    unknown = set().union(*rooms.values()) - set(rooms) | set().union(*libraries.values()) - set(LIBRARIES)
    if not rooms or unknown:
        raise ValueError(f"docs/ARCHITECTURE.md: no table of rooms, or unknown names in it: {sorted(unknown)}")
    return rooms, libraries


# Tests of any room may stand on these: fakes instead of a real engine, how libllama splits a batch, and the draw that
# verification is proved with.
TEST_HEADERS = {"engine/fake_engine.h", "engine/fake_media.h", "engine/fake_tokenizer.h", "engine/step_split.h", "sampling/fake_filters.h", "sampling/gumbel.h"}

# Libraries that only some rooms may know: name in the table, and the headers as a pattern.
COMMON_HEADERS = (
    "arg base64 build-info chat chat-[a-z-]+ common console debug download fit hf-cache http imatrix-loader json json-schema "
    "json-schema-to-grammar log ngram-[a-z]+ peg-parser preset reasoning-budget sampling speculative subproc trie unicode"
)
LIBRARIES = {
    "libllama": r"llama[a-z-]*\.h",
    "libmtmd": r"(mtmd[a-z-]*|clip[a-z-]*)\.h",
    "stb": r"stb/.*",
    "ggml": r"(ggml[a-z-]*|gguf)\.h",
    "llama-common": rf"({COMMON_HEADERS.replace(' ', '|')})\.(h|hpp)|(jinja|parsers|common)/.*",
    "cpp-httplib": r"(cpp-httplib/)?httplib\.h",
    "gRPC": r"(grpc|grpcpp|google/protobuf)/.*|(.*/)?[a-z_]+\.(grpc\.)?pb\.h",
    "OpenSSL": r"openssl/.*",
    "CLI11": r"CLI/.*",
}
ROOMS, ROOM_LIBRARIES = read_table((ROOT / "docs/ARCHITECTURE.md").read_text(encoding="utf-8"))

SOURCES = {".h", ".hpp", ".inc", ".c", ".cc", ".cpp", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def room_of(path: str) -> Optional[str]:
    """The room of a path relative to src/, or None; the longest name wins."""
    matches = [room for room in ROOMS if path.startswith(room + "/")]
    return max(matches, key=len, default=None)


def is_test(path: str) -> bool:
    return Path(path).stem.endswith(("_test", "_test_util"))


def violation(path: str, room: str, quoted: bool, header: str) -> Optional[str]:
    """Which rule an include in the file `path` (relative to src/) breaks, or None."""
    for library, pattern in LIBRARIES.items():
        if re.fullmatch(pattern, header):
            if library in ROOM_LIBRARIES[room]:
                return None
            return f"{library} belongs to {', '.join(r for r in ROOMS if library in ROOM_LIBRARIES[r])}, not to {room}"
    target = room_of(header)
    if target is None:
        if quoted and "/" not in header:
            return 'own headers are included by their path under src/, as "room/file.h", others in angle brackets'
        return None
    if target == room or target in ROOMS[room]:
        return None
    if is_test(path) and header in TEST_HEADERS:
        return None
    return f"{room} may include {', '.join(sorted(ROOMS[room])) or 'no other room'}, not {target}"


def check(source: Path) -> Iterator[str]:
    """The violations in the tree `source`, one line each."""
    for file in sorted(source.rglob("*")):
        if file.suffix not in SOURCES or not file.is_file():
            continue
        path = file.relative_to(source).as_posix()
        room = room_of(path)
        if room is None:
            yield f"{source.name}/{path}:1: not in a room: the rooms are {', '.join(ROOMS)}"
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            include = INCLUDE.match(line)
            if include is None:
                continue
            rule = violation(path, room, include[1] == '"', include[2])
            if rule is not None:
                yield f"{source.name}/{path}:{number}: {line.strip()}: {rule}"


# file, include, whether it is allowed
SELF_TEST = [
    ("base/json.h", "<nlohmann/json.hpp>", True),
    ("base/log.cc", "<fmt/format.h>", True),
    ("base/log.cc", '"base/log.h"', True),
    ("base/log.cc", '"log.h"', False),
    ("base/log.cc", '"engine/engine.h"', False),
    ("base/log_test.cc", "<gtest/gtest.h>", True),
    ("spec/verify.cc", '"base/token.h"', True),
    ("spec/verify.cc", '"engine/engine.h"', False),
    ("spec/verify_test.cc", '"engine/fake_engine.h"', True),
    ("spec/policy_test.cc", '"engine/step_split.h"', True),
    ("spec/policy.cc", '"engine/step_split.h"', False),
    ("chat/chat.cc", "<openssl/sha.h>", False),
    ("download/sha256.cc", "<openssl/evp.h>", True),
    ("sampling/sampler.cc", "<llama.h>", False),
    ("sampling/sampler.cc", '"sampling/draw.h"', True),
    ("engine/engine.h", '"sampling/sampler.h"', False),
    ("engine/engine.h", '"engine/llama/model.h"', False),
    ("engine/engine.h", "<llama.h>", False),
    ("engine/engine.h", "<ggml-backend.h>", False),
    ("engine/llama/model.cc", "<llama.h>", True),
    ("engine/llama/model.cc", '"llama-cpp.h"', True),
    ("engine/llama/model.cc", "<ggml-backend.h>", True),
    ("engine/llama/model.cc", "<gguf.h>", True),
    ("engine/llama/model.cc", '"engine/engine.h"', True),
    ("engine/llama/model.cc", '"sampling/filters.h"', True),
    ("engine/llama/model.cc", '"kernels/plug.h"', True),
    ("engine/llama/model.cc", '"scheduler/scheduler.h"', False),
    ("engine/llama/model.cc", "<common.h>", False),
    ("drafters/model_drafter.cc", '"engine/engine.h"', True),
    ("drafters/model_drafter.cc", '"engine/llama/model.h"', False),
    ("drafters/model_drafter.cc", '"scheduler/scheduler.h"', False),
    ("chat/chat_template.cc", "<chat.h>", True),
    ("chat/chat_template.cc", '"json-schema-to-grammar.h"', True),
    ("chat/chat_template.cc", "<llama.h>", False),
    ("chat/chat_template.cc", '"engine/engine.h"', False),
    ("download/model_download.cc", "<download.h>", True),
    ("download/model_download.cc", '"chat/chat_template.h"', False),
    ("download/model_download.cc", "<llama.h>", False),
    ("kernels/q4.cc", "<ggml-cpu.h>", True),
    ("kernels/q4.cc", "<llama.h>", False),
    ("kernels/q4.cc", '"base/log.h"', False),
    ("scheduler/step.cc", '"drafters/drafter.h"', True),
    ("scheduler/step.cc", '"engine/llama/model.h"', False),
    ("scheduler/step.cc", '"api/protocol.h"', False),
    ("scheduler/step.cc", "<httplib.h>", False),
    ("remote/client.cc", "<grpcpp/grpcpp.h>", True),
    ("remote/client.cc", '"remote/draft.grpc.pb.h"', True),
    ("remote/client.cc", '"scheduler/scheduler.h"', False),
    ("drafters/remote.cc", "<grpcpp/grpcpp.h>", False),
    ("api/chat.cc", '"chat/chat_template.h"', True),
    ("api/chat.cc", '"http/server.h"', False),
    ("api/chat.cc", '"chat.h"', False),
    ("http/server.cc", "<httplib.h>", True),
    ("http/server.cc", '"cpp-httplib/httplib.h"', True),
    ("http/server.cc", '"chat/chat_template.h"', False),
    ("http/server.cc", "<CLI/CLI.hpp>", False),
    ("http/server_test.cc", '"engine/fake_tokenizer.h"', True),
    ("http/http_test_util.h", '"sampling/fake_filters.h"', True),
    ("http/server.cc", '"sampling/fake_filters.h"', False),
    ("chat/chat_test.cc", '"engine/fake_tokenizer.h"', True),
    ("chat/chat.cc", '"engine/fake_tokenizer.h"', False),
    ("bench/runner.cc", '"spec/predict.h"', True),
    ("bench/runner.cc", '"api/protocol.h"', False),
    ("bench/runner.cc", '"http/server.h"', False),
    ("apps/main.cc", "<CLI/CLI.hpp>", True),
    ("apps/main.cc", '"engine/llama/model.h"', True),
    ("apps/main.cc", '"http/server.h"', True),
    ("apps/main.cc", "<llama.h>", False),
    ("apps/main.cc", "<chat.h>", False),
    ("attic/old.cc", "<vector>", False),
    ("stray.cc", "<vector>", False),
]


def self_test() -> Iterator[str]:
    """The cases in which the checker is wrong, each in a tree of its own."""
    for path, include, allowed in SELF_TEST:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "src" / path
            file.parent.mkdir(parents=True)
            file.write_text(f"// first line\n  #  include {include}  // why\n", encoding="utf-8")
            found = list(check(Path(folder) / "src"))
        if bool(found) == allowed:
            yield f"{path} with #include {include} must be {'allowed' if allowed else 'refused'}; got {found}"
        if found and room_of(path) is not None and not found[0].startswith(f"src/{path}:2: "):
            yield f"wrong place in: {found[0]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--self-test", action="store_true", help="check this program instead of src/")
    wrong = list(self_test() if parser.parse_args().self_test else check(ROOT / "src"))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
