import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OutputJson } from '../../src/data/format.ts';
import { Model } from '../../src/model/model.ts';
import { unionLength } from '../../src/model/run.ts';
import { TimelineView } from '../../src/view/timeline.ts';
import { Service } from '../../src/worker/service.ts';
import { graph, random, randomRows } from './graphs.ts';
import type { Row } from './graphs.ts';

function output(n: number, more: Partial<OutputJson> = {}): OutputJson {
  return {
    n, o: 0, t: 'float', s: [2], count: 2, nan: 0, pinf: 0, ninf: 0, min: 0, max: 1, mean: 0.5,
    sd: 0.5, hist: [1, 1], first: '0 1', ...more,
  };
}

// Events are [node, begin, end, thread, bytes of outputs].
function runOf(rows: Row[], events: number[][], outputs: OutputJson[] = []): Model {
  return new Model(graph(rows, {
    run: {
      total: Math.max(0, ...events.map((e) => e[2]!)),
      threads: ['caller', 'worker'],
      events: events.flatMap(([node, begin, end, thread, bytes]) =>
        [node!, begin!, end!, thread!, 0, bytes ?? 0]),
      labels: events.filter((e) => e[0] === -1).map(() => 'inner'),
      outputs,
    },
  }));
}

test('the critical path equals brute force on 1,000 random graphs', () => {
  for (let seed = 0; seed < 1000; ++seed) {
    const next = random(seed);
    const rows = randomRows(2 + Math.floor(12 * next()), seed);
    const events = rows.flatMap((_, i) =>
      next() < 0.9 ? [[i, 0, 1 + Math.floor(100 * next()), 0]] : []);
    const m = runOf(rows, events);
    const time = (v: number): number => Math.max(m.run!.time[v]!, 0);
    // Computes the longest path by walking all paths.
    let best = 0;
    const walk = (v: number, sum: number): void => {
      best = Math.max(best, sum + time(v));
      for (let e = m.consumers.start[v]!; e < m.consumers.start[v + 1]!; ++e) {
        walk(m.consumers.node[e]!, sum + time(v));
      }
    };
    for (let v = 0; v < m.size; ++v) walk(v, 0);
    const path = m.run!.criticalPath();
    assert.equal(path.reduce((sum, v) => sum + time(v), 0), best, `seed ${seed}`);
    // Each node precedes the next.
    for (let i = 1; i < path.length; ++i) assert.ok(m.depth[path[i - 1]!]! < m.depth[path[i]!]!);
  }
});

test('the time of a scope is the union of its nodes', () => {
  const next = random(1);
  for (let round = 0; round < 100; ++round) {
    const intervals = Array.from({ length: 20 }, (): [number, number] => {
      const begin = Math.floor(100 * next());
      return [begin, begin + Math.floor(20 * next())];
    });
    let expected = 0;
    for (let t = 0; t < 130; ++t) if (intervals.some(([a, b]) => a <= t && t < b)) ++expected;
    assert.equal(unionLength(intervals), expected);
  }
  const m = runOf([['s/a', 'Neg', []], ['s/b', 'Neg', []], ['c', 'Neg', []]],
                  [[0, 0, 10, 0], [1, 5, 12, 1], [2, 20, 21, 0]]);
  assert.equal(m.run!.scopeTime(m.findScope('s')), 12);
  assert.equal(m.run!.scopeTime(0), 13);
});

test('nodes that did not run have no time', () => {
  const m = runOf([['a', 'Neg', []], ['s/b', 'Neg', []]], [[0, 0, 4, 0], [0, 6, 7, 0]]);
  assert.deepEqual([...m.run!.time], [5, -1]);
  assert.equal(m.run!.scopeTime(1), -1);
});

test('the first NaN is at the node that ended first', () => {
  const rows: Row[] = [['x', 'Neg', []], ['a', 'Neg', [['x', 0]]], ['b', 'Neg', [['a', 0]]]];
  const events = [[2, 7, 9, 0], [1, 1, 5, 0]];
  const nan = { nan: 1 };
  assert.equal(runOf(rows, events).run!.firstNan(), -1);
  assert.equal(runOf(rows, events, [output(2, nan), output(1, nan)]).run!.firstNan(), 1);
  assert.equal(runOf(rows, events, [output(2, nan), output(1)]).run!.firstNan(), 2);
  // A fed tensor precedes all nodes.
  assert.equal(runOf(rows, events, [output(1, nan), output(0, nan)]).run!.firstNan(), 0);
});

test('memory counts outputs from their node to their last consumer', () => {
  const m = runOf(
    [['a', 'Neg', []], ['b', 'Neg', [['a', 0]]], ['c', 'Mul', [['a', 0], ['b', 0]]]],
    [[0, 0, 1, 0, 100], [1, 2, 4, 0, 10], [2, 5, 8, 0, 1]]);
  assert.deepEqual(m.run!.memory(), [1, 100, 4, 110, 8, 1]);
});

test('the service describes runs', async () => {
  const service = new Service();
  const summary = service.load(runOf(
    [['s/a', 'Neg', []], ['b', 'Neg', []]], [[0, 0, 30, 1], [-1, 30, 60, 0]],
    [output(0, { nan: 2 })]).json);
  assert.equal(summary.runTime, 60);
  const a = await service.describe(0);
  assert.deepEqual([a.time, a.share, a.thread, a.results.length], [30, 0.5, 'worker', 1]);
  assert.equal((await service.describe(~1)).time, 30);
  assert.equal((await service.describe(1)).time, -1);
  const timeline = (await service.timeline())!;
  assert.deepEqual(timeline.events.map((e) => e.name), ['s/a', 'inner']);
  assert.deepEqual((await service.criticalPath()).path, [0]);
  const { items } = await service.scene(0, { fold: false });
  assert.deepEqual(items.map((item) => [item.title, item.time, item.heat]),
                   [['s', 30, 1], ['b', -1, 0]]);
});

test('events of unknown nodes have node -1', () => {
  const m = runOf([['a', 'Neg', []]], [[7, 0, 1, 0], [-1, 0, 1, 0]]);
  assert.deepEqual(m.run!.events.map((e) => e.node), [-1, -1]);
});

test('the timeline snaps to events, and rows are pinned', () => {
  const view = new TimelineView({
    total: 1000, threads: ['a', 'b', 'c', 'd'], memory: [],
    events: [{ node: 0, name: 'a', begin: 100, end: 200, thread: 0 },
             { node: 1, name: 'b', begin: 230, end: 400, thread: 2 }],
  });
  assert.deepEqual([95, 105, 190, 216, 214, 500, 405].map((time) => view.snap(time, 10)),
                   [100, 100, 200, 216, 214, 500, 400]);
  assert.equal(view.snap(216, 20), 230);
  assert.equal(view.pin(2), true);
  assert.equal(view.pin(1), true);
  assert.deepEqual(view.rows, [2, 1, 0, 3]);
  assert.deepEqual([0, 1, 2, 3].map((thread) => view.isPinned(thread)), [false, true, true, false]);
  assert.equal(view.pin(2), false);
  assert.deepEqual(view.rows, [1, 0, 2, 3]);
});

test('the timeline stays within the run', () => {
  const view = new TimelineView({
    total: 1000, threads: ['t'], memory: [],
    events: [{ node: 0, name: 'a', begin: 100, end: 200, thread: 0 }],
  });
  view.move(2, 0);
  assert.deepEqual([view.begin, view.end], [250, 750]);
  view.move(1, -10);
  assert.deepEqual([view.begin, view.end], [0, 500]);
  view.move(1, 10);
  assert.deepEqual([view.begin, view.end], [500, 1000]);
  view.move(0.01, 0);
  assert.deepEqual([view.begin, view.end], [0, 1000]);
  assert.equal(view.find(0, 150, 0)?.node, 0);
  assert.equal(view.find(0, 210, 5), null);
  assert.equal(view.find(0, 210, 10)?.node, 0);
  assert.equal(view.find(1, 150, 10), null);
});
