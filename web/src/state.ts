// What the page knows and does: conversations, settings, the server's state, and the answers that are being written.
import { batch, computed, effect, signal } from "@preact/signals";
import { ApiError, busySlots, emptyAnswer, getProps, isHealthy, storeKey, streamChat, type Answer, type ChatRequest, type ChatTurn, type Props } from "./api";
import { ArchiveError, makeArchive, readArchive } from "./logic/archive";
import { differenceOfAnswers } from "./logic/difference";
import { selectSibling, shownPath, titleOf } from "./logic/tree";
import type { Conversation, Image, Message, Proof, Settings, Speculation } from "./logic/types";
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
    const before = props.value;
    const now = await getProps();
    batch(() => {
      props.value = now;
      const replaced = before && (before.model_alias !== now.model_alias || before.build_info !== now.build_info);
      const news = [replaced ? texts.server.replaced(now.model_alias, now.build_info) : "", dropUnknownDrafters(now.drafters)].filter(Boolean);
      if (news.length > 0) notice.value = news.join(" ");
    });
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

// Drops drafters that were picked and that this server does not have: a request that names one is refused. Says so if it matters.
function dropUnknownDrafters(known: readonly string[]): string {
  const { mode, drafters } = speculation.value;
  const kept = drafters.filter((name) => known.includes(name));
  if (kept.length === drafters.length) return "";
  speculation.value = { mode: mode === "pick" && kept.length === 0 ? "auto" : mode, drafters: kept };
  if (mode !== "pick") return "";
  const gone = drafters.filter((name) => !known.includes(name));
  return texts.speculation.gone(gone, kept.length > 0);
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
  // Whoever comes back to the page may find another server behind it.
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && serverState.value === "ready" && keyDialog.value === "closed") void connect();
  });
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

// All messages of a conversation, as new as this tab knows them.
async function messagesOf(conversation: string): Promise<Message[]> {
  const byId = new Map(((await store?.messages(conversation)) ?? []).map((message) => [message.id, message]));
  for (const message of written.values()) {
    if (message.conversation === conversation) byId.set(message.id, message);
  }
  return [...byId.values()];
}

export async function exportAll(): Promise<string> {
  const list = await Promise.all(conversations.value.map(async (conversation) => ({ conversation, messages: await messagesOf(conversation.id) })));
  return makeArchive(list);
}

export async function importAll(text: string): Promise<void> {
  try {
    const list = readArchive(text, newId);
    for (const { conversation, messages: read } of list) {
      if (!store) for (const message of read) written.set(message.id, message);
      putConversation(conversation);
      await saveMessages(...read);
    }
    notice.value = texts.conversations.imported(list.length);
  } catch (error) {
    notice.value = texts.conversations.importFailed(error instanceof ArchiveError ? texts.archive[error.problem](error) : String(error));
  }
}

// --- Asking

function show(message: Message): void {
  const conversation = conversations.value.find((each) => each.id === message.conversation);
  if (!conversation) return;
  putConversation({ ...conversation, updated: Date.now(), selected: { ...conversation.selected, [message.parent ?? ""]: message.id } });
}

export function send(text: string, images: Image[] = []): void {
  const conversation = current.value ?? beginConversation(text || images[0]?.name || "");
  const last = path.value.at(-1)?.message ?? null;
  ask(conversation.id, last?.id ?? null, text, images);
}

// A question, as a sibling of those that follow `parent`, and its answer.
function ask(conversation: string, parent: string | null, text: string, images: Image[]): void {
  const now = Date.now();
  const question: Message = { id: newId(), conversation, parent, role: "user", content: text, created: now, updated: now, state: "done", ...(images.length > 0 && { images }) };
  batch(() => {
    putMessage(question);
    show(question);
  });
  void saveMessages(question);
  void answer(question);
}

export function edit(message: Message, text: string): void {
  ask(message.conversation, message.parent, text, message.images ?? []);
}

export function regenerate(message: Message): void {
  const question = messages.value.find((each) => each.id === message.parent);
  if (question) void answer(question);
}

export function showSibling(message: Message, step: number): void {
  const conversation = current.value;
  if (conversation) putConversation({ ...conversation, selected: selectSibling(messages.value, conversation.selected, message, step) });
}

export function stop(id: string): void {
  streams.get(id)?.abort.abort();
}

function contentOf({ content, images }: Message): ChatTurn["content"] {
  if (!images || images.length === 0) return content;
  const pictures = images.map(({ url }) => ({ type: "image_url" as const, image_url: { url } }));
  return content === "" ? pictures : [...pictures, { type: "text", text: content }];
}

// What is asked for an answer, told by what the answer remembers of it. Asking again is the same request because the first one was made here too.
function requestOf(message: Message): ChatRequest {
  const byId = new Map(messages.value.map((each) => [each.id, each]));
  const turns: ChatTurn[] = [];
  for (let at = byId.get(message.parent ?? ""); at; at = byId.get(at.parent ?? "")) turns.unshift({ role: at.role, content: contentOf(at) });
  if (message.system) turns.unshift({ role: "system", content: message.system });
  return { messages: turns, settings: message.settings ?? {}, speculation: message.speculation ?? AUTO, details: message.details ?? false };
}

const AUTO: Speculation = { mode: "auto", drafters: [] };
const SAVE_MS = 700; // a growing message is stored so often; well below STALE_MS
const MIN_FRAME_MS = 50; // and shown
const ASK_SLOTS_MS = 1000; // while nothing has come

async function answer(question: Message): Promise<void> {
  const now = Date.now();
  const message: Message = {
    id: newId(), conversation: question.conversation, parent: question.id, role: "assistant", created: now, updated: now, state: "streaming",
    ...emptyAnswer(), settings: { ...settings.value }, speculation: { ...speculation.value }, details: preferences.value.details,
    system: conversations.value.find((each) => each.id === question.conversation)?.system ?? "",
    ...(props.value && { model: props.value.model_alias, build: props.value.build_info }),
  };
  const request = requestOf(message);
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
  const asking = setInterval(() => void lookForQueue(message, paint), ASK_SLOTS_MS);
  try {
    await streamChat(request, message as Answer, () => (painting ??= setTimeout(paint, MIN_FRAME_MS)), abort.signal);
    message.state = "done";
  } catch (error) {
    fail(message, error, abort.signal.aborted);
  }
  clearInterval(saving);
  clearInterval(asking);
  delete message.waiting;
  clearTimeout(painting);
  streams.delete(message.id);
  message.updated = Date.now();
  batch(() => {
    streaming.value = new Set(streams.keys());
    putMessage({ ...message });
  });
  void saveMessages(message);
  if (message.model !== props.value?.model_alias && message.state === "done") void connect();
}

// Nothing has come yet: is that because all slots are taken?
async function lookForQueue(message: Message, changed: () => void): Promise<void> {
  const nothingYet = () => message.state === "streaming" && message.tokens!.length === 0 && !(message.waiting && "read" in message.waiting);
  if (!nothingYet() || props.value?.endpoint_slots === false) return;
  try {
    const queued = await busySlots();
    if (!nothingYet()) return;
    if (queued > 0) message.waiting = { queued };
    else delete message.waiting;
    changed();
  } catch {
    // The answer itself will tell what is wrong.
  }
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

// Asks the same question again, once as it was asked and once with the other choice of speculation, with the seed that was used, and
// compares all of the answers.
export async function prove(message: Message): Promise<void> {
  if (message.seed === undefined) return;
  const put = (proof: Proof) => {
    const now = { ...(messages.value.find((each) => each.id === message.id) ?? written.get(message.id) ?? message), proof };
    putMessage(now);
    if (proof.state !== "running") void saveMessages(now);
  };
  const request = requestOf(message);
  request.settings = { ...request.settings, seed: message.seed };
  const other: Speculation = request.speculation.mode === "off" ? AUTO : { mode: "off", drafters: [] };
  put({ state: "running" });
  for (const speculation of [request.speculation, other]) {
    const again = emptyAnswer();
    try {
      await streamChat({ ...request, speculation }, again, () => {}, new AbortController().signal);
    } catch (error) {
      return put({ state: "failed", speculation: speculation.mode, why: whyOf(error) });
    }
    if (message.model !== undefined && again.model !== message.model) return put({ state: "failed", speculation: speculation.mode, why: texts.message.otherModel(again.model ?? "") });
    const difference = differenceOfAnswers(message, again);
    if (difference) return put({ state: "different", part: difference.part, at: difference.at, speculation: speculation.mode });
  }
  put({ state: "same", tokens: message.tokens?.length ?? 0 });
}

function whyOf(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  if (error.kind === "busy") return texts.message.busy(error.retryAfter);
  return error.kind === "cut" ? texts.message.cut : error.message || texts.message.unreachable;
}
