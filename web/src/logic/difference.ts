// Whether two texts or answers are the same and, if not, where they begin to differ. No function here has side effects.
import type { AnswerPart, Message, TokenInfo } from "./types";

export interface Difference {
  at: number; // in characters (code points) from the beginning
  before: string; // some text that both share just before
  left: string; // how each goes on
  right: string;
}

export function firstDifference(left: string, right: string, context = 24): Difference | null {
  if (left === right) return null;
  const a = [...left];
  const b = [...right];
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) ++at;
  return {
    at,
    before: a.slice(Math.max(0, at - context), at).join(""),
    left: a.slice(at, at + context).join(""),
    right: b.slice(at, at + context).join(""),
  };
}

// What an answer says: everything that does not depend on how fast it came or who proposed it.
export type Said = Pick<Message, "content" | "reasoning" | "toolCalls" | "tokens" | "finish">;

export interface AnswerDifference extends Difference {
  part: AnswerPart;
}

// The first part of two answers that differs.
export function differenceOfAnswers(left: Said, right: Said): AnswerDifference | null {
  const parts: [AnswerPart, (answer: Said) => string][] = [
    ["reasoning", (answer) => answer.reasoning ?? ""],
    ["content", (answer) => answer.content],
    ["toolCalls", (answer) => (answer.toolCalls ?? []).map((call) => `${call.name}(${call.arguments})`).join("\n")],
    ["finish", (answer) => answer.finish ?? ""],
  ];
  for (const [part, textOf] of parts) {
    const difference = firstDifference(textOf(left), textOf(right));
    if (difference) return { part, ...difference };
  }
  return differenceOfTokens(left.tokens ?? [], right.tokens ?? []);
}

// The same text may have been made of other tokens. `at` counts tokens.
function differenceOfTokens(left: readonly TokenInfo[], right: readonly TokenInfo[]): AnswerDifference | null {
  const same = (i: number) => left[i]?.text === right[i]?.text && left[i]?.bytes?.join() === right[i]?.bytes?.join();
  const length = Math.max(left.length, right.length);
  let at = 0;
  while (at < length && same(at)) ++at;
  if (at === length) return null;
  return { part: "tokens", at, before: left[at - 1]?.text ?? "", left: left[at]?.text ?? "", right: right[at]?.text ?? "" };
}
