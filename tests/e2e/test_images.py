"""Pictures in prompts (--mmproj): each is read, the texts are those of plain decoding whatever happens beside them, what was
read is not read again, and files that are no pictures, or not usable ones, are refused while the server goes on."""

import base64
import struct
from pathlib import Path

import anthropic
import httpx
import numpy
import openai
import pytest

from harness import DRAFT_MODEL, HYBRID_MODEL, Server, assert_refused, at_once, checked, seconds, text_of
from heads import write_eagle3
from projectors import ROWS, SLICE_ROWS, picture, png, write_model_with_marks, write_projector

STORY = "The cat sat on the mat. The dog sat on the mat. The bird sat on the mat. The cat sat on"
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeX"
    "BkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wAARCAAQ"
    "ABgDASIAAhEBAxEB/8QAFwAAAwEAAAAAAAAAAAAAAAAAAAUGBP/EAB8QAAEDAwUAAAAAAAAAAAAAAAADBGEBAiEFERIxUf/EABcBAAMBAAAAAA"
    "AAAAAAAAAAAAIDBAX/xAAeEQACAQMFAAAAAAAAAAAAAAAAAgQBAxIREyFBgf/aAAwDAQACEQMRAD8AlEWMG5FhA3QYwMUGHWCW224IjTtOxIjp"
    "0AVNjSlmOO9fACZ46VxZufTftTq4n//Z"
)


def data_url(file: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(file).decode()}"


def image_part(file: bytes, kind: str = "png") -> dict:
    return {"type": "image_url", "image_url": {"url": data_url(file, kind)}}


def text_part(text: str) -> dict:
    return {"type": "text", "text": text}


def chat(*parts: dict, **fields) -> dict:
    return {"messages": [{"role": "user", "content": parts}], "max_tokens": 24, "temperature": 0, **fields}


def ask(server: Server, *parts: dict, **fields) -> dict:
    return server.post("/v1/chat/completions", chat(*parts, **fields))


def cached(answer: dict) -> int:
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


# Conversations of every shape: a picture at either end, between texts, several, larger than a step, the same one twice.
CONVERSATIONS = [
    [text_part("What is this?"), image_part(picture(1))],
    [image_part(picture(2)), text_part("What is this?")],
    [text_part(STORY), image_part(picture(3)), text_part(STORY)],
    [image_part(picture(4)), image_part(picture(5)), text_part("Which one is larger?")],
    [image_part(picture(1)), text_part(STORY), image_part(picture(1)), text_part("One, two, three, one, two,")],
    [part for seed in range(6, 16) for part in (image_part(picture(seed)), text_part(f"This is number {seed}."))],
    [text_part(STORY)],
]


@pytest.fixture(scope="module")
def projector(tmp_path_factory):
    """The projector's path, for both in-repo models, which are equally wide."""
    path = tmp_path_factory.mktemp("projectors") / "mmproj.gguf"
    write_projector(DRAFT_MODEL, path)
    return path


@pytest.fixture(scope="module")
def seeing(serve, projector):
    """seeing(*flags, model=…) → a server that reads pictures."""
    return lambda *flags, model=DRAFT_MODEL: serve("--mmproj", projector, *flags, model=model)


@pytest.fixture(scope="module")
def expected(seeing) -> dict:
    """Texts of plain decoding by model, each conversation alone and from the beginning."""
    return {
        model: [
            text_of(ask(seeing("--spec", "none", model=model), *parts, cache_prompt=False)) for parts in CONVERSATIONS
        ]
        for model in (DRAFT_MODEL, HYBRID_MODEL)
    }


class TestPictures:
    def test_another_picture_another_text(self, seeing):
        texts = {text_of(ask(seeing(), image_part(picture(seed)), text_part("What is this?"))) for seed in range(8)}
        assert len(texts) >= 6, texts

    def test_one_pixel_matters(self, seeing):
        pixels = numpy.zeros((56, 56, 3), dtype=numpy.uint8)
        changed = pixels.copy()
        changed[30, 20] = 255
        logprobs = [
            ask(seeing(), image_part(png(each)), text_part("?"), logprobs=True)["choices"][0]["logprobs"]["content"][0]
            for each in (pixels, changed)
        ]
        assert logprobs[0]["logprob"] != logprobs[1]["logprob"]

    def test_the_same_picture_is_not_read_again(self, seeing):
        server = seeing()
        first = ask(server, image_part(picture(100)), text_part("What is this?"))
        again = ask(server, image_part(picture(100)), text_part("What is this?"))
        other = ask(server, image_part(picture(101)), text_part("What is this?"))
        assert text_of(again) == text_of(first)
        assert cached(again) == first["usage"]["prompt_tokens"] - 1
        assert cached(other) < first["usage"]["prompt_tokens"] - ROWS
        assert first["usage"]["prompt_tokens"] > ROWS

    def test_a_conversation_goes_on_from_the_picture(self, seeing):
        server = seeing()
        body = chat(image_part(picture(102)), text_part("What is this?"))
        answer = server.post("/v1/chat/completions", body)
        body["messages"] += [
            {"role": "assistant", "content": text_of(answer)},
            {"role": "user", "content": [text_part("Why?"), image_part(picture(103))]},
        ]
        assert cached(server.post("/v1/chat/completions", body)) >= answer["usage"]["prompt_tokens"] - 5

    def test_the_smallest_picture(self, seeing):
        pixel = numpy.zeros((1, 1, 3), dtype=numpy.uint8)
        assert ask(seeing(), image_part(png(pixel)), text_part("?"))["usage"]["prompt_tokens"] > ROWS

    def test_jpeg(self, seeing):
        texts = [text_of(ask(seeing(), image_part(file, "jpeg"), text_part("?"))) for file in (JPEG, JPEG)]
        assert texts[0] == texts[1]


class TestExact:
    """Texts are those of plain decoding, alone, with a fresh memory."""

    @pytest.mark.parametrize("model", [DRAFT_MODEL, HYBRID_MODEL], ids=["transformer", "hybrid"])
    @pytest.mark.parametrize(
        "flags",
        [
            ("--spec", "none"),
            (),
            ("--spec-always", "--spec-forget"),
            ("-ub", "32", "--prompt-slice", "7"),
            ("-md", DRAFT_MODEL, "--spec", "model", "--spec-always", "--spec-forget", "--draft-max", "3"),
        ],
        ids=["plain", "auto", "always", "small steps", "model"],
    )
    def test_whatever_is_beside(self, seeing, expected, flags, model):
        server = seeing("-np", "4", *flags, model=model)
        answers = at_once(4, lambda parts: ask(server, *parts), CONVERSATIONS * 2)
        assert [text_of(answer) for answer in answers] == expected[model] * 2
        assert [text_of(ask(server, *parts)) for parts in CONVERSATIONS] == expected[model]
        if "--spec-always" in flags:
            assert sum(answer["timings"]["draft_n"] for answer in answers) > 0, "drafting goes on after a picture"

    def test_a_picture_in_slices(self, serve, tmp_path_factory):
        """Idefics3: a large picture becomes several parts with tokens between them."""
        folder = tmp_path_factory.mktemp("slices")
        model, slices = folder / "model.gguf", folder / "mmproj.gguf"
        write_model_with_marks(model)
        write_projector(DRAFT_MODEL, slices, kind="idefics3")
        square = [text_part(STORY), image_part(picture(1, 120, 100)), text_part(STORY)]
        wide = [text_part(STORY), image_part(picture(1, 120, 40)), text_part(STORY)]
        plain = serve("--mmproj", slices, "--spec", "none", model=model)
        always = serve("--mmproj", slices, "-np", "4", "-ub", "32", "--spec-always", "--spec-forget", model=model)
        expected = [ask(plain, *parts, cache_prompt=False) for parts in (square, wide)]
        sizes = [answer["usage"]["prompt_tokens"] for answer in expected]
        assert sizes[0] > sizes[1] + 2 * SLICE_ROWS, "four slices and two"
        answers = at_once(4, lambda parts: ask(always, *parts), [square, wide] * 4)
        assert [text_of(answer) for answer in answers] == [text_of(answer) for answer in expected] * 4

    def test_with_a_head(self, seeing, expected, tmp_path):
        head = tmp_path / "head.gguf"
        write_eagle3(DRAFT_MODEL, head)
        server = seeing("--spec", "eagle3", "-md", head, "--spec-always", "--spec-forget", "--draft-max", "5")
        answers = at_once(4, lambda parts: ask(server, *parts), CONVERSATIONS)
        assert [text_of(answer) for answer in answers] == expected[DRAFT_MODEL]
        assert sum(answer["timings"]["draft_n"] for answer in answers) > 0

    def test_n_answers_are_those_of_n_seeds(self, seeing):
        server, parts = seeing(), CONVERSATIONS[2]
        several = ask(server, *parts, n=3, temperature=0.8, seed=5)
        alone = [text_of(ask(server, *parts, temperature=0.8, seed=5 + i)) for i in range(3)]
        assert [choice["message"]["content"] for choice in several["choices"]] == alone

    def test_penalties_do_not_see_pictures(self, seeing):
        """Whether the stand-ins of its rows are punished would depend on the picture's bytes, not on what it shows."""
        server = seeing("--spec", "none")
        fields = {"repeat_penalty": 1.3, "repeat_last_n": -1}
        texts = [text_of(ask(server, image_part(picture(1)), text_part(STORY), **fields)) for _ in range(2)]
        assert texts[0] == texts[1]


class TestClients:
    def test_openai(self, seeing):
        server = seeing()
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=seconds(120), max_retries=0) as client:
            answer = client.chat.completions.create(
                model="any", **chat(text_part("What is this?"), image_part(picture(1)), max_tokens=16)
            )
            content = [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": data_url(picture(1)), "detail": "auto"},
            ]
            response = client.responses.create(
                model="any", input=[{"role": "user", "content": content}], max_output_tokens=16, temperature=0
            )
        assert answer.usage.prompt_tokens > ROWS
        assert response.output_text == answer.choices[0].message.content

    def test_anthropic(self, seeing):
        server = seeing()
        source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(picture(1)).decode()}
        content = [{"type": "text", "text": "What is this?"}, {"type": "image", "source": source}]
        messages = [{"role": "user", "content": content}]
        with anthropic.Anthropic(base_url=server.url, api_key="none", timeout=seconds(120), max_retries=0) as claude:
            answer = claude.messages.create(model="any", max_tokens=16, messages=messages, extra_body={"temperature": 0})
            counted = claude.messages.count_tokens(model="any", messages=messages)
        expected = ask(server, text_part("What is this?"), image_part(picture(1)), max_tokens=16)
        assert answer.content[0].text == text_of(expected)
        assert counted.input_tokens == expected["usage"]["prompt_tokens"]

    def test_llama(self, seeing):
        """llama.cpp's way to send text with pictures."""
        server = seeing()
        body = chat(text_part("What is this?"), image_part(picture(1)))
        prompt = server.post("/apply-template", body)["prompt"]
        assert prompt.count("<__media__>") == 1
        files = [base64.b64encode(picture(1)).decode()]
        completion = {"prompt": {"prompt_string": prompt, "multimodal_data": files}, "n_predict": 24, "temperature": 0}
        expected = server.post("/v1/chat/completions", body)
        answer = server.post("/completion", completion)
        assert answer["content"] == text_of(expected)
        assert answer["tokens_evaluated"] == expected["usage"]["prompt_tokens"]
        assert answer["prompt"] == prompt.replace("<__media__>", "")

    def test_what_it_says_of_itself(self, seeing, server):
        assert seeing().get("/props")["modalities"] == {"vision": True, "video": False, "audio": False}
        assert "multimodal" in seeing().get("/v1/models")["models"][0]["capabilities"]
        assert not server.get("/props")["modalities"]["vision"]


PNG = picture(1)
GIF, BMP = ((Path(__file__).parents[1] / "fuzz/corpus/picture" / name).read_bytes() for name in ("gif", "bmp"))
HOSTILE = {
    "not a picture": (b"hello", "no picture"),
    "cut off": (PNG[: len(PNG) // 2], "cut off or damaged"),
    "only the beginning": (PNG[:8], "cut off or damaged"),
    "a JPEG cut off": (JPEG[:-40], "cut off"),
    "a GIF cut off": (GIF[: len(GIF) // 2], "cut off"),
    "a BMP cut off": (BMP[: len(BMP) // 2], "cut off"),
    "claims to be huge": (png(numpy.zeros((4, 4, 3), dtype=numpy.uint8), claims=(8000, 8000)), "million are decoded"),
    "claims more than it has": (png(numpy.zeros((4, 4, 3), dtype=numpy.uint8), claims=(500, 500)), "damaged"),
    "no pixels": (png(numpy.zeros((4, 4, 3), dtype=numpy.uint8), claims=(0, 4)), "damaged"),
    "a thread": (png(numpy.zeros((1, 3000, 3), dtype=numpy.uint8)), "times the other"),
    "noise": (PNG[:40] + bytes(range(256)) * 20, "damaged"),
}
NOT_SENT = {
    "from the network": ("https://example.com/cat.png", "fetches nothing"),
    "from its disk": ("file:///etc/passwd", "reads no files"),
    "not base64": ("data:image/png;base64,@@@@", "not base64"),
    "no base64": ("data:image/png,abc", "base64"),
    "another type": ("data:text/html;base64,aGVsbG8=", "image/"),
    "empty": ("data:image/png;base64,", "empty"),
}


def refusal(server: Server, part: dict) -> str:
    answer = httpx.post(f"{server.url}/v1/chat/completions", json=chat(part), timeout=seconds(60))
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["param"].startswith("messages[0].content[0]")
    return error["message"]


def test_gif_and_bmp_are_read(seeing):
    """Also a BMP whose rows go from top to bottom, which says so by a negative height."""
    (height,) = struct.unpack_from("<i", BMP, 22)
    for file in (GIF, BMP, BMP[:22] + struct.pack("<i", -height) + BMP[26:]):
        answer = ask(seeing(), image_part(file), text_part("?"))
        assert answer["usage"]["prompt_tokens"] > ROWS


class TestRefusals:
    @pytest.mark.parametrize("name", HOSTILE)
    def test_files(self, seeing, name):
        file, reason = HOSTILE[name]
        assert reason in refusal(seeing(), image_part(file))
        assert text_of(ask(seeing(), *CONVERSATIONS[0]))

    @pytest.mark.parametrize("name", NOT_SENT)
    def test_addresses(self, seeing, name):
        url, reason = NOT_SENT[name]
        assert reason in refusal(seeing(), {"type": "image_url", "image_url": {"url": url}})

    def test_many_at_once(self, seeing, expected):
        server = seeing("--spec", "none")
        files = [file for file, _ in HOSTILE.values()] * 3

        def send(i):
            return ask(server, *CONVERSATIONS[i % 7]) if i % 2 else refusal(server, image_part(files[i]))

        good = at_once(4, send, range(27))
        assert [text_of(good[i]) for i in range(1, 27, 2)] == [expected[DRAFT_MODEL][i % 7] for i in range(1, 27, 2)]

    def test_sounds(self, seeing):
        part = {"type": "input_audio", "input_audio": {"data": base64.b64encode(b"RIFF").decode(), "format": "wav"}}
        assert "does not read" in refusal(seeing(), part)

    def test_a_model_without_a_projector(self, server):
        assert "--mmproj" in refusal(server, image_part(PNG))

    def test_a_picture_that_does_not_fit(self, seeing):
        server = seeing("-c", "256", "-np", "1")
        body = chat(*(image_part(picture(seed)) for seed in range(20)))
        answer = httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=seconds(60))
        assert answer.status_code == 400 and answer.json()["error"]["type"] == "exceed_context_size_error"

    def test_a_slot_with_a_picture_is_not_saved(self, projector, tmp_path):
        with Server("--mmproj", projector, "--slot-save-path", tmp_path, "-np", "1") as server:
            ask(server, *CONVERSATIONS[0])
            answer = httpx.post(f"{server.url}/slots/0?action=save", json={"filename": "slot"}, timeout=seconds(60))
            assert answer.status_code == 501 and "picture" in answer.json()["error"]["message"]
            checked(httpx.post(f"{server.url}/slots/0?action=erase", timeout=seconds(60)))
            ask(server, text_part("Hi"))
            checked(httpx.post(f"{server.url}/slots/0?action=save", json={"filename": "slot"}, timeout=seconds(60)))

    def test_projectors(self, tmp_path):
        serve = ("serve", "-m", DRAFT_MODEL, "--port", "0", "--mmproj")
        assert_refused(*serve, tmp_path / "missing.gguf", saying="is not a projector")
        assert_refused(*serve, DRAFT_MODEL, saying="is not a projector")
        wide = tmp_path / "wide.gguf"
        write_projector(DRAFT_MODEL, wide, width=128)
        assert_refused(*serve, wide, saying="cannot be used with this model: .*mismatch")
        unknown = tmp_path / "unknown.gguf"
        write_projector(DRAFT_MODEL, unknown, kind="nonsense")
        assert_refused(*serve, unknown, saying="unknown projector type")
        at_once_attention = tmp_path / "gemma3.gguf"
        write_projector(DRAFT_MODEL, at_once_attention, kind="gemma3")
        assert_refused(*serve, at_once_attention, saying="gemma3, cannot be used: .*not causal")
        slices = tmp_path / "idefics3.gguf"
        write_projector(DRAFT_MODEL, slices, kind="idefics3")
        assert_refused(*serve, slices, saying="idefics3, is not for this model: the vocabulary lacks")
