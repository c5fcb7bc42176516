// The counters of /metrics (Prometheus' text format) and what can be told from two readings of them. No function here has side effects.

export type Metrics = Map<string, number>; // from name with labels to value

export function parseMetrics(text: string): Metrics {
  const metrics: Metrics = new Map();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const space = line.lastIndexOf(" ");
    const value = Number(line.slice(space + 1));
    if (space > 0 && !Number.isNaN(value)) metrics.set(line.slice(0, space), value);
  }
  return metrics;
}

// name{label="x"} → value, for all x.
export function byLabel(metrics: Metrics, name: string, label: string): Map<string, number> {
  const found = new Map<string, number>();
  const begin = `${name}{${label}="`;
  for (const [key, value] of metrics) {
    if (key.startsWith(begin) && key.endsWith('"}')) found.set(key.slice(begin.length, -2), value);
  }
  return found;
}

export interface Bucket {
  label: string; // "≤ 4", or "> 32" for the last
  count: number;
}

// The buckets of a histogram, each with its own observations (Prometheus counts them together with those below).
export function bucketsOf(metrics: Metrics, name: string): Bucket[] {
  const cumulative = [...byLabel(metrics, `${name}_bucket`, "le")].map(([le, count]) => ({ bound: le === "+Inf" ? Infinity : Number(le), count }));
  cumulative.sort((a, b) => a.bound - b.bound);
  return cumulative.map(({ bound, count }, i) => {
    const below = cumulative[i - 1];
    const label = bound !== Infinity ? `${bound}` : `>${below?.bound ?? 0}`;
    return { label, count: count - (below?.count ?? 0) };
  });
}

// A snapshot of GET /live.
export interface Live {
  metrics: string;
  slots: { id: number; n_ctx: number; is_processing: boolean; n_prompt_tokens: number; tokens_in_memory: number; next_token: [{ n_decoded: number; n_remain: number }] }[];
  costs: { context: number; last_rows: number; curve: [rows: number, seconds: number, spread: number][] };
  draft_servers: { address: string; usable: boolean; streams: number; answer_seconds: number }[];
  memory: { resident: number; model: number };
}

export interface Reading {
  time: number; // seconds
  live: Live;
  metrics: Metrics;
}

// Tokens that were generated until now. The counter grows when a request ends; what running ones have is in the slots.
export function tokensUntil(reading: Reading): number {
  const running = reading.live.slots.filter((slot) => slot.is_processing);
  return (reading.metrics.get("llamacpp:tokens_predicted_total") ?? 0) + running.reduce((sum, slot) => sum + slot.next_token[0].n_decoded, 0);
}

export interface Point {
  time: number;
  tokensPerSecond: number;
  rowsPerStep: number | null; // null: no step meanwhile
  acceptance: Map<string, number | null>; // by drafter; null: nothing was drafted meanwhile
}

// What happened between two readings.
export function between(before: Reading, after: Reading): Point {
  const seconds = Math.max(after.time - before.time, 1e-3);
  const grown = (name: string) => Math.max(0, (after.metrics.get(name) ?? 0) - (before.metrics.get(name) ?? 0));
  const steps = grown("llamacpp:n_decode_total");
  const acceptance = new Map<string, number | null>();
  for (const drafter of byLabel(after.metrics, "outrider_draft_tokens_proposed_total", "drafter").keys()) {
    const proposed = grown(`outrider_draft_tokens_proposed_total{drafter="${drafter}"}`);
    const accepted = grown(`outrider_draft_tokens_accepted_total{drafter="${drafter}"}`);
    acceptance.set(drafter, proposed > 0 ? accepted / proposed : null);
  }
  return {
    time: after.time,
    tokensPerSecond: Math.max(0, tokensUntil(after) - tokensUntil(before)) / seconds,
    rowsPerStep: steps > 0 ? grown("outrider_rows_total") / steps : null,
    acceptance,
  };
}
