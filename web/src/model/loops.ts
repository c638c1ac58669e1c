// Finds the loops of version 1 control flow: which frame of Enter and Exit nodes a node belongs to.
import type { Model } from './model.ts';

export interface Loop {
  // The enclosing loop; 0, the first of all loops, is not a loop.
  parent: number;
  depth: number;
  // The name of the frame, in quotes.
  frame: string;
  // The innermost scope of names that contains all nodes of the loop, "layer1/while/", or "".
  prefix: string;
}

export interface Loops {
  loops: Loop[];
  // The innermost loop of each node. Enter and Exit nodes belong to their loop.
  of: Int32Array;
}

// Deeper loops are part of the loop of this depth.
const kMaxDepth = 16;

function frameOf(model: Model, node: number): string {
  const attrs = model.extra(node).a ?? [];
  for (let i = 0; i < attrs.length; i += 2) {
    if (model.text(attrs[i]) === 'frame_name') return model.text(attrs[i + 1]);
  }
  return '""';
}

// Returns the part of both names up to a slash that is equal.
function commonScope(prefix: string, name: string): string {
  let end = 0;
  for (let i = 0; i < prefix.length && prefix[i] === name[i]; ++i) {
    if (prefix[i] === '/') end = i + 1;
  }
  return prefix.slice(0, end);
}

export function findLoops(model: Model): Loops {
  const loops: Loop[] = [{ parent: -1, depth: 0, frame: '', prefix: '' }];
  const of = new Int32Array(model.size).fill(-1);
  const isEnter = model.json.ops.map((op) => op.n === 'Enter' || op.n === 'RefEnter');
  const isExit = model.json.ops.map((op) => op.n === 'Exit' || op.n === 'RefExit');
  const opOf = (node: number): number => model.json.nodes[node]![1];
  if (!isEnter.includes(true)) return { loops, of: of.fill(0) };

  const known = new Map<string, number>();
  const enter = (node: number, parent: number): number => {
    const { depth } = loops[parent]!;
    if (depth === kMaxDepth) return parent;
    const frame = frameOf(model, node);
    const key = `${model.functionOf(node)} ${parent} ${frame}`;
    let loop = known.get(key);
    if (loop === undefined) {
      loop = loops.length;
      loops.push({ parent, depth: depth + 1, frame, prefix: model.name(node) });
      known.set(key, loop);
    }
    return loop;
  };
  // All inputs of a node belong to the same loop. The first that is reached decides.
  const ready: number[] = [];
  const reach = (node: number, loop: number): void => {
    if (of[node] !== -1) return;
    of[node] = isEnter[opOf(node)] ? enter(node, loop) : loop;
    ready.push(node);
  };
  const { inputs, consumers } = model;
  for (let v = 0; v < model.size; ++v) {
    let hasInput = false;
    for (let e = inputs.start[v]!; e < inputs.start[v + 1]!; ++e) hasInput ||= inputs.node[e]! >= 0;
    if (!hasInput) reach(v, 0);
  }
  while (ready.length > 0) {
    const v = ready.pop()!;
    const loop = isExit[opOf(v)] ? Math.max(loops[of[v]!]!.parent, 0) : of[v]!;
    for (let e = consumers.start[v]!; e < consumers.start[v + 1]!; ++e) reach(consumers.node[e]!, loop);
  }
  for (let v = 0; v < model.size; ++v) {
    // A cycle that nothing enters.
    if (of[v] === -1) of[v] = 0;
    for (let l = of[v]!; l > 0; l = loops[l]!.parent) {
      loops[l]!.prefix = commonScope(loops[l]!.prefix, model.name(v));
    }
  }
  return { loops, of };
}
