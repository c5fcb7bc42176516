"""LiteLLM, as a gateway uses it, against a running server: python litellm_client.py BASE_URL."""

import json
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # otherwise it asks the network for prices

import litellm  # noqa: E402

base_url, schema = sys.argv[1], json.loads(sys.argv[2])
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
ASK_WEATHER = [{"role": "user", "content": "What will the weather be in Paris?"}]
FORM = {"type": "json_schema", "json_schema": {"name": "weather", "schema": schema, "strict": True}}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": schema}}


def ask(messages=QUESTION, **fields):
    common = {"model": "openai/any", "api_base": f"{base_url}/v1", "api_key": "none", "temperature": 0, "max_tokens": 128}
    return litellm.completion(messages=messages, **{**common, "num_retries": 0, **fields})


def error_of(**fields) -> str:
    try:
        ask(**fields)
    except Exception as error:
        return type(error).__name__
    return "none"


pieces = [chunk.choices[0].delta.content for chunk in ask(stream=True) if chunk.choices]
call = ask(ASK_WEATHER, tools=[TOOL], tool_choice="required").choices[0].message.tool_calls[0].function
print(
    json.dumps(
        {
            "chat": ask().choices[0].message.content,
            "stream": "".join(piece or "" for piece in pieces),
            "pieces": len([piece for piece in pieces if piece]),
            "tool": {"name": call.name, "arguments": call.arguments},
            "object": ask(ASK_WEATHER, response_format=FORM).choices[0].message.content,
            "too_long": error_of(messages=[{"role": "user", "content": "word " * 20000}]),
            "wrong": error_of(temperature=-3),
        }
    )
)
