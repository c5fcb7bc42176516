// The npm client @anthropic-ai/sdk against a running server: node anthropic.mjs BASE_URL NODE_MODULES.
import { baseURL, load, question, report, weatherQuestion, weatherTool } from "./common.mjs";

const { default: Anthropic } = await load("@anthropic-ai/sdk");
const client = new Anthropic({ baseURL, apiKey: "none", maxRetries: 0 });
const common = { model: "any", temperature: 0, max_tokens: 64 };
const messages = [{ role: "user", content: question }];

const answer = await client.messages.create({ ...common, messages });

let text = "";
let pieces = 0;
const stream = client.messages.stream({ ...common, messages });
stream.on("text", (piece) => {
  text += piece;
  pieces += 1;
});
const final = await stream.finalMessage();

const called = await client.messages.create({
  ...common,
  max_tokens: 128,
  messages: [{ role: "user", content: weatherQuestion }],
  tool_choice: { type: "any" },
  tools: [{ name: weatherTool.name, description: weatherTool.description, input_schema: weatherTool.schema }],
});
const call = called.content.find((block) => block.type === "tool_use");

const counted = await client.messages.countTokens({ model: "any", messages });
const tooLong = await client.messages
  .create({ ...common, messages: [{ role: "user", content: "word ".repeat(20000) }] })
  .catch((error) => error.message);

report({
  chat: answer.content[0].text,
  stream: text,
  final: final.content[0].text,
  pieces,
  tool: { name: call.name, arguments: JSON.stringify(call.input) },
  counted: counted.input_tokens - answer.usage.input_tokens - answer.usage.cache_read_input_tokens,
  tooLong,
});
