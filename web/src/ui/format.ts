// Numbers as people read them.
import { texts } from "../texts";

export function count(value: number): string {
  return value.toLocaleString(texts.locale);
}

export function short(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return value.toLocaleString(texts.locale, { maximumFractionDigits: value >= 100 ? 0 : value >= 10 ? 1 : 2 });
}

export function percent(share: number): string {
  const digits = share > 0.0005 && share < 0.0995 ? 1 : 0;
  return texts.units.percent((share * 100).toFixed(digits));
}

export function duration(ms: number): string {
  return ms < 1000 ? texts.stats.milliseconds(String(Math.round(ms))) : texts.stats.seconds(short(ms / 1000));
}

export function bytes(size: number): string {
  return size >= 1e9 ? texts.units.gigabytes((size / 1e9).toFixed(2)) : texts.units.megabytes(String(Math.round(size / 1e6)));
}

// Of files that people choose, for which limits are powers of two.
export function fileSize(size: number): string {
  return size >= 2 ** 20 ? texts.units.megabytes(String(size / 2 ** 20)) : texts.units.kilobytes(String(size / 2 ** 10));
}
