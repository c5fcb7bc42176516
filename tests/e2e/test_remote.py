"""Drafting on another machine: whatever the network and the other machine do, the text stays the same and requests end."""

import contextlib
import itertools
import random
import signal
import socket
import subprocess
import threading

import httpx
import pytest

from harness import (
    BINARY,
    DEFAULT_MODEL,
    DRAFT_MODEL,
    HYBRID_MODEL,
    Process,
    Server,
    assert_refused,
    at_once,
    checked,
    eventually,
    free_port,
    parse_prometheus,
    text_of,
)
from other_vocabulary import write_with_other_vocabulary
from toxiproxy import toxiproxy

PROMPTS = [
    "Write a short poem about rain.",
    "List the planets from the sun outwards, one line each, with a fact about each.",
    "def fibonacci(n):",
    "Explain to a child why the sky is blue.",
    "Write a recipe for pancakes with numbered steps.",
]


class DraftServer(Process):
    """`outrider draft` on a free port, or on `port`."""

    def __init__(self, *flags, port: int = 0, model=DRAFT_MODEL, host="127.0.0.1"):
        super().__init__(BINARY, "draft", "-m", model, "--listen", f"{host}:{port}", "--metrics", "127.0.0.1:0", *flags)
        try:
            self.metrics_port = int(self.wait_for_line(r"metrics on port (\d+)")[1])
            self.port = int(self.wait_for_line(r"drafting on port (\d+)")[1])
        except BaseException:
            self.kill()
            raise
        self.address = f"127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, error_type, error, traceback):
        if error_type:
            self.kill()
            return
        self.terminate()
        code = self.wait_exit()
        assert code == 0, f"exit code {code} on SIGTERM:\n{self.log()}"

    @contextlib.contextmanager
    def stopped(self):
        """Its threads stand still while the block runs; its connections stay open."""
        self.child.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.child.send_signal(signal.SIGCONT)

    def metrics(self) -> dict[str, float]:
        text = checked(httpx.get(f"http://127.0.0.1:{self.metrics_port}/metrics")).text
        return {name: value for name, (_, value) in parse_prometheus(text).items()}


def requests(count: int):
    """Pairs of prompt and sampling, greedy and random in turn; the same for everybody."""
    for i in range(count):
        fields = {"temperature": 0} if i % 2 == 0 else {"temperature": 0.8, "seed": i}
        yield PROMPTS[i // 2 % len(PROMPTS)], {"max_tokens": 48, **fields}


@pytest.fixture(scope="module")
def plain():
    """The text without any drafter, by prompt and fields."""
    with Server("--spec", "none", model=DEFAULT_MODEL) as server:
        known = {}

        def text(prompt: str, fields: dict) -> str:
            key = (prompt, *sorted(fields.items()))
            if key not in known:
                known[key] = text_of(server.chat(prompt, **fields))
            return known[key]

        yield text


def drafted_and_right(answer: dict) -> tuple[int, int]:
    remote = answer["timings"]["drafters"].get("remote", {"proposed": 0, "accepted": 0})
    return remote["proposed"], remote["accepted"]


def remote_server(address: str, *flags, **options) -> Server:
    return Server("--spec", f"remote:{address}", "--spec-always", *flags, model=DEFAULT_MODEL, **options)


def wait_until_drafting(server: Server, timeout: float = 120):
    """Asks until drafts of another machine take part in an answer. After many failures it may be half a minute before the
    server tries again."""
    eventually(lambda: drafted_and_right(server.chat(PROMPTS[0], max_tokens=24))[0] > 0, "drafts", timeout)


def steps_of_replicas(server: Server) -> float:
    """Steps that another copy of the target began before the one before was over."""
    return server.metrics()["outrider_lookahead_steps_total"]


def answer_until_a_replica_took_part(server: Server, plain, asked):
    """The texts are right, and another copy of the target has really computed some of their steps."""
    asked, before = list(asked), steps_of_replicas(server)

    def answer_all() -> bool:
        for prompt, fields in asked:
            assert text_of(server.chat(prompt, **fields)) == plain(prompt, fields)
        return steps_of_replicas(server) > before

    eventually(answer_all, "a step that a replica began early", timeout=300)


class Forwarder:
    """A TCP proxy to `port` that counts, so that a test can wait until a server has tried to connect, and failed."""

    def __init__(self, port: int):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port = port
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.ended = 0  # connections that were made and are over
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket):
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port)) as server:
            back = threading.Thread(target=self._copy, args=(server, client), daemon=True)
            back.start()
            self._copy(client, server)
            back.join()
        self.ended += 1

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()


def test_drafts_over_the_network_and_says_the_same(plain):
    with DraftServer() as drafts, remote_server(drafts.address) as server:
        wait_until_drafting(server)
        proposed = accepted = 0

        def answer_all():
            nonlocal proposed, accepted
            for prompt, fields in requests(20):
                answer = server.chat(prompt, **fields)
                assert text_of(answer) == plain(prompt, fields)
                more = drafted_and_right(answer)
                proposed, accepted = proposed + more[0], accepted + more[1]
            return accepted > 100

        # Once is enough unless the machine is busy and drafts come late. How many are right does not depend on that.
        eventually(answer_all, "a hundred drafted tokens that were right", timeout=300)
        assert accepted > proposed / 4, (proposed, accepted)
        counted = drafts.metrics()
        assert counted["outrider_draft_tokens_sent_total"] >= proposed
        assert counted["outrider_draft_streams_broken_total"] == 0
        assert counted["outrider_draft_commits_total"] > 0
        eventually(lambda: drafts.metrics()["outrider_draft_streams"] == 0, "streams to end with their requests")


def test_bad_networks_and_a_server_that_comes_and_goes(plain):
    """50 requests, in turn and side by side, each on a network that is bad in another way."""
    port = free_port()
    with toxiproxy() as through, contextlib.ExitStack() as stack:
        proxy = through(f"127.0.0.1:{port}")
        drafts = DraftServer(port=port)
        stack.callback(lambda: drafts.kill())
        server = stack.enter_context(remote_server(proxy.address))
        wait_until_drafting(server)
        networks = [  # on all but the two that cut connections at once, streams must be opened
            ("latency", {"latency": 0}),
            ("latency", {"latency": 5}),
            ("latency", {"latency": 20}),
            ("latency", {"latency": 80}),
            ("latency", {"latency": 10, "jitter": 10}),
            ("bandwidth", {"rate": 125}),  # kB/s: 1 Mbit/s
            ("reset_peer", {"timeout": 50}),
            ("timeout", {"timeout": 0}),  # a black hole
            ("slicer", {"average_size": 3, "size_variation": 2, "delay": 500}),  # a slow drip
            ("limit_data", {"bytes": 2000}),  # closed in the middle
        ]
        everything = list(requests(50))
        for (kind, attributes), batch in zip(networks, (everything[i : i + 3] for i in range(0, 30, 3))):
            wait_until_drafting(server)
            before = drafts.metrics()["outrider_draft_streams_opened_total"]
            with proxy.toxic(kind, **attributes):
                for prompt, fields in batch:
                    assert text_of(server.chat(prompt, **fields)) == plain(prompt, fields), (kind, attributes)
                if kind not in ("reset_peer", "timeout"):
                    opened = drafts.metrics()["outrider_draft_streams_opened_total"]
                    assert opened > before, (kind, attributes)
        stop = threading.Event()

        def come_and_go():
            nonlocal drafts
            while not stop.wait(1.5):
                drafts.kill()
                if stop.wait(0.5):
                    return
                drafts = DraftServer(port=port)

        vandal = threading.Thread(target=come_and_go)
        vandal.start()
        try:
            for prompt, fields in everything[30:]:
                assert text_of(server.chat(prompt, **fields)) == plain(prompt, fields)
        finally:
            stop.set()
            vandal.join()
        drafts.kill()
        drafts = DraftServer(port=port)
        wait_until_drafting(server)  # after all that it is found again


def test_a_draft_server_that_hangs_and_goes_on_again(plain):
    with DraftServer() as drafts, remote_server(drafts.address) as server:
        wait_until_drafting(server)
        with drafts.stopped():
            asked = itertools.cycle(requests(6))

            def answer_one() -> bool:
                prompt, fields = next(asked)
                assert text_of(server.chat(prompt, **fields)) == plain(prompt, fields)
                return "requests go on without it" in server.log()

            # Within seconds the server finds out, and meanwhile it answers.
            eventually(answer_one, "a sentence in the log about the draft server", timeout=60)
            prompt, fields = next(asked)
            answer = server.chat(prompt, **fields)
            assert text_of(answer) == plain(prompt, fields)
            assert drafted_and_right(answer)[0] == 0
        wait_until_drafting(server)


def test_moves_to_another_server(plain):
    with DraftServer() as second, contextlib.ExitStack() as stack:
        first = DraftServer()
        stack.callback(lambda: first.kill())
        with remote_server(f"{first.address},{second.address}") as server:
            eventually(
                lambda: server.chat(PROMPTS[0]) and first.metrics()["outrider_draft_tokens_sent_total"] > 0,
                "drafts of the first",
            )
            first.kill()
            for prompt, fields in requests(6):
                assert text_of(server.chat(prompt, **fields)) == plain(prompt, fields)
            wait_until_drafting(server)
            assert second.metrics()["outrider_draft_tokens_sent_total"] > 0


def test_eight_sequences_at_one_draft_server(plain):
    # Twice as many sequences there: a stream that has ended leaves its own a moment later.
    with DraftServer("-np", "16") as drafts, remote_server(drafts.address, "-np", "8") as server:
        wait_until_drafting(server)
        without_drafts = list(requests(16))

        def ask_those_without_drafts() -> bool:
            nonlocal without_drafts
            answers = at_once(8, lambda each: server.chat(each[0], **each[1]), without_drafts)
            assert [text_of(answer) for answer in answers] == [plain(*each) for each in without_drafts]
            without_drafts = [each for each, answer in zip(without_drafts, answers) if drafted_and_right(answer)[0] == 0]
            eventually(lambda: drafts.metrics()["outrider_draft_streams"] == 0, "streams to end", timeout=60)
            return not without_drafts

        # Every request gets drafts; on a busy machine some of them not at the first try.
        eventually(ask_those_without_drafts, "drafts for every request", timeout=300)
        assert drafts.metrics()["outrider_draft_streams_refused_total"] == 0


def test_another_copy_of_the_target_begins_with_what_comes_next(plain):
    with DraftServer("-t", "1") as drafts, remote_server(drafts.address, "--replica", "none", "-t", "1") as server:
        wait_until_drafting(server)
        answer_until_a_replica_took_part(server, plain, requests(12))
        asked = list(requests(8))
        answers = at_once(4, lambda each: server.chat(each[0], **each[1]), asked)
        assert [text_of(answer) for answer in answers] == [plain(*each) for each in asked]


def test_another_copy_of_the_target_beside_a_draft_model(plain):
    """Both copies and the draft model may compute at the same time."""
    with DraftServer("-t", "1") as drafts:
        flags = ("--replica", "none", "-t", "2", "-md", str(DRAFT_MODEL))
        with Server("--spec", f"remote:{drafts.address}", *flags, model=DEFAULT_MODEL) as server:
            wait_until_drafting(server)
            answer_until_a_replica_took_part(server, plain, requests(8))


def test_a_prompt_travels_once(plain):
    long = "The harbour froze over in the winter of 1893, and nobody could leave. " * 40
    with DraftServer("-np", "1") as drafts, remote_server(drafts.address, "-np", "1", "-c", "4096") as server:
        wait_until_drafting(server)

        def ask_until(question: str, arrived, what: str):
            """An answer may be over before the draft server has read its prompt: then the question is asked again."""

            def ask():
                server.chat(long + question, max_tokens=8)
                eventually(lambda: drafts.metrics()["outrider_draft_streams"] == 0, "the stream to end", timeout=60)
                return arrived(drafts.metrics())

            eventually(ask, what, timeout=300)

        ask_until("Summarise.", lambda now: now["outrider_draft_context_tokens_total"] >= 512, "the context to travel")
        before = drafts.metrics()
        assert before["outrider_draft_reused_tokens_total"] < 512, "nothing was there to reuse"
        ask_until("Translate.", lambda now: now["outrider_draft_reused_tokens_total"] >= 512, "the context to be reused")
        after = drafts.metrics()
        sent, streams = (
            after[name] - before[name]
            for name in ("outrider_draft_context_tokens_total", "outrider_draft_streams_opened_total")
        )
        assert sent < 300 * streams, f"{sent:.0f} tokens in {streams:.0f} streams"


# --- Certificates


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Two folders of certificates, of authorities that do not know each other."""
    folders = [tmp_path_factory.mktemp("certificates") / name for name in ("ours", "theirs")]
    for folder in folders:
        subprocess.run([BINARY, "cert", "--out", folder, "--host", "draft.example.org,192.168.1.20"], check=True)
    return folders


def test_certificates_are_kept_and_private(certificates, tmp_path):
    ours = certificates[0]
    assert (ours / "server.key").stat().st_mode & 0o077 == 0
    assert_refused("cert", "--out", ours, saying="not overwritten")
    text = subprocess.run(
        ["openssl", "x509", "-in", ours / "server.crt", "-noout", "-text"], capture_output=True, text=True, check=True
    ).stdout
    assert "draft.example.org" in text and "192.168.1.20" in text and "localhost" in text
    subprocess.run(["openssl", "verify", "-CAfile", ours / "ca.crt", ours / "client.crt"], check=True)
    # Another server of the same authority.
    (tmp_path / "ca.crt").write_bytes((ours / "ca.crt").read_bytes())
    (tmp_path / "ca.key").write_bytes((ours / "ca.key").read_bytes())
    subprocess.run([BINARY, "cert", "--out", tmp_path], check=True)
    subprocess.run(["openssl", "verify", "-CAfile", ours / "ca.crt", tmp_path / "server.crt"], check=True)
    assert_refused("cert", "--out", tmp_path / "x", "--host", "a b", saying="not the name")


def test_mutual_certificates(plain, certificates):
    ours, theirs = certificates
    prompt, fields = PROMPTS[0], {"max_tokens": 32, "temperature": 0}
    with DraftServer("--cert", ours) as drafts:
        # Through a forwarder like the others below, so that a forwarder that leads nowhere would be seen.
        with Forwarder(drafts.port) as way, remote_server(f"{way.address},cert={ours}") as server:
            wait_until_drafting(server)
            assert text_of(server.chat(prompt, **fields)) == plain(prompt, fields)
        opened = drafts.metrics()["outrider_draft_streams_opened_total"]
        for certificate in (f",cert={theirs}", ""):
            with Forwarder(drafts.port) as way, remote_server(way.address + certificate) as server:
                # It has tried to connect and was turned away, and has tried again.
                eventually(lambda: way.ended >= 2, "attempts to connect", timeout=60)
                for _ in range(3):
                    answer = server.chat(prompt, **fields)
                    assert text_of(answer) == plain(prompt, fields)
                    assert drafted_and_right(answer)[0] == 0
        assert drafts.metrics()["outrider_draft_streams_opened_total"] == opened


def test_a_token_instead_of_a_certificate(plain, certificates):
    ours = certificates[0]
    only_authority = ours.parent / "authority"
    only_authority.mkdir()
    (only_authority / "ca.crt").write_bytes((ours / "ca.crt").read_bytes())
    with DraftServer("--cert", ours, "--token", "open sesame") as drafts:
        with remote_server(f"{drafts.address},cert={only_authority},token=open sesame") as server:
            wait_until_drafting(server)
        with remote_server(f"{drafts.address},cert={only_authority},token=wrong") as server:
            assert drafted_and_right(server.chat(PROMPTS[0]))[0] == 0
            server.wait_for_line("wants a certificate of its authority, or its token")


# --- Bad flags, bad peers


def test_plain_text_stays_on_this_machine():
    assert_refused("draft", "-m", DRAFT_MODEL, "--listen", "0.0.0.0:0", saying="outrider cert")
    assert_refused("serve", "-m", DRAFT_MODEL, "--spec", "remote:192.0.2.1:8090", saying="outrider cert")


def test_bad_flags(tmp_path):
    assert_refused("serve", "-m", DRAFT_MODEL, "--spec", "remote", saying="remote:host:port")
    assert_refused("serve", "-m", DRAFT_MODEL, "--spec", "remote:nowhere", saying="host:port")
    assert_refused("serve", "-m", DRAFT_MODEL, "--spec", "remote:127.0.0.1:1,nonsense=1", saying="nonsense")
    assert_refused("serve", "-m", DRAFT_MODEL, "--spec", "remote:127.0.0.1:1,cert=/nowhere", saying="/nowhere")
    assert_refused("serve", "-m", DRAFT_MODEL, "--replica", "none", saying="--spec remote")
    folder = ("--slot-save-path", tmp_path)
    assert_refused("serve", "-m", DRAFT_MODEL, "--replica", "none", *folder, "--spec", "remote:127.0.0.1:1", saying="--replica")
    assert_refused("check", "-m", DRAFT_MODEL, "--replica", "none", saying="outrider serve")
    assert_refused("serve", "-m", HYBRID_MODEL, "--replica", "none", "--spec", "remote:127.0.0.1:1", saying="--replica")
    assert_refused("serve", "-m", DRAFT_MODEL, "--replica", "CUDA9", "--spec", "remote:127.0.0.1:1", saying="CUDA9")
    assert_refused("draft", "-m", DRAFT_MODEL, "--listen", "nowhere", saying="host:port")
    assert_refused("draft", saying="-m")
    assert_refused("serve", "-m", DRAFT_MODEL, "--spec", "remote:127.0.0.1:1,token=schlüssel", saying="ASCII")


def test_a_draft_model_of_another_vocabulary_is_refused_in_a_sentence(plain, tmp_path_factory):
    other = tmp_path_factory.mktemp("models") / "other-vocabulary.gguf"
    write_with_other_vocabulary(str(DRAFT_MODEL), str(other))
    with DraftServer(model=other) as drafts, remote_server(drafts.address) as server:
        prompt, fields = PROMPTS[0], {"max_tokens": 24, "temperature": 0}
        eventually(lambda: server.chat(prompt, **fields) and "vocabulary" in server.log(), "a sentence in the log")
        assert text_of(server.chat(prompt, **fields)) == plain(prompt, fields)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(range(256)) * 100])
def test_a_server_that_is_something_else(plain, answer):
    prompt, fields = PROMPTS[1], {"max_tokens": 24, "temperature": 0}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answered = []

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        connection.sendall(answer)
                    answered.append(connection)

        threading.Thread(target=serve, daemon=True).start()
        with remote_server(f"127.0.0.1:{listener.getsockname()[1]}") as server:
            eventually(lambda: len(answered) >= 2, "it to connect, and to try again", timeout=60)
            assert text_of(server.chat(prompt, **fields)) == plain(prompt, fields)


def test_garbage_costs_the_draft_server_one_connection(plain):
    with DraftServer("-np", "2") as drafts, remote_server(drafts.address) as server:
        wait_until_drafting(server)
        noise = random.Random(1)
        for size in (0, 1, 9, 24, 5000, 200_000):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", drafts.port), timeout=5) as peer:
                peer.sendall(noise.randbytes(size))
                peer.settimeout(0.2)
                peer.recv(1000)
        silent = [socket.create_connection(("127.0.0.1", drafts.port)) for _ in range(50)]
        prompt, fields = PROMPTS[0], {"max_tokens": 32, "temperature": 0}
        assert text_of(server.chat(prompt, **fields)) == plain(prompt, fields)
        wait_until_drafting(server)
        for each in silent:
            each.close()
        assert checked(httpx.get(f"http://127.0.0.1:{drafts.metrics_port}/health")).json() == {"status": "ok"}
