// Conversations as a file. What comes from a file is foreign: every field is checked, ids are made anew. Pure.
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

// Throws an Error that says what is wrong with the file.
export function readArchive(text: string, newId: () => string): Archive["conversations"] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Error("the file is not JSON");
  }
  const archive = json as Partial<Archive> | null;
  if (archive?.format !== "outrider-conversations") throw new Error("the file was not exported by this page");
  if (archive.version !== 1) throw new Error(`the file has version ${archive.version}, this page reads version 1`);
  if (!Array.isArray(archive.conversations)) throw new Error("the file has no list of conversations");
  return archive.conversations.map((entry, i) => readOne(entry, i, newId));
}

function readOne(entry: unknown, index: number, newId: () => string): Archive["conversations"][number] {
  const { conversation, messages } = (entry ?? {}) as { conversation?: Partial<Conversation>; messages?: unknown };
  if (!conversation || !Array.isArray(messages)) throw new Error(`conversation ${index + 1} has no messages`);
  const ids = new Map<unknown, string>();
  for (const message of messages) ids.set(message?.id, newId());
  const id = newId();
  const read = messages.map((message, i): Message => {
    const where = `message ${i + 1} of conversation ${index + 1}`;
    if (message?.role !== "user" && message?.role !== "assistant") throw new Error(`${where} has no role`);
    if (typeof message.content !== "string") throw new Error(`${where} has no text`);
    if (message.parent !== null && !ids.has(message.parent)) throw new Error(`${where} follows one that is not in the file`);
    return {
      id: ids.get(message.id)!,
      conversation: id,
      parent: message.parent === null ? null : ids.get(message.parent)!,
      role: message.role,
      content: message.content,
      created: numberOr(message.created, i),
      updated: numberOr(message.updated, 0),
      state: STATES.includes(message.state) ? message.state : "interrupted",
      ...(typeof message.reasoning === "string" && { reasoning: message.reasoning }),
      ...(Array.isArray(message.tokens) && message.tokens.every(isToken) && { tokens: message.tokens }),
      ...(Array.isArray(message.steps) && message.steps.every(isStep) && { steps: message.steps }),
      ...(typeof message.seed === "number" && { seed: message.seed }),
      ...(typeof message.finish === "string" && { finish: message.finish }),
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

function isToken(token: unknown): boolean {
  const { text, drafter, bytes, top } = (token ?? {}) as Record<string, unknown>;
  const topIsFine = top === undefined || (Array.isArray(top) && top.every((each) => Array.isArray(each) && typeof each[0] === "string" && typeof each[1] === "number"));
  return typeof text === "string" && (drafter === null || typeof drafter === "string") && (bytes === undefined || Array.isArray(bytes)) && topIsFine;
}

function isStep(step: unknown): boolean {
  const { drafted, accepted, ms, rejected } = (step ?? {}) as Record<string, unknown>;
  return [drafted, accepted, ms].every((value) => typeof value === "number") && Array.isArray(rejected) && rejected.every((text) => typeof text === "string");
}
