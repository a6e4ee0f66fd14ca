// A table that is sorted by the heading that is clicked, and by its own order again on the third
// click.
import { element, explain, foreign, svg } from "./dom";
import type { Cell, Column, Table } from "./report";
import { writeValue } from "./value";

const firstRows = 100;
const sparkBars = 48;

// The greatest of those that a bar stands for: peaks stay.
function peaks(values: (number | null)[], count: number): (number | null)[] {
  if (values.length <= count) return values;
  const found: (number | null)[] = new Array<number | null>(count).fill(null);
  values.forEach((value, i) => {
    const place = Math.floor((i * count) / values.length);
    const peak = found[place] ?? null;
    if (value !== null && (peak === null || value > peak)) found[place] = value;
  });
  return found;
}

function sparkline(values: (number | null)[], unit: Column["unit"]): SVGElement {
  const bars = peaks(values, sparkBars);
  const numbers = values.filter((value): value is number => value !== null);
  let high = 0;
  let low = 0;
  for (const value of numbers) {
    high = Math.max(high, value);
    low = Math.min(low, value);
  }
  const height = 22;
  const width = Math.max(60, bars.length * 3);
  const made = svg("svg", {
    class: "spark",
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    "aria-label": `at most ${writeValue(high, unit)}`,
  });
  const each = width / Math.max(1, bars.length);
  bars.forEach((value, i) => {
    if (value === null) return;
    const part = high > low ? (value - low) / (high - low) : 0;
    const tall = Math.max(1, part * height);
    made.append(
      svg("rect", {
        x: (i * each).toFixed(2),
        y: (height - tall).toFixed(2),
        width: Math.max(1, each - 0.8).toFixed(2),
        height: tall.toFixed(2),
      }),
    );
  });
  return made;
}

function showCell(cell: Cell | undefined, column: Column): HTMLElement {
  const made = element("td", { class: column.text ? "text" : "number" });
  if (!cell) return made;
  if (cell.tone) made.classList.add(`tone-${cell.tone}`);
  if (cell.text) {
    const text = foreign(cell.text);
    if (cell.text.length > 40) text.title = cell.text.slice(0, 600);
    made.append(text);
  } else if (cell.spark) {
    made.classList.add("has-spark");
    made.append(sparkline(cell.spark, column.unit));
  } else if (cell.value !== undefined) {
    made.append(writeValue(cell.value, column.unit));
  }
  return made;
}

function compare(a: Cell | undefined, b: Cell | undefined): number {
  const rank = (cell: Cell | undefined) =>
    typeof cell?.value === "number" ? 0 : cell?.text ? 1 : 2;
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  if (typeof a?.value === "number" && typeof b?.value === "number") return a.value - b.value;
  return (a?.text ?? "").localeCompare(b?.text ?? "", "en", { numeric: true });
}

export function showTable(table: Table): HTMLElement {
  let order = table.rows.map((_row, i) => i);
  let sortedBy = -1;
  let descending = false;
  let all = table.rows.length <= firstRows + 10;
  const body = element("tbody");
  const more = element("button", { type: "button", class: "more" });
  const fill = () => {
    const shown = all ? order : order.slice(0, firstRows);
    body.replaceChildren(
      ...shown.map((i) =>
        element("tr", {}, ...table.columns.map((column, c) => showCell(table.rows[i]![c], column))),
      ),
    );
    more.hidden = all;
    more.textContent = `Show all ${writeValue(order.length, "count")} rows`;
  };
  more.addEventListener("click", () => {
    all = true;
    fill();
  });
  const headings = table.columns.map((column, which) => {
    const isSpark = table.rows.some((row) => row[which]?.spark);
    const heading = element("th", {
      scope: "col",
      class: column.text || isSpark ? "text" : "number",
    });
    if (isSpark) {
      const label = element("span", column.help ? { tabindex: "0", class: "helped" } : {}, column.label);
      if (column.help) explain(label, column.help);
      heading.append(label);
      return heading;
    }
    const button = element("button", { type: "button" }, foreign(column.label));
    if (column.help) {
      button.classList.add("helped");
      explain(button, column.help);
    }
    button.addEventListener("click", () => {
      // Numbers are looked at from the greatest, texts from the first.
      const first = !column.text;
      if (sortedBy !== which) [sortedBy, descending] = [which, first];
      else if (descending === first) descending = !first;
      else sortedBy = -1;
      order = table.rows.map((_row, i) => i);
      if (sortedBy >= 0) {
        order.sort((a, b) => {
          const sign = compare(table.rows[a]![which], table.rows[b]![which]);
          return descending ? -sign : sign;
        });
      }
      headings.forEach((each, i) => {
        if (i === sortedBy) each.setAttribute("aria-sort", descending ? "descending" : "ascending");
        else each.removeAttribute("aria-sort");
      });
      fill();
    });
    heading.append(button);
    return heading;
  });
  fill();
  return element(
    "div",
    {},
    element(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": table.title || "Table" },
      element("table", {}, element("thead", {}, element("tr", {}, ...headings)), body),
    ),
    more,
  );
}
