// Numbers in words, as the program writes them (src/lab/value_text.cc); both are held to
// values.json.
import type { Unit } from "./report";

function fixed(value: number, decimals: number): string {
  let text = value.toFixed(decimals);
  if (decimals > 0) text = text.replace(/\.?0+$/, "");
  return text === "-0" ? "0" : text;
}

function withCommas(text: string): string {
  return text.replace(/^(-?\d+)/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
}

function plain(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e15) return value.toExponential(2).replace(/e([+-])(\d)$/, "e$10$2");
  if (size >= 100 || size === Math.floor(size)) return withCommas(fixed(value, 0));
  if (size >= 10) return fixed(value, 1);
  if (size >= 0.1) return fixed(value, 2);
  return fixed(value, Math.min(12, 1 - Math.floor(Math.log10(size))));
}

function twoParts(seconds: number, great: number, name: string, small: number, rest: string): string {
  const parts = Math.round(seconds / small);
  const inGreat = Math.round(great / small);
  const whole = Math.floor(parts / inGreat);
  const left = parts - whole * inGreat;
  const text = `${withCommas(fixed(whole, 0))} ${name}`;
  return left > 0 ? `${text} ${left} ${rest}` : text;
}

function seconds(value: number): string {
  const size = Math.abs(value);
  const sign = value < 0 ? "-" : "";
  if (size === 0) return "0 s";
  if (size < 9.995e-7) return `${sign}${plain(size * 1e9)} ns`;
  if (size < 9.995e-4) return `${sign}${plain(size * 1e6)} µs`;
  if (size < 0.9995) return `${sign}${plain(size * 1e3)} ms`;
  if (size < 59.95) return `${sign}${plain(size)} s`;
  if (size < 3599.5) return sign + twoParts(size, 60, "min", 1, "s");
  if (size < 86370) return sign + twoParts(size, 3600, "h", 60, "min");
  if (size < 86400e4) return sign + twoParts(size, 86400, "d", 3600, "h");
  return `${sign}${plain(size / 86400)} d`;
}

function time(value: number): string {
  if (Math.abs(value) > 2e11) return `${plain(value)} s`;
  const date = new Date(Math.round(value * 1000));
  const text = date.toISOString().replace("T", " ").replace("Z", "");
  return text.endsWith(".000") ? text.slice(0, -4) : text;
}

function bytes(value: number): string {
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (unit + 1 < names.length && Math.abs(value) >= 1023.5) {
    value /= 1024;
    ++unit;
  }
  return `${plain(value)} ${names[unit]}`;
}

function percent(value: number): string {
  const hundreds = value * 100;
  if (hundreds < 99.95 || hundreds >= 100) return `${plain(hundreds)} %`;
  for (let decimals = 2; decimals <= 6; ++decimals) {
    const text = fixed(hundreds, decimals);
    if (text !== "100") return `${text} %`;
  }
  return "99.999999 %";
}

export function writeValue(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value < 0 ? "-∞" : "∞";
  switch (unit) {
    case "count":
      return plain(value);
    case "rate":
      return `${plain(value)}/s`;
    case "seconds":
      return seconds(value);
    case "time":
      return time(value);
    case "bytes":
      return bytes(value);
    case "percent":
      return percent(value);
    case "factor":
      return `${plain(value)}×`;
  }
}
