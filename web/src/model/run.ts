// Run: the recorded execution of a graph.
import type { OutputJson, RunJson } from '../data/format.ts';
import type { Model } from './model.ts';

// The number of fields per execution in RunJson.events.
const kFields = 6;

export interface Event {
  // -1 if the graph does not have the node.
  node: number;
  begin: number;
  end: number;
  thread: number;
  allocated: number;
  outputBytes: number;
}

// Returns the length of the union of intervals. Sorts the intervals.
export function unionLength(intervals: [number, number][]): number {
  intervals.sort((a, b) => a[0] - b[0]);
  let sum = 0;
  let end = -Infinity;
  for (const [from, to] of intervals) {
    if (to <= end) continue;
    sum += to - Math.max(from, end);
    end = to;
  }
  return sum;
}

export class Run {
  readonly events: Event[] = [];
  // For each node, the total time of its executions; -1 if it did not run.
  readonly time: Float64Array;
  // For each node, the index of its first execution in `events`; -1 if it did not run.
  readonly first: Int32Array;
  // The largest element of `time`, but at least 0.
  readonly longest: number;
  readonly outputs = new Map<number, OutputJson[]>();
  // The executions of node v are events[eventOf[k]], for k from eventStart[v] to eventStart[v + 1].
  private readonly eventStart: Int32Array;
  private readonly eventOf: Int32Array;

  constructor(private readonly model: Model, readonly json: RunJson) {
    this.time = new Float64Array(model.size).fill(-1);
    this.first = new Int32Array(model.size).fill(-1);
    for (let i = 0; i + kFields <= json.events.length; i += kFields) {
      const [node, begin, end, thread, allocated, outputBytes] =
        json.events.slice(i, i + kFields) as [number, number, number, number, number, number];
      const isKnown = node >= 0 && node < model.size;
      if (isKnown) {
        this.time[node] = Math.max(this.time[node]!, 0) + end - begin;
        if (this.first[node]! < 0) this.first[node] = this.events.length;
      }
      this.events.push({ node: isKnown ? node : -1, begin, end, thread, allocated, outputBytes });
    }
    this.eventStart = new Int32Array(model.size + 1);
    for (const { node } of this.events) if (node >= 0) ++this.eventStart[node + 1]!;
    for (let v = 0; v < model.size; ++v) this.eventStart[v + 1]! += this.eventStart[v]!;
    this.eventOf = new Int32Array(this.eventStart[model.size]!);
    const next = this.eventStart.slice();
    this.events.forEach(({ node }, i) => {
      if (node >= 0) this.eventOf[next[node]!++] = i;
    });
    this.longest = this.time.reduce((most, time) => Math.max(most, time), 0);
    for (const output of json.outputs) {
      const list = this.outputs.get(output.n);
      if (list === undefined) this.outputs.set(output.n, [output]);
      else list.push(output);
    }
  }

  // Returns the time during which at least one node of a scope ran; -1 if none ran.
  scopeTime(scope: number): number {
    const { begin, end } = this.model.scopes[scope]!;
    const intervals: [number, number][] = [];
    for (let i = begin; i < end; ++i) {
      const node = this.model.order[i]!;
      for (let k = this.eventStart[node]!; k < this.eventStart[node + 1]!; ++k) {
        const event = this.events[this.eventOf[k]!]!;
        intervals.push([event.begin, event.end]);
      }
    }
    return intervals.length === 0 ? -1 : unionLength(intervals);
  }

  hasNan(node: number): boolean {
    return this.outputs.get(node)?.some((output) => output.nan > 0) ?? false;
  }

  // Returns the node that finished first with a NaN; -1 if there is no NaN.
  firstNan(): number {
    let found = -1;
    let earliest = Infinity;
    for (const node of this.outputs.keys()) {
      if (!this.hasNan(node)) continue;
      const event = this.events[this.first[node]!];
      // Fed tensors exist from the start.
      const time = event === undefined ? -1 : event.end;
      if (time < earliest) {
        earliest = time;
        found = node;
      }
    }
    return found;
  }

  // Returns the nodes of the path with the longest total execution time, from first to last.
  criticalPath(): number[] {
    const { model, time } = this;
    const { inputs, consumers } = model;
    const total = new Float64Array(model.size);
    const before = new Int32Array(model.size).fill(-1);
    const waits = new Int32Array(model.size);
    const ready: number[] = [];
    for (let v = 0; v < model.size; ++v) {
      for (let e = inputs.start[v]!; e < inputs.start[v + 1]!; ++e) {
        if (inputs.node[e]! >= 0) ++waits[v]!;
      }
      if (waits[v] === 0) ready.push(v);
    }
    let last = -1;
    for (let i = 0; i < ready.length; ++i) {
      const v = ready[i]!;
      total[v]! += Math.max(time[v]!, 0);
      if (time[v]! >= 0 && (last < 0 || total[v]! > total[last]!)) last = v;
      for (let e = consumers.start[v]!; e < consumers.start[v + 1]!; ++e) {
        const w = consumers.node[e]!;
        if (total[v]! > total[w]!) {
          total[w] = total[v]!;
          before[w] = v;
        }
        if (--waits[w]! === 0) ready.push(w);
      }
    }
    const path: number[] = [];
    for (let v = last; v >= 0; v = before[v]!) if (time[v]! >= 0) path.push(v);
    return path.reverse();
  }

  // Returns [time, bytes of live outputs from this time on, ...]. An output lives from the end of
  // its node to the end of its last consumer, or to the end of the run if no consumer ran.
  memory(): number[] {
    const changes: [number, number][] = [];
    const { consumers } = this.model;
    for (const { node, end, outputBytes } of this.events) {
      if (node < 0 || outputBytes === 0) continue;
      let last = -1;
      for (let e = consumers.start[node]!; e < consumers.start[node + 1]!; ++e) {
        const event = this.events[this.first[consumers.node[e]!]!];
        if (event !== undefined && consumers.pin[e]! >= 0) last = Math.max(last, event.end);
      }
      changes.push([end, outputBytes]);
      if (last >= 0) changes.push([last, -outputBytes]);
    }
    changes.sort((a, b) => a[0] - b[0]);
    const result: number[] = [];
    let bytes = 0;
    for (const [time, change] of changes) {
      bytes += change;
      if (result[result.length - 2] === time) result[result.length - 1] = bytes;
      else result.push(time, bytes);
    }
    return result;
  }
}
