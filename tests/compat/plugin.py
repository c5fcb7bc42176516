"""A plugin for pytest that lets llama.cpp's own server tests run against Outrider without a hub.

- A model that a test names is replaced by one that is here. What only the original model says (words, numbers of
  tokens) is not compared; everything else is.
- decisions.toml lists the tests that cannot run here and those that Outrider fails on purpose, each with its reason.
  The latter do run: one that passes although it is listed is a failure, so the list cannot become untrue.
"""

import os
import tomllib
from pathlib import Path

import pytest
import stand_ins

HERE = Path(__file__).parent
DECISIONS = tomllib.loads((HERE / "decisions.toml").read_text())
SAYINGS = set(DECISIONS["sayings"])  # what tests expect their own model to say
NUMBERS = {"re_content", "n_prompt", "n_tokens"}  # parameters that only the original model meets


class Anything:
    """Equal to whatever it is compared with."""

    def __eq__(self, other):
        return True

    __hash__ = None

    def __repr__(self):
        return "anything"


ANYTHING = Anything()


def model_for(name: str, made: Path) -> str:
    """The file that stands in for a repository of the hub, or for a server that would have no model yet."""
    for word, write in (("infill", stand_ins.write_infill_model), ("rerank", stand_ins.write_rerank_model)):
        if word in name:
            path = made / f"{word}.gguf"
            if not path.exists():
                write(path)
            return str(path)
    return str(stand_ins.DEFAULT if "MOE" in name else stand_ins.DRAFT)


def download_stand_in(url: str, output_file_path: str | None = None) -> str:
    return str(stand_ins.adapter_of_default() if "shakespeare" in url else stand_ins.DRAFT)


@pytest.fixture(scope="session", autouse=True)
def stand_in_models(tmp_path_factory):
    import utils

    made = tmp_path_factory.mktemp("models")
    start = utils.ServerProcess.start

    def start_with_stand_in(self, timeout_seconds=60):
        names = [name for name in (self.model_hf_repo, self.model_hf_file) if name]
        if names or not self.model_file:
            self.model_file = model_for(" ".join(names), made)
        if self.model_draft:
            self.model_draft = str(stand_ins.DRAFT)
        self.model_hf_repo = self.model_hf_file = None
        self.jinja = True  # --no-jinja is refused: templates are always Jinja
        self.fa = None  # tests compare texts, which may depend on the batch with -fa off (docs/EXACTNESS.md)
        self.n_threads = self.n_threads or os.cpu_count()
        return start(self, timeout_seconds)

    utils.ServerProcess.start = start_with_stand_in
    yield
    utils.ServerProcess.start = start


def pytest_configure(config):
    import utils

    utils.ServerPreset.load_all = staticmethod(lambda: None)
    utils.download_file = download_stand_in
    match = utils.match_regex
    utils.match_regex = lambda regex, text: regex is ANYTHING or regex in SAYINGS or match(regex, text)


def entry_of(item) -> tuple[str, dict] | None:
    """The first entry whose name is that of the test, of its function, or of its file."""
    name = item.nodeid.removeprefix("unit/")
    for kind in ("skip", "differs"):
        for entry in DECISIONS.get(kind, []):
            for wanted in entry["tests"]:
                if name == wanted or name.startswith((wanted + "::", wanted + "[")):
                    return kind, entry
    return None


def pytest_collection_modifyitems(items):
    for item in items:
        if hasattr(item, "callspec") and not item.name.startswith("test_completion_with_response_format"):
            for parameter in NUMBERS & set(item.callspec.params):
                item.callspec.params[parameter] = ANYTHING
        if found := entry_of(item):
            kind, entry = found
            if kind == "skip":
                item.add_marker(pytest.mark.skip(reason=entry["reason"]))
            else:
                item.add_marker(pytest.mark.xfail(reason=entry["reason"], strict=True))
