// Colours of what is drawn on a canvas; style.css has those of everything else. Series can be told
// apart also by those who do not see all colours.
import type { Tone } from "./report";

interface Palette {
  series: string[];
  ink: string;
  faint: string;
  grid: string;
  ground: string;
  tones: Record<Exclude<Tone, "plain">, string>;
  texts: Record<Tone, string>;
}

const light: Palette = {
  series: ["#2a6fb5", "#d9730d", "#0f8a6d", "#8e4ec6", "#b0368a", "#4b5563", "#a67c00", "#1b9bc2"],
  ink: "#1f2430",
  faint: "#5b6472",
  grid: "#e7eaef",
  ground: "#ffffff",
  tones: { quiet: "#aab2bd", good: "#1a8a5a", warning: "#c77d00", bad: "#c0392b" },
  texts: {
    plain: "#1f2430",
    quiet: "#5b6472",
    good: "#14704a",
    warning: "#8f5a00",
    bad: "#b03024",
  },
};

const dark: Palette = {
  series: ["#6cb0f5", "#f59e4b", "#3fc6a0", "#c39bf0", "#ee7fc4", "#a3adbb", "#dcb646", "#5fcdec"],
  ink: "#e8ecf2",
  faint: "#9aa5b4",
  grid: "#2a313b",
  ground: "#171b21",
  tones: { quiet: "#5d6775", good: "#43c08a", warning: "#eaa83a", bad: "#f0776a" },
  texts: {
    plain: "#e8ecf2",
    quiet: "#a3adbb",
    good: "#5fd3a0",
    warning: "#f1bd62",
    bad: "#ff9a8f",
  },
};

const isDark = window.matchMedia("(prefers-color-scheme: dark)");
let onPaper = false;

export function palette(): Palette {
  return isDark.matches && !onPaper ? dark : light;
}

// Of a series that is plain, by its place among those.
export function colorOf(tone: Tone | undefined, place = 0): string {
  const colors = palette();
  if (tone === undefined || tone === "plain") return colors.series[place % colors.series.length]!;
  return colors.tones[tone];
}

export function textColorOf(tone: Tone | undefined): string {
  return palette().texts[tone ?? "plain"];
}

export function withAlpha(color: string, alpha: number): string {
  const part = Math.round(alpha * 255)
    .toString(16)
    .padStart(2, "0");
  return color + part;
}

// Called when everything must be drawn again.
export function onThemeChange(redraw: () => void): void {
  isDark.addEventListener("change", redraw);
  const paper = (is: boolean) => () => {
    onPaper = is;
    redraw();
  };
  window.addEventListener("beforeprint", paper(true));
  window.addEventListener("afterprint", paper(false));
}
