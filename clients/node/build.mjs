// Builds the package twice from one source, ESM and CommonJS, each with types of its own: a folder's
// package.json says which of the two its files are.
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
rmSync(`${here}/dist`, { recursive: true, force: true });
for (const [folder, type, words] of [
  ['esm', 'module', []],
  ['cjs', 'commonjs', ['--module', 'CommonJS', '--moduleResolution', 'Node10']],
]) {
  const out = `${here}/dist/${folder}`;
  execFileSync(process.execPath, [tsc, '-p', here, '--outDir', out, ...words], {
    stdio: 'inherit',
  });
  writeFileSync(`${out}/package.json`, `${JSON.stringify({ type })}\n`);
}
