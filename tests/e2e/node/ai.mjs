// Vercel's npm package ai against a running server: node ai.mjs BASE_URL NODE_MODULES.
import { baseURL, load, question, report, weatherQuestion, weatherTool } from "./common.mjs";

const { generateObject, generateText, jsonSchema, streamText, tool } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const provider = createOpenAICompatible({
  name: "outrider",
  baseURL: `${baseURL}/v1`,
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const common = { model: provider("any"), temperature: 0, maxRetries: 0, maxOutputTokens: 128 };

const answer = await generateText({ ...common, prompt: question });

let stream = "";
let pieces = 0;
const streamed = streamText({ ...common, prompt: question });
for await (const piece of streamed.textStream) {
  stream += piece;
  pieces += 1;
}
const usage = await streamed.usage;

const called = await generateText({
  ...common,
  prompt: weatherQuestion,
  toolChoice: "required",
  tools: {
    [weatherTool.name]: tool({ description: weatherTool.description, inputSchema: jsonSchema(weatherTool.schema) }),
  },
});
const made = await generateObject({ ...common, prompt: weatherQuestion, schema: jsonSchema(weatherTool.schema) });

report({
  chat: answer.text,
  stream,
  pieces,
  usage: usage.outputTokens,
  tool: { name: called.toolCalls[0].toolName, arguments: JSON.stringify(called.toolCalls[0].input) },
  object: JSON.stringify(made.object),
});
