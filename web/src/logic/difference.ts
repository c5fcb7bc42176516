// Whether two texts are the same and, if not, where they begin to differ. Pure.

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
