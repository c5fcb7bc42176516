import "fake-indexeddb/auto";
import { describe, expect, it } from "vitest";
import type { Conversation, Message } from "../src/logic/types";
import { newId, Store, type Change } from "../src/store";

const conversation = (id: string): Conversation => ({ id, title: id, created: 1, updated: 1, system: "", selected: {} });
const message = (id: string, of: string, content = ""): Message => ({ id, conversation: of, parent: null, role: "user", content, created: 1, updated: 1, state: "done" });

describe("the store", () => {
  it("keeps conversations and their messages apart", async () => {
    const store = await Store.open("kept");
    await store.saveConversation(conversation("a"));
    await store.saveConversation(conversation("b"));
    await store.saveMessages(message("1", "a"), message("2", "a"), message("3", "b"));
    await store.saveMessages(message("2", "a", "changed"));
    expect((await store.messages("a")).map((each) => each.content)).toEqual(["", "changed"]);
    await store.deleteConversation("a");
    expect(await store.messages("a")).toEqual([]);
    expect((await store.conversations()).map((each) => each.id)).toEqual(["b"]);
    expect((await store.messages("b")).length).toBe(1);
    store.close();
  });
  it("tells other tabs what has changed", async () => {
    const [one, two] = [await Store.open("tabs"), await Store.open("tabs")];
    const changes: Change[] = [];
    const heard = new Promise<void>((resolve) => two.watch((change) => (changes.push(change), changes.length === 2 && resolve())));
    await one.saveConversation(conversation("a"));
    await one.saveMessages(message("1", "a"));
    await heard;
    expect(changes).toEqual([{ kind: "conversations" }, { kind: "messages", conversation: "a" }]);
    one.close();
    two.close();
  });
  it("makes ids that differ", () => expect(new Set(Array.from({ length: 1000 }, newId)).size).toBe(1000));
});
