// The dependencies of a node, its dependents, and the paths between two nodes.
import type { Lists, Model } from './model.ts';

// Returns 1 for each node that can be reached from `node` along the lists, including `node`.
export function reach(model: Model, node: number, lists: Lists): Uint8Array {
  const seen = new Uint8Array(model.size);
  const stack = [node];
  seen[node] = 1;
  while (stack.length > 0) {
    const v = stack.pop()!;
    for (let e = lists.start[v]!; e < lists.start[v + 1]!; ++e) {
      const w = lists.node[e]!;
      if (w < 0 || seen[w]) continue;
      seen[w] = 1;
      stack.push(w);
    }
  }
  return seen;
}

export const fanIn = (model: Model, node: number): Uint8Array =>
  reach(model, node, model.inputs);
export const fanOut = (model: Model, node: number): Uint8Array =>
  reach(model, node, model.consumers);

// Returns 1 for each node on a path between the two nodes, in either direction. All 0 if there is
// no path.
export function between(model: Model, a: number, b: number): Uint8Array {
  for (const [from, to] of [[a, b], [b, a]] as const) {
    const after = fanOut(model, from);
    if (!after[to]) continue;
    const before = fanIn(model, to);
    for (let v = 0; v < model.size; ++v) after[v]! &= before[v]!;
    return after;
  }
  return new Uint8Array(model.size);
}

// Returns 1 for each scope that contains a marked node.
export function markScopes(model: Model, nodes: Uint8Array): Uint8Array {
  const marked = new Uint8Array(model.scopes.length);
  for (let v = 0; v < model.size; ++v) {
    if (!nodes[v]) continue;
    for (let s = model.scopeOf[v]!; s >= 0 && !marked[s]; s = model.scopes[s]!.parent) {
      marked[s] = 1;
    }
  }
  return marked;
}
