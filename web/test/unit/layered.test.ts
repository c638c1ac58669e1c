import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countCrossings, layOut, spread } from '../../src/layout/layered.ts';
import type { LayoutInput, LayoutResult } from '../../src/layout/layered.ts';
import { cpuMillis, random } from './graphs.ts';

function input(count: number, edges: [number, number][], ports: number[] = []): LayoutInput {
  const sizes = random(count);
  return {
    width: Float64Array.from({ length: count }, () => 50 + Math.floor(100 * sizes())),
    height: Float64Array.from({ length: count }, () => 20 + Math.floor(60 * sizes())),
    port: Uint8Array.from({ length: count }, (_, i) => ports[i] ?? 0),
    from: Int32Array.from(edges, (e) => e[0]),
    to: Int32Array.from(edges, (e) => e[1]),
    fromY: Float64Array.from(edges, () => 10),
    toY: Float64Array.from(edges, () => 10),
  };
}

function expectNoOverlap(from: LayoutInput, to: LayoutResult): void {
  const order = [...to.x.keys()].sort((a, b) => to.x[a]! - to.x[b]!);
  for (let i = 0; i < order.length; ++i) {
    const a = order[i]!;
    assert.ok(to.x[a]! >= -1e-6 && to.x[a]! + from.width[a]! <= to.width + 1e-6, `${a} is inside`);
    assert.ok(to.y[a]! >= -1e-6 && to.y[a]! + from.height[a]! <= to.height + 1e-6, `${a} inside`);
    for (let k = i + 1; k < order.length; ++k) {
      const b = order[k]!;
      if (to.x[b]! >= to.x[a]! + from.width[a]!) break;
      assert.ok(to.y[a]! + from.height[a]! <= to.y[b]! + 1e-6 ||
                to.y[b]! + from.height[b]! <= to.y[a]! + 1e-6, `${a} and ${b} overlap`);
    }
  }
}

test('edges go from left to right, and items do not overlap', () => {
  for (let seed = 1; seed <= 40; ++seed) {
    const next = random(seed);
    const count = 1 + Math.floor(80 * next());
    const edges: [number, number][] = [];
    for (let e = 0; e < 2 * count; ++e) {
      const a = Math.floor(count * next());
      const b = Math.floor(count * next());
      if (a < b) edges.push([a, b]);
    }
    const from = input(count, edges);
    const to = layOut(from);
    expectNoOverlap(from, to);
    edges.forEach(([a, b], e) => {
      assert.ok(to.x[a]! + from.width[a]! < to.x[b]!, `seed ${seed}: ${a} -> ${b}`);
      const points = [...to.points.slice(2 * to.start[e]!, 2 * to.start[e + 1]!)];
      assert.equal(points[0], Math.fround(to.x[a]! + from.width[a]!));
      assert.equal(points[1], Math.fround(to.y[a]! + 10));
      assert.equal(points[points.length - 2], Math.fround(to.x[b]!));
      assert.equal(points[points.length - 1], Math.fround(to.y[b]! + 10));
      for (let p = 2; p < points.length; p += 2) assert.ok(points[p]! >= points[p - 2]!);
    });
  }
});

test('cycles are laid out', () => {
  const from = input(4, [[0, 1], [1, 2], [2, 0], [2, 3], [3, 1]]);
  const to = layOut(from);
  expectNoOverlap(from, to);
  // All edges go right, except the edges that close the cycles.
  assert.ok(to.x[0]! < to.x[1]! && to.x[1]! < to.x[2]! && to.x[2]! < to.x[3]!);
  // Backward edges pass from point to point, around the items in between.
  for (const e of [2, 4]) {
    const xs = [...to.points.slice(2 * to.start[e]!, 2 * to.start[e + 1]!)]
      .filter((_, i) => i % 2 === 0);
    assert.equal(xs.length, 4);
    for (let i = 1; i < xs.length; ++i) assert.ok(xs[i]! < xs[i - 1]!, `${xs}`);
  }
});

test('the same input has the same layout', () => {
  const edges: [number, number][] = [];
  const next = random(7);
  for (let i = 1; i < 300; ++i) edges.push([Math.floor(i * next()), i]);
  const a = layOut(input(300, edges));
  const b = layOut(input(300, edges));
  assert.deepEqual(a, b);
});

test('ports are at the ends', () => {
  // Item 4 is an input port, item 5 an output port.
  const from = input(6, [[4, 1], [0, 1], [1, 2], [0, 5], [2, 3]], [0, 0, 0, 0, 1, 2]);
  const to = layOut(from);
  for (let v = 0; v < 6; ++v) {
    if (v !== 4) assert.ok(to.x[4]! < to.x[v]!);
    if (v !== 5) assert.ok(to.x[5]! > to.x[v]!);
  }
});

test('constants are next to their consumers', () => {
  // A chain, and an item without inputs that the end of the chain reads.
  const to = layOut(input(6, [[0, 1], [1, 2], [2, 3], [3, 4], [5, 4]]));
  assert.ok(to.x[5]! > to.x[2]!);
});

test('items without edges are below', () => {
  const from = input(40, [[0, 1]]);
  const to = layOut(from);
  expectNoOverlap(from, to);
  const bottom = Math.max(to.y[0]! + from.height[0]!, to.y[1]! + from.height[1]!);
  for (let v = 2; v < 40; ++v) assert.ok(to.y[v]! >= bottom);
  assert.ok(to.width < 3 * to.height && to.height < 3 * to.width, 'nearly square');
});

test('a graph of one layer is not a line', () => {
  const edges: [number, number][] = [];
  for (let i = 1; i <= 1000; ++i) edges.push([0, i]);
  const from = input(1001, edges);
  const to = layOut(from);
  expectNoOverlap(from, to);
  assert.ok(to.height < 12 * to.width, `${to.width} x ${to.height}`);
});

test('an empty graph and a single item are laid out', () => {
  assert.equal(layOut(input(0, [])).width, 0);
  assert.deepEqual([...layOut(input(1, [])).y], [0]);
});

test('sweeps remove the crossings of trees and grids', () => {
  // Two chains whose second layer is in the wrong order.
  const from = input(6, [[0, 3], [1, 2], [2, 5], [3, 4]]);
  const to = layOut(from);
  assert.equal(to.y[0]! < to.y[1]!, to.y[3]! < to.y[2]!);
  assert.equal(to.y[3]! < to.y[2]!, to.y[4]! < to.y[5]!);
});

test('items are in the order of the pins that they connect to', () => {
  // Item 0 connects to the lower pin of item 2, item 1 to the upper pin.
  const from = input(3, [[0, 2], [1, 2]]);
  from.height.fill(60);
  from.toY.set([50, 10]);
  const to = layOut(from);
  assert.ok(to.y[1]! < to.y[0]!);
});

test('crossings equal brute force', () => {
  const next = random(3);
  for (let round = 0; round < 50; ++round) {
    const ends = Int32Array.from({ length: 20 }, () => Math.floor(10 * next()));
    let expected = 0;
    for (let i = 0; i < 20; ++i) {
      for (let k = 0; k < i; ++k) if (ends[k]! > ends[i]!) ++expected;
    }
    assert.equal(countCrossings(ends, 10), expected);
  }
});

test('spread keeps distances, and its result is optimal', () => {
  const next = random(5);
  const cost = (a: Float64Array, b: Float64Array): number =>
    a.reduce((sum, v, i) => sum + (v - b[i]!) ** 2, 0);
  for (let round = 0; round < 50; ++round) {
    const wanted = Float64Array.from({ length: 12 }, () => 100 * next());
    const gap = Float64Array.from({ length: 12 }, () => 10 * next());
    const result = spread(wanted, gap);
    for (let i = 1; i < 12; ++i) assert.ok(result[i]! - result[i - 1]! >= gap[i]! - 1e-9);
    // Moving any run of items slightly, within the allowed distances, costs more.
    for (let first = 0; first < 12; ++first) {
      for (let last = first; last < 12; ++last) {
        for (const step of [-0.01, 0.01]) {
          const moved = result.slice();
          for (let i = first; i <= last; ++i) moved[i]! += step;
          const isAllowed = moved.every((v, i) => i === 0 || v - moved[i - 1]! >= gap[i]! - 1e-12);
          if (isAllowed) assert.ok(cost(moved, wanted) >= cost(result, wanted) - 1e-9);
        }
      }
    }
  }
});

test('10,000 items take less than 1 s', () => {
  const next = random(11);
  const edges: [number, number][] = [];
  for (let i = 1; i < 10000; ++i) {
    edges.push([i - 1 - Math.floor(Math.min(i, 20) * next()), i]);
    if (next() < 0.3) edges.push([Math.floor(i * next()), i]);
  }
  const from = input(10000, edges);
  let to: LayoutResult | undefined;
  const millis = cpuMillis(() => { to = layOut(from); });
  expectNoOverlap(from, to!);
  assert.ok(millis < 1000, `${millis} ms`);
});
