import { describe, expect, it } from "vitest";
import { familyOf, filmOf, placesOf, sharesOf, textAfter, textOf, tokenTexts } from "../src/logic/origins";
import type { StepInfo, TokenInfo } from "../src/logic/types";

const token = (text: string, drafter: string | null = null): TokenInfo => ({ text, drafter });
const step = (drafter: string | null, drafted: number, accepted: number, rejected: string[] = []): StepInfo => ({ drafter, drafted, accepted, ms: 10, rejected });

// "one" with the prompt; then " two three" drafted of which both are right, and " four"; then " x y" drafted, both wrong.
const tokens = [token("one"), token(" two", "suffix"), token(" three", "suffix"), token(" four"), token(" five")];
const steps = [step("suffix", 2, 2), step("model", 2, 0, [" x", " y"])];

describe("families", () => {
  it("knows all drafters", () => {
    expect([null, "", "suffix", "ngram-map-k", "ngram-cache", "model", "remote", "head", "eagle"].map(familyOf)).toEqual(["target", "target", "suffix", "ngram", "ngram", "model", "remote", "head", "head"]);
  });
  it("does not take an unknown drafter for a known one", () => {
    expect(["eagle3", "mtp", "my-drafter", "headless", "remotely"].map(familyOf)).toEqual(["head", "head", "other", "other", "other"]);
    expect(sharesOf([token("one"), token(" two", "my-drafter")])).toEqual([{ family: "target", tokens: 1 }, { family: "other", tokens: 1 }]);
  });
  it("counts shares", () => expect(sharesOf(tokens)).toEqual([{ family: "target", tokens: 3 }, { family: "suffix", tokens: 2 }]));
});

describe("texts of tokens", () => {
  it("shows a character of several tokens once it is complete", () => {
    const bytes = [...new TextEncoder().encode("😀")];
    const split: TokenInfo[] = [token("a"), { ...token("\uFFFD"), bytes: bytes.slice(0, 2) }, { ...token("\uFFFD"), bytes: bytes.slice(2) }, token("b")];
    expect(tokenTexts(split)).toEqual(["a", "", "😀", "b"]);
    expect(textOf(split)).toBe("a😀b");
  });
  it("does not lose a character that is never completed", () => {
    expect(tokenTexts([token("a"), { ...token("\uFFFD"), bytes: [0xf0] }]).join("")).toBe("a\uFFFD");
  });
});

describe("places", () => {
  it("tells step, place in the draft and what was corrected", () => {
    expect(placesOf(tokens, steps)).toEqual([
      { step: 0, place: -1, draftLength: 0, corrected: null },
      { step: 1, place: 0, draftLength: 2, corrected: null },
      { step: 1, place: 1, draftLength: 2, corrected: null },
      { step: 1, place: -1, draftLength: 2, corrected: null },
      { step: 2, place: -1, draftLength: 2, corrected: " x" },
    ]);
  });
  it("finds the steps of a stopped answer by the drafters", () => {
    expect(placesOf(tokens, undefined).map(({ step, place }) => [step, place])).toEqual([[0, -1], [1, 0], [1, 1], [1, -1], [2, -1]]);
  });
});

describe("the film", () => {
  const film = filmOf(tokens, steps);
  it("shows each draft and then what became of it", () => {
    expect(film.map(({ step, phase, pieces }) => [step, phase, pieces.map((piece) => `${piece.kind}:${piece.text}`).join("|")])).toEqual([
      [0, "verify", "own:one"],
      [1, "draft", "drafted: two|drafted: three"],
      [1, "verify", "accepted: two|accepted: three|own: four"],
      [2, "draft", "drafted: x|drafted: y"],
      [2, "verify", "rejected: x|rejected: y|own: five"],
    ]);
  });
  it("grows by what was accepted only, and ends in the same text", () => {
    expect(film.filter((frame) => frame.phase === "verify").map((frame) => textAfter(tokens, frame))).toEqual(["one", "one two three four", "one two three four five"]);
    expect(textAfter(tokens, film.at(-1)!)).toBe(textOf(tokens));
  });
  it("also for answers that end inside a draft, were stopped, or are empty", () => {
    const cut = tokens.slice(0, 2);
    expect(textAfter(cut, filmOf(cut, steps).at(-1)!)).toBe("one two");
    expect(textAfter(cut, filmOf(cut, undefined).at(-1)!)).toBe("one two");
    expect(filmOf([], undefined)).toEqual([]);
  });
  it("ends in the same text whatever the steps were", () => {
    let seed = 1;
    const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
    for (let round = 0; round < 200; ++round) {
      const made: TokenInfo[] = [token("t0")];
      const taken: StepInfo[] = [];
      for (let s = 0; s < random(20); ++s) {
        const drafted = random(6);
        const accepted = Math.min(drafted, random(6));
        for (let i = 0; i < accepted; ++i) made.push(token(`d${s}.${i} `, "model"));
        made.push(token(`o${s} `));
        taken.push(step(drafted ? "model" : null, drafted, accepted, Array(drafted - accepted).fill("wrong ")));
      }
      if (random(2)) made.pop(); // the answer ended with a token that has no text
      if (made.length === 0) continue;
      expect(textAfter(made, filmOf(made, taken).at(-1)!)).toBe(textOf(made));
    }
  });
});
