// One file that needs no other. The script and the style are named by their hashes in the policy of
// the page, so that nothing else runs in it, wherever its text came from.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

const oneFile = {
  name: "weir-one-file",
  apply: "build",
  enforce: "post",
  generateBundle(_options, bundle) {
    const files = Object.values(bundle);
    const page = files.find((file) => file.fileName === "index.html");
    const scripts = files.filter((file) => file.type === "chunk");
    const styles = files.filter((file) => file.fileName.endsWith(".css"));
    if (!page || scripts.length !== 1 || styles.length !== 1 || files.length !== 3) {
      throw new Error(`not one page, one script and one style: ${Object.keys(bundle)}`);
    }
    const script = scripts[0].code.trim();
    const style = String(styles[0].source).trim();
    if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) {
      throw new Error("the script or the style would end the element that it stands in");
    }
    for (const mark of ["@WEIR_TITLE@", "@WEIR_REPORT@"]) {
      if (script.includes(mark) || String(page.source).split(mark).length !== 2) {
        throw new Error(`${mark} must be in the page once`);
      }
    }
    const policy = [
      "default-src 'none'",
      `script-src ${hash(script)}`,
      `style-src ${hash(style)}`,
      "base-uri 'none'",
      "form-action 'none'",
    ].join("; ");
    const license = readFileSync(new URL("node_modules/uplot/LICENSE", import.meta.url), "utf8");
    if (license.includes("--")) throw new Error("the license would end the comment that it is in");
    // Functions, since "$" in a replacement would mean something.
    page.source = String(page.source)
      .replace(/\s*<script type="module"[^>]*><\/script>/, "")
      .replace(/\s*<link rel="stylesheet"[^>]*>/, "")
      .replace("@POLICY@", () => policy)
      .replace("</title>", () => `</title>\n    <!-- Holds uPlot.\n\n${license.trim()}\n-->`)
      .replace("</head>", () => `<style>${style}</style>\n  </head>`)
      .replace("</body>", () => `  <script>${script}</script>\n  </body>`);
    for (const file of [...scripts, ...styles]) delete bundle[file.fileName];
  },
};

// While developing: the report that WEIR_REPORT names, a page that was made or the JSON in it.
const withReport = {
  name: "weir-with-report",
  apply: "serve",
  transformIndexHtml(page) {
    let report = process.env.WEIR_REPORT ? readFileSync(process.env.WEIR_REPORT, "utf8") : "{}";
    report = /<script type="application\/json" id="report">(.*?)<\/script>/s.exec(report)?.[1] ?? report;
    return page
      .replace(/<meta http-equiv[^>]*>/, "")
      .replace("@WEIR_TITLE@", "weir")
      .replace("@WEIR_REPORT@", () => report);
  },
};

export default defineConfig({
  plugins: [oneFile, withReport],
  build: {
    target: "es2020",
    outDir: "../build/web",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    rollupOptions: { output: { format: "iife" } },
  },
});
