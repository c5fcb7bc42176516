"""Models whose memory is a running state: drafts never show in the answer, whatever the architecture and however much is
taken back, and a follow-up turn does not read its prompt again."""

import subprocess

import pytest

from harness import (
    BUILD_DIR,
    DEFAULT_MODEL,
    DRAFT_MODEL,
    HYBRID_MODEL,
    ONE_SLOT,
    SLOWDOWN,
    Server,
    at_once,
    endless,
    eventually,
    seconds,
    text_of,
)
from random_models import ARCHITECTURES, write_random_model
from test_speculation import COPYING, KINDS, LOOKUPS

HYBRID = "hybrid-19m"
MODELS = (HYBRID, *ARCHITECTURES)
DEVICE_SNAPSHOTS = (HYBRID, "nemotron-h")  # what libllama has them for
PROMPTS = [*COPYING, "Once upon a time", "What is the weather in Oslo?"]
SCRIPTS = 60 if SLOWDOWN <= 1 else 5

# All drafters in one server; a request chooses. Those of a model are wrong nearly always where the target speaks noise.
ALL = [flag for flags in LOOKUPS.values() for flag in flags] + ["-md", DRAFT_MODEL, "--spec-always", "--draft-max", "6"]
DRAFTERS = (*LOOKUPS, "model")


@pytest.fixture(scope="session")
def model_of(tmp_path_factory):
    """Paths by name; written when first asked for."""
    folder = tmp_path_factory.mktemp("random")

    def get(name: str):
        if name == HYBRID:
            return HYBRID_MODEL
        path = folder / f"{name}.gguf"
        if not path.exists():
            write_random_model(name, path)
        return path

    return get


def answers(server: Server, parallel: int = 1, prompts=PROMPTS, **fields) -> list[dict]:
    return at_once(parallel, lambda prompt: server.chat(prompt, max_tokens=24, **fields), prompts)


def texts(results: list[dict]) -> list[str]:
    return [text_of(answer) for answer in results]


@pytest.mark.parametrize("name", MODELS)
def test_random_scripts_leave_no_trace(model_of, name):
    """Drafts, rejections, cancelled requests, shared prefixes, slot files: logits and memory as of plain decoding."""
    run = subprocess.run(
        [BUILD_DIR / "bin/rollback_scripts", model_of(name), str(SCRIPTS)],
        capture_output=True,
        text=True,
        timeout=seconds(300),
    )
    print(run.stdout)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count(", 0 duplicate positions") == (2 if name in DEVICE_SNAPSHOTS else 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODELS)
class TestSameText:
    def test_with_every_drafter(self, serve, model_of, name, kind):
        expected = texts(answers(serve("--spec", "none", model=model_of(name)), **KINDS[kind]))
        server = serve(*ALL, model=model_of(name))
        drafted = {}
        for drafter in DRAFTERS:
            results = answers(server, speculative={"types": [drafter]}, **KINDS[kind])
            assert texts(results) == expected, drafter
            drafted[drafter] = sum(answer["timings"]["draft_n"] for answer in results)
        assert drafted["model"] > 0 and drafted["suffix"] > 0, drafted

    def test_twice_and_beside_others(self, serve, model_of, name, kind):
        expected = texts(answers(serve("--spec", "none", model=model_of(name)), **KINDS[kind]))
        server = serve(*ALL, model=model_of(name))
        for parallel in (1, 1, 4):
            assert texts(answers(server, parallel, **KINDS[kind])) == expected, parallel
        for parallel in (1, 4):
            auto = serve("-md", DRAFT_MODEL, model=model_of(name))
            assert texts(answers(auto, parallel, **KINDS[kind])) == expected, parallel


class TestRollback:
    def test_says_how(self, serve, model_of):
        expected = {
            DRAFT_MODEL: "drop cells",
            HYBRID_MODEL: "device snapshots of 8 tokens",
            model_of("rwkv7"): "restore and replay",
        }
        for model, way in expected.items():
            server = serve("--spec", "none", model=model)
            assert server.get("/props")["rollback"] == way
            assert (f"rollback: {way}" in server.log()) == (way != "drop cells")

    def test_short_drafts_are_taken_back_by_the_backend(self, serve):
        results = answers(serve(*ALL, model=HYBRID_MODEL), temperature=0)
        assert sum(answer["timings"]["draft_n"] - answer["timings"]["draft_n_accepted"] for answer in results) > 0
        assert sum(answer["timings"]["replayed_n"] for answer in results) == 0

    def test_tokens_are_replayed_where_it_cannot(self, serve, model_of):
        with Server(*ALL, "--spec-forget", model=model_of("gated-delta-net")) as server:
            results = answers(server, temperature=0)
        timings = [answer["timings"] for answer in results]
        assert sum(each["draft_n"] - each["draft_n_accepted"] for each in timings) > 0
        assert sum(each["replayed_n"] for each in timings) > 0

    def test_drafts_that_are_wrong_are_given_up(self, model_of):
        """Its own judgement, where every rejection costs rows: hardly any draft is verified."""
        with Server("-md", DRAFT_MODEL, model=model_of("mamba")) as server:
            timings = server.chat("Once upon a time", max_tokens=300, temperature=0.8, seed=1)["timings"]
        assert timings["draft_n"] <= 30

    def test_drafts_that_are_right_are_made(self, model_of):
        """Its own judgement again: what was answered before is drafted, also where a rejection would cost rows."""
        with Server(model=model_of("mamba2-hybrid")) as server:
            timings = [server.chat("Once upon a time", max_tokens=200, temperature=0)["timings"] for _ in range(3)]
        assert timings[-1]["draft_n_accepted"] > 20

    def test_the_draft_model_may_be_recurrent(self, serve):
        expected = texts(answers(serve("--spec", "none", model=DEFAULT_MODEL), temperature=0))
        server = serve("-md", HYBRID_MODEL, "--spec", "model", "--spec-always", "--draft-max", "3", model=DEFAULT_MODEL)
        for parallel in (1, 4):
            results = answers(server, parallel, temperature=0)
            assert texts(results) == expected
            drafted, accepted = (sum(r["timings"][k] for r in results) for k in ("draft_n", "draft_n_accepted"))
            assert 0 < accepted < drafted

    def test_cancelled_in_the_middle_of_drafts(self, serve):
        expected = texts(answers(serve("--spec", "none", model=HYBRID_MODEL), temperature=0))
        server = serve(*ALL, model=HYBRID_MODEL)
        for _ in range(5):
            with server.stream("/completion", endless()) as events:
                for _ in range(4):
                    next(events)
        eventually(server.slots_idle, "the slots to be free")
        assert texts(answers(server, 4, temperature=0)) == expected

    def test_until_the_context_is_full(self, model_of):
        flags = ("-np", "1", "-c", "128")
        for model in (HYBRID_MODEL, model_of("mamba2-hybrid")):
            with Server(*flags, "--spec", "none", model=model) as plain, Server(*flags, *ALL, model=model) as drafting:
                both = [s.chat("Go on for ever.", temperature=0, ignore_eos=True) for s in (plain, drafting)]
            assert text_of(both[0]) == text_of(both[1])
            assert [answer["choices"][0]["finish_reason"] for answer in both] == ["length", "length"]


class TestPrefixReuse:
    STORY = "This is a story about the sea and the people who live by it. " * 40

    def turns(self, server: Server) -> list[dict]:
        first = server.chat(self.STORY, max_tokens=16, temperature=0)
        again = server.chat(self.STORY, max_tokens=16, temperature=0)
        other = server.chat(self.STORY + "What is it about?", max_tokens=16, temperature=0)
        return [first, again, other]

    @pytest.mark.parametrize("name", [HYBRID, "gated-delta-net"])
    def test_a_shared_prompt_is_not_read_again(self, model_of, name):
        with Server(*ONE_SLOT[:2], "-c", "4096", model=model_of(name)) as server:
            first, again, other = self.turns(server)
        length = first["timings"]["prompt_n"]
        assert length > 500
        assert again["timings"]["cache_n"] > 0.9 * length, "from shortly before its end"
        assert other["timings"]["cache_n"] > 0.9 * length
        assert text_of(again) == text_of(first)

    def test_memory_for_that_is_bounded(self, model_of):
        with Server(*ONE_SLOT[:2], "-c", "4096", "--snapshot-memory", "0", model=HYBRID_MODEL) as server:
            first, again, _ = self.turns(server)
        assert again["timings"]["cache_n"] == 0
        assert text_of(again) == text_of(first)
