// The package as others get it: packed, installed into an empty project, used both ways.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
let folder;

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-package-'));
  execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], {
    cwd: root,
  });
  const [tarball] = readdirSync(folder);
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, 'weir-limiter'), { recursive: true });
  // What npm does with it, without asking a registry.
  execFileSync(
    'tar',
    ['-xzf', tarball, '-C', join(modules, 'weir-limiter'), '--strip-components=1'],
    { cwd: folder },
  );
  for (const name of ['express', 'express4', '@types', 'undici-types'])
    symlinkSync(join(root, 'node_modules', name), join(modules, name));
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
});
after(() => rmSync(folder, { recursive: true, force: true }));

const BODY = `
  const server = express().use(weir({ servers: ['127.0.0.1:1'], logger: { warn() {} } }))
    .use((req, res) => res.send(req.rateLimit.source)).listen(0, '127.0.0.1', async () => {
      const answer = await pacedFetch()('http://127.0.0.1:' + server.address().port);
      console.log(answer.status, await answer.text(), ipKey('::ffff:192.0.2.1'), new WeirError('deadline', '').code);
      server.close();
      server.closeAllConnections();
    });`;

function run(name, text) {
  writeFileSync(join(folder, name), text);
  return execFileSync(process.execPath, [name], { cwd: folder, encoding: 'utf8', timeout: 20_000 });
}

test('It has what it should, and nothing else', () => {
  const files = readdirSync(join(folder, 'node_modules/weir-limiter')).sort();
  assert.deepEqual(files, ['LICENSE', 'README.md', 'dist', 'package.json']);
  const { dependencies, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  assert.equal(dependencies, undefined);
  assert.deepEqual(engines, { node: '>=18' });
});

for (const express of ['express', 'express4']) {
  test(`It is imported and required, beside ${express}`, () => {
    const wanted = '200 open 192.0.2.1 deadline\n';
    assert.equal(
      run(
        'esm.mjs',
        `import express from '${express}';\nimport weir, { ipKey, pacedFetch, WeirError } from 'weir-limiter';${BODY}`,
      ),
      wanted,
    );
    assert.equal(
      run(
        'cjs.cjs',
        `const express = require('${express}');\nconst { weir, ipKey, pacedFetch, WeirError } = require('weir-limiter');${BODY}`,
      ),
      wanted,
    );
  });
}

test('Its types hold for both kinds of modules, beside those of Express', () => {
  const program = `
    import express = require('express');
    import { weir, Client, pacedFetch, type Decision, type WeirOptions } from 'weir-limiter';
    const options: WeirOptions<express.Request> = {
      limit: (req) => (req.params['vip'] === undefined ? '5/min' : 'unlimited'),
      key: async (req) => req.get('x-user'),
    };
    const app = express();
    app.use(weir());
    app.get('/', weir(options), weir({ user: (req) => req['user']?.id as string }), (req, res) => {
      const left: number | undefined = req.rateLimit?.remaining;
      res.send(String(left));
    });
    const decision: Promise<Decision> = new Client().check({ ip: '192.0.2.1' });
    void decision;
    void pacedFetch()('http://127.0.0.1/');
    weir({
      limit: '5/min',
      handler: (req: express.Request, res: express.Response, next, denial) =>
        res.status(denial.statusCode).send(denial.message),
    });
    // @ts-expect-error no such option
    weir({ limits: '5/min' });`;
  writeFileSync(join(folder, 'cjs.cts'), program);
  writeFileSync(
    join(folder, 'esm.mts'),
    program.replace("import express = require('express')", "import express from 'express'"),
  );
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const words = [
    '--noEmit',
    '--strict',
    '--module',
    'node16',
    '--moduleResolution',
    'node16',
    '--esModuleInterop',
  ];
  const more = [
    '--target',
    'es2022',
    '--types',
    'node',
    '--preserveSymlinks',
    'cjs.cts',
    'esm.mts',
  ];
  try {
    execFileSync(process.execPath, [tsc, ...words, ...more], { cwd: folder, encoding: 'utf8' });
  } catch (error) {
    assert.fail(error.stdout);
  }
});

test('What it is built with comes from any registry, and runs on Node.js 18', () => {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  assert.doesNotMatch(JSON.stringify(lock), /"resolved"/);
  const { satisfies } = createRequire(import.meta.url)('semver');
  for (const [name, { engines }] of Object.entries(lock.packages)) {
    // What Debian 12 has.
    assert.ok(satisfies('18.19.0', engines?.node ?? '*'), `${name} needs ${engines?.node}`);
  }
});
