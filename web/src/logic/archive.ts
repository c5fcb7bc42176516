// Conversations as a file. What comes from a file is foreign: every field is checked, ids are made anew. No function here has side effects.
import { isImageUrl } from "./plain";
import type { Conversation, Message, MessageState } from "./types";

export interface Archive {
  format: "outrider-conversations";
  version: 1;
  conversations: { conversation: Conversation; messages: Message[] }[];
}

export function makeArchive(conversations: Archive["conversations"]): string {
  return JSON.stringify({ format: "outrider-conversations", version: 1, conversations } satisfies Archive, null, 1);
}

const STATES: MessageState[] = ["done", "stopped", "interrupted", "failed"];

export type ArchiveProblem = "notJson" | "notOurs" | "version" | "noList" | "noMessages" | "noRole" | "noText" | "noParent";

// What is wrong with a file; `conversation` and `message` count from 1.
export class ArchiveError extends Error {
  constructor(
    readonly problem: ArchiveProblem,
    readonly conversation = 0,
    readonly place = 0,
    readonly version: unknown = undefined,
  ) {
    super(problem);
  }
}

// Throws an ArchiveError.
export function readArchive(text: string, newId: () => string): Archive["conversations"] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new ArchiveError("notJson");
  }
  const archive = json as Partial<Archive> | null;
  if (archive?.format !== "outrider-conversations") throw new ArchiveError("notOurs");
  if (archive.version !== 1) throw new ArchiveError("version", 0, 0, archive.version);
  if (!Array.isArray(archive.conversations)) throw new ArchiveError("noList");
  return archive.conversations.map((entry, i) => readOne(entry, i, newId));
}

function readOne(entry: unknown, index: number, newId: () => string): Archive["conversations"][number] {
  const { conversation, messages } = (entry ?? {}) as { conversation?: Partial<Conversation>; messages?: unknown };
  if (!conversation || !Array.isArray(messages)) throw new ArchiveError("noMessages", index + 1);
  const ids = new Map<unknown, string>();
  for (const message of messages) ids.set(message?.id, newId());
  const id = newId();
  const read = messages.map((message, i): Message => {
    const wrong = (problem: ArchiveProblem) => new ArchiveError(problem, index + 1, i + 1);
    if (message?.role !== "user" && message?.role !== "assistant") throw wrong("noRole");
    if (typeof message.content !== "string") throw wrong("noText");
    if (message.parent !== null && !ids.has(message.parent)) throw wrong("noParent");
    return {
      id: ids.get(message.id)!,
      conversation: id,
      parent: message.parent === null ? null : ids.get(message.parent)!,
      role: message.role,
      content: message.content,
      created: numberOr(message.created, i),
      updated: numberOr(message.updated, 0),
      state: STATES.includes(message.state) ? message.state : "interrupted",
      ...optionalFields(message),
    };
  });
  const selected: Conversation["selected"] = {};
  for (const [from, to] of Object.entries(conversation.selected ?? {})) {
    const child = ids.get(to);
    const parent = from === "" ? "" : ids.get(from);
    if (child !== undefined && parent !== undefined) selected[parent] = child;
  }
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  return {
    conversation: { id, title: text(conversation.title).slice(0, 200), system: text(conversation.system), created: numberOr(conversation.created, 0), updated: numberOr(conversation.updated, 0), selected },
    messages: read,
  };
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}

type Check = (value: unknown) => boolean;
const isText: Check = (value) => typeof value === "string";
const isNumber: Check = (value) => typeof value === "number" && Number.isFinite(value);
const isFlag: Check = (value) => typeof value === "boolean";
const oneOf = (...values: unknown[]): Check => (value) => values.includes(value);
const listOf = (check: Check): Check => (value) => Array.isArray(value) && value.every(check);
const maybe = (check: Check): Check => (value) => value === undefined || check(value);
const either = (...checks: Check[]): Check => (value) => checks.some((check) => check(value));
// An object with these fields and no others.
const record = (fields: Record<string, Check>): Check => (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).every((name) => Object.hasOwn(fields, name)) && Object.entries(fields).every(([name, check]) => check((value as Record<string, unknown>)[name]));

const drafter = either(isText, oneOf(null));
const mode = oneOf("auto", "off", "pick");
const isAlternative: Check = (value) => Array.isArray(value) && value.length === 2 && isText(value[0]) && isNumber(value[1]);

// What a message may have. TypeScript sees to it that no field is forgotten: one that is not here would be lost by export and import.
type Always = "id" | "conversation" | "parent" | "role" | "content" | "created" | "updated" | "state";
const OPTIONAL: Record<Exclude<keyof Message, Always | "waiting">, Check> = {
  images: listOf(record({ name: isText, url: (value) => typeof value === "string" && isImageUrl(value) })),
  reasoning: isText,
  toolCalls: listOf(record({ name: isText, arguments: isText })),
  tokens: listOf(record({ text: isText, drafter, bytes: maybe(listOf(isNumber)), logprob: maybe(isNumber), top: maybe(listOf(isAlternative)) })),
  steps: listOf(record({ drafter, drafted: isNumber, accepted: isNumber, ms: isNumber, rejected: listOf(isText) })),
  timings: record({ promptTokens: isNumber, cachedTokens: isNumber, promptMs: isNumber, generatedTokens: isNumber, generateMs: isNumber, tokensPerSecond: isNumber, drafted: isNumber, accepted: isNumber, speedUp: isNumber }),
  firstTokenMs: isNumber,
  seed: isNumber,
  finish: isText,
  totalTokens: isNumber,
  error: isText,
  settings: record({
    ...Object.fromEntries(["temperature", "top_p", "top_k", "min_p", "repeat_penalty", "max_tokens", "seed"].map((name) => [name, maybe(isNumber)])),
    stop: maybe(listOf(isText)), schema: maybe(isText), tools: maybe(isText),
  }),
  speculation: record({ mode, drafters: listOf(isText) }),
  system: isText,
  details: isFlag,
  model: isText,
  build: isText,
  proof: record({
    state: oneOf("same", "different", "failed"), tokens: maybe(isNumber), part: maybe(oneOf("reasoning", "content", "toolCalls", "tokens", "finish")),
    at: maybe(isNumber), speculation: maybe(mode), why: maybe(isText),
  }),
};

// Those that are there and are what they should be.
function optionalFields(message: Record<string, unknown>): Partial<Message> {
  return Object.fromEntries(Object.entries(OPTIONAL).flatMap(([name, check]) => (message[name] !== undefined && check(message[name]) ? [[name, message[name]]] : [])));
}
