import { describe, expect, it } from "vitest";
import { applyEvent, emptyAnswer, requestBody } from "../src/api";
import { makeArchive, readArchive } from "../src/logic/archive";
import { firstDifference } from "../src/logic/difference";
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
  it.each([
    ["no JSON", "is not JSON"],
    ["null", "not exported"],
    ["{}", "not exported"],
    ['{"format":"outrider-conversations","version":2}', "version 2"],
    ['{"format":"outrider-conversations","version":1}', "no list"],
    ['{"format":"outrider-conversations","version":1,"conversations":[null]}', "conversation 1 has no messages"],
    ['{"format":"outrider-conversations","version":1,"conversations":[{"conversation":{},"messages":[{"id":"a","role":"system"}]}]}', "no role"],
    ['{"format":"outrider-conversations","version":1,"conversations":[{"conversation":{},"messages":[{"id":"a","role":"user","content":1}]}]}', "no text"],
    ['{"format":"outrider-conversations","version":1,"conversations":[{"conversation":{},"messages":[{"id":"a","role":"user","content":"","parent":"x"}]}]}', "not in the file"],
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
