"""Drafts from the target's hidden states: EAGLE-3 heads in files of their own, and heads for multi-token prediction in the
model's file. Texts are those of plain decoding, whatever happens to a slot; and a head that does not fit is refused."""

import pytest

from harness import (
    DEFAULT_MODEL,
    DRAFT_MODEL,
    HYBRID_MODEL,
    Server,
    assert_refused,
    at_once,
    checked,
    endless,
    eventually,
    run_outrider,
    text_of,
)
from heads import write_eagle3
from other_vocabulary import write_with_other_vocabulary
from random_models import WITH_HEADS, write_random_model
from test_speculation import CODE, COPYING, KINDS

ALWAYS = ("--spec-always", "--spec-forget", "--draft-max", "5")
PROMPTS = [*COPYING, "What is the weather in Oslo?", "Once upon a time"]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("heads")


@pytest.fixture(scope="session")
def made(folder):
    """Files by name, written when first asked for: heads for the small model and the hybrid one, which are equally wide,
    and models with heads."""
    writers = {
        "head.gguf": lambda path: write_eagle3(DRAFT_MODEL, path),
        "hybrid-head.gguf": lambda path: write_eagle3(HYBRID_MODEL, path),
        "borrowing.gguf": lambda path: write_eagle3(DRAFT_MODEL, path, borrows=True),
        **{f"{name}.gguf": lambda path, name=name: write_random_model(name, path) for name in WITH_HEADS},
    }

    def get(name: str):
        path = folder / name
        if not path.exists():
            writers[name](path)
        return path

    return get


@pytest.fixture(scope="session")
def setup(made):
    """Model and flags by name."""

    def get(name: str):
        if name in WITH_HEADS:
            return made(f"{name}.gguf"), ("--spec", "mtp")
        model = HYBRID_MODEL if name == "eagle3 on a hybrid" else DRAFT_MODEL
        head = {"eagle3": "head.gguf", "eagle3 that borrows": "borrowing.gguf"}.get(name, "hybrid-head.gguf")
        return model, ("-md", made(head), "--spec", "eagle3")

    return get


SETUPS = ("eagle3", "eagle3 that borrows", "eagle3 on a hybrid", *WITH_HEADS)


def answers(server: Server, parallel: int = 1, prompts=PROMPTS, **fields) -> list[dict]:
    return at_once(parallel, lambda prompt: server.chat(prompt, max_tokens=32, **fields), prompts)


def texts(results: list[dict]) -> list[str]:
    return [text_of(answer) for answer in results]


def drafted_and_accepted(results: list[dict]) -> tuple[int, int]:
    return tuple(sum(answer["timings"][key] for answer in results) for key in ("draft_n", "draft_n_accepted"))


@pytest.mark.parametrize("name", SETUPS)
class TestSameText:
    def test_alone_and_beside_others_with_a_cold_and_a_warm_cache(self, serve, setup, name):
        model, flags = setup(name)
        plain = serve("--spec", "none", model=model)
        total = 0
        with Server(*flags, *ALWAYS, model=model) as server:
            for kind, parallel in (("greedy", 1), ("sampled", 4), ("greedy", 4), ("sampled", 1)):
                results = answers(server, parallel, **KINDS[kind])
                assert texts(results) == texts(answers(plain, **KINDS[kind])), (kind, parallel)
                drafted, accepted = drafted_and_accepted(results)
                assert drafted > 50
                total += accepted
                assert accepted < drafted
            if name != "eagle3 that borrows":  # it says the opposite of what it means
                assert total > 40, "a test in which nothing is right shows little"
            drafter = flags[-1]
            assert server.metrics()[f'outrider_draft_tokens_proposed_total{{drafter="{drafter}"}}'] > 200

    def test_a_conversation_that_goes_on(self, serve, setup, name):
        """The second turn finds its beginning in the target's memory, whose hidden states do not come again."""
        model, flags = setup(name)
        with Server(*flags, *ALWAYS, model=model) as server:
            for kind in KINDS.values():
                results = []
                for each in (serve("--spec", "none", model=model), server):
                    messages = [{"role": "user", "content": COPYING[0]}]
                    for question in ("And once more.", "And in reverse order.", ""):
                        request = {"messages": messages, "max_tokens": 24, **kind}
                        answer = each.post("/v1/chat/completions", request)
                        results.append(text_of(answer))
                        messages += [{"role": "assistant", "content": results[-1]}, {"role": "user", "content": question}]
                assert results[:3] == results[3:]
                assert answer["timings"]["cache_n"] > 50
                assert answer["timings"]["draft_n"] > 0


class TestSlots:
    @pytest.mark.parametrize("name", ("eagle3", "hybrid"))
    def test_a_restored_slot_has_no_states(self, serve, setup, folder, name):
        model, flags = setup(name)
        plain = serve("--spec", "none", model=model)
        prompt = plain.post("/tokenize", {"content": f"Diary:\n{CODE}\n{CODE}"})["tokens"]

        def goes_on(server: Server, prompt: str | list[int]) -> dict:
            request = {"prompt": prompt, "n_predict": 32, "temperature": 0, "id_slot": 0, "return_tokens": True}
            return server.post("/completion", request)

        with Server(*flags, *ALWAYS, "--slot-save-path", folder, model=model) as server:
            def act(action: str):
                checked(server.http.post(f"/slots/0?action={action}", json={"filename": f"{name}.bin"}))

            first = goes_on(server, prompt)["tokens"]
            assert first == goes_on(plain, prompt)["tokens"]
            act("save")
            goes_on(server, "Something else that takes the slot: one two three four five six seven.")
            act("restore")
            answer = goes_on(server, prompt + first)
            assert answer["tokens"] == goes_on(plain, prompt + first)["tokens"]
            assert answer["timings"]["cache_n"] > 50
            assert answer["timings"]["draft_n"] > 0, "the states of new tokens are enough"

    @pytest.mark.parametrize("name", ("eagle3", "hybrid"))
    def test_cancelled_in_the_middle_of_drafts(self, serve, setup, name):
        model, flags = setup(name)
        server = serve(*flags, *ALWAYS, model=model)
        for _ in range(5):
            with server.stream("/completion", endless()) as events:
                for _ in range(4):
                    next(events)
        eventually(server.slots_idle, "the slots to be free")
        expected = texts(answers(serve("--spec", "none", model=model), temperature=0))
        assert texts(answers(server, 4, temperature=0)) == expected


class TestTogether:
    def test_auto_uses_a_head_that_is_given(self, serve, made):
        server = serve("-md", made("head.gguf"), model=DRAFT_MODEL)
        assert "speculation: suffix, ngram-map-k, eagle3 (eagle3 " in server.log()
        assert texts(answers(server, 4, temperature=0)) == texts(answers(serve("--spec", "none"), temperature=0))

    @pytest.mark.parametrize("name", WITH_HEADS)
    def test_auto_uses_the_head_of_the_model(self, serve, made, name):
        model = made(f"{name}.gguf")
        server = serve(model=model)
        assert "speculation: suffix, ngram-map-k, mtp (the model's own head)" in server.log()
        expected = texts(answers(serve("--spec", "none", model=model), temperature=0))
        assert texts(answers(server, 4, temperature=0)) == expected

    def test_the_drafts_of_others_are_continued(self, serve, made):
        server = serve("-md", made("head.gguf"), *ALWAYS, model=DRAFT_MODEL)
        wishes = {"speculative": {"provenance": True}}
        results = answers(server, prompts=COPYING, temperature=0, **wishes)
        assert texts(results) == texts(answers(serve("--spec", "none"), prompts=COPYING, temperature=0))
        names = {name for answer in results for name in answer["timings"]["drafters"]}
        assert {"suffix", "eagle3"} <= names

    def test_rejection_sampling(self, serve, made):
        server = serve("-md", made("head.gguf"), "--spec", "eagle3", *ALWAYS, "--verify", "reject", model=DRAFT_MODEL)
        assert texts(answers(server, 4, temperature=0)) == texts(answers(serve("--spec", "none"), temperature=0))
        assert drafted_and_accepted(answers(server, 4, temperature=0.8, seed=3))[1] > 0

    def test_check_finds_no_difference(self, made):
        for flags in (("-m", DRAFT_MODEL, "-md", made("head.gguf"), "--spec", "eagle3"), ("-m", made("hybrid.gguf"), "--spec", "mtp")):
            check = run_outrider("check", *flags, timeout=120)
            assert check.returncode == 0, check.stdout + check.stderr
            assert f"text with {flags[-1]}, temperature 0.8" in check.stdout and "SKIPPED" not in check.stdout


class TestRefused:
    @pytest.mark.parametrize(
        ("changed", "saying"),
        (
            ({"target_layers": [0, 1, 6]}, "layer 6 .*belongs to another model"),
            ({"target_layers": [0, 1]}, "three layers"),
            ({"target_hidden_size": 512}, "states of 512 numbers.*belongs to another model"),
            ({"block_count": 2}, "one layer"),
            ({"attention.key_length": 32}, "differ in length"),
            ({"d2t": [*range(31), 49152]}, "the token 49152, of a vocabulary of 49152"),
            ({"d2t": [-1, *range(31)]}, "the token -1"),
        ),
    )
    def test_a_head_that_does_not_fit(self, folder, changed, saying):
        path = folder / "wrong.gguf"
        write_eagle3(DRAFT_MODEL, path, own_tokens=32, **changed)
        assert_refused("serve", "-m", DRAFT_MODEL, "-md", path, saying=saying)

    def test_a_head_of_another_model(self, made, folder):
        assert_refused("serve", "-m", made("dense.gguf"), "-md", made("head.gguf"), saying="belongs to another model")
        if DEFAULT_MODEL != DRAFT_MODEL:
            assert_refused("serve", "-m", DEFAULT_MODEL, "-md", made("borrowing.gguf"), saying="belongs to another model")
        other = folder / "other-vocabulary.gguf"
        write_with_other_vocabulary(str(DRAFT_MODEL), str(other))
        assert_refused("serve", "-m", other, "-md", made("head.gguf"), saying="belongs to another model")

    def test_a_model_without_hidden_states(self, made, folder):
        """A head would fit the model with a running state only, but libllama does not give its states."""
        target = folder / "mamba.gguf"
        write_random_model("mamba", target)
        write_eagle3(target, folder / "for-mamba.gguf")
        assert_refused("serve", "-m", target, "-md", folder / "for-mamba.gguf", saying="hidden states of mamba models")

    def test_a_file_that_was_cut(self, made, folder):
        path = folder / "cut.gguf"
        for bytes_kept in (1000, 3_000_000, -100_000):
            path.write_bytes(made("head.gguf").read_bytes()[:bytes_kept])
            assert_refused("serve", "-m", DRAFT_MODEL, "-md", path, saying="cut short|damaged|cannot be loaded")

    def test_what_is_not_what_it_was_said_to_be(self, made):
        head = made("head.gguf")
        assert_refused("serve", "-m", DRAFT_MODEL, "--spec", "mtp", saying="needs a head in the model's file")
        assert_refused("serve", "-m", DRAFT_MODEL, "--spec", "eagle3", saying="give one with -md")
        assert_refused("serve", "-m", DRAFT_MODEL, "-md", DRAFT_MODEL, "--spec", "eagle3", saying="not an EAGLE-3 head")
        assert_refused("serve", "-m", DRAFT_MODEL, "-md", head, "--spec", "model", saying="drafts only beside its model")
        assert_refused("serve", "-m", head, saying="is an EAGLE-3 head")
