// Where things are in a plot, and how bars are drawn. Bars and steps begin at their x and end at the
// next one.
import uPlot from "uplot";
import type { Plot } from "./report";

export interface Range {
  low: number;
  high: number;
}

export function hasBars(plot: Plot): boolean {
  return plot.series.some((series) => series.style === "bars");
}

export function isBucketed(plot: Plot): boolean {
  return plot.series.some((series) => series.style === "bars" || series.style === "steps");
}

// The last is as wide as the one before it.
export function endOf(plot: Plot, i: number): number {
  const x = plot.x;
  const next = x[i + 1];
  if (next !== undefined) return next;
  const here = x[i] ?? 0;
  const before = x[i - 1];
  if (before === undefined) return plot.x_axis.log ? here * 2 : here + 1;
  return plot.x_axis.log && before > 0 ? here * (here / before) : here + (here - before);
}

class Extent {
  low = Infinity;
  high = -Infinity;
  constructor(private readonly positiveOnly: boolean) {}
  include(value: number | null | undefined): void {
    if (value === null || value === undefined || !Number.isFinite(value)) return;
    if (this.positiveOnly && value <= 0) return;
    this.low = Math.min(this.low, value);
    this.high = Math.max(this.high, value);
  }
}

export function xRange(plot: Plot): Range {
  const log = plot.x_axis.log === true;
  const extent = new Extent(log);
  for (const x of plot.x) extent.include(x);
  if (hasBars(plot) && plot.x.length > 0) extent.include(endOf(plot, plot.x.length - 1));
  if (!(extent.low <= extent.high)) return log ? { low: 1, high: 10 } : { low: 0, high: 1 };
  if (extent.low < extent.high) return extent;
  return log
    ? { low: extent.low / 2, high: extent.high * 2 }
    : { low: extent.low - 0.5, high: extent.high + 0.5 };
}

export function yRange(plots: Plot[]): Range {
  const log = plots[0]?.y_axis.log === true;
  const extent = new Extent(log);
  if (!log && plots[0]?.y_axis.unit !== "time") extent.include(0);
  for (const plot of plots) {
    for (const series of plot.series) for (const value of series.values) extent.include(value);
    for (const line of plot.lines) extent.include(line.y);
    for (const mark of plot.marks) extent.include(mark.y);
  }
  if (!(extent.low <= extent.high)) return log ? { low: 1, high: 10 } : { low: 0, high: 1 };
  // Room for the least bar, and for what is written above the highest.
  if (log) return { low: extent.low * 0.6, high: extent.high * 1.6 };
  if (extent.low === extent.high) return { low: extent.low, high: extent.low + 1 };
  const size = extent.high - extent.low;
  const above = plots.some((plot) => plot.marks.length + plot.bands.length > 0) ? 0.18 : 0.1;
  return {
    low: extent.low < 0 ? extent.low - 0.04 * size : extent.low,
    high: extent.high + above * size,
  };
}

export function barPaths(plot: Plot): uPlot.Series.PathBuilder {
  return (u, which, first, last) => {
    const values = u.data[which]!;
    const fill = new Path2D();
    const base = u.valToPos(Math.max(0, u.scales.y!.min!), "y", true);
    for (let i = first; i <= last; ++i) {
      const value = values[i];
      const x = plot.x[i];
      if (value === null || value === undefined || value === 0 || x === undefined) continue;
      const from = u.valToPos(x, "x", true);
      const width = u.valToPos(endOf(plot, i), "x", true) - from;
      const gap = width > 6 * devicePixelRatio ? devicePixelRatio : 0;
      const top = u.valToPos(value, "y", true);
      fill.rect(from, Math.min(top, base), Math.max(1, width - gap), Math.abs(base - top));
    }
    const clip = new Path2D();
    clip.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    return { stroke: null, fill, clip, flags: 3 };
  };
}
