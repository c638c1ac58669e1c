// Pages of the fuzzers' initial graphs. Most of these graphs cannot run.
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
      // A file that is not a GraphDef is an error.
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

// Functions whose parts do not match.
const kHostile = String.raw`
node { name: "call" op: "f/g" input: "" }
library {
 function { signature { name: "f/g" input_arg { name: "a" type: DT_FLOAT } input_arg { name: "a" type: DT_FLOAT } output_arg { name: "a" type: DT_FLOAT } output_arg { name: "a" } control_output: "c" control_output: "c" attr { name: "T" type: "type" } }
  node_def { name: "a" op: "_Arg" input: "a:output:0" input: "a:output:999999999" input: "^" input: "" input: ":" input: "a::" }
  node_def { name: "a" op: "f/g" input: "a:a:0" }
  node_def { name: "</script>" op: "__proto__" input: "constructor:x:0" attr { key: "__proto__" value { s: "x" } } attr { key: "constructor" value { i: 1 } } }
  node_def { }
  ret { key: "a" value: "nothing:x:0" } ret { key: "zz" value: "" }
  control_ret { key: "d" value: "a" } arg_attr { key: 7 value { } } resource_arg_unique_id { key: 0 value: 3 } }
 function { signature { name: "f/g" } }
 function { signature { name: "" } node_def { name: "x" op: "" } }
 function { }
 function { signature { name: "__proto__" input_arg { name: "x" type_attr: "T" number_attr: "N" type_list_attr: "L" } } }
 gradient { function_name: "f/g" gradient_func: "__proto__" }
}
`;

test('graphs of the corpus are edited, and undone edits leave the file as it was', async () => {
  const folder = join(root, '../tests/data/corpus/graph_def');
  const files = readdirSync(folder).map((file) => join(folder, file));
  // The program distinguishes text from binary files by name.
  const texts = files.flatMap((file, i) => {
    try {
      const text = join(fixture.folder, `edited${i}.pbtxt`);
      fixture.output(['convert', file, text]);
      return [text];
    } catch {
      return [];
    }
  });
  let edited = 0;
  for (const path of [fixture.file('hostile.pbtxt', kHostile), ...texts]) {
    let html: string;
    try {
      html = fixture.run(`page${edited}`, ['edit', path]);
    } catch (error) {
      assert.equal((error as { status: number }).status, 1, path);
      continue;
    }
    const page = await fixture.open(html);
    await settle(page);
    const problem = await page.evaluate(async () => {
      const { editor } = window.gradflow.edit!;
      const state = (): string => JSON.stringify([editor.items(), editor.functionItems(), editor.text()]);
      const isUntouched = (): boolean => editor.items().every((item, i) => item === i) &&
        editor.functionItems().every((item, f) => item === f);
      if (!isUntouched()) return `not as in the file: ${state()}`;
      const before = state();
      let edits = 0;
      const attempt = (edit: () => void): void => {
        try {
          edit();
        } catch (error) {
          if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError) throw error;
          return;
        }
        ++edits;
        state();
      };
      for (const { id, body } of editor.nodes.slice(0, 30)) {
        attempt(() => editor.rename(id, `renamed${id}`));
        for (let input = 0; input < 3; ++input) attempt(() => editor.disconnect(id, input));
        attempt(() => { editor.add('_Arg', '', {}, body); });
        attempt(() => { editor.add('_Retval', '', {}, body); });
        attempt(() => editor.setAttr(id, 'T', 'type: DT_INT8'));
        if (id % 3 === 0) attempt(() => editor.remove([id]));
      }
      await window.gradflow.edit!.refresh();
      while (editor.undo() !== null);
      if (state() !== before || !isUntouched()) return `not undone: ${state()}`;
      return edits > 0 || editor.nodes.length === 0 ? '' : 'no edit was made';
    });
    assert.equal(problem, '', path);
    ++edited;
    await page.context().close();
  }
  assert.ok(edited > 10, `${edited} graphs`);
});
