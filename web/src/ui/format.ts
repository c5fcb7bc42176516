// Numbers as people read them.
import { texts } from "../texts";

export function short(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (value >= 100) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  return value.toLocaleString("en", { maximumFractionDigits: value >= 10 ? 1 : 2 });
}

export function percent(share: number): string {
  const digits = share > 0.0005 && share < 0.0995 ? 1 : 0;
  return `${(share * 100).toFixed(digits)} %`;
}

export function duration(ms: number): string {
  return ms < 1000 ? texts.stats.milliseconds(String(Math.round(ms))) : texts.stats.seconds(short(ms / 1000));
}

export function bytes(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(2)} GB`;
  return `${Math.round(count / 1e6)} MB`;
}
