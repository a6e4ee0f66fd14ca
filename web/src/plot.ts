// A plot that can be explored: pointing, touching or the arrow keys show the values of all series,
// dragging zooms, and each series can be hidden.
import uPlot from "uplot";
import { ticksOf } from "./axis";
import { element, foreign } from "./dom";
import { drawBands, drawOverlay } from "./overlay";
import { barPaths, isBucketed, xRange, yRange } from "./paths";
import type { Range } from "./paths";
import type { Axis, Band, Plot, Series } from "./report";
import { colorOf, onThemeChange, palette, withAlpha } from "./theme";
import { writeValue } from "./value";

interface Options {
  height: number;
  // Shared with the other panels: what is pointed at, and the scale.
  sync?: string;
  range?: Range;
  // One of several: values are told in a line above rather than beside the pointer, and what all
  // have in common is told once for all.
  isPanel?: boolean;
  hasLegend?: boolean;
  hasLabels?: boolean;
}

export interface Shown {
  box: HTMLElement;
  // Not there before it has been given its room.
  drawing: () => uPlot | undefined;
}

const drawn: uPlot[] = [];
onThemeChange(() => {
  for (const plot of drawn) plot.redraw(false, true);
});

const axisFont = () => `12px ${getComputedStyle(document.body).fontFamily}`;

function placeAmongPlain(all: Series[], which: number): number {
  return all.slice(0, which).filter((each) => (each.tone ?? "plain") === "plain").length;
}

// A logarithmic axis has no place for nothing.
function drawable(series: Series, plot: Plot): (number | null)[] {
  if (!plot.y_axis.log) return series.values;
  return series.values.map((value) => (value !== null && value > 0 ? value : null));
}

function seriesOptions(plot: Plot, series: Series, which: number): uPlot.Series {
  const place = placeAmongPlain(plot.series, which);
  const color = () => colorOf(series.tone, place);
  const shared: uPlot.Series = { label: series.name, points: { show: false }, stroke: color };
  switch (series.style) {
    case "bars":
      return { ...shared, width: 0, fill: () => withAlpha(color(), series.tone === "quiet" ? 0.7 : 0.95), paths: barPaths(plot) };
    case "area":
      return { ...shared, width: 1, fill: () => withAlpha(color(), 0.3) };
    case "steps":
      return { ...shared, width: 1.75, paths: uPlot.paths.stepped!({ align: 1 }) };
    case "line":
      return { ...shared, width: 2 };
  }
}

// Half of what may be written below the right end: of times 09:30:04, or 09:30:04.500.
function rightPadding(plot: Plot): number {
  if (plot.x_axis.unit !== "time") return 22;
  return (plot.x[plot.x.length - 1] ?? 0) - (plot.x[0] ?? 0) < 10 ? 42 : 30;
}

function axisOptions(axis: Axis, isX: boolean): uPlot.Axis {
  const ticks = (u: uPlot, low: number, high: number) => {
    const room = isX ? u.bbox.width / devicePixelRatio / (axis.unit === "time" ? 90 : 70) : u.bbox.height / devicePixelRatio / (axis.log ? 28 : 42);
    return ticksOf(low, high, axis.unit, axis.log === true, Math.max(2, Math.floor(room)));
  };
  return {
    stroke: () => palette().faint,
    font: axisFont(),
    grid: { show: !isX, stroke: () => palette().grid, width: 1 },
    border: { show: isX, stroke: () => palette().faint, width: 1 },
    ticks: { show: isX, stroke: () => palette().faint, width: 1, size: 4 },
    gap: 6,
    splits: (u, _which, low, high) => ticks(u, low, high).map((tick) => tick.value),
    // All that were chosen, also between the powers of a logarithmic axis.
    filter: (_u, splits) => splits,
    values: (u, splits) => {
      const scale = u.scales[isX ? "x" : "y"]!;
      const texts = new Map(
        ticks(u, scale.min!, scale.max!).map((tick) => [tick.value, tick.text] as const),
      );
      return splits.map((split) => texts.get(split) ?? writeValue(split, axis.unit));
    },
    size: isX
      ? 28
      : (u, values) => {
          u.ctx.save();
          u.ctx.font = axisFont();
          const widths = (values ?? []).map((text) => u.ctx.measureText(text).width);
          u.ctx.restore();
          return Math.ceil(Math.max(16, ...widths)) + 12;
        },
  };
}

// What is told of one x: all series that are shown, in the unit of the axis.
interface Readings {
  head: string;
  lines: [number, string][];
  bands: Band[]; // That it lies in.
}
function readings(plot: Plot, u: uPlot): Readings | null {
  const at = u.cursor.idxs?.[0] ?? u.cursor.idx;
  const x = at === null || at === undefined ? undefined : plot.x[at];
  if (at === null || at === undefined || x === undefined) return null;
  const lines: [number, string][] = [];
  plot.series.forEach((series, which) => {
    if (u.series[which + 1]!.show === false) return;
    lines.push([which, writeValue(series.values[at], plot.y_axis.unit)]);
  });
  const bands = plot.bands.filter((band) => band.from <= x && x < band.to);
  return { head: writeValue(x, plot.x_axis.unit), lines, bands };
}

function swatch(plot: Plot, which: number): HTMLElement {
  const series = plot.series[which]!;
  const made = element("i", { class: `swatch ${series.style}` });
  const paint = () => {
    made.style.background = colorOf(series.tone, placeAmongPlain(plot.series, which));
  };
  paint();
  onThemeChange(paint);
  return made;
}

// Hides and shows the series of the plot, and those of all the drawings.
export function legend(plot: Plot, drawings: () => (uPlot | undefined)[]): HTMLElement | null {
  if (plot.series.every((series) => series.name === "")) return null;
  const list = element("div", { class: "legend", role: "group", "aria-label": "Series" });
  plot.series.forEach((series, which) => {
    const button = element(
      "button",
      { type: "button", "aria-pressed": "true", title: "Click to hide or show" },
      swatch(plot, which),
      foreign(series.name),
    );
    button.addEventListener("click", () => {
      const show = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(show));
      for (const u of drawings()) u?.setSeries(which + 1, { show });
    });
    list.append(button);
  });
  return list;
}

function bandName(band: Band): HTMLElement {
  return element("span", { class: `band tone-${band.tone ?? "quiet"}` }, foreign(band.label));
}

function fillTip(tip: HTMLElement, plot: Plot, u: uPlot): boolean {
  const told = readings(plot, u);
  tip.replaceChildren();
  if (!told) return false;
  tip.append(element("div", { class: "head" }, told.head));
  for (const [which, text] of told.lines) {
    const name = foreign(plot.series[which]!.name);
    tip.append(element("div", { class: "row" }, swatchCopy(plot, which), name, element("b", {}, text)));
  }
  for (const band of told.bands) tip.append(bandName(band));
  return true;
}

// Of the moment: made anew each time, so it need not follow a change of theme.
function swatchCopy(plot: Plot, which: number): HTMLElement {
  const series = plot.series[which]!;
  const made = element("i", { class: `swatch ${series.style}` });
  made.style.background = colorOf(series.tone, placeAmongPlain(plot.series, which));
  return made;
}

function moveTip(tip: HTMLElement, u: uPlot): void {
  const left = u.cursor.left ?? -1;
  const width = u.over.clientWidth;
  const box = tip.getBoundingClientRect();
  const beside = left + 14 + box.width <= width ? left + 14 : left - 14 - box.width;
  tip.style.left = `${Math.max(0, Math.min(beside, width - box.width))}px`;
  tip.style.top = "6px";
}

function fillReadout(readout: HTMLElement, plot: Plot, u: uPlot): boolean {
  const told = readings(plot, u);
  readout.replaceChildren();
  if (!told) return false;
  const many = told.lines.length > 1;
  for (const [which, text] of told.lines) {
    readout.append(
      element("span", {}, many && swatchCopy(plot, which), element("b", {}, text)),
    );
  }
  for (const band of told.bands) readout.append(bandName(band));
  readout.append(element("span", { class: "at" }, `at ${told.head}`));
  return true;
}

// The arrow keys move what is pointed at; zoomed in, Escape shows everything again.
function listenToKeys(box: HTMLElement, plot: Plot, u: uPlot, reset: () => void): void {
  let at = -1;
  const go = (index: number) => {
    at = Math.max(0, Math.min(index, plot.x.length - 1));
    const left = u.valToPos(plot.x[at] ?? 0, "x");
    u.setCursor({ left: left + 0.01, top: u.over.clientHeight / 2 });
  };
  box.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? Math.max(1, Math.round(plot.x.length / 20)) : 1;
    if (event.key === "ArrowRight") go(at + step);
    else if (event.key === "ArrowLeft") go(at < 0 ? plot.x.length - 1 : at - step);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(plot.x.length - 1);
    else if (event.key === "Escape") reset();
    else return;
    event.preventDefault();
  });
  box.addEventListener("blur", () => {
    if (at >= 0) u.setCursor({ left: -10, top: -10 });
    at = -1;
  });
}

// Fingers point as the mouse does; moving them up or down still scrolls the page.
function listenToFingers(u: uPlot): void {
  const point = (event: TouchEvent) => {
    const touch = event.touches[0];
    if (!touch || event.touches.length > 1) return;
    const box = u.over.getBoundingClientRect();
    u.setCursor({ left: touch.clientX - box.left, top: touch.clientY - box.top });
  };
  u.over.addEventListener("touchstart", point, { passive: true });
  u.over.addEventListener("touchmove", point, { passive: true });
}

export function showPlot(plot: Plot, options: Options): Shown {
  const xs = xRange(plot);
  const ys = options.range ?? yRange([plot]);
  const tip = element("div", { class: "tip", role: "status", hidden: "" });
  const readout = element("div", { class: "readout", role: "status" });
  const canvas = element("div", {
    class: "canvas",
    tabindex: "0",
    role: "group",
    "aria-label": `Plot: ${plot.title}. Arrow keys show values.`,
  });
  const zoomOut = element("button", { type: "button", class: "zoom-out", hidden: "" }, "Show all");
  let u: uPlot | undefined;
  const bucketed = isBucketed(plot);

  const told = (self: uPlot) => {
    if (options.isPanel) {
      fillReadout(readout, plot, self);
      return;
    }
    tip.hidden = !fillTip(tip, plot, self);
    if (!tip.hidden) moveTip(tip, self);
  };
  const reset = () => u?.setScale("x", { min: xs.low, max: xs.high });
  const make = (width: number) => {
    u = new uPlot(
      {
        width,
        height: options.height,
        padding: [10, rightPadding(plot), 0, 0],
        legend: { show: false },
        focus: { alpha: 1 },
        scales: {
          x: {
            time: false,
            distr: plot.x_axis.log ? 3 : 1,
            // Asked for all of the data, the end of its last bar is part of it.
            range: (_u, low, high) =>
              low < high && !(low === plot.x[0] && high === plot.x[plot.x.length - 1])
                ? [Math.max(low, xs.low), Math.min(high, xs.high)]
                : [xs.low, xs.high],
          },
          y: { distr: plot.y_axis.log ? 3 : 1, range: () => [ys.low, ys.high] },
        },
        axes: [axisOptions(plot.x_axis, true), axisOptions(plot.y_axis, false)],
        series: [{}, ...plot.series.map((series, which) => seriesOptions(plot, series, which))],
        cursor: {
          y: false,
          drag: { x: true, y: false, dist: 8 },
          points: { show: !plot.series.every((series) => series.style === "bars"), size: 7 },
          // Within a bucket its own values are told, not those of the nearest beginning.
          dataIdx: (_u, _which, closest, x) =>
            bucketed && closest > 0 && plot.x[closest]! > x ? closest - 1 : closest,
          ...(options.sync ? { sync: { key: options.sync, setSeries: false } } : {}),
        },
        hooks: {
          drawClear: [(self) => drawBands(self, plot)],
          draw: [(self) => drawOverlay(self, plot, options.isPanel === true)],
          setCursor: [told],
          setScale: [
            (self, key) => {
              const { min, max } = self.scales.x!;
              if (key === "x") zoomOut.hidden = !isZoomed(min!, max!, xs);
            },
          ],
        },
      },
      [plot.x, ...plot.series.map((series) => drawable(series, plot))] as uPlot.AlignedData,
      canvas,
    );
    u.over.append(tip);
    drawn.push(u);
    listenToKeys(canvas, plot, u, reset);
    listenToFingers(u);
  };
  zoomOut.addEventListener("click", () => reset());

  new ResizeObserver(([entry]) => {
    const width = Math.floor(entry?.contentRect.width ?? 0);
    if (width < 40) return;
    if (u === undefined) make(width);
    else if (width !== u.width) u.setSize({ width, height: options.height });
  }).observe(canvas);

  const below = [plot.x_axis.label, plot.x_axis.unit === "time" ? "UTC" : ""].filter(Boolean);
  const hasLabels = options.hasLabels !== false;
  const box = element(
    "div",
    { class: "plot" },
    options.isPanel ? readout : null,
    options.hasLegend === false ? null : legend(plot, () => [u]),
    hasLabels && plot.y_axis.label
      ? element("div", { class: "axis-label" }, foreign(plot.y_axis.label))
      : null,
    element("div", { class: "stage" }, canvas, zoomOut),
    hasLabels && below.length > 0
      ? element("div", { class: "axis-label x" }, foreign(below.join(", ")))
      : null,
  );
  return { box, drawing: () => u };
}

function isZoomed(low: number, high: number, whole: Range): boolean {
  return low > whole.low || high < whole.high;
}
