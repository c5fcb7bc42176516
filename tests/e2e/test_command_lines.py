"""llama-server's command lines as people write them, in documentation and in forums: each starts and answers; or is
refused with a reason."""

import shlex

import pytest

from harness import BINARY, DRAFT_MODEL, Server, assert_refused, chat_request, run_outrider, text_of

# Real-life lines without their model, host and port. -t 2 where a line has no -t keeps the tests kind to the machine.
COMMAND_LINES = [
    "-ngl 99 -c 8192 -fa on --jinja -np 2 --host 127.0.0.1 -ctk q8_0 -ctv q8_0 --no-mmap -ub 512 -b 2048 --temp 0.7 "
    "--top-p 0.9 --metrics --slots",
    "--host 127.0.0.1 -c 4096 --n-gpu-layers 99 --flash-attn --cont-batching --parallel 4 --mlock --log-disable",
    "-ngl all -fa auto -c 0 --jinja --reasoning-format deepseek --temp 0.6 --top-k 20 --top-p 0.95 --min-p 0 -n 64 "
    "--no-context-shift",
    "-cmoe -ngl 99 -c 2048 --no-warmup -a gpt-oss,default --chat-template-kwargs '{\"reasoning_effort\": \"high\"}'",
    "-ncmoe 3 -ot '.ffn_.*_exps.=CPU,blk.0.*=CPU' -ngl 99 -c 2048 -fit off --cache-ram 0 -sps 0.5",
    "-t 2 -tb 2 --prio 0 --poll 50 -C 0x3 --cpu-strict 0 -c 2048 --numa distribute --no-mmap --check-tensors",
    "--rope-scaling yarn --rope-scale 2 --yarn-orig-ctx 8192 -c 12000 -np 1",
    "--override-kv tokenizer.ggml.add_bos_token=bool:false --samplers 'top_k;temperature' --seed 42 --repeat-penalty 1.1",
    "--timeout 600 --threads-http 8 --props --no-webui --api-key secret --cors-origins '*' --swa-full --cache-reuse 0",
    "--embeddings --pooling mean -ub 2048 -b 2048 -c 2048 --verbosity 2 --log-timestamps --log-prefix --log-colors off",
    "--spec-type ngram-mod --spec-ngram-mod-n-match 24 --spec-draft-n-max 16 --spec-draft-n-min 2 --draft-p-min 0.5",
    "-md {model} -ngld 99 --draft-max 8 --draft-min 1 -ctkd f16 -ctvd f16 -td 2 -c 4096",
    "--dry-multiplier 0.8 --dry-base 1.75 --dry-sequence-breaker '\\n' --xtc-probability 0.1 --dynatemp-range 0.2 "
    "--mirostat 2 --mirostat-ent 4 --mirostat-lr 0.2 -cram 100 --keep -1 --no-escape -r STOP --ignore_eos",
    "--grammar 'root ::= \"yes\" | \"no\"' --n-predict 16 --no-cache-prompt --no-slots -lv 3",
]


@pytest.mark.parametrize("line", COMMAND_LINES, ids=lambda line: line[:40])
def test_a_line_of_llama_server_answers(line):
    flags = shlex.split(line.format(model=DRAFT_MODEL) if "{model}" in line else line)
    quiet = "--log-disable" in flags or ("--verbosity" in flags)
    if quiet:  # the harness reads the port from the log
        flags = [flag for flag in flags if flag != "--log-disable"]
        flags += ["-lv", "3"]
    if not {"-t", "--threads"} & set(flags):
        flags += ["-t", "2"]
    with Server(*flags) as server:
        headers = {"Authorization": "Bearer secret"}
        answer = server.post("/v1/chat/completions", chat_request("Name three colours.", max_tokens=8), headers=headers)
        assert answer["choices"][0]["finish_reason"] in ("length", "stop")
        assert answer["usage"]["completion_tokens"] >= 1


def test_defaults_of_requests():
    flags = ("-n", "5", "-r", "Z", "--samplers", "temperature;top_k", "--temp", "0", "-a", "one,two", "--grammar", 'root ::= "a"+')
    with Server(*flags, "-t", "2") as server:
        answer = server.post("/completion", {"prompt": "Hello", "ignore_eos": True})
        assert answer["content"] == "aaaaa"[: len(answer["content"])]
        assert answer["tokens_predicted"] == 5, "-n is what a request gets that does not say"
        longer = server.post("/completion", {"prompt": "Hello", "n_predict": 9, "ignore_eos": True})
        assert longer["tokens_predicted"] == 9, "and no limit"
        free = server.post("/completion", {"prompt": "Once upon a time", "grammar": 'root ::= "b"+', "n_predict": 3})
        assert set(free["content"]) == {"b"}
        model = server.get("/v1/models")["data"][0]
        assert model["id"] == "one" and model["aliases"] == ["one", "two"]
        params = server.get("/props")["default_generation_settings"]["params"]
        assert params["samplers"] == ["temperature", "top_k"]


def test_each_request_has_all_of_the_context():
    with Server("-c", "3000", "-t", "2") as server:
        props = server.get("/props")
        assert props["default_generation_settings"]["n_ctx"] >= 3000
        assert props["total_slots"] >= 1
    with Server("-c", "3072", "-np", "3", "-t", "2") as server:
        assert server.get("/props")["default_generation_settings"]["n_ctx"] == 1024, "with -np it is shared"


def test_variables_are_read_and_flags_win():
    env = {
        "LLAMA_ARG_MODEL": str(DRAFT_MODEL),
        "LLAMA_ARG_N_PARALLEL": "3",
        "LLAMA_ARG_CTX_SIZE": "3072",
        "LLAMA_ARG_ALIAS": "from-variable",
        "LLAMA_ARG_NO_JINJA": "",
        "LLAMA_ARG_THREADS": "2",
        "LLAMA_ARG_ENDPOINT_SLOTS": "0",
    }
    with Server("--alias", "from-flag", model=None, env=env) as server:
        props = server.get("/props")
        assert props["total_slots"] == 3
        assert props["default_generation_settings"]["n_ctx"] == 1024
        assert server.get("/v1/models")["data"][0]["id"] == "from-flag"
        refused = server.http.get("/slots")
        assert refused.status_code == 501 and "--no-slots" in refused.text


def test_log_file_and_notes(tmp_path):
    path = tmp_path / "server.log"
    with Server("--log-file", path, "--no-log-timestamps", "--jinja", "-t", "2") as server:
        server.chat("Hi", max_tokens=2)
        assert any("--jinja changes nothing" in line for line in server.lines)
    lines = path.read_text().splitlines()
    assert lines[0].startswith("I outrider"), lines[0]
    assert any("listening" in line for line in lines)


@pytest.mark.parametrize(
    "flags, saying",
    [
        (("--lora", "x.gguf"), "x.gguf' does not exist"),
        (("--lora-scaled", "x.gguf"), "--lora-scaled 'x.gguf' is not FILE:SCALE"),
        (("-ag",), "-ag is refused"),
        (("--context-shift",), "--context-shift is refused: .*larger context"),
        (("--cache-reuse", "256"), "--cache-reuse is refused: .*prefixes"),
        (("--ssl-key-file", "key.pem"), "--ssl-key-file needs --ssl-cert-file"),
        (("--ssl-key-file", "/nowhere", "--ssl-cert-file", "/nowhere"), "--ssl-cert-file '/nowhere' is not a certificate"),
        (("--reasoning-format", "loud"), "--reasoning-format"),
        (("--reasoning-budget", "-2"), "--reasoning-budget"),
        (("--api-prefix", "no-slash"), "--api-prefix 'no-slash'"),
        (("--nonsense",), "'--nonsense' is not a flag; outrider serve --help lists them"),
        (("-zzz",), "'-zzz' is not a flag"),
        (("-c4096",), "'-c4096' is not a flag"),
        (("stray.gguf",), "'stray.gguf' is not a flag"),
        (("-hf",), "-hf needs a value"),
        (("--override-kv", "a=b"), "--override-kv 'a=b'"),
        (("--cpu-mask", "xyz"), "--cpu-mask 'xyz'"),
        (("--samplers", "top_k;nonsense"), "--samplers: 'nonsense'"),
        (("--chat-template-kwargs", "[1]"), "--chat-template-kwargs"),
        (("--logit-bias", "five"), "--logit-bias 'five'"),
        (("--log-file", "/nowhere/log"), "--log-file '/nowhere/log'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_refusals_say_why(flags, saying):
    assert_refused("serve", "-m", DRAFT_MODEL, "--port", "0", *flags, saying=saying, timeout=20)


def test_a_variable_that_is_refused_is_named():
    arguments = ("serve", "-m", DRAFT_MODEL, "--port", "0")
    assert_refused(*arguments, saying="LLAMA_ARG_KV_UNIFIED_PER_SLOT is refused", env={"LLAMA_ARG_KV_UNIFIED_PER_SLOT": "1"})
    assert_refused(*arguments, saying="LLAMA_ARG_CTX_SIZE", env={"LLAMA_ARG_CTX_SIZE": "many"})


def test_printing_instead_of_serving():
    assert "outrider" in run_outrider("--list-devices").stdout.lower() or "CPU" in run_outrider("--list-devices").stdout
    assert run_outrider("serve", "--version").stdout == run_outrider("--version").stdout
    assert BINARY.name in run_outrider("serve", "--usage").stdout


def test_answers_do_not_depend_on_where_threads_run():
    def answer(*flags):
        with Server("-t", "2", *flags) as server:
            return text_of(server.chat("Tell me a story.", max_tokens=24, temperature=0.8, seed=3))

    assert answer() == answer("-Cr", "0-1", "--cpu-strict", "1", "--poll", "0", "-tb", "1")
