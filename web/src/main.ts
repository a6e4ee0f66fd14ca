// Reads the report in the page and shows it.
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { element, foreign } from "./dom";
import { yRange } from "./paths";
import { legend, showPlot } from "./plot";
import type { Listing, Panels, Plot, Report, Section } from "./report";
import { showTable } from "./table";

const isNarrow = window.matchMedia("(max-width: 560px)").matches;

// What all panels have in common is told once for all, and then only there.
function showPanels(panels: Panels, key: string): HTMLElement {
  const first = panels.plots[0];
  if (!first) return element("div");
  const seriesOf = (plot: Plot) =>
    JSON.stringify(plot.series.map(({ name, style, tone }) => [name, style, tone]));
  const axesOf = (plot: Plot) => JSON.stringify([plot.x_axis, plot.y_axis]);
  const hasLegend = panels.plots.some((plot) => seriesOf(plot) !== seriesOf(first));
  const hasLabels = panels.plots.some((plot) => axesOf(plot) !== axesOf(first));
  // Panels that show the same thing are on the same scale.
  const alike = (plot: Plot) =>
    panels.plots.filter(
      (other) => JSON.stringify(other.y_axis) === JSON.stringify(plot.y_axis),
    );
  const shown = panels.plots.map((plot) =>
    showPlot(plot, {
      height: 190,
      sync: key,
      range: yRange(alike(plot)),
      isPanel: true,
      hasLegend,
      hasLabels,
    }),
  );
  const axes = [first.y_axis.label ?? "", first.x_axis.label ?? ""].filter((label) => label !== "");
  return element(
    "div",
    {},
    element(
      "div",
      { class: "shared" },
      hasLegend ? null : legend(first, () => shown.map((each) => each.drawing())),
      !hasLabels && axes.length > 0
        ? element("div", { class: "axis-label" }, foreign(axes.join(", over ")))
        : null,
    ),
    element(
      "div",
      { class: "grid" },
      ...panels.plots.map((plot, i) =>
        element(
          "section",
          { class: "panel" },
          element("h3", {}, foreign(plot.title)),
          shown[i]!.box,
          plot.note ? element("p", { class: "note" }, foreign(plot.note)) : null,
        ),
      ),
    ),
  );
}

function showListing(listing: Listing): HTMLElement {
  const code = element("code", {}, listing.text);
  const copy = element("button", { type: "button", class: "copy" }, "Copy");
  const say = (text: string) => {
    copy.textContent = text;
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  };
  copy.addEventListener("click", () => {
    const select = () => {
      getSelection()?.selectAllChildren(code);
      say(document.execCommand("copy") ? "Copied" : "Press Ctrl+C");
    };
    // Not every browser lets a page that is a file use the clipboard.
    if (navigator.clipboard === undefined) select();
    else navigator.clipboard.writeText(listing.text).then(() => say("Copied"), select);
  });
  return element("div", {}, copy, element("pre", { tabindex: "0" }, code));
}

function contentOf(section: Section, place: number): HTMLElement {
  switch (section.kind) {
    case "paragraph":
      return element(
        "div",
        { class: "prose" },
        ...section.text.split(/\n{2,}/).map((text) => element("p", {}, foreign(text))),
      );
    case "table":
      return showTable(section);
    case "plot":
      return showPlot(section, { height: isNarrow ? 250 : 320 }).box;
    case "panels":
      return showPanels(section, `panels-${place}`);
    case "listing":
      return showListing(section);
  }
}

function showSection(section: Section, place: number): HTMLElement {
  return element(
    "section",
    { class: `card ${section.kind}` },
    section.title !== "" && element("h2", {}, foreign(section.title)),
    "note" in section && section.note ? element("p", { class: "note" }, foreign(section.note)) : null,
    contentOf(section, place),
  );
}

function showReport(report: Report, page: HTMLElement): void {
  document.title = report.title || "weir";
  page.append(
    element(
      "header",
      {},
      element("h1", {}, foreign(report.title)),
      report.subtitle ? element("p", { class: "subtitle" }, foreign(report.subtitle)) : null,
    ),
  );
  if (report.warnings.length > 0) {
    page.append(
      element(
        "section",
        { class: "warnings", role: "alert" },
        element("h2", {}, "Read this first"),
        element(
          "ul",
          {},
          ...report.warnings.map((warning) => element("li", {}, foreign(warning))),
        ),
      ),
    );
  }
  if (report.facts.length > 0) {
    page.append(
      element(
        "dl",
        { class: "facts" },
        ...report.facts.map((fact) =>
          element(
            "div",
            { class: `fact tone-${fact.tone ?? "plain"}` },
            element("dt", {}, foreign(fact.label)),
            // A number and its sign stay together.
            element("dd", {}, foreign(fact.value.replace(/(\d) %/g, "$1\u00a0%"))),
          ),
        ),
      ),
    );
  }
  page.append(...report.sections.map(showSection));
  page.append(
    element(
      "footer",
      {},
      "Made by weir. Everything is in this file: it asks nobody for anything.",
    ),
  );
}

const source = document.getElementById("report");
const page = document.getElementById("page");
if (source && page) showReport(JSON.parse(source.textContent ?? "{}") as Report, page);
