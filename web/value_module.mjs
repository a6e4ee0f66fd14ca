// The page's own way of writing numbers, for what checks it.
import { build } from "esbuild";
import { fileURLToPath } from "node:url";

export async function valueModule() {
  const built = await build({
    entryPoints: [fileURLToPath(new URL("./src/value.ts", import.meta.url))],
    bundle: true,
    format: "esm",
    write: false,
  });
  const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
  return import(`data:text/javascript;base64,${code}`);
}
