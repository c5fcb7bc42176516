// What the clients for JavaScript are asked, each in its own way: a question, the same as a stream, a tool, an object.
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

export const [baseURL, modules] = process.argv.slice(2);
const resolve = createRequire(path.join(path.resolve(modules), "here.js")).resolve;

export const load = async (name) => import(pathToFileURL(resolve(name)));
export const question = "What is the capital of France?";
export const weatherQuestion = "What will the weather be in Paris?";
export const weatherTool = {
  name: "get_weather",
  description: "Weather forecast for a city",
  schema: {
    type: "object",
    properties: {
      city: { type: "string", enum: ["Paris", "Rome"] },
      days: { type: "integer", minimum: 1, maximum: 9 },
    },
    required: ["city", "days"],
  },
};

export const report = (result) => console.log(JSON.stringify(result));
