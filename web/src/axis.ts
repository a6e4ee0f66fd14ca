// The round numbers beside an axis, as in the pictures that the program draws
// (src/lab/plot_axis.cc).
import type { Unit } from "./report";
import { writeValue } from "./value";

export interface Tick {
  value: number;
  text: string;
}

const day = 86400;
const clockSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200];
const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

function decimalStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 5].find((times) => times * power >= least * (1 - 1e-9)) ?? 10) * power;
}

function stepOf(least: number, unit: Unit): number {
  if (unit === "bytes") return 2 ** Math.max(0, Math.ceil(Math.log2(least)));
  if ((unit !== "seconds" && unit !== "time") || least <= 1) return decimalStep(least);
  return (
    clockSteps.find((step) => step >= least) ?? day * Math.max(1, decimalStep(least / day))
  );
}

function decimals(value: number, step: number): string {
  let count = 0;
  for (; count < 9; ++count) {
    const steps = step * 10 ** count;
    if (Math.abs(steps - Math.round(steps)) < 1e-6 * steps) break;
  }
  return value.toFixed(count);
}

type Scaled = [from: number, size: number, name: string];
const secondUnits: Scaled[] = [
  [0, 1e-9, " ns"],
  [1e-6, 1e-6, " µs"],
  [1e-3, 1e-3, " ms"],
  [1, 1, " s"],
  [121, 60, " min"],
  [7201, 3600, " h"],
  [2 * day + 1, day, " d"],
];
const countUnits: Scaled[] = [
  [0, 1, ""],
  [1e6, 1e6, "M"],
  [1e9, 1e9, "G"],
  [1e12, 1e12, "T"],
];

function inUnits(value: number, step: number, end: number, units: Scaled[]): string {
  let [, size, name] = units[0]!;
  for (const unit of units) {
    if (end >= unit[0] * (1 - 1e-9)) [, size, name] = unit;
  }
  return decimals(value / size, step / size) + name;
}

function timeText(value: number, step: number): string {
  const whole = writeValue(value, "time");
  if (whole.length < 19) return whole;
  if (whole.slice(11) === "00:00:00") {
    return `${months[Number(whole.slice(5, 7)) - 1]} ${Number(whole.slice(8, 10))}`;
  }
  return step >= 60 ? whole.slice(11, 16) : whole.slice(11);
}

function tickText(value: number, step: number, end: number, unit: Unit): string {
  if (value === 0 && unit !== "time") return "0";
  switch (unit) {
    case "count":
    case "rate": {
      const text =
        step >= 1 && end < 1e6
          ? writeValue(value, "count")
          : inUnits(value, step, end, countUnits);
      return unit === "rate" ? `${text}/s` : text;
    }
    case "seconds":
      return inUnits(value, step, end, secondUnits);
    case "time":
      return timeText(value, step);
    case "percent":
      return `${decimals(value * 100, step * 100)} %`;
    case "factor":
      return `${decimals(value, step)}×`;
    case "bytes":
      return writeValue(value, unit);
  }
}

function logarithmicTicks(low: number, high: number, unit: Unit, count: number): Tick[] {
  const first = Math.floor(Math.log10(low) + 1e-9);
  const last = Math.ceil(Math.log10(high) - 1e-9);
  const decades = Math.max(1, last - first);
  const every = Math.ceil(decades / Math.max(1, count));
  const ticks: Tick[] = [];
  for (let power = first; power <= last; power += every) {
    for (const times of 3 * decades <= count ? [1, 2, 5] : [1]) {
      const value = times * 10 ** power;
      if (value < low * (1 - 1e-9) || value > high * (1 + 1e-9)) continue;
      ticks.push({ value, text: writeValue(value, unit) });
    }
  }
  return ticks;
}

// At most about `count` of them.
export function ticksOf(
  low: number,
  high: number,
  unit: Unit,
  logarithmic: boolean,
  count: number,
): Tick[] {
  if (!(high > low)) return [];
  if (logarithmic && low > 0) {
    const ticks = logarithmicTicks(low, high, unit, count);
    if (ticks.length > 1) return ticks; // Within a decade, zoomed in, round steps say more.
  }
  const step = stepOf((high - low) / Math.max(1, count), unit);
  const end = Math.max(Math.abs(low), Math.abs(high));
  const ticks: Tick[] = [];
  const last = Math.floor(high / step + 1e-9);
  for (let i = Math.ceil(low / step - 1e-9); i <= last && ticks.length < 100; ++i) {
    ticks.push({ value: i * step, text: tickText(i * step, step, end, unit) });
  }
  return ticks;
}
