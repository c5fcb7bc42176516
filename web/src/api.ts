// The server, as the page sees it. Errors are ApiErrors with a kind that the page knows what to do about.
import { EventSplitter } from "./logic/sse";
import type { Message, Settings, Speculation, StepInfo, Timings, TokenInfo, ToolCall } from "./logic/types";

export type ErrorKind = "unreachable" | "key" | "busy" | "refused" | "cut";

export class ApiError extends Error {
  constructor(
    readonly kind: ErrorKind,
    message: string,
    readonly retryAfter = 0, // seconds, for "busy"
  ) {
    super(message);
  }
}

export interface Props {
  default_generation_settings: { n_ctx: number; params: Record<string, unknown> };
  total_slots: number;
  model_alias: string;
  build_info: string;
  drafters: string[];
  kernels: string;
  rollback: string;
  exactness: { holds: boolean; reason: string; rests_on?: string[] };
  modalities?: { vision?: boolean };
  endpoint_slots?: boolean;
}

// The key: remembered for this tab, or for good if the user wants that.
const KEY = "outrider-key";

export function storedKey(): string {
  try {
    return sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY) ?? "";
  } catch {
    return ""; // the browser stores nothing
  }
}

export function storeKey(key: string, forGood: boolean): void {
  try {
    localStorage.removeItem(KEY);
    sessionStorage.setItem(KEY, key);
    if (forGood) localStorage.setItem(KEY, key);
  } catch {
    // It is asked for again.
  }
}

async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  const key = storedKey();
  const headers = new Headers(options.headers);
  if (key) headers.set("Authorization", `Bearer ${key}`);
  let response: Response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError("unreachable", "");
  }
  if (response.ok) return response;
  let message = `HTTP ${response.status}`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // Not our error format: the status must do.
  }
  if (response.status === 401) throw new ApiError("key", message);
  if (response.status === 429 || response.status === 503) throw new ApiError("busy", message, Number(response.headers.get("Retry-After")) || 5);
  throw new ApiError("refused", message);
}

export async function getProps(): Promise<Props> {
  return (await ask("props")).json();
}

// The number of slots if all are taken, else 0.
export async function busySlots(): Promise<number> {
  const slots = (await (await ask("slots")).json()) as { is_processing: boolean }[];
  return slots.every((slot) => slot.is_processing) ? slots.length : 0;
}

// What Prometheus reads.
export async function getMetrics(): Promise<string> {
  return (await ask("metrics")).text();
}

export async function isHealthy(): Promise<boolean> {
  try {
    return (await fetch("health")).ok;
  } catch {
    return false;
  }
}

// The data of each event of a response. Ends where the stream ends; a cut inside an event is an error.
async function* eventsOf(response: Response): AsyncGenerator<string> {
  const splitter = new EventSplitter();
  const reader = response.body!.getReader();
  for (;;) {
    let part: ReadableStreamReadResult<Uint8Array>;
    try {
      part = await reader.read();
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new ApiError("cut", "");
    }
    if (part.done) break;
    yield* splitter.push(part.value);
  }
  if (splitter.cut) throw new ApiError("cut", "");
}

// Snapshots of GET /live, until the signal aborts or the stream ends.
export async function* liveSnapshots(signal: AbortSignal): AsyncGenerator<unknown> {
  const response = await ask("live", { signal });
  for await (const data of eventsOf(response)) yield JSON.parse(data);
}

export type ContentPart = { type: "text"; text: string } | { type: "image_url"; image_url: { url: string } };

export interface ChatTurn {
  role: string;
  content: string | ContentPart[];
}

export interface ChatRequest {
  messages: ChatTurn[];
  settings: Settings;
  speculation: Speculation;
  details: boolean; // also probabilities and alternatives
}

const ALTERNATIVES = 4;

export function requestBody(request: ChatRequest): Record<string, unknown> {
  const { schema, tools, stop, ...numbers } = request.settings;
  const speculative: Record<string, unknown> = { provenance: true, enabled: request.speculation.mode !== "off" };
  if (request.speculation.mode === "pick") speculative.types = request.speculation.drafters.length > 0 ? request.speculation.drafters : ["none"];
  return {
    ...Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== undefined)),
    messages: request.messages,
    stream: true,
    return_progress: true,
    stream_options: { include_usage: true },
    speculative,
    ...(stop && stop.length > 0 && { stop }),
    ...(schema && { response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema: JSON.parse(schema) } } }),
    ...(tools && { tools: JSON.parse(tools) }),
    ...(request.details && { logprobs: true, top_logprobs: ALTERNATIVES }),
  };
}

// The parts of an answer that a stream fills in.
export type Answer = Pick<Message, "content" | "reasoning" | "toolCalls" | "tokens" | "steps" | "timings" | "firstTokenMs" | "seed" | "finish" | "totalTokens" | "model" | "waiting">;

interface WireToken {
  text: string;
  drafter: string | null;
  bytes?: number[];
}
interface WireLogprob {
  logprob: number;
  top_logprobs: { token: string; logprob: number }[];
}

// Adds what an event says to the answer.
export function applyEvent(answer: Answer, event: any, pending: WireLogprob[]): void {
  const choice = event.choices?.[0];
  const delta = choice?.delta ?? {};
  if (event.prompt_progress) answer.waiting = { read: event.prompt_progress.processed, total: event.prompt_progress.total };
  if (event.model) answer.model = event.model;
  if (delta.content) answer.content += delta.content;
  if (delta.reasoning_content) answer.reasoning = (answer.reasoning ?? "") + delta.reasoning_content;
  for (const call of delta.tool_calls ?? []) addToolCall((answer.toolCalls ??= []), call);
  pending.push(...((choice?.logprobs?.content ?? []) as WireLogprob[]));
  for (const token of (event.provenance ?? []) as WireToken[]) answer.tokens!.push({ text: token.text, drafter: token.drafter, ...(token.bytes && { bytes: token.bytes }) });
  if (answer.tokens!.length > 0) delete answer.waiting;
  joinLogprobs(answer.tokens!, pending);
  if (choice?.finish_reason) answer.finish = choice.finish_reason;
  if (event.seed !== undefined) answer.seed = event.seed;
  if (event.usage) answer.totalTokens = event.usage.total_tokens;
  if (event.timings) {
    answer.timings = readTimings(event.timings);
    answer.steps = (event.timings.steps ?? []).map(([drafter, drafted, accepted, ms, rejected]: [string | null, number, number, number, string[]?]): StepInfo => ({ drafter, drafted, accepted, ms, rejected: rejected ?? [] }));
  }
}

function addToolCall(calls: ToolCall[], part: { index?: number; function?: { name?: string; arguments?: string } }): void {
  const call = (calls[part.index ?? 0] ??= { name: "", arguments: "" });
  call.name += part.function?.name ?? "";
  call.arguments += part.function?.arguments ?? "";
}

// Log probabilities and drafters come in the same order, but not always with the same event.
function joinLogprobs(tokens: TokenInfo[], pending: WireLogprob[]): void {
  let next = tokens.length;
  while (next > 0 && tokens[next - 1]!.logprob === undefined) --next;
  while (next < tokens.length && pending.length > 0) {
    const { logprob, top_logprobs } = pending.shift()!;
    const token = tokens[next++]!;
    token.logprob = logprob;
    token.top = top_logprobs.map((each) => [each.token, each.logprob]);
  }
}

function readTimings(timings: Record<string, number>): Timings {
  return {
    promptTokens: timings.prompt_n ?? 0,
    cachedTokens: timings.cache_n ?? 0,
    promptMs: timings.prompt_ms ?? 0,
    generatedTokens: timings.predicted_n ?? 0,
    generateMs: timings.predicted_ms ?? 0,
    tokensPerSecond: timings.predicted_per_second ?? 0,
    drafted: timings.draft_n ?? 0,
    accepted: timings.draft_n_accepted ?? 0,
    speedUp: timings.speed_up ?? 1,
  };
}

export function emptyAnswer(): Answer {
  return { content: "", tokens: [] };
}

// Sends the request and fills `answer` as the events come; `changed` is called after each. Throws an ApiError, or the
// AbortError of the signal.
export async function streamChat(request: ChatRequest, answer: Answer, changed: () => void, signal: AbortSignal): Promise<void> {
  const begun = performance.now();
  const response = await ask("v1/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(requestBody(request)),
    signal,
  });
  const pending: WireLogprob[] = [];
  let complete = false;
  for await (const data of eventsOf(response)) {
    if (data === "[DONE]") {
      complete = true;
      break;
    }
    const event = JSON.parse(data);
    if (event.error) throw new ApiError("refused", event.error.message ?? "");
    const before = answer.tokens!.length;
    applyEvent(answer, event, pending);
    if (before === 0 && answer.tokens!.length > 0) answer.firstTokenMs = performance.now() - begun;
    changed();
  }
  if (!complete) throw new ApiError("cut", "");
}
