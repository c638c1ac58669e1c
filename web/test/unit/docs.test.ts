import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { kCommands } from '../../src/ui/commands.ts';

test('docs/viewing_graphs.md lists the keys', () => {
  const text = readFileSync(join(process.env.GRADFLOW_WEB!, '../docs/viewing_graphs.md'), 'utf8');
  const keys = text.slice(text.indexOf('## Keys'), text.indexOf('## Differences'));
  const rows = [...keys.matchAll(/^\| `(.+)` \| (.+) \|$/gm)].map((row) => [row[1], row[2]]);
  assert.deepEqual(
    rows, kCommands.map((command) => [command.key.replace('Arrow', ''), command.title]));
});
