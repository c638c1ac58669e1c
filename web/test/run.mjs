// Runs the tests in test/unit, or the tests in test/browser with --browser. Arguments select files
// by parts of their names. speed.test.ts only runs if it is selected.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { build } from 'esbuild';

const root = new URL('..', import.meta.url).pathname;
const folder = process.argv.includes('--browser') ? 'browser' : 'unit';
const only = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const tests = readdirSync(join(root, 'test', folder)).filter((name) => name.endsWith('.test.ts'))
  .filter((name) => only.length === 0 ? !name.startsWith('speed')
    : only.some((part) => name.includes(part)));
// A folder where node finds web/node_modules.
const out = mkdtempSync(join(root, 'node_modules/.test-'));
try {
  await build({
    entryPoints: tests.map((name) => join(root, 'test', folder, name)),
    outdir: out,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    // Loaded from web/node_modules at run time.
    external: ['playwright-core'],
    target: 'node18',
    logLevel: 'warning',
    sourcemap: 'inline',
    jsx: 'automatic',
    jsxImportSource: 'preact',
  });
  const files = tests.map((name) => join(out, name.replace('.ts', '.mjs')));
  const result = spawnSync(
    process.execPath, ['--enable-source-maps', '--test', '--test-concurrency=1', ...files],
    { stdio: 'inherit', cwd: root, env: { ...process.env, GRADFLOW_WEB: root } });
  process.exitCode = result.status ?? 1;
} finally {
  rmSync(out, { recursive: true });
}
