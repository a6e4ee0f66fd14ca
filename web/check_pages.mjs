// Opens pages in a real browser and looks at them as people do.
//
//   node check_pages.mjs [--view wide-light|wide-dark|phone-light|phone-dark] --screenshots FOLDER
//                        PAGE.html...
//
// Every page is opened wide and narrow, light and dark, or only as --view says; several at a time.
// Whatever is wrong is told in a line each, and the status is 1. WEIR_CHROMIUM names the browser (default: /usr/bin/chromium).
import { mkdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { valueModule } from "./value_module.mjs";

const views = [
  { name: "wide-light", width: 1280, height: 900, scheme: "light" },
  { name: "wide-dark", width: 1280, height: 900, scheme: "dark" },
  { name: "phone-light", width: 360, height: 760, scheme: "light", touch: true },
  { name: "phone-dark", width: 390, height: 844, scheme: "dark", touch: true },
];
const smallestText = 12;
const mostAtOnce = 4; // They are mostly waiting for what comes with the next frame.

const { writeValue } = await valueModule();
const problems = [];
let checks = 0;

let last = Promise.resolve();
function alone(work) {
  const done = last.then(work);
  last = done.catch(() => undefined);
  return done;
}

class Visit {
  constructor(page, name, touch) {
    this.page = page;
    this.name = name;
    this.touch = touch;
  }
  // A finger is no mouse: where there is one, the mouse is nowhere.
  async press(locator) {
    if (this.touch) await locator.tap();
    else await locator.click();
  }
  check(isRight, text) {
    ++checks;
    if (!isRight) problems.push(`${this.name}: ${text}`);
    return isRight;
  }
}

// A number for all pixels of the canvas, and how many of them have been drawn on.
function pixels(canvas) {
  return canvas.evaluate((element) => {
    // A copy: reading the page's own would change how it is drawn.
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [element.width, element.height];
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(element, 0, 0);
    const { data } = context.getImageData(0, 0, copy.width, copy.height);
    let sum = 0;
    let drawn = 0;
    for (let i = 0; i < data.length; i += 4) {
      if (data[i + 3] > 0) ++drawn;
      sum = (Math.imul(sum, 31) + data[i] + 7 * data[i + 1] + 13 * data[i + 2] + data[i + 3]) | 0;
    }
    return { sum, drawn };
  });
}

const plotsOf = (report) =>
  report.sections.flatMap((section) =>
    section.kind === "plot" ? [section] : section.kind === "panels" ? section.plots : [],
  );

// What the page tells of the place that is pointed at.
function reading(box) {
  return box.evaluate((element) => {
    const texts = (within, selector) =>
      Array.from(within.querySelectorAll(selector), (each) => each.innerText);
    const isSeen = (each) => each !== null && each.checkVisibility({ visibilityProperty: true });
    const tip = element.querySelector(".tip");
    if (isSeen(tip)) return { head: texts(tip, ".head")[0], values: texts(tip, ".row b") };
    const readout = element.querySelector(".readout");
    if (!isSeen(readout) || readout.innerText === "") return null;
    return { head: texts(readout, ".at")[0].replace(/^at /, ""), values: texts(readout, "b") };
  });
}

async function checkReading(visit, plot, box, how, before) {
  let told = await reading(box);
  // A touch may be told to the page a little later.
  const isNew = () => told !== null && told.head !== before?.head;
  for (let i = 0; i < 100 && !isNew() && how === "touching"; ++i) {
    await visit.page.waitForTimeout(20);
    told = await reading(box);
  }
  const title = JSON.stringify(plot.title.slice(0, 40));
  if (!visit.check(told !== null, `plot ${title}: ${how} shows no values`)) return null;
  const at = plot.x.findIndex((x) => writeValue(x, plot.x_axis.unit) === told.head);
  if (!visit.check(at >= 0, `plot ${title}: ${how} shows an x that is not there: ${told.head}`)) {
    return null;
  }
  // Several x may be written alike.
  const expected = (i) => plot.series.map((series) => writeValue(series.values[i], plot.y_axis.unit));
  const fits = plot.x.some(
    (x, i) =>
      writeValue(x, plot.x_axis.unit) === told.head &&
      JSON.stringify(expected(i)) === JSON.stringify(told.values),
  );
  visit.check(fits, `plot ${title}: ${how} shows ${told.values}, not ${expected(at)} at ${told.head}`);
  return told;
}

async function checkPlot(visit, plot, box, buttons) {
  const { touch } = visit;
  const title = JSON.stringify(plot.title.slice(0, 40));
  const canvas = box.locator("canvas");
  await box.scrollIntoViewIfNeeded();
  if (!visit.check((await canvas.count()) === 1, `plot ${title} has no canvas`)) return;
  const before = await pixels(canvas);
  visit.check(before.drawn > 500, `plot ${title} is blank: ${before.drawn} pixels`);

  // Each series is really drawn: without it the picture is another.
  if ((await buttons.count()) > 0) {
    for (const [which, series] of plot.series.entries()) {
      const values = series.values.filter((value) => value !== null);
      if (values.length === 0 || values.every((value) => value === 0)) continue;
      await visit.press(buttons.nth(which));
      const without = await pixels(canvas);
      visit.check(without.sum !== before.sum, `plot ${title}: "${series.name}" is not drawn`);
      await visit.press(buttons.nth(which));
    }
    const after = await pixels(canvas);
    visit.check(after.sum === before.sum, `plot ${title} is another after hiding and showing`);
  }

  const over = box.locator(".u-over");
  await over.evaluate((element) => element.scrollIntoView({ block: "center" }));
  const area = await over.boundingBox();
  const point = async (part) => {
    const x = area.x + part * area.width;
    const y = area.y + area.height / 2;
    if (touch) await visit.page.touchscreen.tap(x, y);
    else await visit.page.mouse.move(x, y);
  };
  await point(0.3);
  const first = await checkReading(visit, plot, box, touch ? "touching" : "pointing");
  await point(0.8);
  const second = await checkReading(visit, plot, box, touch ? "touching" : "pointing", first);
  if (plot.x.length > 4) {
    visit.check(first?.head !== second?.head, `plot ${title} shows the same values everywhere`);
  }
  if (touch) return;

  await box.locator(".canvas").focus();
  await visit.page.keyboard.press("Home");
  await checkReading(visit, plot, box, "the Home key");
  await visit.page.keyboard.press("ArrowRight");
  await checkReading(visit, plot, box, "an arrow key");

  const zoomOut = box.locator(".zoom-out");
  visit.check(!(await zoomOut.isVisible()), `plot ${title} is zoomed before anybody asked`);
  await visit.page.mouse.move(area.x + 0.3 * area.width, area.y + 20);
  await visit.page.mouse.down();
  await visit.page.mouse.move(area.x + 0.7 * area.width, area.y + 30, { steps: 4 });
  await visit.page.mouse.up();
  visit.check(await zoomOut.isVisible(), `plot ${title}: dragging does not zoom`);
  await visit.page.mouse.dblclick(area.x + 0.5 * area.width, area.y + 20);
  visit.check(!(await zoomOut.isVisible()), `plot ${title}: a double click does not show all`);
  await visit.page.mouse.move(0, 0);
}

async function checkTables(visit, report) {
  const tables = report.sections.filter((section) => section.kind === "table");
  const shown = visit.page.locator(".card.table");
  visit.check((await shown.count()) === tables.length, "not every table is shown");
  for (const [i, table] of tables.entries()) {
    const rows = shown.nth(i).locator("tbody tr");
    const count = await rows.count();
    visit.check(
      count === table.rows.length || (count === 100 && table.rows.length > 110),
      `table ${JSON.stringify(table.title)} has ${count} rows of ${table.rows.length}`,
    );
    for (const [r, row] of table.rows.slice(0, 20).entries()) {
      for (const [c, cell] of row.entries()) {
        if (cell.text || cell.spark || cell.value === undefined) continue;
        const text = await rows.nth(r).locator("td").nth(c).innerText();
        const expected = writeValue(cell.value, table.columns[c].unit);
        visit.check(text === expected, `a table shows ${text} for ${expected}`);
      }
    }
    const sparks = table.rows.flat().filter((cell) => cell.spark).length;
    if (count === table.rows.length) {
      visit.check(
        (await shown.nth(i).locator("svg.spark").count()) === sparks,
        "not every sparkline is drawn",
      );
    }
    const sortable = table.columns.findIndex(
      (_column, c) => new Set(table.rows.map((row) => row[c]?.value).filter(Number.isFinite)).size > 1,
    );
    if (sortable < 0) continue;
    const heading = shown.nth(i).locator("th").nth(sortable);
    const cellTexts = () => rows.locator(`td:nth-child(${sortable + 1})`).allInnerTexts();
    const original = await cellTexts();
    await visit.press(heading.locator("button"));
    const isSorted = (await heading.getAttribute("aria-sort")) !== null;
    visit.check(isSorted, `table ${JSON.stringify(table.title)} is not sorted by a click`);
    const numbers = table.rows.map((row) => row[sortable]?.value).filter(Number.isFinite);
    const most = writeValue(Math.max(...numbers), table.columns[sortable].unit);
    const least = writeValue(Math.min(...numbers), table.columns[sortable].unit);
    const top = (await cellTexts())[0];
    const withText = table.rows.some((row) => row[sortable]?.text || row[sortable]?.value == null);
    visit.check(withText || top === most || top === least, `sorted, ${top} is first, not ${most}`);
    await visit.press(heading.locator("button"));
    await visit.press(heading.locator("button"));
    visit.check(
      JSON.stringify(await cellTexts()) === JSON.stringify(original),
      "a third click does not bring the order back",
    );
  }
}

// Nothing is wider than the window, and nothing too small to be read.
async function checkShape(visit) {
  const shape = await visit.page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.scrollingElement;
    const small = [];
    const walker = document.createTreeWalker(document.getElementById("page"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const parent = walker.currentNode.parentElement;
      if (walker.currentNode.textContent.trim() === "" || parent.offsetParent === null) continue;
      const size = Number.parseFloat(getComputedStyle(parent).fontSize);
      if (size < 12) small.push(`${size}px: ${walker.currentNode.textContent.slice(0, 30)}`);
    }
    return { scrollWidth, clientWidth, small };
  });
  visit.check(
    shape.scrollWidth <= shape.clientWidth,
    `the page is ${shape.scrollWidth} wide in a window of ${shape.clientWidth}`,
  );
  visit.check(shape.small.length === 0, `text below ${smallestText}px: ${shape.small.slice(0, 3)}`);
}

async function checkHead(visit, report) {
  visit.check((await visit.page.title()) === report.title, "the window's title is another");
  const heading = await visit.page.locator("h1").textContent();
  visit.check(heading === report.title, `the title is ${JSON.stringify(heading)}`);
  const warnings = await visit.page.locator(".warnings li").allTextContents();
  visit.check(
    JSON.stringify(warnings) === JSON.stringify(report.warnings),
    "the warnings are not all there",
  );
  const facts = await visit.page.locator(".fact dd").allTextContents();
  visit.check(facts.length === report.facts.length, "the facts are not all there");
  const listings = report.sections.filter((section) => section.kind === "listing");
  const codes = await visit.page.locator(".card.listing code").allTextContents();
  visit.check(
    JSON.stringify(codes) === JSON.stringify(listings.map((listing) => listing.text)),
    "the listings are not as they were",
  );
  for (const [i, listing] of listings.entries()) {
    // All pages have the same clipboard.
    await alone(async () => {
      await visit.press(visit.page.locator(".copy").nth(i));
      const copied = await visit.page.evaluate(() => navigator.clipboard.readText());
      visit.check(copied === listing.text, "copying a listing does not copy it");
    });
  }
  // Only elements of the page's own making: text stayed text.
  const foreign = await visit.page.evaluate(
    () => document.querySelectorAll("#page img, #page script, #page iframe, #page a").length,
  );
  visit.check(foreign === 0, "something in the report became part of the page");
}

async function visitPage(browser, file, view, folder) {
  const url = pathToFileURL(resolve(file)).href;
  const context = await browser.newContext({
    viewport: { width: view.width, height: view.height },
    colorScheme: view.scheme,
    hasTouch: view.touch === true,
    deviceScaleFactor: view.touch ? 2 : 1,
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const name = `${basename(file, ".html")}, ${view.name}`;
  const visit = new Visit(page, name, view.touch === true);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) visit.check(false, `console: ${message.text()}`);
  });
  page.on("pageerror", (error) => visit.check(false, `script error: ${error.message}`));
  page.on("dialog", (dialog) => {
    visit.check(false, `a dialog came up: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => visit.check(request.url() === url, `asks for ${request.url()}`));

  await page.goto(url);
  const report = JSON.parse(await page.locator("#report").textContent());
  const plots = plotsOf(report);
  try {
    await page.waitForFunction(
      (count) =>
        document.querySelector("h1") && document.querySelectorAll(".canvas canvas").length === count,
      plots.length,
      { timeout: 10_000 },
    );
  } catch {
    visit.check(false, `${plots.length} plots were to be drawn, and were not`);
    await context.close();
    return;
  }
  await page.screenshot({
    path: join(folder, `${basename(file, ".html")}-${view.name}.png`),
    fullPage: true,
  });
  await checkShape(visit);
  await checkHead(visit, report);
  await checkTables(visit, report);
  const boxes = page.locator(".card.plot > .plot, .panel");
  visit.check((await boxes.count()) === plots.length, "not every plot is shown");
  for (const [i, plot] of plots.entries()) {
    const box = boxes.nth(i);
    // Its own, or the one of all panels.
    const shared = box.locator("xpath=ancestor::section[contains(@class,'panels')]").locator(".shared");
    const own = (await box.locator(".legend").count()) > 0 ? box : shared;
    await checkPlot(visit, plot, box, own.locator(".legend button"));
  }
  const first = boxes.first();
  if (plots.length > 0 && !view.touch) {
    // As somebody sees it who points at something.
    await first.scrollIntoViewIfNeeded();
    const area = await first.locator(".u-over").boundingBox();
    await page.mouse.move(area.x + 0.42 * area.width, area.y + 0.5 * area.height);
    await page.screenshot({
      path: join(folder, `${basename(file, ".html")}-${view.name}-pointing.png`),
    });
  }
  await checkShape(visit);
  await context.close();
}

const { values: options, positionals: files } = parseArgs({
  allowPositionals: true,
  options: { screenshots: { type: "string" }, view: { type: "string" } },
});
const folder = options.screenshots;
const wanted = views.filter((view) => (options.view ?? view.name) === view.name);
if (!folder || files.length === 0 || wanted.length === 0) {
  console.error("usage: check_pages.mjs [--view VIEW] --screenshots FOLDER PAGE.html...");
  process.exit(2);
}
mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.WEIR_CHROMIUM ?? "/usr/bin/chromium",
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
  ],
});
try {
  for (const file of files) readFileSync(file); // A clear error if it is not there.
  const visits = files.flatMap((file) => wanted.map((view) => ({ file, view })));
  const work = async () => {
    for (let visit = visits.shift(); visit !== undefined; visit = visits.shift()) {
      const { file, view } = visit;
      // What the page does not have is waited for in vain.
      await visitPage(browser, file, view, folder).catch((error) => {
        problems.push(`${basename(file, ".html")}, ${view.name}: ${error.message}`);
      });
    }
  };
  await Promise.all(Array.from({ length: mostAtOnce }, work));
} finally {
  await browser.close();
}
for (const problem of problems) console.log(problem);
console.log(`${checks} checks, ${problems.length} problems; screenshots are in ${folder}`);
process.exitCode = problems.length > 0 ? 1 : 0;
