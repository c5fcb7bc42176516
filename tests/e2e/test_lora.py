"""LoRA adapters: each answer is what its adapters make of the model, whatever runs beside it, with drafts and without;
nothing that was computed with some adapters is used with others."""

import random

import gguf
import pytest
from adapters import write_adapter
from random_models import write_random_model

from harness import DRAFT_MODEL, HYBRID_MODEL, SLOWDOWN, Server, assert_refused, at_once, checked, text_of

ALWAYS = ("--spec-always", "--draft-max", "5")
SETS = {
    "none": [{"id": 0, "scale": 0}],
    "first": [{"id": 0, "scale": 1}],
    "weak": [{"id": 0, "scale": 0.5}],
    "second": [{"id": 1, "scale": 1}],
    "both": [{"id": 0, "scale": -0.7}, {"id": 1, "scale": 1}],
}
NAMES = list(SETS) if SLOWDOWN <= 1 else ["none", "first", "both"]
PROMPTS = ["Tell me about a heron.", "Count from one to ten, then from one to ten again.", "Copy: red green blue red green blue"]


def written(folder, model) -> list:
    """Two adapters for a model: of different ranks and types."""
    f16, f32 = gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.F32
    return [
        write_adapter(model, folder / "first.gguf", seed=1, rank=8, values=f16),
        write_adapter(model, folder / "second.gguf", seed=2, rank=20, alpha=10, values=f32),
    ]


@pytest.fixture(scope="module")
def adapters(tmp_path_factory) -> list:
    return written(tmp_path_factory.mktemp("adapters"), DRAFT_MODEL)


def flags_for(adapters) -> tuple:
    return ("--lora", ",".join(map(str, adapters)), "-np", "4", "-c", "8192")


def requests(temperature: float) -> list[tuple]:
    return [(prompt, {"lora": SETS[name], "temperature": temperature, "seed": 5}) for prompt in PROMPTS for name in NAMES]


def answers(server: Server, asked: list[tuple], parallel: int = 1) -> list[dict]:
    """In parallel the requests are sent in another order, so that neighbours and slots differ."""
    order = list(range(len(asked)))
    if parallel > 1:
        random.Random(parallel).shuffle(order)
    given = at_once(parallel, lambda i: server.chat(asked[i][0], max_tokens=48, **asked[i][1]), order)
    by_index = dict(zip(order, given, strict=True))
    return [by_index[i] for i in range(len(asked))]


def texts(*arguments, **named) -> list[str]:
    return [text_of(answer) for answer in answers(*arguments, **named)]


@pytest.mark.parametrize("temperature", [0, 0.8])
class TestTexts:
    @pytest.fixture
    def plain(self, serve, adapters, temperature) -> list[str]:
        """One at a time, without drafts, every prompt read anew."""
        server = serve(*flags_for(adapters), "--spec", "none")
        return [
            text_of(server.chat(prompt, max_tokens=48, cache_prompt=False, **fields)) for prompt, fields in requests(temperature)
        ]

    def test_each_set_has_texts_of_its_own(self, plain, temperature):
        of_first_prompt = plain[: len(NAMES)]
        assert len(set(of_first_prompt)) == len(NAMES), of_first_prompt

    def test_the_set_without_adapters_is_the_model(self, serve, plain, temperature):
        without = serve("--spec", "none", "-np", "4", "-c", "8192")
        asked = [(prompt, {"temperature": temperature, "seed": 5}) for prompt in PROMPTS]
        assert texts(without, asked) == plain[NAMES.index("none") :: len(NAMES)]

    @pytest.mark.parametrize("parallel", [1, 4, 9])
    @pytest.mark.parametrize(
        "drafts", [("--spec", "none"), (*ALWAYS, "--spec", "suffix"), (*ALWAYS, "-md", DRAFT_MODEL), ()], ids=["none", "suffix", "model", "auto"]
    )  # fmt: skip
    def test_same_text(self, serve, adapters, plain, temperature, parallel, drafts):
        server = serve(*flags_for(adapters), *drafts)
        before = server.metrics()["outrider_adapter_switches_total"]
        given = answers(server, requests(temperature), parallel)
        assert [text_of(answer) for answer in given] == plain
        assert server.metrics()["outrider_adapter_switches_total"] > before
        if ALWAYS[0] in drafts:
            assert sum(answer["timings"]["draft_n_accepted"] for answer in given) > 0, "otherwise this proves nothing"

    def test_padded_steps(self, serve, adapters, plain, temperature):
        assert texts(serve(*flags_for(adapters), "--exact", "pad"), requests(temperature), parallel=4) == plain


@pytest.mark.parametrize("kind", ["hybrid", "qwen3moe"])
def test_other_models(tmp_path, kind):
    """A running state, and experts, which have a product for each expert."""
    model = HYBRID_MODEL
    if kind != "hybrid":
        model = tmp_path / f"{kind}.gguf"
        write_random_model(kind, model)
    flags = (*flags_for(written(tmp_path, model)), "--kernels", "outrider")
    asked = requests(0)
    with Server(*flags, "--spec", "none", model=model) as server:
        assert any("same request, same text" in line for line in server.lines), server.log()
        plain = texts(server, asked)
        assert len(set(plain)) > len(plain) / 2, "the adapters hardly matter: a poor test"
        assert texts(server, asked, parallel=4) == plain
    with Server(*flags, *ALWAYS, "--spec", "suffix", model=model) as server:
        assert texts(server, asked) == plain
        assert texts(server, asked, parallel=4) == plain


class TestMemory:
    PROMPT = "The harbour museum has four rooms, and in each of them there is one thing that you must see. " * 8

    def cached(self, server, **fields) -> int:
        body = {"prompt": self.PROMPT, "n_predict": 4, "temperature": 0, **fields}
        return server.post("/completion", body)["timings"]["cache_n"]

    def test_a_prompt_is_reused_with_the_same_adapters_only(self, serve, adapters):
        server = serve(*flags_for(adapters), "--spec", "none")
        for name in ("first", "none", "weak"):
            assert self.cached(server, lora=SETS[name]) == 0, name
        for name in ("first", "none", "weak"):
            assert self.cached(server, lora=SETS[name]) > 100, name

    def test_a_saved_slot_belongs_to_its_adapters(self, tmp_path, adapters):
        keeping = ("--slot-save-path", tmp_path)
        body = {"prompt": self.PROMPT, "n_predict": 16, "temperature": 0, "id_slot": 1, "lora": SETS["first"]}
        with Server(*flags_for(adapters), *keeping) as server:
            text = server.post("/completion", body)["content"]
            server.post("/slots/1?action=save", {"filename": "with-adapter"})
        with Server(*flags_for(list(reversed(adapters))), *keeping) as server:  # the adapter has another id now
            server.post("/slots/1?action=restore", {"filename": "with-adapter"})
            assert self.cached(server, id_slot=1, lora=SETS["first"]) == 0, "this is the other one now"
            server.post("/slots/1?action=restore", {"filename": "with-adapter"})
            answer = server.post("/completion", {**body, "lora": [{"id": 1, "scale": 1}]})
            assert answer["timings"]["cache_n"] > 100 and answer["content"] == text
        with Server("-np", "4", "-c", "8192", *keeping) as server:
            refused = server.http.post("/slots/1?action=restore", json={"filename": "with-adapter"})
            assert refused.status_code == 400 and "--lora" in refused.text


class TestScales:
    def test_defaults_are_listed_and_set(self, adapters):
        prompt, asked = PROMPTS[0], {"temperature": 0}
        with Server(*flags_for(adapters[:1]), "--lora-scaled", f"{adapters[1]}:0.25") as server:
            listed = server.get("/lora-adapters")
            assert [(each["id"], each["path"], each["scale"]) for each in listed] == [
                (0, "first.gguf", 1),
                (1, "second.gguf", 0.25),
            ]
            assert server.get("/props")["lora_adapters"] == listed
            both = text_of(server.chat(prompt, **asked))
            assert both == text_of(server.chat(prompt, lora=[{"id": 0, "scale": 1}, {"id": 1, "scale": 0.25}], **asked))
            assert server.post("/lora-adapters", [{"id": 0, "scale": 0.5}]) == {"success": True}
            assert [each["scale"] for each in server.get("/lora-adapters")] == [0.5, 0]
            weak = text_of(server.chat(prompt, **asked))
            assert weak == text_of(server.chat(prompt, lora=SETS["weak"], **asked)) != both
            assert weak == text_of(server.chat(prompt, lora=[], **asked))
            settings = server.post("/completion", {"prompt": "Hi", "n_predict": 1})["generation_settings"]
            assert settings["lora"] == [{"id": 0, "scale": 0.5}]
            assert server.metrics()['outrider_adapter_requests_total{adapter="0"}'] >= 5

    def test_every_protocol_takes_them(self, serve, adapters):
        server = serve(*flags_for(adapters), "--spec", "none")
        for path, body in {
            "/completion": {"prompt": "Once", "n_predict": 8},
            "/v1/completions": {"prompt": "Once", "max_tokens": 8},
            "/v1/chat/completions": {"messages": [{"role": "user", "content": "Once"}], "max_tokens": 8},
            "/v1/responses": {"input": "Once", "max_output_tokens": 8},
            "/v1/messages": {"messages": [{"role": "user", "content": "Once"}], "max_tokens": 8},
        }.items():
            before = server.metrics()['outrider_adapter_requests_total{adapter="1"}']
            server.post(path, {**body, "lora": SETS["second"]})
            assert server.metrics()['outrider_adapter_requests_total{adapter="1"}'] == before + 1, path

    def test_loaded_but_not_applied(self, serve, adapters):
        server = serve(*flags_for(adapters), "--lora-init-without-apply")
        assert [each["scale"] for each in server.get("/lora-adapters")] == [0, 0]
        assert text_of(server.chat(PROMPTS[0])) == text_of(server.chat(PROMPTS[0], lora=SETS["none"]))

    def test_choices_of_one_request_have_its_adapters(self, serve, adapters):
        server = serve(*flags_for(adapters), "--spec", "none")
        body = {"lora": SETS["both"], "temperature": 0.8, "seed": 3, "max_tokens": 24}
        several = server.chat(PROMPTS[1], n=3, **body)
        alone = [text_of(server.chat(PROMPTS[1], **{**body, "seed": 3 + i})) for i in range(3)]
        assert [choice["message"]["content"] for choice in several["choices"]] == alone

    def test_nonsense_is_refused(self, serve, adapters):
        server = serve(*flags_for(adapters), "--spec", "none")
        for lora in ([{"id": 2, "scale": 1}], {"id": 0}, [{"id": 0, "scale": "strong"}], [{"scale": 1}], "first"):
            refused = server.http.post("/completion", json={"prompt": "Hi", "lora": lora})
            assert refused.status_code == 400 and "lora" in refused.text, refused.text
            refused = server.http.post("/lora-adapters", json=lora)
            assert refused.status_code == 400, refused.text
        checked(server.http.get("/health"))

    def test_a_server_without_adapters(self, server):
        assert server.get("/lora-adapters") == []
        refused = server.http.post("/completion", json={"prompt": "Hi", "lora": SETS["first"]})
        assert refused.status_code == 400 and "--lora" in refused.text

    def test_with_keys_only_an_admin_sets_the_defaults(self, adapters):
        with Server(*flags_for(adapters), "--api-key", "user", "--admin-key", "boss") as server:
            as_user, as_boss = ({"headers": {"Authorization": f"Bearer {key}"}} for key in ("user", "boss"))
            assert server.http.post("/lora-adapters", json=[], **as_user).status_code == 403
            assert server.http.post("/lora-adapters", json=[], **as_boss).status_code == 200
            assert server.http.get("/lora-adapters", **as_user).status_code == 200


class TestFiles:
    """Exit code 2 and one sentence."""

    def refuse(self, file, saying: str, flag: str = "--lora"):
        assert_refused("serve", "-m", DRAFT_MODEL, "--port", "0", flag, file, saying=saying)

    def test_what_does_not_fit_is_refused(self, tmp_path):
        path = tmp_path / "adapter.gguf"

        def adapter(**changes):
            return write_adapter(changes.pop("model", DRAFT_MODEL), path, seed=1, **changes)

        self.refuse(tmp_path / "none.gguf", "none.gguf' does not exist")
        self.refuse(DRAFT_MODEL, "it is not an adapter")
        self.refuse(adapter(architecture="qwen2"), "for models of the architecture qwen2, but this one is llama")
        self.refuse(adapter(model=HYBRID_MODEL, architecture="llama"), "belongs to another model")
        tokens = ("adapter.alora.invocation_tokens", [5, 6])
        self.refuse(adapter(change=lambda writer: writer.add_array(*tokens)), "activated LoRA")
        whole = adapter().read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        self.refuse(path, "cut short or damaged")
        path.write_bytes(whole[:100])
        self.refuse(path, "not a GGUF file, or is damaged")

    def test_scales_must_be_numbers(self, adapters):
        self.refuse(adapters[0], "is not FILE:SCALE", flag="--lora-scaled")
        self.refuse(f"{adapters[0]}:much", "is not FILE:SCALE", flag="--lora-scaled")
