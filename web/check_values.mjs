// The page writes numbers as the program does: values.json is what both are held to.
import { readFileSync } from "node:fs";
import { valueModule } from "./value_module.mjs";

const { writeValue } = await valueModule();
const values = JSON.parse(readFileSync(new URL("./values.json", import.meta.url), "utf8"));
let wrong = values.length === 0 ? 1 : 0;
for (const [unit, value, text] of values) {
  const written = writeValue(value, unit);
  if (written === text) continue;
  ++wrong;
  console.error(`${value} in ${unit} is written ${written}, not ${text}`);
}
if (wrong > 0) process.exit(1);
console.log(`${values.length} values are written as the program writes them`);
