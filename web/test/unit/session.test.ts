import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { EditJson, GraphJson, OpJson } from '../../src/data/format.ts';
import { setKey } from '../../src/edit/api.ts';
import { parseNodes } from '../../src/edit/node.ts';
import { Session } from '../../src/edit/session.ts';

const kType = ['float', 'int32'];
const kOps: OpJson[] = [
  { n: 'Placeholder', k: 1, s: '', d: '', i: [], o: [['output', 'dtype', '', 0]],
    a: [['dtype', 'type', null, '', null, [], null]], f: 0 },
  { n: 'Const', k: 1, s: '', d: '', i: [], o: [['output', 'dtype', '', 0]],
    a: [['dtype', 'type', null, '', null, ['int32'], null]], f: 0 },
  { n: 'Neg', k: 1, s: '', d: '', i: [['x', 'T', '', 0]], o: [['y', 'T', '', 0]],
    a: [['T', 'type', null, '', null, kType, null]], f: 0 },
  { n: 'Mul', k: 1, s: '', d: '', i: [['x', 'T', '', 0], ['y', 'T', '', 0]], o: [['z', 'T', '', 0]],
    a: [['T', 'type', null, '', null, kType, null]], f: 0 },
];
const kGraph = `
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "i" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "y" op: "Mul" input: "x" input: "" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "z" op: "Neg" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
`;

const realFetch = globalThis.fetch;
after(() => { globalThis.fetch = realFetch; });
// Records the calls to a server, which only answers the calls in `answers`.
function serve(answers: Record<string, () => object | string>): { name: string; key: string | null; body: string }[] {
  const calls: { name: string; key: string | null; body: string }[] = [];
  globalThis.fetch = ((url: string, init: RequestInit) => {
    const name = url.slice('/api/'.length);
    calls.push({ name, key: new Headers(init.headers).get('X-Gradflow-Key'), body: String(init.body) });
    return new Promise((resolve, reject) => {
      const answer = answers[name]?.();
      if (answer !== undefined) {
        resolve(typeof answer === 'string' ? Response.json({ error: answer }, { status: 400 }) : Response.json(answer));
      }
      init.signal?.addEventListener('abort', () => reject(new Error('aborted')));
    });
  }) as typeof fetch;
  return calls;
}
function session(isServed = true): { s: Session; said: string[] } {
  const said: string[] = [];
  const edit: EditJson = {
    server: isServed, base: 3, page: 7, file: 'g.pbtxt', ops: kOps, nodes: parseNodes(kGraph), functions: [],
    library: '', rest: '',
  };
  const s = new Session({
    reshow: async (_graph: GraphJson, _selected, _chosen, placed) => { placed(); },
    say: (message) => { said.push(message); }, changed() {},
  }, edit);
  s.first();
  return { s, said };
}
function id(s: Session, name: string): number {
  return s.editor.find(name)!.id;
}
const tick = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

test('calls have the key and the number of the page', async () => {
  setKey('secret');
  const calls = serve({ save: () => ({ file: 'g.pbtxt', bytes: 1 }) });
  const { s, said } = session();
  await s.save();
  assert.deepEqual(said, ['Saved g.pbtxt: 1 bytes']);
  assert.deepEqual(calls.map(({ name, key }) => [name, key]), [['save', 'secret']]);
  assert.deepEqual({ ...JSON.parse(calls[0]!.body), nodes: 0, functions: 0 },
                   { base: 3, page: 7, nodes: 0, functions: 0, file: 'g.pbtxt', overwrite: false });
});

test('saving again overwrites only the file that was refused', async () => {
  const calls = serve({ save: () => "'g.pbtxt' exists; save again to overwrite it, or under another name" });
  const { s } = session();
  const overwrites = (): boolean[] => calls.map(({ body }) => (JSON.parse(body) as { overwrite: boolean }).overwrite);
  await s.save();
  s.file = 'other.pbtxt';
  await s.save();
  await s.save();
  assert.deepEqual(overwrites(), [false, false, true]);
});

test('cancelling drops the answers of slow calls, and makes the server stop a run', async () => {
  const calls = serve({ cancel: () => ({}) });
  const { s, said } = session();
  for (const call of [() => s.cpp(), () => s.differentiate('z', ['x'], 0)]) {
    const done = call();
    assert.ok(s.canCancel && s.isBusy);
    await s.cancel();
    await done;
    assert.equal(said.pop(), 'The call is cancelled');
    assert.ok(!s.canCancel && !s.isBusy);
  }
  assert.ok(!calls.some(({ name }) => name === 'cancel'));
  void s.runGraph(null);
  await s.cancel();
  assert.equal(calls[calls.length - 1]!.name, 'cancel');
  assert.ok(s.isBusy);
  const { s: other, said: words } = session();
  await other.cancel();
  assert.deepEqual(words, ['Nothing runs']);
});

test('an edit cancels the check of the previous graph', async () => {
  let isSlow = true;
  const types = (): object => ({ types: [null, null, null, null, null, null], problems: [], notes: [] });
  const calls = serve({ check: () => (isSlow ? undefined as unknown as object : types()) });
  const { s, said } = session();
  s.do(() => { s.editor.add('Neg'); });
  await tick();
  assert.deepEqual(calls.map(({ name }) => name), ['check']);
  isSlow = false;
  s.do(() => { s.editor.add('Neg'); });
  await s.refreshed();
  assert.deepEqual(calls.map(({ name }) => name), ['check', 'check']);
  assert.deepEqual(said, ['Add Neg', 'Add Neg_1']);
  isSlow = true;
  s.do(() => { s.editor.add('Neg'); });
  await tick();
  assert.ok(s.canCancel);
  await s.cancel();
  await s.refreshed();
  assert.equal(said.pop(), 'The check is cancelled');
});

test('a block that is added at a pin is connected in one step', () => {
  const { s, said } = session(false);
  const names = (): string => s.editor.nodes.map((node) => `${node.name}(${node.inputs.join()})`).join(' ');
  const before = names();
  // A producer has the type of the pin, and is in the scope that it was dropped in.
  s.openPalette({ id: id(s, 'y'), index: 1, isOutput: false }, 0, 'a/b/');
  s.add('Placeholder');
  assert.equal(names(), 'x() i() y(x,a/b/Placeholder) z(y) a/b/Placeholder()');
  assert.equal(s.editor.find('a/b/Placeholder')!.attrs.dtype, 'type: DT_FLOAT');
  assert.equal(said.pop(), 'Added a/b/Placeholder');
  s.undo();
  assert.equal(names(), before);
  assert.equal(s.editor.undoTitle, null);
  s.redo();
  assert.equal(s.editor.find('y')!.inputs[1], 'a/b/Placeholder');
  s.undo();
  // The reason is shown, and the block stays.
  s.openPalette({ id: id(s, 'y'), index: 1, isOutput: false }, 0);
  s.add('Const');
  assert.equal(names(), `${before} Const()`);
  assert.equal(said.pop(), "Added Const, not connected: 'output' cannot be float");
  s.undo();
  assert.equal(names(), before);
  s.openPalette({ id: id(s, 'i'), index: 0, isOutput: true }, 0);
  s.add('Neg');
  assert.equal(s.editor.find('Neg')!.inputs[0], 'i');
  assert.equal(s.editor.find('Neg')!.attrs.T, 'type: DT_INT32');
});

test('exactly the pins that can be connected fit', () => {
  const { s } = session(false);
  const { editor } = s;
  const all = editor.nodes.map((node) => node.id);
  const fits = (name: string, index: number, isOutput: boolean): string =>
    editor.fitting({ id: id(s, name), index }, isOutput, all)
      .map((end) => `${editor.get(end.id)!.name}:${end.index}`).join(' ');
  assert.equal(fits('x', 0, true), 'y:0 y:1 z:0');
  // An int32 fits where no other input determines the type.
  assert.equal(fits('i', 0, true), 'y:0 z:0');
  // Pins that would close a cycle do not fit.
  assert.equal(fits('z', 0, true), '');
  assert.equal(fits('y', 0, true), 'z:0');
  assert.equal(fits('y', 1, false), 'x:0');
  assert.equal(fits('z', 0, false), 'x:0 i:0 y:0');
});

test('edits that are made together fail together', () => {
  const { s } = session(false);
  const before = s.editor.text();
  assert.throws(() => s.editor.together(() => {
    s.editor.add('Neg');
    s.editor.add('Neg');
    throw new Error('no');
  }), /no/);
  assert.equal(s.editor.text(), before);
  assert.equal(s.editor.undoTitle, null);
  assert.equal(s.editor.redoTitle, null);
  assert.ok(!s.isUnsaved);
});
