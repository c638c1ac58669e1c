import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SceneBuilder } from '../../src/scene/build.ts';
import { Flag, kMaxPins } from '../../src/scene/types.ts';
import { World } from '../../src/view/world.ts';
import { cpuMillis, graph, model, randomRows } from './graphs.ts';
import type { Row } from './graphs.ts';
import { Model } from '../../src/model/model.ts';

const kRows: Row[] = [
  ['x', 'Placeholder', [], { t: [0, 1] }],
  ['c', 'Const', [], { v: 2, t: [0, 3] }],
  ['s/mul', 'Mul', [['x', 0], ['c', 0]], { a: [4, 5], t: [0, 1] }],
  ['s/neg', 'Neg', [['s/mul', 0]], { c: [0], e: 6 }],
  ['y', 'Neg', [['s/neg', 0]], { k: 1 }],
];
const kStrings = ['float', '[2]', '7', '[]', 'bits', '4', 'no kernel'];

function builder(): SceneBuilder {
  return new SceneBuilder(model(kRows, { strings: kStrings }));
}

test('scopes are blocks with the tensors that cross them', () => {
  const scene = builder().build(0, { fold: false });
  const ids = scene.items.map((item) => item.id);
  assert.deepEqual(ids, [~1, 0, 1, 4]);
  const box = scene.items[0]!;
  assert.equal(box.title, 's');
  assert.equal(box.subtitle, '2 ops');
  assert.deepEqual(box.inputs.map((pin) => [pin.name, pin.type]),
                   [['x', 'float [2]'], ['c', 'float []']]);
  assert.deepEqual(box.outputs.map((pin) => pin.name), ['neg']);
  assert.ok(box.flags & Flag.kProblem);
  const edges = [...scene.from].map(
    (from, e) => [ids[from], ids[scene.to[e]!], scene.types[scene.type[e]!], scene.output[e]]);
  assert.deepEqual(edges, [[~1, 4, '', 0], [0, ~1, 'float [2]', 0], [1, ~1, 'float []', 0],
                           [0, ~1, '', -1]]);
});

test('blocks have values, attributes and states', () => {
  const { items } = builder().build(0, { fold: false });
  assert.deepEqual(items[2]!.lines, ['7']);
  assert.ok(items[2]!.flags & Flag.kConst);
  assert.equal(items[3]!.change, 1);
  assert.ok(items[3]!.flags & Flag.kUnknownShape);
  const inner = builder().build(1, { fold: false });
  assert.deepEqual(inner.items[0]!.lines, ['bits=4']);
  assert.deepEqual(inner.items[0]!.inputs.map((pin) => pin.name), ['x', 'y']);
});

test('a scene fits into the box of its scope, and edges begin at its pins', () => {
  const b = builder();
  const root = b.build(0, { fold: false });
  const inner = b.build(1, { fold: false });
  const at = root.items.findIndex((item) => item.id === ~1);
  const [w, h] = [root.w[at]!, root.h[at]!];
  assert.ok(inner.scale <= 1);
  assert.ok(inner.left >= 0 && inner.left + inner.scale * inner.width <= w);
  assert.ok(inner.top >= 0 && inner.top + inner.scale * inner.height <= h);
  // The scene is in the middle of the box.
  assert.ok(Math.abs(inner.left + inner.scale * inner.width / 2 - w / 2) < 1e-6);
  const borders: number[] = [];
  inner.from.forEach((from, e) => {
    if (from >= 0) return;
    const p = 2 * inner.start[e]!;
    // The edge starts on the left side, at the height of a pin.
    assert.ok(Math.abs(inner.left + inner.scale * inner.points[p]!) < 1e-3);
    borders.push(inner.top + inner.scale * inner.points[p + 1]!);
  });
  assert.deepEqual(borders.map((y) => Math.round(10 * y) / 10),
                   root.items[at]!.inputs.map((pin) => pin.y));
});

test('constants fold into their consumers', () => {
  const rows: Row[] = [
    ['c', 'Const', [], { v: 0 }], ['d', 'Const', [], { v: 0 }],
    ['y', 'Mul', [['c', 0], ['d', 0]]], ['s/z', 'Neg', [['d', 0]]],
  ];
  const b = new SceneBuilder(model(rows, { strings: ['3'] }));
  const { items } = b.build(0, { fold: true });
  // A constant that is also read elsewhere is not folded.
  assert.deepEqual(items.map((item) => item.title), ['s', 'd', 'y']);
  assert.deepEqual(items[2]!.lines, ['x = 3']);
});

test('identities of constants fold with them', () => {
  const rows: Row[] = [
    ['w', 'Const', [], { v: 0 }], ['w/read', 'Identity', [['w', 0]]], ['read', 'Identity', [['w', 0]]],
    ['x', 'Placeholder', []], ['copy', 'Identity', [['x', 0]]], ['y', 'Mul', [['copy', 0], ['read', 0]]],
    ['c', 'Const', [], { v: 0 }], ['pass', 'Identity', [['c', 0]]], ['z', 'Mul', [['y', 0], ['pass', 0]]],
  ];
  const { items } = new SceneBuilder(model(rows, { strings: ['3'] })).build(0, { fold: true });
  // The weight is also read in a scope.
  assert.deepEqual(items.map((item) => item.title), ['w', 'w', 'read', 'x', 'copy', 'y', 'z']);
  assert.deepEqual(items[6]!.lines, ['y = 3']);
});

test('long lists of pins end in one for the rest', () => {
  const inputs = Array.from({ length: 40 }, () => ['x', 0] as [string, number]);
  const json = graph([['x', 'Neg', []], ['y', 'Add', inputs]]);
  json.ops[1]!.k = 0;
  const scene = new SceneBuilder(new Model(json)).build(0, { fold: false });
  const pins = scene.items[1]!.inputs;
  assert.equal(pins.length, kMaxPins);
  assert.equal(pins[kMaxPins - 1]!.name, '… 29 more');
  assert.equal(scene.from.length, 40);
});

test('a tensor that a scope reads often is one edge', () => {
  const scene = new SceneBuilder(model([
    ['x', 'Neg', []], ['s/a', 'Mul', [['x', 0], ['x', 0]]], ['s/b', 'Neg', [['x', 0]]],
    ['y', 'Mul', [['s/a', 0], ['s/a', 0]]],
  ])).build(0, { fold: false });
  // One edge into the scope, and one edge to each pin of its consumer.
  assert.equal(scene.from.length, 3);
});

test('a block that reads itself is shown', () => {
  const scene = new SceneBuilder(model([['x', 'Neg', [['x', 0]]]])).build(0, { fold: false });
  assert.equal(scene.items.length, 1);
});

test('opening a scope of 1,000 moves nothing outside', () => {
  const rows = randomRows(3000, 3, 1000);
  const b = new SceneBuilder(model(rows));
  const world = new World();
  world.add(b.build(0, { fold: false }));
  const before = [~1, ~2, ~3].map((id) => world.boxOf(id));
  let scene = b.build(2, { fold: false });
  const millis = cpuMillis(() => { scene = b.build(2, { fold: false }); });
  world.add(scene);
  assert.deepEqual([~1, ~2, ~3].map((id) => world.boxOf(id)), before);
  // The blocks of the scope are in its box.
  const box = before[1]!;
  for (const item of scene.items) {
    const inner = world.boxOf(item.id)!;
    assert.ok(inner.x >= box.x && inner.x + inner.w <= box.x + box.w + 1e-6);
    assert.ok(inner.y >= box.y && inner.y + inner.h <= box.y + box.h + 1e-6);
    assert.equal(world.hit(inner.x + inner.w / 2, inner.y + inner.h / 2), item.id);
  }
  world.remove(2);
  assert.equal(world.hit(box.x + box.w / 2, box.y + box.h / 2), ~2);
  assert.ok(millis < 300, `${millis} ms`);
});
