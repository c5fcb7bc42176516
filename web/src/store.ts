// Conversations in the browser's IndexedDB. A message is a record of its own, so that a stream rewrites only the one it
// grows. Other tabs of the page are told what has changed.
import type { Conversation, Message } from "./logic/types";

const NAME = "outrider";
const VERSION = 1;

function promised<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

export type Change = { kind: "conversations" } | { kind: "messages"; conversation: string };

export class Store {
  private constructor(
    private readonly database: IDBDatabase,
    private readonly channel: BroadcastChannel,
  ) {}

  static async open(name = NAME): Promise<Store> {
    const request = indexedDB.open(name, VERSION);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("conversations", { keyPath: "id" });
      request.result.createObjectStore("messages", { keyPath: "id" }).createIndex("conversation", "conversation");
    };
    return new Store(await promised(request), new BroadcastChannel(name));
  }

  // Calls `changed` for what another tab changes.
  watch(changed: (change: Change) => void): void {
    this.channel.onmessage = (event) => changed(event.data as Change);
  }

  conversations(): Promise<Conversation[]> {
    return promised(this.database.transaction("conversations").objectStore("conversations").getAll());
  }

  messages(conversation: string): Promise<Message[]> {
    return promised(this.database.transaction("messages").objectStore("messages").index("conversation").getAll(conversation));
  }

  async saveConversation(conversation: Conversation): Promise<void> {
    await promised(this.database.transaction("conversations", "readwrite").objectStore("conversations").put(conversation));
    this.channel.postMessage({ kind: "conversations" } satisfies Change);
  }

  async saveMessages(...messages: Message[]): Promise<void> {
    const transaction = this.database.transaction("messages", "readwrite");
    const records = transaction.objectStore("messages");
    await Promise.all(messages.map((message) => promised(records.put(message))));
    for (const conversation of new Set(messages.map((message) => message.conversation))) {
      this.channel.postMessage({ kind: "messages", conversation } satisfies Change);
    }
  }

  async deleteConversation(id: string): Promise<void> {
    const transaction = this.database.transaction(["conversations", "messages"], "readwrite");
    transaction.objectStore("conversations").delete(id);
    const messages = transaction.objectStore("messages");
    for (const key of await promised(messages.index("conversation").getAllKeys(id))) messages.delete(key);
    await new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onerror = () => reject(transaction.error);
    });
    this.channel.postMessage({ kind: "conversations" } satisfies Change);
  }

  close(): void {
    this.channel.close();
    this.database.close();
  }
}

// Also where the page is not served over TLS: randomUUID exists only there.
export function newId(): string {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
