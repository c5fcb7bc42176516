// What the page knows and does: conversations, settings, the server's state, and the answers that are being written.
import { batch, computed, effect, signal } from "@preact/signals";
import { ApiError, emptyAnswer, getProps, isHealthy, storeKey, streamChat, type Answer, type Props } from "./api";
import { makeArchive, readArchive } from "./logic/archive";
import { firstDifference } from "./logic/difference";
import { selectSibling, shownPath, titleOf } from "./logic/tree";
import type { Conversation, Message, Settings, Speculation } from "./logic/types";
import { newId, Store } from "./store";
import { texts } from "./texts";

export type View = "chat" | "compare" | "dashboard";
export type Theme = "auto" | "light" | "dark";

// --- The server

export const props = signal<Props | null>(null);
export const serverState = signal<"connecting" | "ready" | "gone">("connecting");
export const keyDialog = signal<"closed" | "open" | "wrong">("closed");
export const contextLength = computed(() => props.value?.default_generation_settings.n_ctx ?? 0);

const RETRY_MS = 2000;
let waiting = false;

export async function connect(): Promise<void> {
  try {
    props.value = await getProps();
    serverState.value = "ready";
    keyDialog.value = "closed";
  } catch (error) {
    if (error instanceof ApiError && error.kind === "key") {
      serverState.value = "ready";
      keyDialog.value = keyDialog.value === "closed" ? "open" : "wrong";
    } else {
      serverGone();
    }
  }
}

// Asks again and again until the server is back. Nothing is asked while it answers.
export function serverGone(): void {
  serverState.value = "gone";
  if (waiting) return;
  waiting = true;
  const again = async () => {
    if (await isHealthy()) {
      waiting = false;
      await connect();
    } else {
      setTimeout(again, RETRY_MS);
    }
  };
  setTimeout(again, RETRY_MS);
}

export function useKey(key: string, forGood: boolean): Promise<void> {
  storeKey(key, forGood);
  return connect();
}

// --- Settings

function stored<T extends object>(name: string, initial: T) {
  let value = initial;
  try {
    value = { ...initial, ...JSON.parse(localStorage.getItem(name) ?? "{}") };
  } catch {
    // Damaged or not allowed: the initial value.
  }
  const state = signal<T>(value);
  effect(() => {
    const text = JSON.stringify(state.value);
    try {
      localStorage.setItem(name, text);
    } catch {
      // The browser stores nothing; the value holds until the page is closed.
    }
  });
  return state;
}

export const settings = stored<Settings>("outrider-settings", {});
export const speculation = stored<Speculation>("outrider-speculation", { mode: "auto", drafters: [] });
export const preferences = stored("outrider-preferences", { theme: "auto" as Theme, origins: false, details: true });

effect(() => {
  const { theme } = preferences.value;
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
});

// --- Where we are: #/chat/ID, #/compare, #/dashboard

export const view = signal<View>("chat");
export const currentId = signal<string | null>(null);

function readAddress(): void {
  const [, name, id] = location.hash.split("/");
  batch(() => {
    view.value = name === "compare" || name === "dashboard" ? name : "chat";
    if (view.value === "chat") currentId.value = id || null;
  });
}

export function go(to: View, id?: string): void {
  location.hash = id ? `#/${to}/${id}` : `#/${to}`;
}

// --- Conversations

export const conversations = signal<Conversation[]>([]);
export const messages = signal<Message[]>([]); // of the current conversation
export const notice = signal("");
export const current = computed(() => conversations.value.find((conversation) => conversation.id === currentId.value) ?? null);
export const path = computed(() => shownPath(messages.value, current.value?.selected ?? {}));
export const draftSystem = signal(""); // system prompt of a conversation that has not begun

let store: Store | null = null;
const written = new Map<string, Message>(); // what this tab has written; newer than what is stored, which takes a moment
const streams = new Map<string, { message: Message; abort: AbortController }>();
export const streaming = signal<ReadonlySet<string>>(new Set()); // messages that this tab is writing

const STALE_MS = 4000; // a stream of another tab that has not been written for so long is over

async function quietly(work: Promise<void> | undefined): Promise<void> {
  try {
    await work;
  } catch {
    notice.value = texts.chat.storageFailed;
  }
}

const saveConversation = (conversation: Conversation) => quietly(store?.saveConversation(conversation));
const saveMessages = (...list: Message[]) => quietly(store?.saveMessages(...list));

async function loadConversations(): Promise<void> {
  if (!store) return;
  const list = await store.conversations();
  conversations.value = list.sort((a, b) => b.updated - a.updated);
}

let staleCheck: ReturnType<typeof setTimeout> | undefined;

async function loadMessages(): Promise<void> {
  const id = currentId.value;
  if (id === null) {
    messages.value = [];
    return;
  }
  const list = store ? await store.messages(id) : [];
  if (currentId.value !== id) return;
  clearTimeout(staleCheck);
  const stored = new Set(list.map((message) => message.id));
  for (const message of written.values()) {
    if (message.conversation === id && !stored.has(message.id)) list.push(message);
  }
  messages.value = list.map((message) => {
    const own = written.get(message.id);
    if (own) return own;
    if (message.state !== "streaming") return message;
    // Another tab writes it, or it was left behind by one that was closed.
    if (Date.now() - message.updated > STALE_MS) return { ...message, state: "interrupted" };
    clearTimeout(staleCheck);
    staleCheck = setTimeout(loadMessages, STALE_MS);
    return message;
  });
}

export async function start(): Promise<void> {
  readAddress();
  addEventListener("hashchange", readAddress);
  void connect();
  try {
    store = await Store.open();
    store.watch((change) => {
      if (change.kind === "conversations") void loadConversations();
      else if (change.conversation === currentId.value) void loadMessages();
    });
    await loadConversations();
  } catch {
    notice.value = texts.chat.storageFailed;
  }
  effect(() => {
    void currentId.value;
    void loadMessages();
  });
}

function putMessage(message: Message): void {
  written.set(message.id, message);
  if (message.conversation !== currentId.value) return;
  const list = messages.value;
  const index = list.findIndex((each) => each.id === message.id);
  messages.value = index < 0 ? [...list, message] : list.with(index, message);
}

function putConversation(conversation: Conversation): void {
  const others = conversations.value.filter((each) => each.id !== conversation.id);
  conversations.value = [conversation, ...others].sort((a, b) => b.updated - a.updated);
  void saveConversation(conversation);
}

function beginConversation(title: string): Conversation {
  const now = Date.now();
  const conversation: Conversation = { id: newId(), title: titleOf(title) || texts.conversations.untitled, created: now, updated: now, system: draftSystem.value, selected: {} };
  putConversation(conversation);
  draftSystem.value = "";
  batch(() => {
    currentId.value = conversation.id;
    messages.value = [];
  });
  go("chat", conversation.id);
  return conversation;
}

export function renameConversation(conversation: Conversation, title: string): void {
  putConversation({ ...conversation, title: titleOf(title, 200) || conversation.title });
}

export function setSystem(system: string): void {
  if (current.value) putConversation({ ...current.value, system });
  else draftSystem.value = system;
}

export async function deleteConversation(id: string): Promise<void> {
  for (const [message, stream] of streams) {
    if (stream.message.conversation === id) stop(message);
  }
  for (const [message, { conversation }] of written) {
    if (conversation === id) written.delete(message);
  }
  await quietly(store?.deleteConversation(id));
  conversations.value = conversations.value.filter((each) => each.id !== id);
  if (currentId.value === id) go("chat");
}

export async function exportAll(): Promise<string> {
  const list = await Promise.all(conversations.value.map(async (conversation) => ({ conversation, messages: (await store?.messages(conversation.id)) ?? [] })));
  return makeArchive(list);
}

export async function importAll(text: string): Promise<void> {
  try {
    const list = readArchive(text, newId);
    for (const { conversation, messages: read } of list) {
      await store?.saveConversation(conversation);
      await store?.saveMessages(...read);
    }
    await loadConversations();
    notice.value = texts.conversations.imported(list.length);
  } catch (error) {
    notice.value = texts.conversations.importFailed(error instanceof Error ? error.message : String(error));
  }
}

// --- Asking

function show(message: Message): void {
  const conversation = conversations.value.find((each) => each.id === message.conversation);
  if (!conversation) return;
  putConversation({ ...conversation, updated: Date.now(), selected: { ...conversation.selected, [message.parent ?? ""]: message.id } });
}

export function send(text: string): void {
  const conversation = current.value ?? beginConversation(text);
  const last = path.value.at(-1)?.message ?? null;
  ask(conversation.id, last?.id ?? null, text);
}

// A question, as a sibling of those that follow `parent`, and its answer.
function ask(conversation: string, parent: string | null, text: string): void {
  const now = Date.now();
  const question: Message = { id: newId(), conversation, parent, role: "user", content: text, created: now, updated: now, state: "done" };
  batch(() => {
    putMessage(question);
    show(question);
  });
  void saveMessages(question);
  void answer(question, settings.value, speculation.value);
}

export function edit(message: Message, text: string): void {
  ask(message.conversation, message.parent, text);
}

export function regenerate(message: Message): void {
  const question = messages.value.find((each) => each.id === message.parent);
  if (question) void answer(question, settings.value, speculation.value);
}

export function showSibling(message: Message, step: number): void {
  const conversation = current.value;
  if (conversation) putConversation({ ...conversation, selected: selectSibling(messages.value, conversation.selected, message, step) });
}

export function stop(id: string): void {
  streams.get(id)?.abort.abort();
}

// The messages up to `last` as the API takes them.
function turnsUntil(last: Message): { role: string; content: string }[] {
  const byId = new Map(messages.value.map((message) => [message.id, message]));
  const turns = [];
  for (let message: Message | undefined = last; message; message = message.parent === null ? undefined : byId.get(message.parent)) {
    turns.unshift({ role: message.role, content: message.content });
  }
  const system = conversations.value.find((each) => each.id === last.conversation)?.system;
  return system ? [{ role: "system", content: system }, ...turns] : turns;
}

const SAVE_MS = 700; // a growing message is stored so often; well below STALE_MS
const MIN_FRAME_MS = 50; // and shown

async function answer(question: Message, chosen: Settings, how: Speculation): Promise<void> {
  const now = Date.now();
  const message: Message = {
    id: newId(), conversation: question.conversation, parent: question.id, role: "assistant", created: now, updated: now, state: "streaming",
    ...emptyAnswer(), settings: { ...chosen }, speculation: { ...how },
  };
  const request = { messages: turnsUntil(question), settings: chosen, speculation: how, details: preferences.value.details };
  const abort = new AbortController();
  streams.set(message.id, { message, abort });
  batch(() => {
    streaming.value = new Set(streams.keys());
    putMessage({ ...message });
    show(message);
  });
  void saveMessages(message);

  let painting: ReturnType<typeof setTimeout> | undefined;
  const paint = () => {
    painting = undefined;
    putMessage({ ...message });
  };
  const saving = setInterval(() => {
    message.updated = Date.now();
    void saveMessages(message);
  }, SAVE_MS);
  try {
    await streamChat(request, message as Answer, () => (painting ??= setTimeout(paint, MIN_FRAME_MS)), abort.signal);
    message.state = "done";
  } catch (error) {
    fail(message, error, abort.signal.aborted);
  }
  clearInterval(saving);
  clearTimeout(painting);
  streams.delete(message.id);
  message.updated = Date.now();
  batch(() => {
    streaming.value = new Set(streams.keys());
    putMessage({ ...message });
  });
  void saveMessages(message);
}

function fail(message: Message, error: unknown, aborted: boolean): void {
  message.state = aborted ? "stopped" : "failed";
  if (aborted) return;
  if (!(error instanceof ApiError)) {
    message.error = String(error);
    return;
  }
  switch (error.kind) {
    case "key":
      keyDialog.value = "open";
      message.error = error.message;
      break;
    case "unreachable":
      serverGone();
      message.error = texts.message.unreachable;
      break;
    case "cut":
      message.error = texts.message.cut;
      void connect();
      break;
    case "busy":
      message.error = texts.message.busy(error.retryAfter);
      break;
    case "refused":
      message.error = error.message;
  }
}

// Asks the same question again with the same seed and without drafts, and compares the texts.
export async function prove(message: Message): Promise<void> {
  const question = messages.value.find((each) => each.id === message.parent);
  if (!question || message.seed === undefined) return;
  const put = (proof: string) => {
    const now = messages.value.find((each) => each.id === message.id) ?? message;
    putMessage({ ...now, proof });
    return { ...now, proof };
  };
  put(texts.message.proving);
  const again = emptyAnswer();
  try {
    const request = { messages: turnsUntil(question), settings: { ...message.settings, seed: message.seed }, speculation: { mode: "off" as const, drafters: [] }, details: false };
    await streamChat(request, again, () => {}, new AbortController().signal);
    const whole = (answer: Answer) => (answer.reasoning ?? "") + answer.content + JSON.stringify(answer.toolCalls ?? []);
    const difference = firstDifference(whole(message), whole(again));
    void saveMessages(put(difference ? texts.message.notProven(difference.at) : texts.message.proven(again.tokens!.length, message.seed)));
  } catch {
    put(texts.message.proofFailed);
  }
}
