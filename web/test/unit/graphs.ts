// Graphs for tests.
import type { GraphJson, NodeExtra, NodeJson } from '../../src/data/format.ts';
import { Model } from '../../src/model/model.ts';

// Returns a generator of numbers in [0, 1), identical on every machine (mulberry32).
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// [name, op, inputs as [name or index, output], extra]
export type Row = [string, string, [string, number][], NodeExtra?];

export function graph(rows: Row[], json: Partial<GraphJson> = {}): GraphJson {
  const ops = [...new Set(rows.map((row) => row[1]))];
  const index = new Map(rows.map((row, i) => [row[0], i]));
  const nodes: NodeJson[] = rows.map(([name, op, inputs, extra]) => {
    const sources = inputs.flatMap(([node, output]) => [index.get(node) ?? -1, output]);
    return extra === undefined ? [name, ops.indexOf(op), sources]
      : [name, ops.indexOf(op), sources, extra];
  });
  return {
    format: 1, generator: 'test', title: 'test', diff: false, notes: [],
    ops: ops.map((n) => ({
      n, k: 1, s: `The op ${n}.`, d: '', f: 0,
      i: n === 'Mul' ? [['x', 'T', '', 0], ['y', 'T', '', 0]] : [['x', 'T', '', 0]],
      o: [['z', 'T', 'The result.', 0]],
      a: [['T', 'type', null, ''], ['bits', 'int', '8', 'How many.']],
    })),
    functions: [], nodes, strings: [], ...json,
  };
}

export function model(rows: Row[], json: Partial<GraphJson> = {}): Model {
  return new Model(graph(rows, json));
}

// Returns a graph of `n` nodes. Each node has up to two of the 10 previous nodes as inputs.
export function randomRows(n: number, seed: number, scopes = 0): Row[] {
  const next = random(seed);
  const name = (i: number): string =>
    scopes === 0 ? `n${i}` : `s${Math.floor(i / scopes)}/n${i}`;
  const rows: Row[] = [];
  for (let i = 0; i < n; ++i) {
    const inputs: [string, number][] = [];
    for (let k = 0; k < 2 && i > 0; ++k) {
      if (next() < 0.8) inputs.push([name(Math.max(0, i - 1 - Math.floor(next() * 10))), 0]);
    }
    rows.push([name(i), inputs.length === 2 ? 'Mul' : 'Neg', inputs]);
  }
  return rows;
}

// Returns the CPU time of a function in milliseconds. It does not depend on other load of the
// machine.
export function cpuMillis(fn: () => void): number {
  const begin = process.cpuUsage();
  fn();
  const { user, system } = process.cpuUsage(begin);
  return (user + system) / 1000;
}
