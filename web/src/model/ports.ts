// The tensors that cross the border of a scope.
import type { Model } from './model.ts';

export interface Tensor {
  node: number;
  output: number;
}

export interface Ports {
  // Tensors from outside that are used within, and tensors from within that are used outside, both
  // in the order of use.
  inputs: Tensor[];
  outputs: Tensor[];
}

// Returns a number that identifies a tensor of a graph.
export function tensorKey(node: number, output: number): number {
  return node * 2 ** 21 + output;
}

export function portsOf(model: Model, scope: number): Ports {
  const { begin, end } = model.scopes[scope]!;
  const isInside = (node: number): boolean => {
    const position = model.positionOf[node]!;
    return position >= begin && position < end;
  };
  const inputs = new Map<number, Tensor>();
  const outputs = new Map<number, Tensor>();
  for (let i = begin; i < end; ++i) {
    const v = model.order[i]!;
    const into = model.inputs;
    for (let e = into.start[v]!; e < into.start[v + 1]!; ++e) {
      const node = into.node[e]!;
      const output = into.pin[e]!;
      if (node < 0 || output < 0 || isInside(node)) continue;
      const key = tensorKey(node, output);
      if (!inputs.has(key)) inputs.set(key, { node, output });
    }
    const out = model.consumers;
    for (let e = out.start[v]!; e < out.start[v + 1]!; ++e) {
      const consumer = out.node[e]!;
      if (out.pin[e]! < 0 || isInside(consumer)) continue;
      const output = into.pin[into.start[consumer]! + out.pin[e]!]!;
      const key = tensorKey(v, output);
      if (!outputs.has(key)) outputs.set(key, { node: v, output });
    }
  }
  return { inputs: [...inputs.values()], outputs: [...outputs.values()] };
}
