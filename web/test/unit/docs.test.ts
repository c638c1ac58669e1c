import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { kCommands, kEditCommands } from '../../src/ui/commands.ts';
import type { Command } from '../../src/ui/commands.ts';

test('the page has the licences of the code that it contains', () => {
  const web = process.env.GRADFLOW_WEB!;
  const words = (path: string): string => readFileSync(join(web, path), 'utf8').replace(/\s+/g, ' ').trim();
  const licence = words('node_modules/preact/LICENSE');
  assert.ok(words('THIRD_PARTY_NOTICES').includes(licence));
  assert.ok(words('dist/shell.html').includes(licence));
});

function expectKeys(file: string, end: string, commands: readonly Command[]): void {
  const text = readFileSync(join(process.env.GRADFLOW_WEB!, '../docs', file), 'utf8');
  const keys = text.slice(text.indexOf('## Keys'), text.indexOf(end));
  const rows = [...keys.matchAll(/^\| `(.+)` \| (.+) \|$/gm)].map((row) => [row[1], row[2]]);
  assert.deepEqual(
    rows, commands.map((command) => [command.key.replace('Arrow', ''), command.title]));
}

test('docs/viewing_graphs.md lists the keys', () => {
  expectKeys('viewing_graphs.md', '## Differences', kCommands);
});
test('docs/editing_graphs.md lists the keys of the editor', () => {
  expectKeys('editing_graphs.md', '## Security', kEditCommands);
});
