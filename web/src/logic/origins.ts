// Who wrote each token, and the film of an answer: how it was drafted and verified step by step. No function here has side effects.
import type { StepInfo, TokenInfo } from "./types";

// The families that have a colour; `target` is the model itself, `other` a drafter that this page does not know.
export const FAMILIES = ["target", "suffix", "ngram", "model", "head", "remote", "other"] as const;
export type Family = (typeof FAMILIES)[number];

export function familyOf(drafter: string | null): Family {
  if (drafter === null || drafter === "") return "target";
  if (drafter.startsWith("ngram")) return "ngram";
  if (drafter.startsWith("eagle") || drafter === "mtp") return "head";
  return FAMILIES.find((family) => drafter === family || drafter.startsWith(`${family}-`)) ?? "other";
}

// The texts of tokens as they are to be shown. Where a character is made of several tokens, the last one shows it and
// those before show nothing.
export function tokenTexts(tokens: readonly TokenInfo[]): string[] {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let inside = false; // a character is not complete
  return tokens.map((token, i) => {
    if (!token.bytes && !inside) return token.text;
    const last = i === tokens.length - 1;
    const bytes = token.bytes ? Uint8Array.from(token.bytes) : encoder.encode(token.text);
    const text = decoder.decode(bytes, { stream: !last });
    inside = !last && token.bytes !== undefined;
    return text;
  });
}

export function textOf(tokens: readonly TokenInfo[]): string {
  return tokenTexts(tokens).join("");
}

export interface TokenPlace {
  step: number; // 0 is the step that read the prompt
  place: number; // in the draft, from 0; -1 = not drafted
  draftLength: number;
  corrected: string | null; // the draft's token at this place, if the target said something else
}

// Where each token came from. Each step ends with a token of the target. The first token comes out of the prompt's last
// step, which is not in `steps`. Without `steps` (an answer that was stopped) they are told by the drafters' names, and
// rejected drafts are not known.
export function placesOf(tokens: readonly TokenInfo[], steps: readonly StepInfo[] | undefined): TokenPlace[] {
  const places: TokenPlace[] = [];
  let step = 0;
  let place = 0;
  for (const [i, token] of tokens.entries()) {
    const info = i === 0 ? undefined : steps?.[step - 1];
    const drafted = info ? place < info.accepted : token.drafter !== null;
    places.push({
      step,
      place: drafted ? place : -1,
      draftLength: info ? info.drafted : 0,
      corrected: !drafted && info && info.rejected.length > 0 ? info.rejected[0]! : null,
    });
    if (drafted) {
      ++place;
    } else {
      ++step;
      place = 0;
    }
  }
  return places;
}

export type FilmPhase = "draft" | "verify";

export interface FilmPiece {
  text: string;
  drafter: string | null;
  kind: "written" | "drafted" | "accepted" | "rejected" | "own";
}

export interface FilmFrame {
  step: number;
  phase: FilmPhase;
  written: number; // tokens that stood before this step
  pieces: FilmPiece[]; // what this step adds
  ms: number;
}

// Two frames for each step that had a draft: the guess, then what the target made of it; one for the others. In the
// first frame of a step all of the draft stands there, in the second the wrong tokens are still shown, as rejected.
export function filmOf(tokens: readonly TokenInfo[], steps: readonly StepInfo[] | undefined): FilmFrame[] {
  const texts = tokenTexts(tokens);
  const places = placesOf(tokens, steps);
  const frames: FilmFrame[] = [];
  for (let begin = 0; begin < tokens.length; ) {
    const step = places[begin]!.step;
    let end = begin;
    while (end < tokens.length && places[end]!.step === step) ++end;
    const info = step === 0 ? undefined : steps?.[step - 1];
    const drafter = info?.drafter ?? tokens[begin]!.drafter;
    const right = texts.slice(begin, end).flatMap((text, i): FilmPiece[] => (places[begin + i]!.place >= 0 ? [{ text, drafter: tokens[begin + i]!.drafter ?? drafter, kind: "accepted" }] : []));
    const wrong = (info?.rejected ?? []).map((text): FilmPiece => ({ text, drafter, kind: "rejected" }));
    const own = texts.slice(begin + right.length, end).map((text): FilmPiece => ({ text, drafter: null, kind: "own" }));
    if (right.length + wrong.length > 0) {
      const guess = [...right, ...wrong].map((piece): FilmPiece => ({ ...piece, kind: "drafted" }));
      frames.push({ step, phase: "draft", written: begin, pieces: guess, ms: 0 });
    }
    frames.push({ step, phase: "verify", written: begin, pieces: [...right, ...wrong, ...own], ms: info?.ms ?? 0 });
    begin = end;
  }
  return frames;
}

// The text that a frame leaves behind: what was written and what this step adds for good.
export function textAfter(tokens: readonly TokenInfo[], frame: FilmFrame): string {
  const kept = frame.pieces.filter((piece) => piece.kind === "accepted" || piece.kind === "own");
  return tokenTexts(tokens).slice(0, frame.written).join("") + kept.map((piece) => piece.text).join("");
}

export interface Share {
  family: Family;
  tokens: number;
}

export function sharesOf(tokens: readonly TokenInfo[]): Share[] {
  const counts = new Map<Family, number>();
  for (const token of tokens) {
    const family = familyOf(token.drafter);
    counts.set(family, (counts.get(family) ?? 0) + 1);
  }
  return FAMILIES.filter((family) => counts.has(family)).map((family) => ({ family, tokens: counts.get(family)! }));
}
