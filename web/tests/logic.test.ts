import { describe, expect, it } from "vitest";
import { applyEvent, emptyAnswer, requestBody } from "../src/api";
import { makeArchive, readArchive } from "../src/logic/archive";
import { differenceOfAnswers, firstDifference } from "../src/logic/difference";
import { between, bucketsOf, byLabel, parseMetrics, type Live, type Reading } from "../src/logic/metrics";
import { EventSplitter } from "../src/logic/sse";
import type { Conversation, Message } from "../src/logic/types";

describe("events", () => {
  const bytes = new TextEncoder().encode('data: {"a":"é"}\n\nevent: x\ndata: 1\ndata: 2\n\n: comment\n\ndata: [DONE]\n\n');
  it("are found wherever the stream is cut", () => {
    for (let cut = 0; cut <= bytes.length; ++cut) {
      const splitter = new EventSplitter();
      expect([...splitter.push(bytes.slice(0, cut)), ...splitter.push(bytes.slice(cut))]).toEqual(['{"a":"é"}', "1\n2", "[DONE]"]);
      expect(splitter.cut).toBe(false);
    }
  });
  it("tell if the stream ended inside one", () => {
    const splitter = new EventSplitter();
    splitter.push(bytes.slice(0, 5));
    expect(splitter.cut).toBe(true);
  });
});

describe("answers are compared", () => {
  const answer = { content: "Hi", reasoning: "Hm", toolCalls: [{ name: "add", arguments: "{}" }], tokens: [{ text: "H", drafter: null }, { text: "i", drafter: null }], finish: "stop" };
  it("and found the same whoever proposed the tokens", () => {
    expect(differenceOfAnswers(answer, { ...answer, tokens: [{ text: "H", drafter: null }, { text: "i", drafter: "suffix", logprob: -1 }] })).toBeNull();
  });
  it.each([
    ["content", { content: "Ho" }],
    ["reasoning", { reasoning: "Hmm" }],
    ["reasoning", { reasoning: undefined }],
    ["toolCalls", { toolCalls: [{ name: "add", arguments: '{"a":1}' }] }],
    ["toolCalls", { toolCalls: [{ name: "sub", arguments: "{}" }] }],
    ["toolCalls", { toolCalls: undefined }],
    ["tokens", { tokens: [{ text: "Hi", drafter: null }] }],
    ["tokens", { tokens: answer.tokens.slice(0, 1) }],
    ["tokens", { tokens: [{ text: "H", drafter: null }, { text: "i", drafter: null, bytes: [1] }] }],
    ["finish", { finish: "length" }],
  ])("in %s: %j", (part, change) => {
    expect(differenceOfAnswers(answer, { ...answer, ...change })?.part).toBe(part);
    expect(differenceOfAnswers({ ...answer, ...change }, answer)?.part).toBe(part);
  });
});

describe("differences", () => {
  it("are found by character", () => {
    expect(firstDifference("same", "same")).toBeNull();
    expect(firstDifference("😀ab", "😀ac")).toEqual({ at: 2, before: "😀a", left: "b", right: "c" });
    expect(firstDifference("ab", "abc")).toEqual({ at: 2, before: "ab", left: "", right: "c" });
  });
});

describe("answers", () => {
  it("join text, drafters, probabilities, steps and timings", () => {
    const answer = emptyAnswer();
    const pending: never[] = [];
    const logprob = (token: string) => ({ logprob: -0.5, top_logprobs: [{ token, logprob: -0.5 }] });
    applyEvent(answer, { choices: [{ delta: { role: "assistant", content: "" } }], provenance: [] }, pending);
    applyEvent(answer, { choices: [{ delta: { content: "Hi" }, logprobs: { content: [logprob("Hi"), logprob(" there")] } }], provenance: [{ text: "Hi", drafter: null }] }, pending);
    applyEvent(answer, { choices: [{ delta: { content: " there" } }], provenance: [{ text: " there", drafter: "suffix" }] }, pending);
    applyEvent(answer, { choices: [{ delta: {}, finish_reason: "stop" }], seed: 7, timings: { predicted_n: 2, predicted_per_second: 50, draft_n: 1, draft_n_accepted: 1, speed_up: 1.5, steps: [["suffix", 1, 1, 3.5, []], [null, 0, 0, 1]] } }, pending);
    applyEvent(answer, { choices: [], usage: { total_tokens: 9 } }, pending);
    expect(answer.content).toBe("Hi there");
    expect(answer.tokens).toEqual([
      { text: "Hi", drafter: null, logprob: -0.5, top: [["Hi", -0.5]] },
      { text: " there", drafter: "suffix", logprob: -0.5, top: [[" there", -0.5]] },
    ]);
    expect(answer.steps).toEqual([{ drafter: "suffix", drafted: 1, accepted: 1, ms: 3.5, rejected: [] }, { drafter: null, drafted: 0, accepted: 0, ms: 1, rejected: [] }]);
    expect(answer).toMatchObject({ finish: "stop", seed: 7, totalTokens: 9, timings: { tokensPerSecond: 50, speedUp: 1.5 } });
  });
  it("collect reasoning and tool calls from their parts", () => {
    const answer = emptyAnswer();
    applyEvent(answer, { choices: [{ delta: { reasoning_content: "Hm" } }] }, []);
    applyEvent(answer, { choices: [{ delta: { tool_calls: [{ index: 0, function: { name: "add", arguments: "" } }] } }] }, []);
    applyEvent(answer, { choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: '{"a":1}' } }] } }] }, []);
    expect(answer.reasoning).toBe("Hm");
    expect(answer.toolCalls).toEqual([{ name: "add", arguments: '{"a":1}' }]);
  });
});

describe("requests", () => {
  const base = { messages: [], settings: {}, details: false };
  it("leave out what was not chosen", () => {
    const body = requestBody({ ...base, settings: { temperature: 0, seed: undefined }, speculation: { mode: "auto", drafters: [] } });
    expect(body).toMatchObject({ temperature: 0, stream: true, speculative: { enabled: true, provenance: true } });
    expect(body).not.toHaveProperty("seed");
    expect(body).not.toHaveProperty("logprobs");
  });
  it("name the drafters, or none", () => {
    expect(requestBody({ ...base, speculation: { mode: "pick", drafters: ["suffix"] } }).speculative).toMatchObject({ types: ["suffix"] });
    expect(requestBody({ ...base, speculation: { mode: "pick", drafters: [] } }).speculative).toMatchObject({ types: ["none"] });
    expect(requestBody({ ...base, speculation: { mode: "off", drafters: ["suffix"] } }).speculative).toMatchObject({ enabled: false });
  });
  it("carry a schema", () => {
    const body = requestBody({ ...base, settings: { schema: '{"type":"object"}' }, speculation: { mode: "auto", drafters: [] } });
    expect(body.response_format).toMatchObject({ type: "json_schema", json_schema: { schema: { type: "object" } } });
  });
});

describe("metrics", () => {
  const text = '# HELP x y\nllamacpp:tokens_predicted_total 10\nllamacpp:n_decode_total 4\noutrider_rows_total 8\noutrider_draft_tokens_proposed_total{drafter="suffix"} 6\noutrider_draft_tokens_accepted_total{drafter="suffix"} 3\nh_bucket{le="1"} 2\nh_bucket{le="4"} 5\nh_bucket{le="+Inf"} 9\n';
  const reading = (time: number, values: string, decoded = 0): Reading => {
    const live = { metrics: values, slots: [{ is_processing: decoded > 0, next_token: [{ n_decoded: decoded, n_remain: 0 }] }] } as unknown as Live;
    return { time, live, metrics: parseMetrics(values) };
  };
  it("are read with their labels", () => {
    expect(parseMetrics(text).get("llamacpp:tokens_predicted_total")).toBe(10);
    expect([...byLabel(parseMetrics(text), "outrider_draft_tokens_proposed_total", "drafter")]).toEqual([["suffix", 6]]);
  });
  it("give histograms by bucket", () => expect(bucketsOf(parseMetrics(text), "h")).toEqual([{ label: "1", count: 2 }, { label: "4", count: 3 }, { label: ">4", count: 4 }]));
  it("give rates between two readings, with the tokens of running requests", () => {
    const later = text.replace("total 8", "total 14").replace("n_decode_total 4", "n_decode_total 6").replace('suffix"} 6', 'suffix"} 10').replace('suffix"} 3', 'suffix"} 4');
    const point = between(reading(1, text, 5), reading(3, later, 25));
    expect(point.tokensPerSecond).toBe(10);
    expect(point.rowsPerStep).toBe(3);
    expect(point.acceptance.get("suffix")).toBe(0.25);
  });
  it("say nothing where nothing happened", () => {
    const point = between(reading(1, text), reading(2, text));
    expect(point).toMatchObject({ tokensPerSecond: 0, rowsPerStep: null });
    expect(point.acceptance.get("suffix")).toBeNull();
  });
});

describe("files", () => {
  const message = (id: string, parent: string | null): Message => ({ id, parent, conversation: "c", role: "user", content: id, created: 1, updated: 1, state: "done" });
  const conversation: Conversation = { id: "c", title: "T", created: 1, updated: 2, system: "S", selected: { "": "a", a: "b" } };
  let count = 0;
  const newId = () => `new${++count}`;
  it("come back as they were, with ids of their own", () => {
    const [read] = readArchive(makeArchive([{ conversation, messages: [message("a", null), message("b", "a")] }]), newId);
    expect(read!.conversation).toMatchObject({ title: "T", system: "S" });
    expect(read!.messages.map((each) => each.content)).toEqual(["a", "b"]);
    expect(read!.messages[1]!.parent).toBe(read!.messages[0]!.id);
    expect(read!.conversation.selected).toEqual({ "": read!.messages[0]!.id, [read!.messages[0]!.id]: read!.messages[1]!.id });
    expect(read!.messages[0]!.id).toMatch(/^new/);
  });
  const everything: Required<Omit<Message, "waiting">> = {
    ...message("b", "a"), role: "assistant", content: "Hi \u202E", images: [{ name: "a.png", url: "data:image/png;base64,aGk=" }], reasoning: "Hm", toolCalls: [{ name: "add", arguments: "{}" }],
    tokens: [{ text: "Hi", drafter: null, logprob: -0.5, top: [["Hi", -0.5], ["Ho", -2]] }, { text: "\uFFFD", drafter: "suffix", bytes: [226, 128, 174] }],
    steps: [{ drafter: "suffix", drafted: 2, accepted: 1, ms: 3.5, rejected: [" x"] }, { drafter: null, drafted: 0, accepted: 0, ms: 1, rejected: [] }],
    timings: { promptTokens: 1, cachedTokens: 2, promptMs: 3.5, generatedTokens: 4, generateMs: 5, tokensPerSecond: 6, drafted: 7, accepted: 8, speedUp: 1.5 },
    firstTokenMs: 12.5, seed: 2 ** 53 - 1, finish: "stop", totalTokens: 9, error: "none", state: "stopped",
    settings: { temperature: 0.5, top_p: 0.9, top_k: 3, min_p: 0.1, repeat_penalty: 1.1, max_tokens: 9, seed: 7, stop: ["a", "b"], schema: "{}", tools: "[]" },
    speculation: { mode: "pick", drafters: ["suffix"] }, system: "Be brief.", details: true, model: "m", build: "1",
    proof: { state: "different", part: "toolCalls", at: 3, speculation: "off", tokens: 2, why: "" },
  };
  it("lose nothing, whatever a message has", () => {
    const branch = { ...everything, id: "b2", content: "another" };
    const [read] = readArchive(makeArchive([{ conversation: { ...conversation, selected: { "": "a", a: "b2" } }, messages: [message("a", null), everything, branch] }]), newId);
    const [question, ...answers] = read!.messages;
    const ids = { conversation: read!.conversation.id, parent: question!.id };
    expect(answers).toEqual([{ ...everything, ...ids, id: answers[0]!.id }, { ...branch, ...ids, id: answers[1]!.id }]);
    expect(read!.conversation.selected).toEqual({ "": question!.id, [question!.id]: answers[1]!.id });
    const again = readArchive(makeArchive([read!]), newId)[0]!;
    expect(again.messages.map((each) => ({ ...each, id: "", parent: "", conversation: "" }))).toEqual(read!.messages.map((each) => ({ ...each, id: "", parent: "", conversation: "" })));
  });
  it("bring no images that would load something or run code", () => {
    for (const url of ["https://example.org/a.png", "data:image/svg+xml;base64,aGk=", "data:text/html,x", "javascript:x", "data:image/png;base64,aGk=\" onerror=\"x"]) {
      const [read] = readArchive(makeArchive([{ conversation, messages: [{ ...message("a", null), images: [{ name: "a", url }] }] }]), newId);
      expect(read!.messages[0], url).not.toHaveProperty("images");
    }
  });
  it.each([
    ["no JSON", "notJson"],
    ["null", "notOurs"],
    ["{}", "notOurs"],
    ['{"format":"outrider-conversations","version":2}', "version"],
    ['{"format":"outrider-conversations","version":1}', "noList"],
    ['{"format":"outrider-conversations","version":1,"conversations":[null]}', "noMessages"],
    ['{"format":"outrider-conversations","version":1,"conversations":[{"conversation":{},"messages":[{"id":"a","role":"system"}]}]}', "noRole"],
    ['{"format":"outrider-conversations","version":1,"conversations":[{"conversation":{},"messages":[{"id":"a","role":"user","content":1}]}]}', "noText"],
    ['{"format":"outrider-conversations","version":1,"conversations":[{"conversation":{},"messages":[{"id":"a","role":"user","content":"","parent":"x"}]}]}', "noParent"],
  ])("that are wrong are refused with a reason: %s", (text, reason) => {
    expect(() => readArchive(text, newId)).toThrow(reason);
  });
  it("drop fields that are not what they should be", () => {
    const odd = { ...message("a", null), tokens: [{ text: 1 }], steps: "x", state: "streaming" };
    const [read] = readArchive(makeArchive([{ conversation, messages: [odd as unknown as Message] }]), newId);
    expect(read!.messages[0]).not.toHaveProperty("tokens");
    expect(read!.messages[0]).not.toHaveProperty("steps");
    expect(read!.messages[0]!.state).toBe("interrupted");
  });
});
