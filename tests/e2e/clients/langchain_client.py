"""LangChain's ChatOpenAI against a running server: python langchain_client.py BASE_URL. Prints what came back as JSON."""

import json
import sys

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, Field

base_url, embeddings_url = sys.argv[1:]
QUESTION = "What is the capital of France?"
ASK_WEATHER = "What will the weather be in Paris?"
model = ChatOpenAI(base_url=f"{base_url}/v1", api_key="none", model="any", temperature=0, max_tokens=128, max_retries=0)


class Weather(BaseModel):
    """Weather forecast for a city"""

    city: str = Field(pattern="^(Paris|Rome)$")
    days: int = Field(ge=1, le=9)


@tool("get_weather", args_schema=Weather)
def get_weather(city: str, days: int) -> str:
    """Weather forecast for a city"""
    return f"{city}: sunny for {days} days"


pieces = [chunk.content for chunk in model.stream(QUESTION)]
called = model.bind_tools([get_weather], tool_choice="required").invoke(ASK_WEATHER)
made = model.with_structured_output(Weather, method="json_schema").invoke(ASK_WEATHER)
two = ChatOpenAI(base_url=f"{base_url}/v1", api_key="none", model="any", n=2, seed=3, max_tokens=16).generate([[HumanMessage(QUESTION)]])
vectors = OpenAIEmbeddings(base_url=f"{embeddings_url}/v1", api_key="none", model="any", check_embedding_ctx_length=False)
print(
    json.dumps(
        {
            "chat": model.invoke(QUESTION).content,
            "stream": "".join(pieces),
            "pieces": len([piece for piece in pieces if piece]),
            "tool": {"name": called.tool_calls[0]["name"], "arguments": json.dumps(called.tool_calls[0]["args"])},
            "object": made.model_dump_json(),
            "choices": [choice.text for choice in two.generations[0]],
            "vectors": [len(vector) for vector in vectors.embed_documents(["a", "b"])],
        }
    )
)
