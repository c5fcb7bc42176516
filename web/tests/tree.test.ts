import { describe, expect, it } from "vitest";
import { selectSibling, shownPath, subtree, titleOf } from "../src/logic/tree";
import type { Message } from "../src/logic/types";

function message(id: string, parent: string | null, created: number): Message {
  return { id, parent, created, updated: created, conversation: "c", role: "user", content: id, state: "done" };
}

//   q1 ─ a1 ─ q2 ─ a2
//     └─ a1b      └─ a2b
//   q1x ─ a1x
const tree = [message("q1", null, 1), message("a1", "q1", 2), message("q2", "a1", 3), message("a2", "q2", 4), message("a1b", "q1", 5), message("a2b", "q2", 6), message("q1x", null, 7), message("a1x", "q1x", 8)];
const shown = (selected: Record<string, string>) => shownPath(tree, selected).map((branch) => branch.message.id);

describe("branches", () => {
  it("shows the newest where nothing was chosen", () => expect(shown({})).toEqual(["q1x", "a1x"]));
  it("shows what was chosen", () => {
    expect(shown({ "": "q1", q1: "a1" })).toEqual(["q1", "a1", "q2", "a2b"]);
    expect(shown({ "": "q1" })).toEqual(["q1", "a1b"]);
  });
  it("falls back to the newest if the chosen one is gone", () => expect(shown({ "": "deleted" })).toEqual(["q1x", "a1x"]));
  it("counts siblings", () => {
    const branches = shownPath(tree, { "": "q1", q1: "a1", q2: "a2" });
    expect(branches.map(({ index, count }) => [index, count])).toEqual([[0, 2], [0, 2], [0, 1], [0, 2]]);
  });
  it("goes to a sibling and stays at the ends", () => {
    expect(selectSibling(tree, {}, tree[3]!, 1)).toEqual({ q2: "a2b" });
    expect(selectSibling(tree, { q2: "a2" }, tree[3]!, -1)).toEqual({ q2: "a2" });
    expect(selectSibling(tree, {}, tree[0]!, 1)).toEqual({ "": "q1x" });
  });
  it("ends at a cycle", () => {
    const cycle = [message("a", null, 1), message("b", "a", 2), { ...message("a", "b", 3) }];
    expect(shownPath(cycle, {}).length).toBeLessThan(4);
  });
  it("finds all that follows from a message", () => expect(subtree(tree, "a1").map((each) => each.id).sort()).toEqual(["a1", "a2", "a2b", "q2"]));
  it("is fast with thousands of messages", () => {
    const long = Array.from({ length: 5000 }, (_, i) => message(`m${i}`, i === 0 ? null : `m${i - 1}`, i));
    expect(shownPath(long, {}).length).toBe(5000);
  });
});

describe("titles", () => {
  it("takes the first line and cuts whole characters", () => {
    expect(titleOf("  Hello\nworld")).toBe("Hello");
    expect(titleOf("😀".repeat(60), 5)).toBe("😀😀😀😀…");
  });
});
