// A conversation is a tree: an edited question or a repeated answer is a sibling of the first one. One path through it
// is shown. No function here has side effects.
import type { Conversation, Message } from "./types";

export interface Branch {
  message: Message;
  index: number; // among its siblings, from 0
  count: number;
}

export function childrenOf(messages: Iterable<Message>, parent: string | null): Message[] {
  const children = [...messages].filter((message) => message.parent === parent);
  return children.sort((a, b) => a.created - b.created || (a.id < b.id ? -1 : 1));
}

// The messages that are shown, from the first to the last, each with its place among its siblings. Where nothing was
// selected, or what was is gone, the newest sibling is shown.
export function shownPath(messages: readonly Message[], selected: Conversation["selected"]): Branch[] {
  const byParent = new Map<string, Message[]>();
  for (const message of messages) {
    const key = message.parent ?? "";
    const siblings = byParent.get(key);
    if (siblings) siblings.push(message);
    else byParent.set(key, [message]);
  }
  const path: Branch[] = [];
  const seen = new Set<string>(); // an imported file may hold a cycle
  for (let key = ""; ; ) {
    const siblings = byParent.get(key);
    if (!siblings) return path;
    siblings.sort((a, b) => a.created - b.created || (a.id < b.id ? -1 : 1));
    const chosen = siblings.findIndex((message) => message.id === selected[key]);
    const index = chosen >= 0 ? chosen : siblings.length - 1;
    const message = siblings[index]!;
    if (seen.has(message.id)) return path;
    seen.add(message.id);
    path.push({ message, index, count: siblings.length });
    key = message.id;
  }
}

// `selected` after the sibling `step` places further on (-1, 1) was chosen; unchanged at the ends.
export function selectSibling(messages: readonly Message[], selected: Conversation["selected"], of: Message, step: number): Conversation["selected"] {
  const siblings = childrenOf(messages, of.parent);
  const next = siblings[siblings.findIndex((message) => message.id === of.id) + step];
  return next ? { ...selected, [of.parent ?? ""]: next.id } : selected;
}

// The message and all that follow from it.
export function subtree(messages: readonly Message[], root: string): Message[] {
  const found = new Set([root]);
  for (let grown = true; grown; ) {
    grown = false;
    for (const message of messages) {
      if (message.parent !== null && found.has(message.parent) && !found.has(message.id)) {
        found.add(message.id);
        grown = true;
      }
    }
  }
  return messages.filter((message) => found.has(message.id));
}

// A title for a conversation: the beginning of its first question.
export function titleOf(text: string, max = 48): string {
  const line = text.trim().split("\n", 1)[0]!.trim();
  const characters = [...line];
  return characters.length > max ? characters.slice(0, max - 1).join("").trimEnd() + "…" : line;
}
