// Editor: a graph under construction, with the bodies of its functions and its edit history. Pure
// data, without DOM or server.
import type { EditFunctionJson, EditNodeJson, OpJson } from '../data/format.ts';
import { leaf } from '../data/text.ts';
import { FunctionHeader, functionsNamed, headerText, withFunction } from './body.ts';
import { isSameFeed, kNoFeed } from './feed.ts';
import type { FeedField } from './feed.ts';
import { typeEnum } from './fields.ts';
import { endOf, isReference } from './library.ts';
import type { Library, Pin } from './library.ts';
import {
  formatInput, graphText, isSameNode, nodeFromJson, nodeText, parseInput, redirectInput,
} from './node.ts';
import type { EditNode, EndKind } from './node.ts';
import { messages, parseText, quote, scalars, unquote } from './text.ts';
import type { Field, Message } from './text.ts';

// A change of the node list at a place: replaces, inserts (no `before`) or removes (no `after`) a
// node.
interface Patch {
  at: number;
  before: EditNode | null;
  after: EditNode | null;
}
// The parts of the editor's state that are not nodes. Immutable.
interface Aside {
  // Keyed by EditNode.id. Includes removed nodes.
  readonly feeds: ReadonlyMap<number, FeedField>;
  // The names of the functions by body, in the order of the file.
  readonly functions: ReadonlyMap<number, string>;
}
interface Edit {
  title: string;
  patches: Patch[];
  before: Aside;
  after: Aside;
  // The version of the graph after this edit.
  version: number;
}

// The names of new arguments, results and control outputs.
const kEndNames: Readonly<Partial<Record<EndKind, string>>> =
  { arg: 'argument', result: 'result', control: 'control' };

// Turns `name` into a valid name for an argument or result.
function nameOfEnd(name: string): string {
  return name.replace(/\W/g, '_').replace(/^[^A-Za-z]+/, '') || 'argument';
}
// Returns an argument, result or control output without the fields that a signature cannot store.
function plainEnd(node: EditNodeJson, end: EndKind): EditNodeJson {
  const data = node.i.filter((input) => !input.startsWith('^'));
  const control = node.i.filter((input) => input.startsWith('^'));
  const type = node.a.T ?? null;
  return {
    ...node, d: '',
    i: end === 'arg' ? [] : end === 'result' ? [data[0] ?? ''] : control.slice(0, 1),
    a: type === null || end === 'control' ? {} : { T: type },
  };
}

// Returns the bodies whose arguments, results or control outputs the patches change.
function bodiesOfEnds(patches: readonly Patch[]): number[] {
  const ends = patches.flatMap(({ before, after }) => [before, after])
    .filter((node) => node !== null && node.end !== '');
  return [...new Set(ends.map((node) => node!.body))];
}

// Where functions are used.
interface FunctionUses {
  // A node that calls the function or names it in an attribute, by the name of the function and the
  // body of the node.
  nodes: Map<string, Map<number, EditNode>>;
  // Other parts of the graph that name the function, by name.
  elsewhere: Map<string, string>;
  // A part of the graph that may name any function; "" if there is no such part.
  long: string;
}

// Hands out unique names, each in constant time.
class FreeNames {
  private readonly taken: Set<string>;
  private readonly next = new Map<string, number>();
  constructor(taken: Iterable<string>) {
    this.taken = new Set(taken);
  }
  // Returns `wanted`, or "wanted_1" and so on if it is taken.
  take(wanted: string): string {
    let name = wanted;
    let i = this.next.get(wanted) ?? 1;
    for (; this.taken.has(name); ++i) name = `${wanted}_${i}`;
    this.next.set(wanted, i);
    this.taken.add(name);
    return name;
  }
}

// The fields of the function library that name functions: [list, field of its elements]. The op of
// a registered gradient may be a function.
const kNamingFields: readonly (readonly [string, string])[] = [
  ['gradient', 'function_name'], ['gradient', 'gradient_func'],
  ['registered_gradients', 'gradient_func'], ['registered_gradients', 'registered_op_type'],
];

// One end of a connection.
export interface End {
  // EditNode.id
  id: number;
  index: number;
}

// A node for the server: the number of an unchanged node of the file, or the text `t` of a node.
// The attributes `k` are missing in the text; the server takes them from node `b` of the file.
export type NodeItem = number | { t: string; b?: number; k?: string[] };
// A function of the file, by number; or an edited function: its nodes, its number unless it is new,
// and its header if it has changed.
export type FunctionItem = number | { f?: number; h?: string; nodes: NodeItem[] };

// A function, from the file or new.
interface FunctionBase {
  isNew: boolean;
  header: FunctionHeader;
  json: EditFunctionJson;
  // The definition in the file; null if calls of this name do not call this function.
  op: OpJson | null;
  // The place of its first node after the arguments, among all nodes of the file, and the place
  // after its last node.
  begin: number;
  end: number;
  // The number of arguments, results and control outputs.
  numEnds: number;
  // The header in the editor's formatting.
  text: string;
}
function isAscending(nodes: readonly EditNode[]): boolean {
  return nodes.every((node, i) => i === 0 || node.base > nodes[i - 1]!.base);
}

// The order of the node list: by body, and within a body arguments, nodes, results, control
// outputs.
const kRanks: Readonly<Record<EndKind, number>> = { arg: 0, '': 1, result: 2, control: 3 };
function rank(node: EditNode): number {
  return 4 * node.body + kRanks[node.end];
}
// Names are unique in a body. Results and control outputs have separate name spaces, because only
// arguments and nodes can be read.
function nameKey(name: string, body: number, end: EndKind): string {
  return `${body}${end === 'result' || end === 'control' ? end[0]! : ':'}${name}`;
}

export class Editor {
  private list: EditNode[];
  private readonly base: readonly EditNode[];
  // The inputs of function nodes in the form of the file, the inputs whose text differs
  // from what the editor would write, and the definitions of arguments and results, by base.
  private readonly fileInputs = new Map<number, readonly string[]>();
  private readonly oddInputs = new Map<number, ReadonlySet<number>>();
  private readonly fileDefs = new Map<number, Message>();
  private readonly functionBases: FunctionBase[] = [];
  // The feeds of runs, and the functions.
  private aside: Aside = { feeds: new Map(), functions: new Map() };
  private readonly past: Edit[] = [];
  private readonly future: Edit[] = [];
  private nextId: number;
  // The version of the last edit.
  private versions = 0;
  private byName: Map<string, number> | null = null;
  private byBody: EditNode[][] | null = null;
  private byId: Map<number, number> | null = null;
  private uses: FunctionUses | null = null;
  // The version before the first edit of the history.
  private firstVersion = 0;
  // The total size limit of all files fed in the history, in base64 characters.
  maxFeedBytes = 128 * 1024 * 1024;

  // `rest` and `functionsRest` are EditJson.rest and EditJson.library.
  constructor(readonly library: Library, nodes: readonly EditNodeJson[], readonly rest: string,
              functions: readonly EditFunctionJson[] = [], private readonly functionsRest = '') {
    const list = nodes.map((node, i) => nodeFromJson(node, i, i));
    const names = new Set<string>();
    for (const json of functions) this.readFunction(json, list, names);
    this.aside = {
      feeds: new Map(), functions: new Map(this.functionBases.map(({ header }, f) => [f + 1, header.name])),
    };
    this.list = list;
    // Resolves the inputs after all nodes are known.
    for (const [i, inputs] of this.fileInputs) {
      const node = list[i]!;
      list[i] = { ...node, inputs: inputs.map((input) => this.fromFile(input, node.body)) };
    }
    for (const [i, inputs] of this.fileInputs) {
      const { inputs: read, body } = list[i]!;
      const odd = inputs.flatMap((input, k) => (this.toFile(read[k]!, body) === input ? [] : [k]));
      if (odd.length > 0) this.oddInputs.set(i, new Set(odd));
    }
    this.base = [...list];
    this.byBody = null;
    this.nextId = list.length;
    this.functionBases.forEach((base, f) => {
      base.text = headerText(this.headerOf(f), '');
    });
  }
  // `names` are the names of the preceding functions.
  private readFunction(json: EditFunctionJson, list: EditNode[], names: Set<string>): void {
    const header = new FunctionHeader(json);
    const body = this.functionBases.length + 1;
    const add = (node: EditNodeJson, end: EndKind, def: Message | null): void => {
      const at = list.length;
      this.fileInputs.set(at, node.i);
      if (def !== null) this.fileDefs.set(at, def);
      list.push(nodeFromJson(node, at, at, body, end));
    };
    const ends = header.ends();
    for (const { json: node, end, def } of ends) if (end === 'arg') add(node, end, def);
    const begin = list.length;
    for (const node of json.nodes) add(node, '', null);
    const end = list.length;
    for (const e of ends) if (e.end !== 'arg') add(e.json, e.end, e.def);
    const op = this.library.find(header.name);
    // A library op hides a function of the same name, and so does an earlier function.
    const isCalled = op?.k === 2 && !names.has(header.name);
    names.add(header.name);
    this.functionBases.push({
      isNew: false, header, json, op: isCalled ? op : null, begin, end, numEnds: ends.length, text: '',
    });
  }

  // ---- Reading ----

  get nodes(): readonly EditNode[] {
    return this.list;
  }
  // The names of the functions, in the order of the file.
  get functions(): readonly string[] {
    return [...this.aside.functions.values()];
  }
  // The bodies of the functions (EditNode.body).
  get bodies(): readonly number[] {
    return [...this.aside.functions.keys()];
  }
  // The names by body. A new map after each change; undoing restores the old map.
  get functionNames(): ReadonlyMap<number, string> {
    return this.aside.functions;
  }
  // Returns the name of the function with this body.
  functionOf(body: number): string {
    return this.aside.functions.get(body) ?? '';
  }
  // Returns the body of a function; 0 if there is none. If several functions share the name,
  // returns the first.
  bodyOf(name: string): number {
    return this.bodies.find((body) => this.functionOf(body) === name) ?? 0;
  }
  // The feeds of runs. A new map after each change; undoing restores the old map.
  get feeds(): ReadonlyMap<number, FeedField> {
    return this.aside.feeds;
  }
  // Returns the nodes of a body, including arguments and results; 0 is the graph.
  nodesOf(body: number): readonly EditNode[] {
    if (this.byBody === null) {
      this.byBody = Array.from({ length: this.functionBases.length + 1 }, () => []);
      for (const node of this.list) this.byBody[node.body]!.push(node);
    }
    return this.byBody[body] ?? [];
  }
  // Returns the node with this name that inputs of the body can read.
  find(name: string, body = 0): EditNode | null {
    return this.findEnd(name, body, '');
  }
  private findEnd(name: string, body: number, end: EndKind): EditNode | null {
    this.byName ??= new Map(this.list.map((node, i) => [nameKey(node.name, node.body, node.end), i]));
    const at = this.byName.get(nameKey(name, body, end));
    return at === undefined ? null : this.list[at]!;
  }
  indexOf(id: number): number {
    this.byId ??= new Map(this.list.map((node, i) => [node.id, i]));
    return this.byId.get(id) ?? -1;
  }
  get(id: number): EditNode | null {
    return this.list[this.indexOf(id)] ?? null;
  }
  get undoTitle(): string | null {
    return this.past[this.past.length - 1]?.title ?? null;
  }
  get redoTitle(): string | null {
    return this.future[this.future.length - 1]?.title ?? null;
  }
  // The version of the current state; 0 is the file.
  get version(): number {
    return this.past[this.past.length - 1]?.version ?? this.firstVersion;
  }
  // Returns true if the node is the same as in the file.
  isUntouched(node: EditNode): boolean {
    return node.base >= 0 && isSameNode(node, this.base[node.base]!);
  }

  // ---- Functions ----

  // Converts an input of a function in the file, "sum:z:0", to the form of a graph. An unknown
  // output is left unchanged.
  private fromFile(input: string, body: number): string {
    const match = /^([^:^]+):(\w+):(\d{1,9})$/.exec(input);
    const source = match === null ? null : this.find(match[1]!, body);
    if (match === null || source === null || source.end !== '') return input;
    const index = this.library.outputIndex(source, match[2]!, Number(match[3]));
    return index < 0 ? input : formatInput(source.name, index);
  }
  // The inverse of fromFile().
  private toFile(input: string, body: number): string {
    if (input === '' || input.startsWith('^')) return input;
    const { node, output } = parseInput(input);
    const source = this.find(node, body);
    if (source === null || source.end !== '' || formatInput(node, output) !== input) return input;
    const name = this.library.outputName(source, output);
    return name === null ? input : `${node}:${name}`;
  }
  // Returns the inputs of a node in the form of the file.
  private inputsOfFile(node: EditNode): readonly string[] {
    if (node.body === 0) return node.inputs;
    const odd = this.oddInputs.get(node.base);
    return node.inputs.map((input, i) =>
      (odd?.has(i) === true && this.base[node.base]!.inputs[i] === input
        ? this.fileInputs.get(node.base)![i]! : this.toFile(input, node.body)));
  }
  private endsOf(body: number): EditNode[] {
    return this.nodesOf(body).filter((node) => node.end !== '');
  }
  private headerOf(f: number): Field[] {
    return this.functionBases[f]!.header.fields(
      this.functionOf(f + 1), this.endsOf(f + 1), (node) => this.fileDefs.get(node.base) ?? null,
      (node) => this.inputsOfFile(node));
  }

  // Returns a function in the form of the server.
  private functionItem(f: number): FunctionItem {
    const base = this.functionBases[f]!;
    const body = this.nodesOf(f + 1);
    const nodes = body.filter((node) => node.end === '').map((node) => this.item(node, base.begin));
    const text = headerText(this.headerOf(f), '');
    if (base.isNew) return { h: text, nodes };
    const isSame = text === base.text && nodes.length === base.end - base.begin &&
      nodes.every((item, i) => item === i);
    if (isSame) return f;
    return text === base.text ? { f, nodes } : { f, h: text, nodes };
  }
  functionItems(): FunctionItem[] {
    // Nodes that are unedited, or whose edits were undone, come from the file.
    const isBase = (node: EditNode): boolean => node === this.base[node.base];
    const hasSignatures = this.functionBases.every((base, f) => {
      const ends = this.endsOf(f + 1);
      return !base.isNew && this.functionOf(f + 1) === base.header.name &&
        ends.length === base.numEnds && ends.every(isBase);
    });
    return this.bodies.map((number) => {
      const f = number - 1;
      const base = this.functionBases[f]!;
      const body = this.nodesOf(number);
      const isSame = hasSignatures && body.length === base.numEnds + base.end - base.begin;
      return isSame && body.every(isBase) && isAscending(body) ? f : this.functionItem(f);
    });
  }

  // Returns the function library as text.
  private libraryText(): string {
    const functions = this.bodies.map((body) => {
      const f = body - 1;
      const { json, text, isNew } = this.functionBases[f]!;
      const fields = this.headerOf(f);
      const header = headerText(fields, '    ');
      const nodes = this.nodesOf(f + 1).filter((node) => node.end === '').map((node) =>
        `    node_def {\n${nodeText({ ...node, inputs: this.inputsOfFile(node) }, '      ')}    }\n`);
      const isSame = !isNew && headerText(fields, '') === text;
      return `  function {\n${isSame ? json.h : header}${nodes.join('')}  }\n`;
    });
    return functions.length === 0 && this.functionsRest === '' ? '' : `library {\n${functions.join('')}${this.functionsRest}}\n`;
  }

  // ---- Files ----

  // Returns the graph as the text of a file. Long attributes of the file are missing.
  text(): string {
    return graphText(this.nodesOf(0)) + this.libraryText() + this.rest;
  }
  get hasAllText(): boolean {
    return this.list.every((node) =>
      node.more !== null && Object.values(node.attrs).every((value) => value !== null));
  }

  // Returns the graph in the form of the server (tools/edit/edit_graph.h).
  items(): NodeItem[] {
    return this.nodesOf(0).map((node) => this.item(node, 0));
  }
  // `first` is the place of the body's first node in the file.
  private item(node: EditNode, first: number): NodeItem {
    const inputs = this.inputsOfFile(node);
    const before = this.fileInputs.get(node.base);
    const isSame = before === undefined || inputs.every((input, i) => input === before[i]);
    if (isSame && this.isUntouched(node)) return node.base - first;
    const written = { ...node, inputs };
    if (node.base < 0) return { t: nodeText(written) };
    const original = this.base[node.base]!.attrs;
    const kept = Object.keys(node.attrs).filter((name) => node.attrs[name] === original[name]);
    // The server keeps the other fields of the node in the file.
    return { t: nodeText({ ...written, more: '' }, '', new Set(kept)), b: node.base - first, k: kept };
  }

  // Returns a function name that no op has.
  freeFunction(wanted: string): string {
    for (let i = 1; ; ++i) {
      const name = i === 1 ? wanted : `${wanted}_${i}`;
      if (this.library.find(name) === null && this.bodyOf(name) === 0) return name;
    }
  }
  // Returns a node name that is free in the body.
  freeName(wanted: string, body = 0, end: EndKind = ''): string {
    if (this.findEnd(wanted, body, end) === null) return wanted;
    const stem = wanted.replace(/_\d+$/, '');
    for (let i = 1; ; ++i) {
      if (this.findEnd(`${stem}_${i}`, body, end) === null) return `${stem}_${i}`;
    }
  }

  // ---- History ----

  undo(): string | null {
    const edit = this.past.pop();
    if (edit === undefined) return null;
    this.changeAll([...edit.patches].reverse()
      .map(({ at, before, after }) => ({ at, before: after, after: before })));
    this.setAside(edit.before);
    this.updateFunctions(edit.patches);
    this.future.push(edit);
    return edit.title;
  }
  redo(): string | null {
    const edit = this.future.pop();
    if (edit === undefined) return null;
    this.changeAll(edit.patches);
    this.setAside(edit.after);
    this.updateFunctions(edit.patches);
    this.past.push(edit);
    return edit.title;
  }

  // Applies patches in order. Consecutive insertions at ascending places, and consecutive removals
  // at descending places, take one pass over the list.
  private changeAll(patches: readonly Patch[]): void {
    for (let first = 0; first < patches.length;) {
      const { at, before, after } = patches[first]!;
      let end = first + 1;
      const isInserted = before === null;
      const isRemoved = after === null;
      while (end < patches.length && (patches[end]!.before === null) === isInserted &&
             (patches[end]!.after === null) === isRemoved &&
             (isInserted ? patches[end]!.at > patches[end - 1]!.at
               : isRemoved ? patches[end]!.at < patches[end - 1]!.at : false)) {
        ++end;
      }
      if (isInserted) {
        this.insertRun(patches.slice(first, end));
      } else if (isRemoved) {
        const gone = new Set(patches.slice(first, end).map((patch) => patch.at));
        this.list = this.list.filter((_, i) => !gone.has(i));
      } else {
        this.list[at] = after;
      }
      first = end;
    }
    this.byName = null;
    this.byId = null;
    this.byBody = null;
    this.uses = null;
  }
  // `patches` give the places of new nodes in the resulting list, in ascending order.
  private insertRun(patches: readonly Patch[]): void {
    const list: EditNode[] = [];
    let from = 0;
    for (const { at, after } of patches) {
      while (list.length < at) list.push(this.list[from++]!);
      list.push(after!);
    }
    while (from < this.list.length) list.push(this.list[from++]!);
    this.list = list;
  }

  // Sets the state that is not nodes, and updates the function ops. The nodes must already be set.
  private setAside(aside: Aside): void {
    const before = this.aside.functions;
    this.aside = aside;
    if (before === aside.functions) return;
    this.uses = null;
    for (const [body, name] of before) {
      if (this.functionBases[body - 1]!.op !== null && aside.functions.get(body) !== name) {
        this.library.removeFunction(name);
      }
    }
    for (const [body, name] of aside.functions) {
      if (before.get(body) !== name) this.updateFunction(body);
    }
  }
  private updateFunction(body: number): void {
    const { header, op } = this.functionBases[body - 1]!;
    const n = this.aside.functions.get(body);
    if (op === null || n === undefined) return;
    this.library.setFunction({ ...header.op(op, this.endsOf(body)), n });
  }

  // Makes an edit. Patches of calls to a new or renamed function already use its new name.
  private apply(title: string, patches: Patch[], functions = this.aside.functions): void {
    if (patches.length === 0 && functions === this.aside.functions) return;
    const aside = { before: this.aside, after: { ...this.aside, functions } };
    const bodies = bodiesOfEnds(patches);
    const before = bodies.map((body) => this.endsOf(body));
    const all = [...patches];
    this.changeAll(patches);
    bodies.forEach((body, i) => {
      // Resolves inputs and outputs of the calls with the old signature.
      const calls = this.callPatches(body, before[i]!);
      this.changeAll(calls);
      all.push(...calls);
    });
    this.setAside(aside.after);
    this.updateFunctions(patches);
    this.past.push({ title, patches: all, ...aside, version: ++this.versions });
    this.future.length = 0;
  }

  // Combines the edits made by `edit` into one, with the title of the first. Undoes them all if
  // `edit` throws.
  together<T>(edit: () => T): T {
    const begin = this.past.length;
    let result: T;
    try {
      result = edit();
    } catch (error) {
      while (this.past.length > begin) this.undo();
      this.future.length = 0;
      throw error;
    }
    const edits = this.past.splice(begin);
    if (edits.length > 0) {
      const last = edits[edits.length - 1]!;
      this.past.push({ ...last, title: edits[0]!.title, before: edits[0]!.before,
                       patches: edits.flatMap((part) => part.patches) });
    }
    return result;
  }

  // Sets the feed of a node's output. The version does not change, because feeds are not part of a
  // file.
  setFeed(id: number, field: FeedField): void {
    const node = this.need(id);
    if (isSameFeed(field, this.feeds.get(id) ?? kNoFeed)) return;
    const after = { ...this.aside, feeds: new Map([...this.feeds, [id, field]]) };
    this.past.push({ title: `Feed ${node.name}`, patches: [], before: this.aside, after, version: this.version });
    this.aside = after;
    this.future.length = 0;
    this.forget();
  }

  // Drops the oldest edits while the files fed in the history take too much memory.
  private forget(): void {
    const sizes = new Map<string, number>();
    let total = 0;
    for (let i = this.past.length - 1; i >= 0; --i) {
      for (const { bytes } of [...this.past[i]!.before.feeds.values(), ...this.past[i]!.after.feeds.values()]) {
        if (bytes === '' || sizes.has(bytes)) continue;
        sizes.set(bytes, bytes.length);
        total += bytes.length;
      }
      if (total <= this.maxFeedBytes || i === this.past.length - 1) continue;
      this.firstVersion = this.past[i]!.version;
      this.past.splice(0, i + 1);
      return;
    }
  }

  // Updates the signatures of functions whose arguments or results the patches change.
  private updateFunctions(patches: readonly Patch[]): void {
    for (const body of bodiesOfEnds(patches)) this.updateFunction(body);
  }

  // Returns patches that adapt the calls of a function, and the readers of the calls, to a new
  // signature. The library still has the old signature.
  private callPatches(body: number, before: readonly EditNode[]): Patch[] {
    const { op: original } = this.functionBases[body - 1]!;
    const op = original === null ? null : this.library.find(this.functionOf(body));
    if (op === null) return [];
    const ends = this.endsOf(body);
    const places = (end: EndKind): number[] => {
      const of = before.filter((node) => node.end === end).map((node) => node.id);
      return ends.filter((node) => node.end === end).map((node) => of.indexOf(node.id));
    };
    const [args, results] = [places('arg'), places('result')];
    const isSame = (list: number[], size: number): boolean =>
      list.length === size && list.every((from, i) => from === i);
    if (isSame(args, op.i.length) && isSame(results, op.o.length)) return [];
    const changed = new Map<number, EditNode>();
    // For each call, by body and name: the new places of its outputs; -1 for removed outputs.
    const outputs = new Map<string, number[]>();
    this.list.forEach((node, at) => {
      if (node.op !== op.n || node.end !== '') return;
      const data = node.inputs.filter((input) => !input.startsWith('^'));
      const control = node.inputs.filter((input) => input.startsWith('^'));
      const parts: string[][] = [];
      let next = 0;
      for (const arg of op.i) {
        const size = this.library.sizeOf(node, arg);
        const from = next;
        parts.push(Array.from({ length: size }, (_, i) => data[from + i] ?? ''));
        next += size;
      }
      const inputs = [
        ...args.flatMap((from) => (from < 0 ? [''] : parts[from]!)), ...data.slice(next), ...control,
      ];
      const after = { ...node, inputs };
      if (!isSameNode(node, after)) changed.set(at, after);
      const starts: number[] = [];
      let start = 0;
      const sizes = op.o.map((arg) => this.library.sizeOf(node, arg));
      results.forEach((from) => {
        starts.push(start);
        start += from < 0 ? 1 : sizes[from]!;
      });
      outputs.set(nameKey(node.name, node.body, ''), sizes.flatMap((size, from) => {
        const to = results.indexOf(from);
        return Array.from({ length: size }, (_, i) => (to < 0 ? -1 : starts[to]! + i));
      }));
    });
    this.list.forEach((node, at) => {
      const now = changed.get(at) ?? node;
      const inputs = now.inputs.map((input) => {
        const source = parseInput(input);
        if (input === '' || source.output < 0) return input;
        const to = outputs.get(nameKey(source.node, node.body, ''))?.[source.output];
        return to === undefined ? input : to < 0 ? '' : formatInput(source.node, to);
      });
      const after = { ...now, inputs };
      if (!isSameNode(now, after)) changed.set(at, after);
    });
    return [...changed].map(([at, after]) => ({ at, before: this.list[at]!, after }));
  }
  private replace(title: string, changed: readonly EditNode[]): void {
    this.apply(title, changed.map((after) => {
      const at = this.indexOf(after.id);
      return { at, before: this.list[at]!, after };
    }));
  }
  private need(id: number): EditNode {
    const node = this.get(id);
    if (node === null) throw new Error('the block is not in the graph');
    return node;
  }

  private needBody(body: number): void {
    if (body !== 0 && this.functionOf(body) === '') throw new Error('the function is not in the graph');
  }

  // ---- Edits: each is one step of the history. Invalid edits throw an error with the reason ----

  private make(op: string, name: string, body: number): EditNode {
    const def = this.library.find(op);
    const attrs: Record<string, string> = {};
    for (const [attr, type, , , min, , value] of def?.a ?? []) {
      // List sizes grow with their connections.
      if (value !== null && value !== undefined) continue;
      if (type === 'int') attrs[attr] = `i: ${def!.i.some((arg) => this.library.numberAttr(arg) === attr) ? 0 : (min ?? 0)}`;
      if (type === 'list(type)') attrs[attr] = 'list { }';
    }
    const end = body === 0 ? '' : endOf(op);
    const node: EditNode =
      { id: this.nextId++, base: -1, body, end, name, op, device: '', inputs: [], attrs, more: '' };
    const pins = this.library.inputs(node).filter((pin) => !pin.isNew);
    return { ...node, inputs: pins.map(() => '') };
  }

  // Adds an unconnected block with these attributes, and returns it.
  add(op: string, name = '', attrs: Readonly<Record<string, string>> = {}, body = 0): EditNode {
    this.needBody(body);
    const end = body === 0 ? '' : endOf(op);
    if (name !== '' && this.findEnd(name, body, end) !== null) {
      throw new Error(`there is a block '${name}' already`);
    }
    const free = name !== '' ? name : this.freeName(kEndNames[end] ?? op, body, end);
    const made = this.make(op, free, body);
    const node = { ...made, attrs: { ...made.attrs, ...attrs } };
    this.apply(`Add ${node.name}`, [{ at: this.placeOf(node), before: null, after: node }]);
    return node;
  }
  // Returns the place for a new node.
  private placeOf(node: EditNode, list: readonly EditNode[] = this.list): number {
    const at = list.findIndex((other) => rank(other) > rank(node));
    return at < 0 ? list.length : at;
  }

  // Adds nodes from text or from a server. Names that are taken get a suffix; inputs between the
  // new nodes are adapted.
  paste(nodes: readonly EditNodeJson[], title = 'Paste', body = 0): EditNode[] {
    this.needBody(body);
    const names = new Map<string, string>();
    const taken = new Set<string>();
    const list: string[] = [];
    const ends = nodes.map((node) => (body === 0 ? '' : endOf(node.op)));
    nodes.forEach((node, i) => {
      const end = ends[i]!;
      const wanted = end === '' ? node.n : nameOfEnd(node.n);
      let name = this.freeName(wanted, body, end);
      for (let k = 1; taken.has(nameKey(name, body, end)) ||
           (k > 1 && this.findEnd(name, body, end) !== null); ++k) {
        name = `${wanted.replace(/_\d+$/, '')}_${k}`;
      }
      taken.add(nameKey(name, body, end));
      list.push(name);
      if ((end === '' || end === 'arg') && !names.has(node.n)) names.set(node.n, name);
    });
    const added = nodes.map((node, i) => {
      const inputs = node.i.map((input) => {
        const name = names.get(parseInput(input).node);
        return name === undefined ? input : redirectInput(input, name);
      });
      const made = { ...node, n: list[i]!, i: inputs };
      return nodeFromJson(ends[i] === '' ? made : plainEnd(made, ends[i]!), this.nextId++, -1, body, ends[i]!);
    });
    this.apply(title, this.insertions(added));
    return added;
  }

  // Removes blocks. Disconnects the pins that read them.
  remove(ids: readonly number[]): void {
    const nodes = [...new Set(ids)].map((id) => this.need(id));
    const going = new Set(nodes.map((node) => node.id));
    // Results also have names, but nothing reads them.
    const gone = new Set(nodes.filter((node) => node.end === '' || node.end === 'arg')
      .map((node) => nameKey(node.name, node.body, '')));
    const patches: Patch[] = [];
    for (const [at, node] of this.list.entries()) {
      const isGone = (input: string): boolean =>
        input !== '' && gone.has(nameKey(parseInput(input).node, node.body, ''));
      if (going.has(node.id) || !node.inputs.some(isGone)) continue;
      const inputs = node.inputs.filter((input) => !(input.startsWith('^') && isGone(input)))
        .map((input) => (isGone(input) ? '' : input));
      patches.push({ at, before: node, after: { ...node, inputs } });
    }
    const places = nodes.map((node) => this.indexOf(node.id)).sort((a, b) => b - a);
    for (const at of places) patches.push({ at, before: this.list[at]!, after: null });
    this.apply(nodes.length === 1 ? `Remove ${nodes[0]!.name}` : `Remove ${nodes.length} blocks`, patches);
  }

  rename(id: number, name: string): void {
    this.renameAll([[id, name]], `Rename ${this.need(id).name}`);
  }

  // Renames blocks together. The new names must differ.
  private renameAll(names: readonly (readonly [number, string])[], title: string): void {
    const all = new Map<string, string>();
    const { body } = this.need(names[0]![0]);
    for (const [id, name] of names) {
      const node = this.need(id);
      if (node.body !== body) throw new Error('the blocks are in several functions');
      if (name !== node.name) all.set(nameKey(node.name, body, node.end), name);
    }
    for (const [id, name] of names) {
      const { end, name: before } = this.need(id);
      if (name === before) continue;
      if (end === '' ? !/^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$/.test(name) : !/^[A-Za-z]\w*$/.test(name)) {
        throw new Error(end === ''
          ? 'a name has letters, digits and _ . \\ / > -, and begins with a letter, digit or .'
          : 'the name of an argument or result has letters, digits and _, and begins with a letter');
      }
      if (this.findEnd(name, body, end) !== null && !all.has(nameKey(name, body, end))) {
        throw new Error(`there is a block '${name}' already`);
      }
    }
    // The new names by old name, as inputs spell them.
    const renamed = new Map([...all].flatMap(([key, name]): [string, string][] =>
      (key.startsWith(nameKey('', body, '')) ? [[key.slice(nameKey('', body, '').length), name]] : [])));
    const changed: EditNode[] = [];
    for (const node of this.list) {
      if (node.body !== body) continue;
      const inputs = node.inputs.map((input) => {
        const name = input === '' ? undefined : renamed.get(parseInput(input).node);
        return name === undefined ? input : redirectInput(input, name);
      });
      // Also renames the nodes that this node is colocated with.
      const group = node.attrs._class;
      const attrs = typeof group !== 'string' ? node.attrs : {
        ...node.attrs,
        _class: group.replace(/"loc:@((?:[^"\\]|\\[^])*)"/g, (whole, place: string) => {
          const name = renamed.get(unquote(`"${place}"`) ?? '');
          return name === undefined ? whole : quote(`loc:@${name}`);
        }),
      };
      const name = all.get(nameKey(node.name, body, node.end)) ?? node.name;
      const after = { ...node, name, inputs, attrs };
      if (!isSameNode(node, after)) changed.push(after);
    }
    this.replace(title, changed);
  }

  // Moves blocks that are all in scope `from` ("a/b/") to scope `to`. "" is the outermost scope.
  moveTo(ids: readonly number[], from: string, to: string): void {
    const prefix = to.replace(/\/?$/, to === '' ? '' : '/');
    this.renameAll(ids.map((id) => [id, prefix + this.need(id).name.slice(from.length)]),
                   prefix === '' ? `Take out of ${from}` : `Put into ${prefix}`);
  }
  // Returns the innermost scope that contains all the blocks: "a/b/", or "".
  commonScope(ids: readonly number[]): string {
    let common: string[] | null = null;
    for (const id of ids) {
      const path: string[] = this.need(id).name.split('/').slice(0, -1);
      let same = 0;
      while (common !== null && same < common.length && common[same] === path[same]) ++same;
      common = common === null ? path : common.slice(0, same);
    }
    return common === null || common.length === 0 ? '' : `${common.join('/')}/`;
  }

  // Sets an attribute to a value in text format, or removes it if the value is null.
  setAttr(id: number, name: string, text: string | null): void {
    const node = this.need(id);
    const attrs = { ...node.attrs };
    if (text === null) delete attrs[name];
    else attrs[name] = text;
    // A constant has the type of its value.
    const type = /^tensor \{ dtype: (DT_\w+) /.exec(text ?? '')?.[1];
    if (node.op === 'Const' && name === 'value' && type !== undefined) attrs.dtype = `type: ${type}`;
    this.setAttrs(node, attrs, `Set ${name} of ${node.name}`);
  }
  private setAttrs(node: EditNode, attrs: Record<string, string | null>, title: string): void {
    let after: EditNode = { ...node, attrs };
    // Adapts the inputs if lists have become longer or shorter.
    const isLonger = this.library.find(node.op)?.i
      .some((arg) => this.library.sizeOf(node, arg) !== this.library.sizeOf(after, arg));
    if (isLonger === true) {
      const data = after.inputs.filter((input) => !input.startsWith('^'));
      const control = after.inputs.filter((input) => input.startsWith('^'));
      after = { ...after, inputs: [...this.fitInputs(node, after, data), ...control] };
    }
    if (!isSameNode(node, after)) this.replace(title, [after]);
  }
  // Distributes the data inputs of `node` over the pins of `after`: the inputs of each argument,
  // then inputs that belong to no argument.
  private fitInputs(node: EditNode, after: EditNode, data: readonly string[]): string[] {
    const inputs: string[] = [];
    let at = 0;
    for (const arg of this.library.find(node.op)!.i) {
      const before = this.library.sizeOf(node, arg);
      const size = this.library.sizeOf(after, arg);
      for (let i = 0; i < size; ++i) inputs.push(i < before ? (data[at + i] ?? '') : '');
      at += before;
    }
    return [...inputs, ...data.slice(at)];
  }

  setDevice(id: number, device: string): void {
    const node = this.need(id);
    if (device !== node.device) this.replace(`Set the device of ${node.name}`, [{ ...node, device }]);
  }

  // Returns the attributes that connecting would set, or the reason why the connection is invalid.
  check(from: End, to: End, pin: Pin): Record<string, string> | string {
    return this.checkWith(from, to, pin, (source, target) => this.reaches(target, source));
  }
  // Returns the pins of the blocks `ids` that pin `end` may be connected to. Takes time linear in
  // the graph and in the number of pins.
  fitting(end: End, isOutput: boolean, ids: Iterable<number>): End[] {
    const node = this.get(end.id);
    if (node === null) return [];
    const around = isOutput ? this.producersOf(node) : this.consumersOf(node);
    const found: End[] = [];
    for (const id of ids) {
      const other = this.get(id);
      if (other === null || around.has(id)) continue;
      const pins = isOutput ? this.library.inputs(other) : this.library.outputs(other);
      for (const pin of pins) {
        if (pin.isNew) continue;
        const there = { id, index: pin.index };
        const [from, to] = isOutput ? [end, there] : [there, end];
        const input = isOutput ? pin : this.library.inputs(node).find((p) => p.index === end.index && !p.isNew);
        if (input === undefined) continue;
        if (typeof this.checkWith(from, to, input, () => false) !== 'string') found.push(there);
      }
    }
    return found;
  }
  // Returns the node and all nodes that it depends on, with the same rules as reaches().
  private producersOf(node: EditNode): Set<number> {
    const seen = new Set([node.id]);
    const work = [node];
    while (work.length > 0) {
      const last = work.pop()!;
      if (last.op === 'NextIteration' || last.op === 'RefNextIteration') continue;
      for (const input of last.inputs) {
        const source = input === '' ? null : this.find(parseInput(input).node, node.body);
        if (source === null || seen.has(source.id)) continue;
        seen.add(source.id);
        work.push(source);
      }
    }
    return seen;
  }
  private consumersOf(node: EditNode): Set<number> {
    const readers = new Map<string, EditNode[]>();
    for (const other of this.nodesOf(node.body)) {
      if (other.op === 'NextIteration' || other.op === 'RefNextIteration') continue;
      for (const input of other.inputs) {
        const { node: name } = parseInput(input);
        const list = readers.get(name);
        if (list === undefined) readers.set(name, [other]);
        else list.push(other);
      }
    }
    const seen = new Set([node.id]);
    const work = [node];
    while (work.length > 0) {
      const last = work.pop()!;
      // Results have no readers.
      if (last.end === 'result' || last.end === 'control') continue;
      for (const reader of readers.get(last.name) ?? []) {
        if (seen.has(reader.id)) continue;
        seen.add(reader.id);
        work.push(reader);
      }
    }
    return seen;
  }
  private checkWith(from: End, to: End, pin: Pin,
                    isCycle: (source: EditNode, target: EditNode) => boolean): Record<string, string> | string {
    const source = this.get(from.id);
    const target = this.get(to.id);
    if (source === null || target === null) return 'the block is not in the graph';
    if (source.body !== target.body) return 'the blocks are in different functions';
    const output = this.library.outputs(source).find((p) => p.index === from.index);
    if (output === undefined) return `${source.name} has no output ${from.index}`;
    if (isCycle(source, target)) return 'the connection would make a cycle';
    const data = target.inputs.filter((input) => !input.startsWith('^'));
    // A type attribute is free if no other input fixes it.
    const isFree = (attr: string): boolean => this.library.inputs(target).every((other) =>
      other.isNew || this.library.typeAttr(other.arg) !== attr ||
      (other.index === pin.index && !pin.isNew) || (data[other.index] ?? '') === '');
    return this.library.fit(target, pin, this.library.typeOf(source, output), isFree);
  }

  // Returns true if `to` depends on `from`. Edges through NextIteration do not count, because
  // TensorFlow's loops use them.
  private reaches(from: EditNode, to: EditNode): boolean {
    const seen = new Set<string>();
    const work = [to];
    while (work.length > 0) {
      const node = work.pop()!;
      if (node.id === from.id) return true;
      if (node.op === 'NextIteration' || node.op === 'RefNextIteration') continue;
      for (const input of node.inputs) {
        const { node: name } = parseInput(input);
        const source = input === '' || seen.has(name) ? null : this.find(name, node.body);
        seen.add(name);
        if (source !== null) work.push(source);
      }
    }
    return false;
  }

  // Connects an output to an input, and replaces the input's connection. `to.index` is the index of
  // a pin of Library.inputs().
  connect(from: End, to: End, isNew = false): void {
    const source = this.need(from.id);
    const target = this.need(to.id);
    const pins = this.library.inputs(target);
    const pin = pins.find((p) => p.index === to.index && p.isNew === isNew);
    if (pin === undefined) throw new Error(`${target.name} has no input ${to.index}`);
    const sets = this.check(from, to, pin);
    if (typeof sets === 'string') throw new Error(sets);
    const data = target.inputs.filter((input) => !input.startsWith('^'));
    const control = target.inputs.filter((input) => input.startsWith('^'));
    const count = pins.filter((p) => !p.isNew).length;
    while (data.length < count) data.push('');
    const input = formatInput(source.name, from.index);
    data.splice(pin.index, pin.isNew ? 0 : 1, input);
    this.replace(`Connect ${leaf(source.name)} to ${leaf(target.name)}`, [
      { ...target, inputs: [...data, ...control], attrs: { ...target.attrs, ...sets } },
    ]);
  }

  // Adds a control dependency.
  connectControl(from: number, to: number): void {
    const source = this.need(from);
    const target = this.need(to);
    const input = formatInput(source.name, -1);
    if (target.inputs.includes(input)) return;
    if (source.body !== target.body) throw new Error('the blocks are in different functions');
    if (source.end !== '' || target.end === 'arg' || target.end === 'result') {
      throw new Error('arguments and results of a function have no order');
    }
    if (this.reaches(target, source)) throw new Error('the connection would make a cycle');
    this.replace(`Run ${leaf(target.name)} after ${leaf(source.name)}`,
                 [{ ...target, inputs: target.end === 'control' ? [input] : [...target.inputs, input] }]);
  }

  // Disconnects an input, given its place among all inputs. Removing an element shortens its list.
  disconnect(id: number, place: number): void {
    const node = this.need(id);
    const input = node.inputs[place];
    if (input === undefined) throw new Error(`${node.name} has no input ${place}`);
    const inputs = [...node.inputs];
    const attrs: Record<string, string | null> = { ...node.attrs };
    const pin = input.startsWith('^') ? undefined
      : this.library.inputs(node).find((p) => p.index === place && !p.isNew);
    const number = pin === undefined ? '' : this.library.numberAttr(pin.arg);
    if (input.startsWith('^')) {
      inputs.splice(place, 1);
    } else if (pin !== undefined && pin.arg[3] === 1 && number !== '') {
      // Another argument may share the size attribute.
      const sharing = (this.library.find(node.op)?.i ?? [])
        .filter((arg) => this.library.numberAttr(arg) === number);
      if (sharing.length === 1) {
        inputs.splice(place, 1);
        attrs[number] = `i: ${this.library.sizeOf(node, pin.arg) - 1}`;
      } else {
        inputs[place] = '';
      }
    } else {
      if (input === '') return;
      inputs[place] = '';
    }
    this.replace(`Disconnect ${node.name}`, [{ ...node, inputs, attrs }]);
  }

  // ---- Functions: each edit is one step of the history, and also updates the library ----

  // Throws unless a function may have this name.
  private checkFunction(name: string): void {
    if (!/^[A-Za-z_]\w*$/.test(name)) {
      throw new Error('the name of a function has letters, digits and _, and begins with no digit');
    }
    if (this.library.find(name) !== null || this.bodyOf(name) > 0) {
      throw new Error(`there is an op or a function '${name}' already`);
    }
  }

  // Returns the uses of functions. Computed in one pass over the graph after each edit.
  private functionUses(): FunctionUses {
    this.uses ??= this.findFunctionUses();
    return this.uses;
  }
  private findFunctionUses(): FunctionUses {
    const nodes = new Map<string, Map<number, EditNode>>();
    const elsewhere = new Map<string, string>();
    let long = '';
    for (const node of this.list) {
      const op = this.library.find(node.op);
      const names = node.end === '' && op?.k === 2 ? [node.op] : [];
      for (const [attr, value] of Object.entries(node.attrs)) {
        const found = value === null ? null : functionsNamed(value);
        names.push(...(found ?? []));
        if (found !== null) continue;
        // An attribute that the page does not have or cannot read may name functions.
        const type = this.library.attr(op, attr)?.[1] ?? 'func';
        if (value !== null || type.includes('func')) long ||= `attribute '${attr}' of '${node.name}' may name it`;
      }
      for (const name of names) {
        const users = nodes.get(name) ?? new Map<number, EditNode>();
        if (!users.has(node.body)) users.set(node.body, node);
        nodes.set(name, users);
      }
    }
    for (const body of this.bodies) {
      for (const name of this.functionBases[body - 1]!.header.functionsNamed()) {
        elsewhere.set(name, `an attribute of function '${this.functionOf(body)}' names it`);
      }
    }
    const rest = parseText(this.functionsRest);
    for (const [list, field] of kNamingFields) {
      for (const message of messages(rest, list)) {
        for (const value of scalars(message, field)) {
          elsewhere.set(unquote(value) ?? '', 'a gradient function of the file names it');
        }
      }
    }
    return { nodes, elsewhere, long };
  }

  // Adds a function whose only argument is also its result, and returns its body.
  addFunction(name: string): number {
    this.checkFunction(name);
    const body = this.newFunction(name);
    const end = (op: string, n: string, i: string[]): EditNode => nodeFromJson(
      { n, op, d: '', i, a: { T: 'type: DT_FLOAT' } }, this.nextId++, -1, body, endOf(op));
    const nodes = [end('_Arg', 'x', []), end('_Retval', 'y', ['x'])];
    this.apply(`Add function ${name}`, this.insertions(nodes),
               new Map([...this.aside.functions, [body, name]]));
    return body;
  }
  // Reserves a function whose nodes a following edit adds, and returns its body. The function does
  // not exist without that edit.
  private newFunction(name: string): number {
    const json = { h: `signature { name: ${quote(name)} }`, nodes: [] };
    const op: OpJson = { n: name, k: 2, s: '', d: '', i: [], o: [], a: [], f: 0 };
    this.functionBases.push({
      isNew: true, header: new FunctionHeader(json), json, op, begin: 0, end: 0, numEnds: 0, text: '',
    });
    this.byBody = null;
    return this.functionBases.length;
  }
  // Returns patches that add nodes to a list.
  private insertions(nodes: readonly EditNode[], list: readonly EditNode[] = this.list): Patch[] {
    const sorted = [...nodes].sort((a, b) => rank(a) - rank(b));
    let at = 0;
    // Places refer to the growing list.
    return sorted.map((after, i) => {
      while (at < list.length && rank(list[at]!) <= rank(after)) ++at;
      return { at: at + i, before: null, after };
    });
  }

  // Moves blocks into a new function and replaces them with a call, which it returns. The tensors
  // that the blocks read become arguments. The results are the tensors that other blocks read, and
  // the outputs of blocks that nothing reads.
  extractFunction(ids: readonly number[], name: string): EditNode {
    this.checkFunction(name);
    const chosen = new Set(ids);
    const nodes = this.list.filter((node) => chosen.has(node.id));
    if (nodes.length === 0) throw new Error('the block is not in the graph');
    const from = nodes[0]!.body;
    const inside = new Map(nodes.map((node) => [node.name, node]));
    this.checkExtraction(nodes, inside);
    const body = this.functionBases.length + 1;
    const taken = new FreeNames(inside.keys());
    const end = (op: string, n: string, i: string[], a: Record<string, string>): EditNode =>
      nodeFromJson({ n, op, d: '', i, a }, this.nextId++, -1, body, endOf(op));
    const typeOf = (source: EditNode, output: number): string => {
      const type = this.library.outputType(source, output).replace(/_ref$/, '');
      if (type === '') throw new Error(`the type of '${formatInput(source.name, output)}' is not known`);
      return `type: ${typeEnum(type)}`;
    };
    // The argument for each outside tensor.
    const args = new Map<string, EditNode>();
    const after = new Set<string>();
    const isRead = new Set<string>();
    const moved = nodes.map((node): EditNode => {
      const inputs = node.inputs.flatMap((input, i) => {
        const { node: source, output } = parseInput(input);
        if (input === '') return [input];
        if (inside.has(source)) {
          isRead.add(source);
          return [input];
        }
        if (output < 0) {
          after.add(input);
          return [];
        }
        const producer = this.find(source, from);
        if (producer === null) throw new Error(`there is no block '${source}'`);
        this.checkValue(producer, output, node, i);
        let arg = args.get(formatInput(source, output));
        if (arg === undefined) {
          arg = end('_Arg', taken.take(nameOfEnd(leaf(source))), [], { T: typeOf(producer, output) });
          args.set(formatInput(source, output), arg);
        }
        return [arg.name];
      });
      return { ...node, base: -1, body, inputs };
    });
    const results = new Map<string, EditNode>();
    // The places of the results.
    const places = new Map<string, number>();
    const resultNames = new FreeNames([]);
    const result = (source: EditNode, output: number): number => {
      const tensor = formatInput(source.name, output);
      const place = places.get(tensor) ?? places.size;
      if (!results.has(tensor)) {
        places.set(tensor, place);
        results.set(tensor, end('_Retval', resultNames.take(nameOfEnd(leaf(source.name))), [tensor], { T: typeOf(source, output) }));
      }
      return place;
    };
    const controls = new Map<string, EditNode>();
    const callName = this.freeName(name, from);
    const patches: Patch[] = [];
    this.list.forEach((node, at) => {
      if (node.body !== from || chosen.has(node.id)) return;
      let isAfterCall = false;
      const inputs = node.inputs.flatMap((input, i) => {
        const { node: read, output } = parseInput(input);
        const source = input === '' ? undefined : inside.get(read);
        if (source === undefined) return [input];
        isRead.add(read);
        if (output >= 0) {
          this.checkValue(source, output, node, i);
          return [formatInput(callName, result(source, output))];
        }
        if (!controls.has(read)) {
          controls.set(read, end('_ControlRet', resultNames.take(nameOfEnd(leaf(read))), [input], {}));
        }
        if (isAfterCall) return [];
        isAfterCall = true;
        return [formatInput(callName, -1)];
      });
      const changed = { ...node, inputs };
      if (!isSameNode(node, changed)) patches.push({ at, before: node, after: changed });
    });
    for (const node of nodes) {
      if (isRead.has(node.name)) continue;
      for (const pin of this.library.outputs(node)) result(node, pin.index);
    }
    const call: EditNode = {
      id: this.nextId++, base: -1, body: from, end: '', name: callName, op: name, device: '',
      inputs: [...args.keys(), ...after], attrs: {}, more: '',
    };
    // The edit cannot fail after this point.
    this.newFunction(name);
    this.list.forEach((node, at) => {
      if (chosen.has(node.id)) patches.push({ at, before: node, after: null });
    });
    patches.sort((a, b) => Number(a.after === null) - Number(b.after === null) ||
      (a.after === null ? b.at - a.at : a.at - b.at));
    const rest = this.list.filter((node) => !chosen.has(node.id));
    patches.push(...this.insertions([call, ...args.values(), ...moved, ...results.values(), ...controls.values()], rest));
    this.apply(`Make function ${name}`, patches, new Map([...this.aside.functions, [body, name]]));
    return call;
  }
  // Throws if `reader` takes this output of `source` by reference, because arguments and results of
  // functions are values.
  private checkValue(source: EditNode, output: number, reader: EditNode, input: number): void {
    const { library } = this;
    if (!library.outputs(source).some((pin) => pin.index === output && isReference(pin.arg))) return;
    if (library.inputs(reader).some((pin) => pin.index === input && !pin.isNew && isReference(pin.arg))) {
      throw new Error(`'${reader.name}' changes '${source.name}' by reference: both stay, or both move`);
    }
  }
  // Throws if these nodes cannot be moved into a function. `inside` maps their names to the nodes.
  private checkExtraction(nodes: readonly EditNode[], inside: ReadonlyMap<string, EditNode>): void {
    const { body: from } = nodes[0]!;
    const work: string[] = [];
    for (const node of nodes) {
      if (node.body !== from) throw new Error('the blocks are in several functions');
      if (node.end !== '') throw new Error('an argument or result stays in its function');
      if (node.more === null) throw new Error(`'${node.name}' has fields that this page does not know`);
      for (const value of Object.values(node.attrs)) {
        if (value === null) throw new Error(`a large attribute of '${node.name}' stays in the file`);
        if (/(^|\s)placeholder:/.test(value)) throw new Error(`the types of '${node.name}' are those of its function`);
      }
      work.push(...node.inputs.map((input) => parseInput(input).node).filter((source) => !inside.has(source)));
    }
    for (const node of this.nodesOf(from)) {
      for (const [, place] of (node.attrs._class ?? '').matchAll(/"loc:@((?:[^"\\]|\\[^])*)"/g)) {
        if (inside.has(unquote(`"${place!}"`) ?? '') !== inside.has(node.name)) {
          throw new Error(`'${node.name}' is colocated with a block on the other side`);
        }
      }
    }
    // Visits the producers of the arguments.
    const seen = new Set<string>();
    while (work.length > 0) {
      const name = work.pop()!;
      if (seen.has(name)) continue;
      seen.add(name);
      if (inside.has(name)) throw new Error('a block between these is not among them');
      const node = this.find(name, from);
      for (const input of node?.inputs ?? []) if (input !== '') work.push(parseInput(input).node);
    }
  }

  // Renames a function, including in all calls and attributes.
  renameFunction(body: number, name: string): void {
    const before = this.functionOf(body);
    if (before === '') throw new Error('there is no such function');
    if (name === before) return;
    this.checkFunction(name);
    if (this.functionBases[body - 1]!.op === null) {
      throw new Error(`'${before}' is also the name of an op, which calls it has is not known`);
    }
    const { elsewhere, long } = this.functionUses();
    const reason = elsewhere.get(before) ?? long;
    if (reason !== '') throw new Error(`'${before}' keeps its name: ${reason}`);
    const patches: Patch[] = [];
    this.list.forEach((node, at) => {
      const op = node.op === before && node.end === '' ? name : node.op;
      const attrs = Object.fromEntries(Object.entries(node.attrs)
        .map(([attr, value]) => [attr, withFunction(value, before, name)]));
      const after = { ...node, op, attrs };
      if (!isSameNode(node, after)) patches.push({ at, before: node, after });
    });
    const functions = new Map([...this.aside.functions]
      .map(([of, n]): [number, string] => [of, of === body ? name : n]));
    this.apply(`Rename function ${before}`, patches, functions);
  }

  // Returns, by body, the reason why each function cannot be removed; "" if it can.
  removalProblems(): Map<number, string> {
    const { nodes, elsewhere, long } = this.functionUses();
    return new Map([...this.aside.functions].map(([body, name]) => {
      const user = [...(nodes.get(name)?.values() ?? [])].find((node) => node.body !== body);
      return [body, user !== undefined ? `'${user.name}' uses it` : (elsewhere.get(name) ?? long)];
    }));
  }
  // Removes a function that nothing uses.
  removeFunction(body: number): void {
    const name = this.functionOf(body);
    const reason = this.removalProblems().get(body) ?? 'it is not in the graph';
    if (reason !== '') throw new Error(`'${name}' stays: ${reason}`);
    const patches = this.list.flatMap((node, at): Patch[] =>
      (node.body === body ? [{ at, before: node, after: null }] : [])).reverse();
    const functions = new Map(this.aside.functions);
    functions.delete(body);
    this.apply(`Remove function ${name}`, patches, functions);
  }
}
