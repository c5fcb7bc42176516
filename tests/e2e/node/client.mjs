// The npm openai client against a running server: node client.mjs BASE_URL NODE_MODULES. Prints what came back as JSON.
import { createRequire } from "node:module";
import path from "node:path";

const [baseURL, modules] = process.argv.slice(2);
const { OpenAI } = createRequire(path.join(path.resolve(modules), "here.js"))("openai");
const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });

const common = { model: "any", temperature: 0, max_tokens: 128 };
const messages = [{ role: "user", content: "What is the capital of France?" }];
const question = { ...common, messages, max_tokens: 256, ignore_eos: true }; // short answers may come in one piece

const answer = await client.chat.completions.create(question);

let stream = "";
let pieces = 0;
for await (const chunk of await client.chat.completions.create({ ...question, stream: true })) {
  const text = chunk.choices[0]?.delta?.content;
  if (text) {
    stream += text;
    pieces += 1;
  }
}

const called = await client.chat.completions.create({
  ...common,
  messages: [{ role: "user", content: "What will the weather be in Paris?" }],
  tool_choice: "required",
  tools: [
    {
      type: "function",
      function: {
        name: "get_weather",
        description: "Weather forecast for a city",
        parameters: {
          type: "object",
          properties: {
            city: { type: "string", enum: ["Paris", "Rome"] },
            days: { type: "integer", minimum: 1, maximum: 9 },
          },
          required: ["city", "days"],
        },
      },
    },
  ],
});
const call = called.choices[0].message.tool_calls[0].function;

console.log(
  JSON.stringify({
    chat: answer.choices[0].message.content,
    stream,
    pieces,
    tool: { name: call.name, arguments: call.arguments },
  }),
);
