"""What the scheduler owes its requests: limits, stops, whole characters, reuse, fairness, cancelling, a clean end."""

import contextlib
import re
import socket
import threading

import httpx
import pytest

from harness import (
    ONE_SLOT,
    Server,
    at_once,
    chat_request,
    endless,
    eventually,
    quick_once,
    seconds,
    streamed_chat,
    text_of,
)

STORY = "Tell me a long story about a fisherman."
PARAGRAPH = "The old harbour lay quiet under the morning fog while the boats waited for the tide to turn. "
NONSENSE = "".join(
    chr(code)
    for code in (0x1F600, 0x4F60, 0x597D, 0xE9, 0x1F468, 0x200D, 0x1F469, 0x1F680, 0x4E16, 0x754C, 0x20AC, 0x1D11E)
)


@pytest.fixture(scope="module")
def story(server) -> str:
    return text_of(server.chat(STORY, max_tokens=60))


class TestStopStrings:
    def both_ways(self, server, stop) -> tuple[str, str]:
        body = chat_request(STORY, max_tokens=60, stop=stop)
        whole = server.post("/v1/chat/completions", body)
        answer = text_of(whole), whole["choices"][0]["finish_reason"]
        assert streamed_chat(server, body) == answer
        return answer

    @pytest.mark.parametrize("start", [3, 20, 57, 90])
    def test_spanning_tokens(self, server, story, start):
        stop = story[start : start + 15]  # longer than two tokens, and most likely beginning inside one
        assert self.both_ways(server, [stop]) == (story[: story.index(stop)], "stop")

    def test_first_of_several_wins(self, server, story):
        early, late = story[30:38], story[60:70]
        assert self.both_ways(server, [late, "never said", early])[0] == story[: story.index(early)]

    def test_a_beginning_that_comes_to_nothing_is_not_swallowed(self, server, story):
        stops = [story[40:44] + "\x01", story[-4:] + "\x01"]
        assert self.both_ways(server, stops)[0] == story

    def test_llama_completion_names_the_word(self, server):
        body = {"prompt": STORY, "n_predict": 40, "temperature": 0}
        stop = server.post("/completion", body)["content"][10:20]
        answer = server.post("/completion", {**body, "stop": [stop]})
        assert (answer["stop_type"], answer["stopping_word"]) == ("word", stop)


class TestUtf8:
    """A grammar makes the model say characters that are split over several tokens."""

    def request(self, **fields) -> dict:
        return {
            "prompt": f"Repeat: {NONSENSE}",
            "grammar": f'root ::= "{NONSENSE}"',
            "temperature": 0,
            "n_predict": 200,
            **fields,
        }

    def streamed(self, server, body) -> list[str]:
        with server.stream("/completion", body) as events:
            return [event["content"] for event in events]

    def test_stream_is_whole_characters(self, server):
        pieces = self.streamed(server, self.request())
        assert "".join(pieces) == NONSENSE
        assert server.post("/completion", self.request())["content"] == NONSENSE

    def test_the_same_through_chat(self, server):
        body = chat_request(f"Repeat: {NONSENSE}", grammar=f'root ::= "{NONSENSE}"', max_tokens=200)
        assert streamed_chat(server, body)[0] == text_of(server.post("/v1/chat/completions", body)) == NONSENSE

    @pytest.mark.parametrize("limit", range(1, 10))
    def test_a_cut_inside_a_character_leaves_it_out(self, server, limit):
        body = self.request(n_predict=limit)
        text = server.post("/completion", body)["content"]
        assert NONSENSE.startswith(text)
        assert "".join(self.streamed(server, body)) == text

    @pytest.mark.parametrize(
        "prompt", ["🚀🎉 Was ist das?", "你好，你会说中文吗？", "Ça va? naïve café", "\u0000\u0001 control"]
    )
    def test_any_prompt(self, server, prompt):
        body = chat_request(prompt, max_tokens=16)
        assert streamed_chat(server, body)[0] == text_of(server.post("/v1/chat/completions", body))


class TestLimits:
    def test_one_token(self, server):
        answer = server.chat(STORY, max_tokens=1)
        assert answer["choices"][0]["finish_reason"] == "length"
        assert answer["usage"]["completion_tokens"] == 1

    def test_no_tokens_evaluates_the_prompt_only(self, server):
        answer = server.post("/completion", {"prompt": STORY, "n_predict": 0, "cache_prompt": False})
        assert answer["content"] == ""
        assert answer["timings"]["prompt_n"] > 5

    def test_context_full(self, serve):
        server = serve("-np", "1", "-c", "256")
        answer = server.post("/completion", endless(PARAGRAPH * 8))
        assert answer["stop_type"] == "limit"
        assert 200 < answer["tokens_evaluated"] + answer["tokens_predicted"] <= 257
        chat = server.chat(PARAGRAPH * 8, max_tokens=None, ignore_eos=True)
        assert chat["choices"][0]["finish_reason"] == "length"
        assert chat["usage"]["total_tokens"] <= 257

    def test_time_limit(self, server):
        limit_ms = 200
        answer = server.post("/completion", endless(t_max_predict_ms=limit_ms))
        assert answer["stop_type"] == "limit"
        assert answer["tokens_predicted"] >= 1
        assert answer["timings"]["predicted_ms"] >= limit_ms * 0.99, "what comes within the limit is returned"
        assert answer["truncated"] is False, "the context ended it, not the limit"
        room = server.get("/props")["default_generation_settings"]["n_ctx"]
        assert answer["tokens_evaluated"] + answer["tokens_predicted"] < room


class TestPrefixReuse:
    def test_second_turn_reuses_the_first(self, server):
        first = chat_request(PARAGRAPH * 6 + "What lay quiet?")
        reply = server.post("/v1/chat/completions", {**first, "cache_prompt": False})
        assert reply["timings"]["cache_n"] == 0
        messages = [*first["messages"], reply["choices"][0]["message"], {"role": "user", "content": "And what waited?"}]
        second = server.post("/v1/chat/completions", {**first, "messages": messages})
        cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
        assert cached == second["timings"]["cache_n"]
        assert cached >= reply["usage"]["prompt_tokens"] - 2
        assert cached + second["timings"]["prompt_n"] == second["usage"]["prompt_tokens"]

    def test_the_slot_with_the_longest_prefix_is_chosen(self, server):
        prompts = [f"{topic} {PARAGRAPH * 4}" for topic in ("Herring:", "Mackerel:", "Cod:", "Salmon:")]
        body = {"n_predict": 1, "temperature": 0}
        slots = [server.post("/completion", {**body, "prompt": prompt})["id_slot"] for prompt in prompts]
        assert len(set(slots)) == 4, "a free slot is better than one whose memory is worth something"
        again = [server.post("/completion", {**body, "prompt": prompt + "End."}) for prompt in reversed(prompts)]
        assert [answer["id_slot"] for answer in again] == slots[::-1]
        assert all(answer["timings"]["cache_n"] > 50 for answer in again)

    def test_same_prompt_again(self, server):
        body = {"prompt": PARAGRAPH * 3, "n_predict": 4, "temperature": 0}
        server.post("/completion", body)
        timings = server.post("/completion", body)["timings"]
        assert timings["prompt_n"] <= 2, "only what is needed for the last row is decoded again"


class TestQueue:
    def test_full_queue_is_429_and_the_waiting_one_is_served(self, serve):
        server = serve(*ONE_SLOT, "--queue", "1")
        with server.stream("/completion", endless()) as running:
            next(running)
            responses: list[httpx.Response] = []
            refused = threading.Event()

            def send():
                response = server.http.post("/completion", json={"prompt": "Hi", "n_predict": 1})
                responses.append(response)
                if response.status_code == 429:
                    refused.set()

            senders = [threading.Thread(target=send) for _ in range(3)]
            for sender in senders:
                sender.start()
            assert refused.wait(seconds(20)), "nobody was refused"
            eventually(lambda: len(responses) == 2, "both refusals")
        for sender in senders:
            sender.join()
        assert sorted(response.status_code for response in responses) == [200, 429, 429]
        for response in responses:
            if response.status_code == 429:
                assert int(response.headers["retry-after"]) >= 1
                assert response.json()["error"]["message"]

    def test_first_come_first_served(self, serve):
        server = serve(*ONE_SLOT)
        first_line = len(server.lines)

        def send(i):
            server.post("/completion", {"prompt": "Hi", "n_predict": 8 + i, "ignore_eos": True, "temperature": 0})

        with server.stream("/completion", endless()) as running:
            next(running)
            senders = []
            for i in range(4):
                senders.append(threading.Thread(target=send, args=(i,)))
                senders[-1].start()
                eventually(
                    lambda n=i + 1: server.metrics()["llamacpp:requests_deferred"] == n, f"request {i} in the queue"
                )
        for sender in senders:
            sender.join()
        # The server's own record: our threads may learn of their answers in any order.
        finished = [int(count) for count in re.findall(r", (\d+) tokens in ", server.log(first_line))]
        assert finished[1:] == [8, 9, 10, 11], "the endless one was cancelled first"


class TestCancel:
    def test_closing_a_stream_frees_the_slot(self, serve):
        server = serve(*ONE_SLOT)
        before = server.metrics()["llamacpp:tokens_predicted_total"]
        with server.stream("/completion", endless()) as events:
            next(events)
        server.post("/completion", {"prompt": "Hi", "n_predict": 1})
        eventually(server.slots_idle, "the slot to be idle")
        assert server.metrics()["llamacpp:tokens_predicted_total"] - before < 4000, "went on to the end of the context"

    def test_giving_up_on_an_answer_frees_the_slot(self, serve):
        server = serve(*ONE_SLOT)
        with pytest.raises(httpx.ReadTimeout):
            server.http.post("/completion", json=endless(), timeout=seconds(0.3))
        eventually(server.slots_idle, "the slot to be idle")
        generated = server.get("/slots")[0]["next_token"][0]["n_decoded"]
        assert generated < 2000, f"{generated} tokens for nobody"

    def test_giving_up_while_waiting(self, serve):
        server = serve(*ONE_SLOT)
        with server.stream("/completion", endless()) as running:
            next(running)
            with pytest.raises(httpx.ReadTimeout):
                server.http.post("/completion", json=endless(), timeout=seconds(0.3))
        eventually(
            lambda: server.slots_idle() and server.metrics()["llamacpp:requests_deferred"] == 0, "an idle server"
        )
        assert server.post("/completion", {"prompt": "Hi", "n_predict": 1})["tokens_predicted"] == 1

    def test_a_crowd_that_leaves(self, server):
        def come_and_go(i):
            with server.stream("/completion", endless(f"Visitor {i}")) as events:
                next(events)

        at_once(8, come_and_go, range(8))
        eventually(server.slots_idle, "all slots to be idle")
        assert text_of(server.chat("What is the capital of France?"))


def test_a_long_prompt_does_not_stall_a_running_stream(serve):
    """Every step that decodes a slice of the prompt also gives the stream a token, and a slice is short."""
    slice_tokens = 64
    server = serve("--prompt-slice", str(slice_tokens))
    long_prompt = {"prompt": PARAGRAPH * 150, "n_predict": 1, "cache_prompt": False}
    prompt_tokens = server.post("/completion", long_prompt)["timings"]["prompt_n"]

    def steps() -> tuple[float, float]:
        metrics = server.metrics()
        return metrics["outrider_step_rows_count"], metrics['outrider_step_rows_bucket{le="128"}']

    answer = {}
    sender = threading.Thread(target=lambda: answer.update(server.post("/completion", long_prompt)))
    tokens = 0
    with server.stream("/completion", endless()) as events:
        next(events)
        before = steps()
        sender.start()
        for event in events:
            tokens += len(event["tokens"]) if event.get("tokens") else 1
            if answer:
                break
        else:
            raise AssertionError("the stream ended before the prompt was read")
    sender.join()
    eventually(server.slots_idle, "the slots to be idle")
    all_steps, short_steps = (after - earlier for after, earlier in zip(steps(), before, strict=True))
    slices = prompt_tokens / slice_tokens
    assert all_steps >= slices
    assert all_steps == short_steps, f"{all_steps - short_steps:.0f} steps of more than 128 rows"
    assert tokens >= slices / 2, f"{tokens} tokens beside {slices:.0f} slices"


class TestShutdown:
    def test_a_running_stream_may_finish(self):
        with Server(*ONE_SLOT) as server:
            with server.stream("/completion", {**endless(), "n_predict": 400}) as events:
                next(events)
                server.terminate()
                eventually(lambda: self.refuses(server), "new requests to be refused")
                last = list(events)[-1]
            assert last["stop"] and last["tokens_predicted"] == 400
            assert server.wait_exit() == 0

    def test_drain_seconds_cut_it(self):
        with Server(*ONE_SLOT, "--drain-seconds", "1") as server:
            with server.stream("/completion", endless()) as events:
                next(events)
                server.terminate()
                last = list(events)[-1]
            assert server.wait_exit() == 0
            assert last["stop"], "what exists is returned properly"
            assert last["tokens_predicted"] < 8000 and last["truncated"] is False, "it went on to the end of the context"

    def test_idle_server_ends_at_once(self):
        servers: list[Server] = []

        def start():
            servers.append(Server())
            servers[-1].http.get("/health")  # leaves a keep-alive connection open, for 5 s

        def end():
            servers[-1].terminate()
            assert servers[-1].wait_exit() == 0

        try:
            quick_once(end, seconds(3), "ending", prepare=start)
        finally:
            for server in servers:
                server.abandon()

    def test_a_peer_that_drips_cannot_keep_it(self):
        """Neither until its request is complete, nor for as long as requests may go on."""
        with Server("--http-timeout", "600", "--http-body-seconds", "600") as server:
            with socket.create_connection(("127.0.0.1", server.port)) as peer:
                peer.sendall(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
                eventually(lambda: not peer.sendall(b" "), "a byte")
                server.terminate()

                def ended_in_spite_of_a_byte():
                    with contextlib.suppress(OSError):
                        peer.sendall(b" ")
                    return server.child.poll() is not None

                eventually(ended_in_spite_of_a_byte, "the end", timeout=60)
                assert server.wait_exit() == 0

    def refuses(self, server) -> bool:
        try:
            # A fresh connection: one kept alive could outlive the listening socket.
            return (
                httpx.post(
                    f"{server.url}/completion", json={"prompt": "Hi", "n_predict": 1}, timeout=seconds(30)
                ).status_code
                == 503
            )
        except httpx.TransportError:
            return True
