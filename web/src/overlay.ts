// What is drawn over a plot, or below it: limits, times of a fault, marks, and their labels, each
// where it meets no other if there is such a place.
import type uPlot from "uplot";
import type { Plot, Tone } from "./report";
import { colorOf, palette, textColorOf, withAlpha } from "./theme";

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}
interface Candidate {
  x: number;
  y: number; // Of the line that the text stands on.
  align: "left" | "right" | "center";
}

const meets = (a: Box, b: Box) =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const holds = (a: Box, b: Box) =>
  a.left <= b.left && b.right <= a.right && a.top <= b.top && b.bottom <= a.bottom;

// Within the picture: an offset far outside would be drawn at its edge.
const clamp = (value: number, low: number, high: number) => Math.max(low, Math.min(value, high));

export function drawBands(u: uPlot, plot: Plot): void {
  const { ctx, bbox } = u;
  const right = bbox.left + bbox.width;
  ctx.save();
  for (const band of plot.bands) {
    const from = clamp(u.valToPos(band.from, "x", true), bbox.left, right);
    const to = clamp(u.valToPos(band.to, "x", true), bbox.left, right);
    if (to <= bbox.left || from >= right) continue;
    ctx.fillStyle = withAlpha(colorOf(band.tone ?? "quiet"), band.tone === "quiet" ? 0.24 : 0.16);
    ctx.fillRect(from, bbox.top, Math.max(to - from, devicePixelRatio), bbox.height);
  }
  ctx.restore();
}

class Labels {
  private readonly taken: Box[] = [];
  private readonly curves: [number, number][] = [];
  private readonly size = 11.5 * devicePixelRatio;
  private readonly inside: Box;

  constructor(private readonly u: uPlot) {
    const { left, top, width, height } = u.bbox;
    this.inside = { left, top, right: left + width, bottom: top + height };
    u.ctx.font = `${this.size}px ${getComputedStyle(document.body).fontFamily}`;
    u.ctx.textBaseline = "alphabetic";
  }

  // Rather no label here: a curve.
  avoid(x: number, y: number): void {
    this.curves.push([x, y]);
  }

  take(box: Box): void {
    this.taken.push(box);
  }

  widthOf(text: string): number {
    return this.u.ctx.measureText(text).width;
  }

  private cut(text: string, room: number): string {
    if (text.length > 200) text = `${text.slice(0, 200)}…`;
    if (this.u.ctx.measureText(text).width <= room) return text;
    const letters = Array.from(text);
    while (letters.length > 1 && this.u.ctx.measureText(`${letters.join("")}…`).width > room) {
      letters.pop();
    }
    return `${letters.join("")}…`;
  }

  place(
    label: string,
    tone: Tone | undefined,
    candidates: Candidate[],
    onlyIfFree = false,
  ): void {
    const first = candidates[0];
    if (label === "" || !first) return;
    const { ctx } = this.u;
    const text = this.cut(label, this.inside.right - this.inside.left);
    const width = ctx.measureText(text).width;
    const boxOf = ({ x, y, align }: Candidate): Box => {
      const left = align === "left" ? x : align === "right" ? x - width : x - width / 2;
      return { left, top: y - this.size, right: left + width, bottom: y + 0.3 * this.size };
    };
    const within = candidates.filter((candidate) => holds(this.inside, boxOf(candidate)));
    let free: Candidate | undefined;
    let least = Infinity;
    for (const candidate of within) {
      const box = boxOf(candidate);
      if (this.taken.some((other) => meets(box, other))) continue;
      const behind = this.curves.filter(
        ([x, y]) => x > box.left && x < box.right && y > box.top && y < box.bottom,
      ).length;
      if (behind < least) [free, least] = [candidate, behind];
    }
    if (onlyIfFree && !free) return;
    const at = { ...(free ?? within[0] ?? first) };
    const box = boxOf(at);
    at.x += Math.max(0, this.inside.left - box.left) - Math.max(0, box.right - this.inside.right);
    at.y = clamp(at.y, this.inside.top + this.size, this.inside.bottom - 3);
    this.taken.push(boxOf(at));
    ctx.textAlign = at.align;
    ctx.lineJoin = "round";
    ctx.lineWidth = 4 * devicePixelRatio;
    ctx.strokeStyle = withAlpha(palette().ground, 0.85);
    ctx.strokeText(text, at.x, at.y);
    ctx.fillStyle = textColorOf(tone);
    ctx.fillText(text, at.x, at.y);
  }
}

function drawLines(u: uPlot, plot: Plot): void {
  const { ctx, bbox } = u;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  for (const line of plot.lines) {
    const y = u.valToPos(line.y, "y", true);
    ctx.strokeStyle = line.tone === undefined ? palette().ink : colorOf(line.tone);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  }
  ctx.setLineDash([]);
}

// In a small plot a band with no room for its label has none; pointing at it tells.
export function drawOverlay(u: uPlot, plot: Plot, isSmall: boolean): void {
  const { ctx, bbox } = u;
  const ratio = devicePixelRatio;
  const right = bbox.left + bbox.width;
  const xOf = (value: number) => u.valToPos(value, "x", true);
  const yOf = (value: number) => u.valToPos(value, "y", true);
  const isSeen = (x: number) => x >= bbox.left - 1 && x <= right + 1;
  ctx.save();
  drawLines(u, plot);
  const labels = new Labels(u);
  const marks = plot.marks.filter((mark) => isSeen(xOf(mark.x)));
  for (const mark of marks) {
    const x = xOf(mark.x);
    const y = yOf(mark.y);
    const radius = 4.5 * ratio;
    ctx.beginPath();
    ctx.arc(x, y, radius, 0, 2 * Math.PI);
    ctx.fillStyle = colorOf(mark.tone ?? "bad");
    ctx.fill();
    ctx.lineWidth = 1.5 * ratio;
    ctx.strokeStyle = palette().ground;
    ctx.stroke();
    labels.take({ left: x - radius, top: y - radius, right: x + radius, bottom: y + radius });
  }
  plot.series.forEach((series, which) => {
    if (u.series[which + 1]!.show === false) return;
    if (series.style !== "line" && series.style !== "steps") return;
    series.values.forEach((value, i) => {
      const x = xOf(plot.x[i]!);
      if (value !== null && isSeen(x)) labels.avoid(x, yOf(value));
    });
  });
  // Before those of bands, which may stand at any height.
  for (const line of plot.lines) {
    const above = yOf(line.y) - 5 * ratio;
    const below = yOf(line.y) + 15 * ratio;
    const left = bbox.left + 4 * ratio;
    labels.place(line.label, line.tone, [
      { x: right - 4 * ratio, y: above, align: "right" },
      { x: left, y: above, align: "left" },
      { x: right - 4 * ratio, y: below, align: "right" },
      { x: left, y: below, align: "left" },
      { x: (bbox.left + right) / 2, y: above, align: "center" },
      { x: (bbox.left + right) / 2, y: below, align: "center" },
    ]);
  }
  for (const band of plot.bands) {
    const from = clamp(xOf(band.from), bbox.left, right);
    const to = clamp(xOf(band.to), bbox.left, right);
    if (to <= bbox.left || from >= right) continue;
    if (isSmall && labels.widthOf(band.label) > to - from) continue;
    const candidates: Candidate[] = [];
    for (let line = bbox.top + 14 * ratio; line < bbox.top + bbox.height; line += 15 * ratio) {
      candidates.push({ x: (from + to) / 2, y: line, align: "center" });
      candidates.push({ x: from + 4 * ratio, y: line, align: "left" });
      candidates.push({ x: to - 4 * ratio, y: line, align: "right" });
    }
    labels.place(band.label, band.tone ?? "quiet", candidates, isSmall);
  }
  for (const mark of marks) {
    const x = xOf(mark.x);
    const y = yOf(mark.y);
    const candidates: Candidate[] = [];
    for (let away = 0; away < 90 * ratio; away += 14 * ratio) {
      for (const line of [y - 8 * ratio - away, y + 18 * ratio + away]) {
        candidates.push({ x: x + 8 * ratio, y: line, align: "left" });
        candidates.push({ x: x - 8 * ratio, y: line, align: "right" });
        candidates.push({ x, y: line, align: "center" });
      }
    }
    labels.place(mark.label, mark.tone ?? "bad", candidates);
  }
  ctx.restore();
}
