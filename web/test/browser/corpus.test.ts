// Pages of the graphs that the fuzzers start with, most of which cannot run.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Fixture, root, settle } from './support.ts';

let fixture: Fixture;
before(() => { fixture = new Fixture(); });
after(() => fixture.close());

test('pages of the corpus open, and their blocks are described', async () => {
  const folder = join(root, '../tests/data/corpus/graph_def');
  const files = readdirSync(folder).sort();
  assert.ok(files.length > 20);
  let before = join(root, '../tests/data/golden_cases/layer/batch_norm/graph.pbtxt');
  let shown = 0;
  for (const [i, file] of files.entries()) {
    let path: string;
    try {
      path = fixture.run(`corpus${i}`, ['view', before, '--diff', join(folder, file)]);
    } catch (error) {
      // What is no GraphDef is an error.
      assert.equal((error as { status: number }).status, 1, file);
      continue;
    }
    before = join(folder, file);
    const page = await fixture.open(path);
    const count = await page.evaluate(async () => {
      const app = window.gradflow;
      const nodes = Math.min(app.summary!.nodes, 20);
      for (let node = 0; node < nodes; ++node) await app.select(node);
      await app.setFolded(true);
      app.svg();
      return nodes;
    });
    await settle(page);
    shown += count;
    await page.context().close();
  }
  assert.ok(shown > 50, `${shown} blocks`);
});
