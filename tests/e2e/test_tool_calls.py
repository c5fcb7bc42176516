"""Tool calls of a model whose template knows none: one call, a named tool, several at once; whole and streamed, with drafts and
without. The formats of other templates are tested by llama.cpp's own test_tool_call.py (tests/compat/run)."""

import json

CITY = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": name, "description": name, "parameters": CITY}} for name in ("weather", "time")]
ASK = {"messages": [{"role": "user", "content": "Weather and time in Paris?"}], "tools": TOOLS, "max_tokens": 160, "seed": 7}


def calls_of(server, **fields) -> tuple[list, str]:
    """(name, arguments) of each call, and the reason of the end; the same streamed as whole."""
    choice = server.post("/v1/chat/completions", {**ASK, **fields})["choices"][0]
    whole = [(call["function"]["name"], call["function"]["arguments"]) for call in choice["message"].get("tool_calls", [])]
    streamed, ids, reason = [], set(), None
    with server.stream("/v1/chat/completions", {**ASK, **fields}) as events:
        for event in events:
            for part in event["choices"]:
                reason = part["finish_reason"] or reason
                for delta in part["delta"].get("tool_calls", []):
                    if delta["index"] == len(streamed):
                        streamed.append([delta["function"]["name"], ""])
                        ids.add(delta["id"])
                    streamed[delta["index"]][1] += delta["function"].get("arguments", "")
    assert [tuple(call) for call in streamed] == whole
    assert reason == choice["finish_reason"]
    assert len(ids) == len(whole), "each call has an id of its own"
    return whole, reason


def test_calls(serve):
    answers = []
    for server in (serve("--spec", "none"), serve("--spec-always")):
        one, reason = calls_of(server, tool_choice="required")
        assert len(one) == 1 and reason == "tool_calls"
        assert one[0][0] in ("weather", "time")
        assert json.loads(one[0][1])["city"] in ("Paris", "Rome")
        for name in ("time", "weather"):
            named, _ = calls_of(server, tool_choice={"type": "function", "function": {"name": name}})
            assert [call[0] for call in named] == [name]
        # As many as the model likes, or as there is room for: the last one may be cut off.
        several, reason = calls_of(server, tool_choice="required", parallel_tool_calls=True)
        assert len(several) > 1
        for tool, arguments in several if reason == "tool_calls" else several[:-1]:
            assert tool in ("weather", "time") and json.loads(arguments)["city"] in ("Paris", "Rome")
        none, _ = calls_of(server, tool_choice="none")
        assert none == []
        answers.append((one, named, several))
    assert answers[0] == answers[1], "drafts do not change calls"
