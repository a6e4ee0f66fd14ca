// What the program puts into the page; src/lab/report_json.cc writes it.

export type Tone = "plain" | "quiet" | "good" | "warning" | "bad";
export type Unit = "count" | "rate" | "seconds" | "time" | "bytes" | "percent" | "factor";
export type Style = "line" | "steps" | "area" | "bars";

export interface Axis {
  label?: string;
  unit: Unit;
  log?: boolean;
}
export interface Series {
  name: string;
  style: Style;
  tone?: Tone;
  values: (number | null)[];
}
export interface Line {
  y: number;
  label: string;
  tone?: Tone;
}
export interface Band {
  from: number;
  to: number;
  label: string;
  tone?: Tone;
}
export interface Mark {
  x: number;
  y: number;
  label: string;
  tone?: Tone;
}
export interface Plot {
  kind: "plot";
  title: string;
  note?: string;
  x_axis: Axis;
  y_axis: Axis;
  x: number[];
  series: Series[];
  lines: Line[];
  bands: Band[];
  marks: Mark[];
}
export interface Panels {
  kind: "panels";
  title: string;
  note?: string;
  plots: Plot[];
}
export interface Cell {
  text?: string;
  value?: number | null;
  spark?: (number | null)[];
  tone?: Tone;
}
export interface Column {
  label: string;
  unit: Unit;
  text?: boolean;
  help?: string;
}
export interface Table {
  kind: "table";
  title: string;
  note?: string;
  columns: Column[];
  rows: Cell[][];
}
export interface Paragraph {
  kind: "paragraph";
  title: string;
  text: string;
}
export interface Listing {
  kind: "listing";
  title: string;
  text: string;
  language: string;
}
export type Section = Paragraph | Table | Plot | Panels | Listing;
export interface Fact {
  label: string;
  value: string;
  tone?: Tone;
}
export interface Report {
  title: string;
  subtitle?: string;
  warnings: string[];
  facts: Fact[];
  sections: Section[];
}
