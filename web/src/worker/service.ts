// Implements the worker's API. The model is its only state.
import { decode } from '../data/format.ts';
import type { GraphJson } from '../data/format.ts';
import { Model } from '../model/model.ts';
import { between, fanIn, fanOut, markScopes } from '../model/reach.ts';
import { matchedNames, searchInSteps } from '../model/search.ts';
import { shorten } from '../data/text.ts';
import { SceneBuilder } from '../scene/build.ts';
import type { Scene, SceneOptions } from '../scene/types.ts';
import { kMaxListed } from './api.ts';
import type { Api, Description, Hit, Marks, Neighbour, Summary, Timeline } from './api.ts';

// The longest time between checks for cancellation.
const kMaxMillis = 20;

export class Service implements Api {
  // Lets messages in. Throws an error if the call is cancelled. Set by serve().
  pause: () => Promise<void> = async () => {};
  private graph: Model | undefined;
  private builder: SceneBuilder | undefined;

  private get model(): Model {
    if (this.graph === undefined) throw new Error('no graph is open');
    return this.graph;
  }

  async open(data: string): Promise<Summary> {
    return this.load(await decode(data));
  }

  async replace(graph: GraphJson): Promise<Summary> {
    return this.load(graph);
  }

  load(json: GraphJson): Summary {
    const model = new Model(json);
    this.graph = model;
    this.builder = new SceneBuilder(model);
    const changes: [number, number, number] = [0, 0, 0];
    for (const node of json.nodes) {
      const change = node[3]?.k;
      if (change !== undefined) ++changes[change - 1]!;
    }
    let first = 0;
    for (;;) {
      const scope = model.scopes[first]!;
      if (scope.nodes.length > 0 || scope.scopes.length !== 1) break;
      first = scope.scopes[0]!;
    }
    return {
      title: json.title,
      generator: json.generator,
      diff: json.diff,
      notes: json.notes,
      nodes: model.size,
      scopes: model.scopes.length - 1,
      ops: json.ops.length,
      changes,
      first,
      runTime: json.run?.total ?? -1,
      edit: json.edit ?? null,
    };
  }

  async scene(scope: number, options: SceneOptions): Promise<Scene> {
    if (this.model.scopes[scope] === undefined) throw new Error(`no scope ${scope}`);
    return this.inSteps(this.builder!.buildInSteps(scope, options));
  }

  // Runs steps, and lets messages in between.
  private async inSteps<T>(steps: Generator<void, T>): Promise<T> {
    const { builder } = this;
    for (let begin = performance.now(); ;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      if (performance.now() - begin < kMaxMillis) continue;
      await this.pause();
      // Another graph may have been opened.
      if (this.builder !== builder) throw new Error('cancelled');
      begin = performance.now();
    }
  }

  async describe(id: number): Promise<Description> {
    return id < 0 ? this.describeScope(~id) : this.describeNode(id);
  }

  private neighbour(node: number, pin: string, output: number): Neighbour {
    const { model } = this;
    return { node, name: model.name(node), pin, type: model.typeOf(node, output) };
  }

  private describeNode(node: number): Description {
    const { model } = this;
    const op = model.op(node);
    const extra = model.extra(node);
    const result = this.emptyDescription(node, model.name(node));
    result.op = op.n;
    result.summary = op.s;
    result.doc = op.d;
    result.problem = model.text(extra.e);
    result.device = model.text(extra.d);
    result.change = extra.k ?? 0;
    result.changes = (extra.h ?? []).map((id) => model.text(id));
    result.missing = (extra.u ?? []).slice(0, kMaxListed).map((id) => model.text(id));
    result.value = model.text(extra.v);
    result.numNodes = 1;
    const { start, node: source, pin } = model.inputs;
    const names = model.pinNames(node, false, Math.min(model.numInputs(node), kMaxListed));
    for (let e = start[node]!; e < start[node + 1]!; ++e) {
      const u = source[e]!;
      if (u < 0) continue;
      if (pin[e]! < 0) {
        if (result.control.length < kMaxListed) result.control.push(this.neighbour(u, '', -1));
      } else if (result.inputs.length < kMaxListed) {
        const index = e - start[node]!;
        result.inputs.push(this.neighbour(u, names[index] ?? String(index), pin[e]!));
      }
    }
    const numOutputs = Math.min(model.numOutputs(node), kMaxListed);
    model.pinNames(node, true, numOutputs).forEach((name, i) => {
      const doc = op.o.find((arg) => arg[0] === name.replace(/\[\d+\]$/, ''))?.[2] ?? '';
      result.outputs.push({ pin: name, type: model.typeOf(node, i), doc, consumers: [] });
    });
    const out = model.consumers;
    for (let e = out.start[node]!; e < out.start[node + 1]!; ++e) {
      const consumer = out.node[e]!;
      if (out.pin[e]! < 0) continue;
      const output = result.outputs[pin[start[consumer]! + out.pin[e]!]!];
      if (output === undefined || output.consumers.length >= kMaxListed) continue;
      output.consumers.push(this.neighbour(consumer, '', -1));
    }
    const own = new Map<string, string>();
    for (let i = 0; i < (extra.a?.length ?? 0); i += 2) {
      own.set(model.text(extra.a![i]), model.text(extra.a![i + 1]));
    }
    for (const [name, value] of own) {
      const doc = op.a.find((attr) => attr[0] === name)?.[3] ?? '';
      result.attrs.push({ name, value, isDefault: false, doc });
    }
    for (const [name, , value, doc] of op.a) {
      if (own.has(name) || value === null) continue;
      result.attrs.push({ name, value, isDefault: true, doc });
    }
    const event = model.run?.events[model.run.first[node]!];
    this.addRun(result, model.run?.time[node] ?? -1);
    if (event !== undefined) {
      result.thread = model.run!.json.threads[event.thread] ?? '';
      result.allocated = event.allocated;
    }
    result.results = model.run?.outputs.get(node) ?? [];
    return result;
  }

  private addRun(result: Description, time: number): void {
    result.time = time;
    const total = this.model.run?.json.total ?? 0;
    result.share = total > 0 && time > 0 ? time / total : 0;
  }

  private describeScope(id: number): Description {
    const { model } = this;
    const scope = model.scopes[id];
    if (scope === undefined) throw new Error(`no scope ${id}`);
    const result = this.emptyDescription(~id, scope.path);
    const counts = new Map<string, number>();
    for (let i = scope.begin; i < scope.end; ++i) {
      const op = model.op(model.order[i]!).n;
      counts.set(op, (counts.get(op) ?? 0) + 1);
    }
    result.ops = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    result.ops.length = Math.min(result.ops.length, kMaxListed);
    result.numNodes = scope.end - scope.begin;
    const ports = this.builder!.portsOf(id);
    for (const { node, output } of ports.inputs.slice(0, kMaxListed)) {
      result.inputs.push(this.neighbour(node, '', output));
    }
    for (const { node, output } of ports.outputs.slice(0, kMaxListed)) {
      const type = model.typeOf(node, output);
      result.outputs.push(
        { pin: '', type, doc: '', consumers: [this.neighbour(node, '', output)] });
    }
    this.addRun(result, this.model.run?.scopeTime(id) ?? -1);
    return result;
  }

  private emptyDescription(id: number, name: string): Description {
    return {
      id, name, op: '', summary: '', doc: '', problem: '', device: '', change: 0, changes: [],
      inputs: [], control: [], missing: [], outputs: [], attrs: [], value: '', ops: [],
      numNodes: 0, time: -1, share: 0, thread: '', allocated: 0, results: [],
    };
  }

  async search(query: string, limit: number): Promise<{ hits: Hit[]; count: number }> {
    const { nodes, count } = await this.inSteps(searchInSteps(this.model, query, limit));
    return { hits: await this.hits(nodes), count };
  }
  async matchedNames(port: MessagePort): Promise<void> {
    port.postMessage(matchedNames(this.model));
  }
  async hits(nodes: number[]): Promise<Hit[]> {
    const { model } = this;
    return nodes.map((node) => ({ node, name: model.name(node), op: model.op(node).n }));
  }

  async mark(kind: 'in' | 'out' | 'between', node: number, other: number): Promise<Marks> {
    const { model } = this;
    const nodes = kind === 'in' ? fanIn(model, node)
      : kind === 'out' ? fanOut(model, node) : between(model, node, other);
    let count = 0;
    for (const marked of nodes) count += marked;
    return { nodes, scopes: markScopes(model, nodes), count };
  }

  async ancestors(id: number): Promise<number[]> {
    const { model } = this;
    const scope = id < 0 ? model.scopes[~id]?.parent : model.scopeOf[id];
    return scope === undefined || scope < 0 ? [] : model.ancestors(scope);
  }

  async find(name: string): Promise<number | null> {
    const node = this.model.find(name);
    if (node >= 0) return node;
    const scope = this.model.findScope(name);
    return scope > 0 ? ~scope : null;
  }

  async callees(node: number): Promise<number[]> {
    const { model } = this;
    const extra = model.extra(node);
    const names = [model.op(node).n];
    const types = new Map(model.op(node).a.map((attr) => [attr[0], attr[1]]));
    for (let i = 0; i < (extra.a?.length ?? 0); i += 2) {
      // An unknown attribute may be a function.
      if (!/func/.test(types.get(model.text(extra.a![i])) ?? 'func')) continue;
      names.push(...(model.text(extra.a![i + 1]).match(/[\w.\\/>-]+/g) ?? []));
    }
    const scopes = names.map((name) => model.findScope(`ƒ ${name}`)).filter((scope) => scope > 0);
    return [...new Set(scopes)];
  }

  async nameOf(id: number): Promise<string> {
    return id < 0 ? (this.model.scopes[~id]?.path ?? '') : this.model.fullName(id);
  }

  async timeline(): Promise<Timeline | null> {
    const { model } = this;
    const { run } = model;
    if (run === null) return null;
    let label = 0;
    const events = run.events.map(({ node, begin, end, thread }) => ({
      node, begin, end, thread,
      name: node >= 0 ? shorten(model.name(node), 200) : shorten(run.json.labels[label++] ?? '', 200),
    }));
    const threads = run.json.threads.map((name) => shorten(name, 40));
    return { total: run.json.total, threads, events, memory: run.memory() };
  }

  async firstNan(): Promise<number> {
    return this.model.run?.firstNan() ?? -1;
  }

  async criticalPath(): Promise<Marks & { path: number[] }> {
    const { model } = this;
    const path = model.run?.criticalPath() ?? [];
    const nodes = new Uint8Array(model.size);
    for (const node of path) nodes[node] = 1;
    return { path, nodes, scopes: markScopes(model, nodes), count: path.length };
  }

  async nextNotable(node: number): Promise<number> {
    const { model } = this;
    for (let i = 1; i <= model.size; ++i) {
      const next = (Math.max(node, -1) + i) % model.size;
      const extra = model.extra(next);
      if (extra.e !== undefined || extra.k !== undefined) return next;
    }
    return -1;
  }
}
