import assert from 'node:assert/strict';
import { test } from 'node:test';
import { portsOf } from '../../src/model/ports.ts';
import { between, fanIn, fanOut, markScopes } from '../../src/model/reach.ts';
import { QueryError, search } from '../../src/model/search.ts';
import { cpuMillis, graph, model, random, randomRows, type Row } from './graphs.ts';
import { Model } from '../../src/model/model.ts';

test('names make scopes', () => {
  const m = model([['x', 'Neg', []], ['a/b/y', 'Neg', [['x', 0]]], ['a/z', 'Neg', []],
                   ['a', 'Neg', []]]);
  assert.deepEqual(m.scopes.map((s) => [s.path, s.begin, s.end]),
                   [['', 0, 4], ['a', 2, 4], ['a/b', 3, 4]]);
  assert.deepEqual([...m.order], [0, 3, 2, 1]);
  assert.deepEqual(m.ancestors(2), [0, 1, 2]);
  assert.equal(m.find('a'), 3);
  assert.equal(m.findScope('a'), 1);
  assert.equal(m.find('none'), -1);
});

test('names may have many levels and empty parts', () => {
  const m = model([['a/'.repeat(5000) + 'x', 'Neg', []], ['//', 'Neg', []], ['', 'Neg', []]]);
  assert.ok(m.scopes.length < 80);
  assert.equal(m.scopes[0]!.end, 3);
});

test('functions are scopes', () => {
  const json = graph([['f', 'Neg', []], ['a', '_Arg', []], ['body/x', 'Neg', [['a', 0]]]],
                     { functions: [['f', 1, 2]] });
  const m = new Model(json);
  assert.deepEqual(m.scopes.map((s) => s.path), ['', 'ƒ f', 'ƒ f/body']);
  assert.equal(m.find('a'), -1);
});

// A loop of TensorFlow 1: while/... in the frame `frame`, with a constant in and a node after it.
function loopRows(prefix: string, frame: number, init: string): Row[] {
  const at = (name: string): string => prefix + name;
  return [
    [at('enter'), 'Enter', [[init, 0]], { a: [0, frame] }],
    [at('merge'), 'Merge', [[at('enter'), 0], [at('next'), 0]]],
    [at('limit'), 'Const', [], { c: [-1] }],
    [at('cond'), 'LoopCond', [[at('merge'), 0], [at('limit'), 0]]],
    [at('switch'), 'Switch', [[at('merge'), 0], [at('cond'), 0]]],
    [at('body/neg'), 'Neg', [[at('switch'), 1]]],
    [at('next'), 'NextIteration', [[at('body/neg'), 0]]],
    [at('exit'), 'Exit', [[at('switch'), 0]]],
  ];
}
// Makes "limit" wait for "merge", so that it is in the loop.
function withControls(rows: Row[]): Row[] {
  rows.forEach((row) => {
    if (row[1] !== 'Const') return;
    const merge = row[0].replace(/limit$/, 'merge');
    row[3] = { c: [rows.findIndex((other) => other[0] === merge)] };
  });
  return rows;
}
const kFrames = { strings: ['frame_name', '"outer"', '"inner"'] };

test('loops are scopes', () => {
  const m = model(withControls([
    ['x', 'Neg', []], ['layer/while/size', 'Neg', []], ...loopRows('layer/while/', 1, 'x'),
    ['y', 'Neg', [['layer/while/exit', 0]]]]), kFrames);
  assert.deepEqual(m.scopes.map((s) => [s.path, s.nodes.map((node) => m.name(node))]), [
    ['', ['x', 'y']], ['layer', []], ['layer/while', ['layer/while/size']],
    ['layer/⟳ while', ['enter', 'merge', 'limit', 'cond', 'switch', 'next', 'exit']
      .map((name) => `layer/while/${name}`)],
    ['layer/⟳ while/body', ['layer/while/body/neg']]]);
  assert.deepEqual(portsOf(m, m.findScope('layer/⟳ while')), {
    inputs: [{ node: 0, output: 0 }], outputs: [{ node: m.size - 2, output: 0 }] });
});

test('loops without a scope of names are scopes named after their frames', () => {
  const m = model(withControls([['x', 'Neg', []], ...loopRows('', 1, 'x')]), kFrames);
  assert.deepEqual(m.scopes.map((s) => s.path), ['', '⟳ "outer"', '⟳ "outer"/body']);
  assert.deepEqual(m.scopes[0]!.nodes, [0]);
});

test('loops in loops, and loops of functions', () => {
  const rows = [['x', 'Neg', []], ...loopRows('a/', 1, 'x'), ...loopRows('a/b/', 2, 'a/switch'),
                ['arg', '_Arg', []], ...loopRows('a/c/', 1, 'arg')] as Row[];
  const m = model(withControls(rows), { ...kFrames, functions: [['f', 17, 9]] });
  assert.deepEqual(m.scopes.map((s) => s.path),
                   ['', '⟳ a', '⟳ a/body', '⟳ a/⟳ b', '⟳ a/⟳ b/body', 'ƒ f', 'ƒ f/a',
                    'ƒ f/a/⟳ c', 'ƒ f/a/⟳ c/body']);
});

test('loops may be nested deeply or have no entry', () => {
  const deep: Row[] = [['x', 'Neg', []]];
  for (let i = 0; i < 5000; ++i) {
    deep.push([`e${i}`, 'Enter', [[i === 0 ? 'x' : `e${i - 1}`, 0]], { a: [0, 1 + (i % 2)] }]);
  }
  assert.ok(model(deep, kFrames).scopes.length < 20);
  const cycle = model([['a/enter', 'Enter', [['a/merge', 0]]], ['a/merge', 'Merge', [['a/enter', 0]]],
                       ['exit', 'Exit', [['x', 0]]], ['x', 'Neg', []]], kFrames);
  assert.deepEqual(cycle.scopes.map((s) => s.path), ['', 'a']);
});

test('pins are named as in the definition', () => {
  const m = model([['x', 'Neg', []], ['y', 'Mul', [['x', 0], ['x', 0]]]]);
  assert.deepEqual(m.pinNames(1, false, 2), ['x', 'y']);
  assert.deepEqual(m.pinNames(1, true, 3), ['z', '1', '2']);
  const json = graph([['p', 'Pack', [], { ni: [2, 1] }], ['q', 'Pack', []], ['u', 'Odd', []]]);
  json.ops[0]!.i = [['values', 'N * T', '', 1], ['axis', 'T', '', 0]];
  json.ops[1]!.k = 0;
  const lists = new Model(json);
  assert.deepEqual(lists.pinNames(0, false, 3), ['values[0]', 'values[1]', 'axis']);
  // A node without the sizes of its lists, and a node without a definition.
  assert.deepEqual(lists.pinNames(1, false, 2), ['0', '1']);
  assert.deepEqual(lists.pinNames(2, false, 2), ['0', '1']);
});

test('edges are lists of both ends', () => {
  const m = model([['x', 'Neg', []], ['y', 'Mul', [['x', 1], ['x', 0]], { c: [0] }],
                   ['z', 'Neg', [['none', 0]]]]);
  const { start, node, pin } = m.inputs;
  assert.deepEqual([...start], [0, 0, 3, 4]);
  assert.deepEqual([...node], [0, 0, 0, -1]);
  assert.deepEqual([...pin], [1, 0, -1, 0]);
  assert.deepEqual([...m.consumers.start], [0, 3, 3, 3]);
  assert.deepEqual([...m.consumers.node], [1, 1, 1]);
  assert.deepEqual([...m.consumers.pin], [0, 1, -1]);
});

test('tensors cross the borders of scopes', () => {
  const m = model([['x', 'Neg', []], ['s/a', 'Mul', [['x', 0], ['x', 0]]],
                   ['s/b', 'Mul', [['s/a', 0], ['x', 1]]], ['y', 'Mul', [['s/b', 0], ['s/b', 0]]]]);
  const scope = m.findScope('s');
  assert.deepEqual(portsOf(m, scope), {
    inputs: [{ node: 0, output: 0 }, { node: 0, output: 1 }],
    outputs: [{ node: 2, output: 0 }],
  });
});

test('fan-in, fan-out and paths equal brute force', () => {
  const rows = randomRows(60, 9, 7);
  const m = model(rows);
  const n = m.size;
  // reaches[a][b]: whether there is a path from a to b.
  const reaches = Array.from({ length: n }, () => new Uint8Array(n));
  for (let v = 0; v < n; ++v) reaches[v]![v] = 1;
  for (let round = 0; round < n; ++round) {
    for (let v = 0; v < n; ++v) {
      for (let i = m.inputs.start[v]!; i < m.inputs.start[v + 1]!; ++i) {
        const u = m.inputs.node[i]!;
        for (let a = 0; a < n; ++a) reaches[a]![v]! |= reaches[a]![u]!;
      }
    }
  }
  const next = random(4);
  for (let round = 0; round < 40; ++round) {
    const a = Math.floor(n * next());
    const b = Math.floor(n * next());
    const inOf = fanIn(m, a);
    const outOf = fanOut(m, a);
    const path = between(m, a, b);
    for (let v = 0; v < n; ++v) {
      assert.equal(inOf[v], reaches[v]![a]);
      assert.equal(outOf[v], reaches[a]![v]);
      const forward = reaches[a]![v]! & reaches[v]![b]!;
      const backward = reaches[b]![v]! & reaches[v]![a]!;
      assert.equal(path[v], forward | backward);
    }
    const scopes = markScopes(m, path);
    m.scopes.forEach((scope) => {
      let has = 0;
      for (let i = scope.begin; i < scope.end; ++i) has |= path[m.order[i]!]!;
      assert.equal(scopes[scope.id], has);
    });
  }
});

test('search', () => {
  const m = model([
    ['layer1/Mul', 'Mul', [], { a: [0, 1], t: [2, 3] }],
    ['layer1/neg', 'Neg', [], { e: 4 }],
    ['layer2/neg', 'Neg', [], { k: 3 }],
  ], { strings: ['bits', '4', 'float', '[2,?]', 'no kernel'] });
  const names = (query: string): string[] =>
    search(m, query, 10).nodes.map((node) => m.name(node));
  assert.deepEqual(names('mul'), ['layer1/Mul']);
  assert.deepEqual(names('LAYER1 neg'), ['layer1/neg']);
  assert.deepEqual(names('op:ne'), ['layer1/neg', 'layer2/neg']);
  assert.deepEqual(names('attr:bits=4'), ['layer1/Mul']);
  assert.deepEqual(names('shape:[2'), ['layer1/Mul']);
  assert.deepEqual(names('shape:float'), ['layer1/Mul']);
  assert.deepEqual(names('is:problem'), ['layer1/neg']);
  assert.deepEqual(names('is:changed'), ['layer2/neg']);
  assert.deepEqual(names('is:added'), []);
  assert.deepEqual(names(''), []);
  assert.throws(() => names('is:odd'), QueryError);
  assert.deepEqual(search(m, 'layer', 1), { nodes: [0], count: 3 });
});

test('search of 100,000 names takes 50 ms', () => {
  const m = model(randomRows(100_000, 2, 50));
  search(m, 'first', 10);
  const millis = cpuMillis(() => search(m, 'n9999', 100));
  assert.ok(millis < 50, `${millis} ms`);
});
