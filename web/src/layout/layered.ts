// A layered layout: items in columns from producers to consumers, and edges as the points of
// curves. Deterministic. Takes time O((items + edges) log items).
//
//   1. Edges that close a cycle are reversed.
//   2. The layer of an item is the length of the longest path to it. Items without inputs move to
//      the layer before their first consumer.
//   3. An edge that spans several layers gets a point in each layer, unless there are too many.
//   4. Sweeps order each layer by the mean position of the neighbours' pins, to reduce crossings.
//   5. Sweeps move items towards their neighbours by least squares, and keep the order.
//
// Items without edges form a grid below the others.

// Work that can pause between its steps.
export type Steps<T> = Generator<void, T, void>;
export function runSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

export interface LayoutInput {
  width: Float64Array;
  height: Float64Array;
  // Ports are in the first layer (1) or the last layer (2); other items are 0.
  port: Uint8Array;
  // The ends of the edges, and the y coordinates of their pins, from the top of the items.
  from: Int32Array;
  to: Int32Array;
  fromY: Float64Array;
  toY: Float64Array;
}

export interface LayoutResult {
  x: Float64Array;
  y: Float64Array;
  width: number;
  height: number;
  // Edge e has the points points[2 * start[e], 2 * start[e + 1]).
  start: Int32Array;
  points: Float32Array;
}

const kGapX = 84;
const kGapY = 18;
const kDummyHeight = 4;
// The number of pin positions per item that crossings distinguish.
const kPinSteps = 16;

// Returns 1 for each edge to reverse. Reversing all of these edges leaves no cycle.
function cycleEdges(count: number, from: Int32Array, to: Int32Array): Uint8Array {
  const start = new Int32Array(count + 1);
  const indegree = new Int32Array(count);
  for (let e = 0; e < from.length; ++e) {
    ++start[from[e]! + 1]!;
    ++indegree[to[e]!]!;
  }
  for (let v = 0; v < count; ++v) start[v + 1]! += start[v]!;
  const edges = new Int32Array(from.length);
  const fill = start.slice();
  for (let e = 0; e < from.length; ++e) edges[fill[from[e]!]!++] = e;
  const reversed = new Uint8Array(from.length);
  // 0: new, 1: on the path, 2: done.
  const state = new Uint8Array(count);
  const next = start.slice();
  const path: number[] = [];
  const visit = (root: number): void => {
    path.push(root);
    state[root] = 1;
    while (path.length > 0) {
      const v = path[path.length - 1]!;
      if (next[v]! === start[v + 1]!) {
        state[v] = 2;
        path.pop();
        continue;
      }
      const e = edges[next[v]!++]!;
      const w = to[e]!;
      if (state[w] === 1) {
        reversed[e] = 1;
      } else if (state[w] === 0) {
        state[w] = 1;
        path.push(w);
      }
    }
  };
  for (let v = 0; v < count; ++v) if (state[v] === 0 && indegree[v] === 0) visit(v);
  for (let v = 0; v < count; ++v) if (state[v] === 0) visit(v);
  return reversed;
}

interface Adjacency {
  start: Int32Array;
  other: Int32Array;
  edge: Int32Array;
}

// For each item, lists the other ends of the edges whose `at` end is the item.
function adjacency(count: number, at: Int32Array, other: Int32Array): Adjacency {
  const start = new Int32Array(count + 1);
  for (const v of at) ++start[v + 1]!;
  for (let v = 0; v < count; ++v) start[v + 1]! += start[v]!;
  const fill = start.slice();
  const result = new Int32Array(at.length);
  const edge = new Int32Array(at.length);
  for (let e = 0; e < at.length; ++e) {
    const i = fill[at[e]!]!++;
    result[i] = other[e]!;
    edge[i] = e;
  }
  return { start, other: result, edge };
}

function assignLayers(count: number, port: Uint8Array, out: Adjacency, into: Adjacency):
    Int32Array {
  const layer = new Int32Array(count);
  const hasInPorts = port.includes(1);
  const waits = new Int32Array(count);
  const order: number[] = [];
  for (let v = 0; v < count; ++v) {
    waits[v] = into.start[v + 1]! - into.start[v]!;
    if (waits[v] === 0) order.push(v);
    layer[v] = hasInPorts && port[v] !== 1 ? 1 : 0;
  }
  for (let i = 0; i < order.length; ++i) {
    const v = order[i]!;
    for (let k = out.start[v]!; k < out.start[v + 1]!; ++k) {
      const w = out.other[k]!;
      layer[w] = Math.max(layer[w]!, layer[v]! + 1);
      if (--waits[w]! === 0) order.push(w);
    }
  }
  let last = 0;
  for (let v = 0; v < count; ++v) if (port[v] !== 2) last = Math.max(last, layer[v]! + 1);
  for (let v = 0; v < count; ++v) if (port[v] === 2) layer[v] = Math.max(last, layer[v]!);
  for (let i = order.length - 1; i >= 0; --i) {
    const v = order[i]!;
    if (port[v] !== 0 || into.start[v] !== into.start[v + 1]) continue;
    let first = Infinity;
    for (let k = out.start[v]!; k < out.start[v + 1]!; ++k) {
      first = Math.min(first, layer[out.other[k]!]!);
    }
    if (first !== Infinity) layer[v] = Math.max(layer[v]!, first - 1);
  }
  return layer;
}

// Places values as close to `wanted` as possible, with at least gap[i] between values i - 1 and i.
// Minimizes the sum of squares by the pool-adjacent-violators algorithm.
export function spread(wanted: Float64Array, gap: Float64Array): Float64Array {
  const n = wanted.length;
  const offset = new Float64Array(n);
  for (let i = 1; i < n; ++i) offset[i] = offset[i - 1]! + gap[i]!;
  // Blocks of values that touch each other.
  const sum: number[] = [];
  const size: number[] = [];
  for (let i = 0; i < n; ++i) {
    let s = wanted[i]! - offset[i]!;
    let k = 1;
    while (sum.length > 0 && sum[sum.length - 1]! / size[size.length - 1]! >= s / k) {
      s += sum.pop()!;
      k += size.pop()!;
    }
    sum.push(s);
    size.push(k);
  }
  const result = new Float64Array(n);
  let i = 0;
  for (let b = 0; b < sum.length; ++b) {
    const position = sum[b]! / size[b]!;
    for (let k = 0; k < size[b]!; ++k, ++i) result[i] = position + offset[i]!;
  }
  return result;
}

// Returns the number of crossings between two layers. `ends` are the edges' positions in the second
// layer, in the order of the first layer.
export function countCrossings(ends: Int32Array, size: number): number {
  const tree = new Int32Array(size + 1);
  let crossings = 0;
  for (let i = 0; i < ends.length; ++i) {
    let before = 0;
    for (let k = ends[i]! + 1; k > 0; k -= k & -k) before += tree[k]!;
    crossings += i - before;
    for (let k = ends[i]! + 1; k <= size; k += k & -k) ++tree[k]!;
  }
  return crossings;
}

// The items and dummies of all layers, and the edges between adjacent layers. A dummy stands for an
// edge in a layer between the ends of the edge. Edges lead from `low` to `high`: in the
// constructor, the ends of reversed edges are already swapped.
class Layers {
  readonly columns: number[][] = [];
  readonly position: Int32Array;
  // The number of items and dummies.
  readonly total: number;
  readonly layer: Int32Array;
  readonly up: Adjacency;
  readonly down: Adjacency;
  private readonly key: Float64Array;
  private readonly segFrom: number[] = [];
  private readonly segTo: number[] = [];
  private readonly segFromY: number[] = [];
  private readonly segToY: number[] = [];
  private readonly segFromPart: Float64Array;
  private readonly segToPart: Float64Array;
  // The first dummy of each edge, or -1. The dummies of an edge are consecutive.
  readonly firstDummy: Int32Array;

  constructor(count: number, layer: Int32Array, linked: Uint8Array, low: Int32Array,
              high: Int32Array, lowY: Float64Array, highY: Float64Array, height: Float64Array) {
    const numEdges = low.length;
    this.firstDummy = new Int32Array(numEdges).fill(-1);
    // Short edges get dummies first, within a budget.
    const span = (e: number): number => layer[high[e]!]! - layer[low[e]!]!;
    const long: number[] = [];
    for (let e = 0; e < numEdges; ++e) if (span(e) > 1) long.push(e);
    long.sort((a, b) => span(a) - span(b) || a - b);
    let budget = 3 * count + 1000;
    let total = count;
    const dummyLayers: number[] = [];
    for (const e of long) {
      const needed = span(e) - 1;
      if (needed > budget) break;
      budget -= needed;
      this.firstDummy[e] = total;
      for (let k = 1; k <= needed; ++k) dummyLayers.push(layer[low[e]!]! + k);
      total += needed;
    }
    this.total = total;
    this.layer = new Int32Array(total);
    this.layer.set(layer);
    this.layer.set(dummyLayers, count);
    for (let e = 0; e < numEdges; ++e) {
      const steps = span(e);
      const dummy = this.firstDummy[e]!;
      if (steps < 1 || (steps > 1 && dummy < 0)) continue;
      let previous = low[e]!;
      for (let k = 1; k <= steps; ++k) {
        const current = k === steps ? high[e]! : dummy + k - 1;
        this.segFrom.push(previous);
        this.segTo.push(current);
        this.segFromY.push(k === 1 ? lowY[e]! : kDummyHeight / 2);
        this.segToY.push(k === steps ? highY[e]! : kDummyHeight / 2);
        previous = current;
      }
    }
    // The relative position of a pin within its item, from 0 to 1.
    const part = (v: number, pinY: number): number =>
      v < count ? Math.min(pinY / height[v]!, 0.999) : 0.5;
    this.segFromPart = Float64Array.from(this.segFrom, (v, i) => part(v, this.segFromY[i]!));
    this.segToPart = Float64Array.from(this.segTo, (v, i) => part(v, this.segToY[i]!));
    const from = Int32Array.from(this.segFrom);
    const to = Int32Array.from(this.segTo);
    this.down = adjacency(total, from, to);
    this.up = adjacency(total, to, from);
    this.sortByPins();
    this.position = new Int32Array(total);
    this.key = new Float64Array(total);
    this.initialOrder(linked, count);
  }

  // Sorts the edges of each item by the pins at which they start.
  private sortByPins(): void {
    const { start, other, edge } = this.down;
    for (let v = 0; v < this.total; ++v) {
      if (start[v + 1]! - start[v]! < 2) continue;
      const edges = edge.subarray(start[v]!, start[v + 1]!);
      edges.sort((a, b) => this.segFromPart[a]! - this.segFromPart[b]! || a - b);
      for (let k = start[v]!; k < start[v + 1]!; ++k) other[k] = this.segTo[edge[k]!]!;
    }
  }

  // Orders items by depth-first search from the first layers, so that neighbours start near each
  // other.
  private initialOrder(linked: Uint8Array, count: number): void {
    let last = 0;
    for (const layer of this.layer) last = Math.max(last, layer);
    for (let i = 0; i <= last; ++i) this.columns.push([]);
    const seen = new Uint8Array(this.total);
    const stack: number[] = [];
    const place = (v: number): void => {
      seen[v] = 1;
      const column = this.columns[this.layer[v]!]!;
      this.position[v] = column.length;
      column.push(v);
      stack.push(v);
    };
    for (let root = 0; root < count; ++root) {
      if (seen[root] || !linked[root]) continue;
      place(root);
      while (stack.length > 0) {
        const v = stack.pop()!;
        for (const side of [this.down, this.up]) {
          for (let k = side.start[v]!; k < side.start[v + 1]!; ++k) {
            if (!seen[side.other[k]!]) place(side.other[k]!);
          }
        }
      }
    }
  }

  // Sorts a column by the mean position of the neighbours in the previous or next column.
  private sortColumn(column: number[], side: Adjacency): void {
    const { key, position } = this;
    const parts = side === this.up ? this.segFromPart : this.segToPart;
    for (const v of column) {
      const begin = side.start[v]!;
      const end = side.start[v + 1]!;
      let sum = 0;
      for (let k = begin; k < end; ++k) sum += position[side.other[k]!]! + parts[side.edge[k]!]!;
      // An item without neighbours keeps its position.
      key[v] = begin === end ? position[v]! + 0.5 : sum / (end - begin);
    }
    column.sort((a, b) => key[a]! - key[b]! || position[a]! - position[b]!);
    for (let i = 0; i < column.length; ++i) position[column[i]!] = i;
  }

  crossings(): number {
    const { down, segFromPart, segToPart, position } = this;
    const ends = new Int32Array(down.edge.length);
    let sum = 0;
    for (let layer = 0; layer + 1 < this.columns.length; ++layer) {
      let count = 0;
      for (const v of this.columns[layer]!) {
        // Edges of one pin do not cross, because they are in the order of their ends.
        let pin = count;
        for (let k = down.start[v]!; k < down.start[v + 1]!; ++k) {
          const e = down.edge[k]!;
          if (count > pin && segFromPart[e]! !== segFromPart[down.edge[k - 1]!]!) {
            if (count - pin > 1) ends.subarray(pin, count).sort();
            pin = count;
          }
          ends[count++] = Math.floor((position[down.other[k]!]! + segToPart[e]!) * kPinSteps);
        }
        if (count - pin > 1) ends.subarray(pin, count).sort();
      }
      if (count < 2) continue;
      sum += countCrossings(ends.subarray(0, count),
                            this.columns[layer + 1]!.length * kPinSteps);
    }
    return sum;
  }

  // Keeps the best order that the sweeps find.
  *reduceCrossings(): Steps<void> {
    const sweeps = this.total < 3000 ? 12 : this.total < 30000 ? 4 : 2;
    let best = this.crossings();
    let bestColumns = this.columns.map((column) => column.slice());
    for (let sweep = 0; sweep < sweeps && best > 0; ++sweep) {
      if (sweep % 2 === 0) {
        for (let l = 1; l < this.columns.length; ++l) {
          this.sortColumn(this.columns[l]!, this.up);
          yield;
        }
      } else {
        for (let l = this.columns.length - 2; l >= 0; --l) {
          this.sortColumn(this.columns[l]!, this.down);
          yield;
        }
      }
      const crossings = this.crossings();
      yield;
      if (crossings < best) {
        best = crossings;
        bestColumns = this.columns.map((column) => column.slice());
      }
    }
    bestColumns.forEach((column, l) => {
      this.columns[l] = column;
      column.forEach((v, i) => (this.position[v] = i));
    });
  }

  // Returns the vertical positions of all items and dummies.
  *placeVertically(height: Float64Array): Steps<Float64Array> {
    const y = new Float64Array(this.total);
    for (const column of this.columns) {
      let top = 0;
      for (const v of column) {
        y[v] = top;
        top += height[v]! + kGapY;
      }
      // Columns start centred on each other.
      for (const v of column) y[v]! -= top / 2;
    }
    const align = (column: number[], side: Adjacency, isUp: boolean): void => {
      const wanted = new Float64Array(column.length);
      const gap = new Float64Array(column.length);
      column.forEach((v, i) => {
        let sum = 0;
        const begin = side.start[v]!;
        const end = side.start[v + 1]!;
        for (let k = begin; k < end; ++k) {
          const e = side.edge[k]!;
          const fromY = this.segFromY[e]!;
          const toY = this.segToY[e]!;
          sum += y[side.other[k]!]! + (isUp ? fromY - toY : toY - fromY);
        }
        wanted[i] = begin === end ? y[v]! : sum / (end - begin);
        if (i > 0) gap[i] = height[column[i - 1]!]! + kGapY;
      });
      const placed = spread(wanted, gap);
      column.forEach((v, i) => (y[v] = placed[i]!));
    };
    const sweeps = this.total < 3000 ? 6 : 2;
    for (let sweep = 0; sweep < sweeps; ++sweep) {
      if (sweep % 2 === 0) {
        for (let l = 1; l < this.columns.length; ++l) {
          align(this.columns[l]!, this.up, true);
          yield;
        }
      } else {
        for (let l = this.columns.length - 2; l >= 0; --l) {
          align(this.columns[l]!, this.down, false);
          yield;
        }
      }
    }
    return y;
  }
}

export function layOut(input: LayoutInput): LayoutResult {
  return runSteps(layOutInSteps(input));
}
export function* layOutInSteps(input: LayoutInput): Steps<LayoutResult> {
  const count = input.width.length;
  const numEdges = input.from.length;
  const reversed = cycleEdges(count, input.from, input.to);
  const low = new Int32Array(numEdges);
  const high = new Int32Array(numEdges);
  const lowY = new Float64Array(numEdges);
  const highY = new Float64Array(numEdges);
  const linked = new Uint8Array(count);
  for (let e = 0; e < numEdges; ++e) {
    const isBack = reversed[e] === 1;
    low[e] = isBack ? input.to[e]! : input.from[e]!;
    high[e] = isBack ? input.from[e]! : input.to[e]!;
    lowY[e] = isBack ? input.toY[e]! : input.fromY[e]!;
    highY[e] = isBack ? input.fromY[e]! : input.toY[e]!;
    linked[low[e]!] = linked[high[e]!] = 1;
  }
  for (let v = 0; v < count; ++v) if (input.port[v] !== 0) linked[v] = 1;

  yield;
  const layer = assignLayers(
      count, input.port, adjacency(count, low, high), adjacency(count, high, low));
  const layers = new Layers(count, layer, linked, low, high, lowY, highY, input.height);
  yield;
  yield* layers.reduceCrossings();
  const height = new Float64Array(layers.total).fill(kDummyHeight);
  height.set(input.height);
  const y = yield* layers.placeVertically(height);

  // Lays out columns. A column that is far too tall continues next to itself.
  const x = new Float64Array(layers.total);
  const columnRight = new Float64Array(layers.columns.length);
  let area = 0;
  for (let v = 0; v < count; ++v) area += (input.width[v]! + kGapX) * (input.height[v]! + kGapY);
  const maxHeight = Math.max(3 * Math.sqrt(area), 2000);
  let left = 0;
  layers.columns.forEach((column, l) => {
    let fill = 0;
    for (const v of column) fill += height[v]! + kGapY;
    const parts = Math.ceil(fill / maxHeight);
    const perPart = Math.ceil(column.length / parts);
    let right = left;
    for (let part = 0; part < parts; ++part) {
      const items = column.slice(part * perPart, (part + 1) * perPart);
      if (part > 0) left = right + kGapX / 2;
      let top = 0;
      let sum = 0;
      for (const v of items) sum += height[v]! + kGapY;
      for (const v of items) {
        x[v] = left;
        if (v < count) right = Math.max(right, left + input.width[v]!);
        if (parts > 1) {
          y[v] = top - sum / 2;
          top += height[v]! + kGapY;
        }
      }
    }
    columnRight[l] = right;
    left = right + kGapX;
  });
  let totalWidth = Math.max(left - kGapX, 0);

  // Bounds of all items.
  let top = Infinity;
  let bottom = -Infinity;
  for (const column of layers.columns) {
    for (const v of column) {
      top = Math.min(top, y[v]!);
      bottom = Math.max(bottom, y[v]! + height[v]!);
    }
  }
  if (top === Infinity) top = bottom = 0;
  for (let v = 0; v < layers.total; ++v) y[v]! -= top;
  let totalHeight = bottom - top;

  // The grid of items without edges.
  const single: number[] = [];
  let singleArea = 0;
  for (let v = 0; v < count; ++v) {
    if (linked[v]) continue;
    single.push(v);
    singleArea += (input.width[v]! + kGapY) * (input.height[v]! + kGapY);
  }
  if (single.length > 0) {
    const lineWidth = Math.max(totalWidth, Math.sqrt(singleArea) * 1.5);
    let lineTop = totalHeight > 0 ? totalHeight + 2 * kGapY : 0;
    let lineHeight = 0;
    let at = 0;
    for (const v of single) {
      if (at > 0 && at + input.width[v]! > lineWidth) {
        at = 0;
        lineTop += lineHeight + kGapY;
        lineHeight = 0;
      }
      x[v] = at;
      y[v] = lineTop;
      at += input.width[v]! + kGapY;
      lineHeight = Math.max(lineHeight, input.height[v]!);
      totalWidth = Math.max(totalWidth, at - kGapY);
    }
    totalHeight = lineTop + lineHeight;
  }

  // Each edge has its first point, two points per dummy, and its last point.
  const start = new Int32Array(numEdges + 1);
  const dummies = (e: number): number =>
    layers.firstDummy[e]! < 0 ? 0 : layer[high[e]!]! - layer[low[e]!]! - 1;
  for (let e = 0; e < numEdges; ++e) start[e + 1] = start[e]! + 2 + 2 * dummies(e);
  const points = new Float32Array(2 * start[numEdges]!);
  for (let e = 0; e < numEdges; ++e) {
    const from = input.from[e]!;
    const to = input.to[e]!;
    let p = 2 * start[e]!;
    points[p++] = x[from]! + input.width[from]!;
    points[p++] = y[from]! + input.fromY[e]!;
    const steps = dummies(e);
    for (let k = 0; k < steps; ++k) {
      const d = layers.firstDummy[e]! + (reversed[e] ? steps - 1 - k : k);
      const middle = y[d]! + kDummyHeight / 2;
      const right = columnRight[layers.layer[d]!]!;
      points[p++] = reversed[e] ? right : x[d]!;
      points[p++] = middle;
      points[p++] = reversed[e] ? x[d]! : right;
      points[p++] = middle;
    }
    points[p++] = x[to]!;
    points[p] = y[to]! + input.toY[e]!;
  }
  return {
    x: x.slice(0, count),
    y: y.slice(0, count),
    width: totalWidth,
    height: totalHeight,
    start,
    points,
  };
}
