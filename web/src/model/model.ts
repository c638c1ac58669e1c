// Model: a graph with its name scopes and edges, in arrays. Immutable. Lives in the worker.
import type { GraphJson, NodeExtra, OpJson } from '../data/format.ts';
import { findLoops, type Loop, type Loops } from './loops.ts';
import { Run } from './run.ts';

export interface Scope {
  id: number;
  // The last part of the path, such as "layer1"; "" for the root.
  name: string;
  // "tower/layer1"; "ƒ name/..." for functions; "tower/⟳ while" for loops of version 1 control flow.
  path: string;
  parent: number;
  depth: number;
  scopes: number[];
  nodes: number[];
  // The nodes of the scope and its nested scopes are order[begin, end).
  begin: number;
  end: number;
  isFunction: boolean;
}

// One list of numbers for each node, stored consecutively.
export interface Lists {
  start: Int32Array;
  // In lists of inputs: the producer and its output. In lists of consumers: the consumer and its
  // input.
  node: Int32Array;
  pin: Int32Array;
}

const kNothing: NodeExtra = {};

export class Model {
  readonly json: GraphJson;
  readonly size: number;
  readonly scopes: Scope[] = [];
  readonly scopeOf: Int32Array;
  // All nodes. The nodes of a scope and its nested scopes are consecutive.
  readonly order: Int32Array;
  // The position of each node in `order`.
  readonly positionOf: Int32Array;
  // Data and control inputs. A control input has pin -1.
  readonly inputs: Lists;
  readonly consumers: Lists;
  // The length of the longest path to each node. For nodes in cycles, part of such a path.
  readonly depth: Int32Array;
  // The results of a run, if the graph has been run.
  readonly run: Run | null;
  private lowerNames: string[] | undefined;
  private readonly byName = new Map<string, number>();
  private readonly byPath = new Map<string, number>();

  constructor(json: GraphJson) {
    this.json = json;
    this.size = json.nodes.length;
    this.scopeOf = new Int32Array(this.size);
    this.order = new Int32Array(this.size);
    this.positionOf = new Int32Array(this.size);
    this.inputs = this.makeInputs();
    this.consumers = this.makeConsumers();
    this.makeScopes(findLoops(this));
    for (let i = 0; i < this.size; ++i) this.positionOf[this.order[i]!] = i;
    this.depth = this.makeDepth();
    this.run = json.run === undefined ? null : new Run(this, json.run);
  }

  name(node: number): string {
    return this.json.nodes[node]![0];
  }
  lowerName(node: number): string {
    this.lowerNames ??= this.json.nodes.map((n) => n[0].toLowerCase());
    return this.lowerNames[node]!;
  }
  // Caches how many arguments of an op are single tensors, because a function may have any number
  // of arguments.
  private readonly singles = new WeakMap<OpJson['o'], number>();
  private numSingles(args: OpJson['o']): number {
    let count = this.singles.get(args);
    if (count === undefined) {
      count = args.filter((arg) => arg[3] === 0).length;
      this.singles.set(args, count);
    }
    return count;
  }

  op(node: number): OpJson {
    return this.json.ops[this.json.nodes[node]![1]]!;
  }
  extra(node: number): NodeExtra {
    return this.json.nodes[node]![3] ?? kNothing;
  }
  text(id: number | undefined): string {
    return id === undefined ? '' : (this.json.strings[id] ?? '');
  }
  // Returns the name. Nodes of functions include their scope: "ƒ f/layer1/mul".
  fullName(node: number): string {
    for (let s = this.scopeOf[node]!; s > 0; s = this.scopes[s]!.parent) {
      if (this.scopes[s]!.isFunction) return `${this.scopes[s]!.path}/${this.name(node)}`;
    }
    return this.name(node);
  }
  // Returns the number of the function that a node belongs to, or -1.
  functionOf(node: number): number {
    const { functions } = this.json;
    let low = 0;
    let high = functions.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (functions[middle]![1] <= node) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
  // Returns the node with a full name, or -1.
  find(name: string): number {
    return this.byName.get(name) ?? -1;
  }
  findScope(path: string): number {
    return this.byPath.get(path) ?? -1;
  }

  // Returns the type and shape, such as "float [2,?]"; "" if unknown.
  typeOf(node: number, output: number): string {
    const types = this.extra(node).t;
    if (output < 0 || types === undefined || 2 * output + 1 >= types.length) return '';
    return `${this.text(types[2 * output])} ${this.text(types[2 * output + 1])}`;
  }

  // Returns the scopes around a node or scope, starting with the root.
  ancestors(scope: number): number[] {
    const path: number[] = [];
    for (let s = scope; s >= 0; s = this.scopes[s]!.parent) path.push(s);
    return path.reverse();
  }

  // Returns the names of the input or output pins, from the definition of the op.
  pinNames(node: number, outputs: boolean, count: number): string[] {
    const op = this.op(node);
    const args = outputs ? op.o : op.i;
    const extra = this.extra(node);
    const sizes = outputs ? extra.mo : extra.ni;
    const names: string[] = [];
    if (op.k !== 0 && (sizes !== undefined || this.numSingles(args) === args.length)) {
      for (let a = 0; a < args.length && names.length < count; ++a) {
        const arg = args[a]!;
        if (arg[3] === 0) {
          names.push(arg[0]);
          continue;
        }
        for (let i = 0; i < (sizes?.[a] ?? 0) && names.length < count; ++i) {
          names.push(`${arg[0]}[${i}]`);
        }
      }
    }
    while (names.length < count) names.push(String(names.length));
    return names;
  }

  numInputs(node: number): number {
    return this.json.nodes[node]![2].length / 2;
  }
  // The number of outputs that are known or used.
  numOutputs(node: number): number {
    const extra = this.extra(node);
    if (extra.no !== undefined) return extra.no;
    if (extra.t !== undefined) return extra.t.length / 2;
    let count = this.numSingles(this.op(node).o);
    const { start, node: consumer, pin } = this.consumers;
    for (let e = start[node]!; e < start[node + 1]!; ++e) {
      if (pin[e]! < 0) continue;
      count = Math.max(count, this.json.nodes[consumer[e]!]![2][2 * pin[e]! + 1]! + 1);
    }
    return count;
  }

  // Returns the likely ratio of width to height of the scope's picture.
  aspect(scope: number): number {
    const { begin, end } = this.scopes[scope]!;
    let low = Infinity;
    let high = 0;
    for (let i = begin; i < end; ++i) {
      low = Math.min(low, this.depth[this.order[i]!]!);
      high = Math.max(high, this.depth[this.order[i]!]!);
    }
    const columns = Math.max(high - low + 1, 1);
    const rows = Math.max((end - begin) / columns, 1);
    return Math.min(Math.max((columns * 200) / (rows * 90), 0.4), 3);
  }

  private makeDepth(): Int32Array {
    const depth = new Int32Array(this.size);
    const waits = new Int32Array(this.size);
    const ready: number[] = [];
    for (let v = 0; v < this.size; ++v) {
      for (let e = this.inputs.start[v]!; e < this.inputs.start[v + 1]!; ++e) {
        if (this.inputs.node[e]! >= 0) ++waits[v]!;
      }
      if (waits[v] === 0) ready.push(v);
    }
    for (let i = 0; i < ready.length; ++i) {
      const v = ready[i]!;
      for (let e = this.consumers.start[v]!; e < this.consumers.start[v + 1]!; ++e) {
        const w = this.consumers.node[e]!;
        depth[w] = Math.max(depth[w]!, depth[v]! + 1);
        if (--waits[w]! === 0) ready.push(w);
      }
    }
    return depth;
  }

  private makeScopes({ loops, of: loopOf }: Loops): void {
    const add = (name: string, path: string, parent: number, isFunction: boolean): number => {
      const id = this.scopes.length;
      const depth = parent < 0 ? 0 : this.scopes[parent]!.depth + 1;
      this.scopes.push(
        { id, name, path, parent, depth, scopes: [], nodes: [], begin: 0, end: 0, isFunction });
      if (parent >= 0) this.scopes[parent]!.scopes.push(id);
      this.byPath.set(path, id);
      return id;
    };
    add('', '', -1, false);
    // Deeper names stay in a scope of this depth.
    const kMaxDepth = 64;
    const place = (node: number, root: number, prefix: string): void => {
      const name = this.name(node);
      let scope = root;
      let path = prefix;
      let begin = 0;
      let depth = 0;
      const open = (part: string): void => {
        path += part;
        scope = this.byPath.get(path) ?? add(part, path, scope, false);
        path += '/';
        ++depth;
      };
      // Opens the scopes of the name up to `end`.
      const openUntil = (end: number): void => {
        while (depth < kMaxDepth) {
          const slash = name.indexOf('/', begin);
          if (slash < 0 || slash >= end) return;
          open(name.slice(begin, slash));
          begin = slash + 1;
        }
      };
      const around: Loop[] = [];
      for (let l = loopOf[node]!; l > 0; l = loops[l]!.parent) around.push(loops[l]!);
      for (const loop of around.reverse()) {
        // The box of the loop replaces the innermost scope that contains all its nodes.
        const last = loop.prefix.lastIndexOf('/', loop.prefix.length - 2) + 1;
        openUntil(last);
        if (depth === kMaxDepth) break;
        const isNew = loop.prefix.length > begin && begin === last;
        open(`⟳ ${isNew ? loop.prefix.slice(last, -1) : loop.frame}`);
        if (isNew) begin = loop.prefix.length;
      }
      openUntil(name.length);
      this.scopeOf[node] = scope;
      this.scopes[scope]!.nodes.push(node);
    };
    const numMain = this.json.functions[0]?.[1] ?? this.size;
    for (let node = 0; node < numMain; ++node) {
      if (!this.byName.has(this.name(node))) this.byName.set(this.name(node), node);
      place(node, 0, '');
    }
    for (const [name, first, count] of this.json.functions) {
      const path = `ƒ ${name}`;
      const root = this.byPath.get(path) ?? add(path, path, 0, true);
      for (let node = first; node < first + count; ++node) {
        const full = `${path}/${this.name(node)}`;
        if (!this.byName.has(full)) this.byName.set(full, node);
        place(node, root, path + '/');
      }
    }
    // Depth-first. Each scope on the stack is entered once and left once.
    let next = 0;
    const stack: number[] = [0];
    while (stack.length > 0) {
      const top = stack.pop()!;
      if (top < 0) {
        this.scopes[~top]!.end = next;
        continue;
      }
      const scope = this.scopes[top]!;
      scope.begin = next;
      for (const node of scope.nodes) this.order[next++] = node;
      stack.push(~top);
      for (let i = scope.scopes.length - 1; i >= 0; --i) stack.push(scope.scopes[i]!);
    }
  }

  private makeInputs(): Lists {
    const start = new Int32Array(this.size + 1);
    for (let v = 0; v < this.size; ++v) {
      const count = this.numInputs(v) + (this.extra(v).c?.length ?? 0);
      start[v + 1] = start[v]! + count;
    }
    const node = new Int32Array(start[this.size]!);
    const pin = new Int32Array(start[this.size]!);
    for (let v = 0; v < this.size; ++v) {
      let e = start[v]!;
      const inputs = this.json.nodes[v]![2];
      for (let i = 0; i < inputs.length; i += 2, ++e) {
        node[e] = inputs[i]!;
        pin[e] = inputs[i + 1]!;
      }
      for (const source of this.extra(v).c ?? []) {
        node[e] = source;
        pin[e++] = -1;
      }
    }
    return { start, node, pin };
  }

  private makeConsumers(): Lists {
    const { start, node, pin } = this.inputs;
    const first = new Int32Array(this.size + 1);
    for (const source of node) {
      if (source >= 0) ++first[source + 1]!;
    }
    for (let v = 0; v < this.size; ++v) first[v + 1]! += first[v]!;
    const next = first.slice();
    const consumer = new Int32Array(first[this.size]!);
    const input = new Int32Array(first[this.size]!);
    for (let v = 0; v < this.size; ++v) {
      for (let e = start[v]!; e < start[v + 1]!; ++e) {
        const source = node[e]!;
        if (source < 0) continue;
        const to = next[source]!++;
        consumer[to] = v;
        input[to] = pin[e]! < 0 ? -1 : e - start[v]!;
      }
    }
    return { start: first, node: consumer, pin: input };
  }
}
