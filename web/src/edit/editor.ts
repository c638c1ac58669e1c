// Editor: a graph under construction, and its history. Pure data; knows no DOM and no server.
import type { EditNodeJson } from '../data/format.ts';
import { leaf } from '../data/text.ts';
import type { Library, Pin } from './library.ts';
import { formatInput, graphText, isSameNode, nodeFromJson, nodeText, parseInput } from './node.ts';
import type { EditNode } from './node.ts';
import { quote, unquote } from './text.ts';

// A change of the list of nodes at a place: replaced, inserted (no `before`) or removed (no `after`).
interface Patch {
  at: number;
  before: EditNode | null;
  after: EditNode | null;
}
interface Edit {
  title: string;
  patches: Patch[];
  // The number of the graph with this edit.
  version: number;
}

// An end of a connection.
export interface End {
  // EditNode.id
  id: number;
  index: number;
}

export type NodeItem = number | { t: string; b?: number; k?: string[] };

export class Editor {
  private list: EditNode[];
  private readonly base: readonly EditNode[];
  private readonly past: Edit[] = [];
  private readonly future: Edit[] = [];
  private nextId: number;
  // The number of the last edit that was made.
  private versions = 0;
  private byName: Map<string, number> | null = null;
  private byId: Map<number, number> | null = null;

  constructor(readonly library: Library, nodes: readonly EditNodeJson[], readonly rest: string) {
    this.base = nodes.map((node, i) => nodeFromJson(node, i, i));
    this.list = [...this.base];
    this.nextId = nodes.length;
  }

  // ---- Reading ----

  get nodes(): readonly EditNode[] {
    return this.list;
  }
  find(name: string): EditNode | null {
    this.byName ??= new Map(this.list.map((node, i) => [node.name, i]));
    const at = this.byName.get(name);
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
  // The number of this state of the graph: 0 for the file.
  get version(): number {
    return this.past[this.past.length - 1]?.version ?? 0;
  }
  // Whether a node is as in the file.
  isUntouched(node: EditNode): boolean {
    return node.base >= 0 && isSameNode(node, this.base[node.base]!);
  }

  // Returns the graph as text of a file. A long attribute of the file is missing.
  text(): string {
    return graphText(this.list, this.rest);
  }
  get hasAllText(): boolean {
    return this.list.every((node) => Object.values(node.attrs).every((value) => value !== null));
  }

  // Returns the graph for a server (tools/edit/edit_graph.h).
  items(): NodeItem[] {
    return this.list.map((node) => {
      if (this.isUntouched(node)) return node.base;
      if (node.base < 0) return { t: nodeText(node) };
      const original = this.base[node.base]!.attrs;
      const kept = Object.keys(node.attrs).filter((name) => node.attrs[name] === original[name]);
      return { t: nodeText(node, '', new Set(kept)), b: node.base, k: kept };
    });
  }

  // Returns a name that no node has.
  freeName(wanted: string): string {
    if (this.find(wanted) === null) return wanted;
    const stem = wanted.replace(/_\d+$/, '');
    for (let i = 1; ; ++i) if (this.find(`${stem}_${i}`) === null) return `${stem}_${i}`;
  }

  // ---- History ----

  undo(): string | null {
    const edit = this.past.pop();
    if (edit === undefined) return null;
    for (const { at, before, after } of [...edit.patches].reverse()) this.change(at, after, before);
    this.future.push(edit);
    return edit.title;
  }
  redo(): string | null {
    const edit = this.future.pop();
    if (edit === undefined) return null;
    for (const { at, before, after } of edit.patches) this.change(at, before, after);
    this.past.push(edit);
    return edit.title;
  }

  private change(at: number, before: EditNode | null, after: EditNode | null): void {
    if (after === null) this.list.splice(at, 1);
    else if (before === null) this.list.splice(at, 0, after);
    else this.list[at] = after;
    this.byName = null;
    this.byId = null;
  }

  private apply(title: string, patches: Patch[]): void {
    if (patches.length === 0) return;
    for (const { at, before, after } of patches) this.change(at, before, after);
    this.past.push({ title, patches, version: ++this.versions });
    this.future.length = 0;
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

  // ---- Edits: each is one step of the history. They throw an error that says what does not fit ----

  private make(op: string, name: string): EditNode {
    const def = this.library.find(op);
    const attrs: Record<string, string> = {};
    for (const [attr, type, , , min, , value] of def?.a ?? []) {
      // The sizes of lists grow with their connections.
      if (value !== null && value !== undefined) continue;
      if (type === 'int') attrs[attr] = `i: ${def!.i.some((arg) => this.library.numberAttr(arg) === attr) ? 0 : (min ?? 0)}`;
      if (type === 'list(type)') attrs[attr] = 'list { }';
    }
    const node: EditNode = { id: this.nextId++, base: -1, name, op, device: '', inputs: [], attrs };
    const pins = this.library.inputs(node).filter((pin) => !pin.isNew);
    return { ...node, inputs: pins.map(() => '') };
  }

  // Adds a block, not connected, with these attributes, and returns it.
  add(op: string, name = '', attrs: Readonly<Record<string, string>> = {}): EditNode {
    if (name !== '' && this.find(name) !== null) throw new Error(`there is a block '${name}' already`);
    const made = this.make(op, name === '' ? this.freeName(op) : name);
    const node = { ...made, attrs: { ...made.attrs, ...attrs } };
    this.apply(`Add ${node.name}`, [{ at: this.list.length, before: null, after: node }]);
    return node;
  }

  // Adds nodes of a text or of a server. Names that are taken get a suffix, also where these nodes
  // read each other.
  paste(nodes: readonly EditNodeJson[], title = 'Paste'): EditNode[] {
    const names = new Map<string, string>();
    const taken = new Set<string>();
    for (const node of nodes) {
      let name = this.freeName(node.n);
      for (let i = 1; taken.has(name) || (i > 1 && this.find(name) !== null); ++i) {
        name = `${node.n.replace(/_\d+$/, '')}_${i}`;
      }
      taken.add(name);
      if (!names.has(node.n)) names.set(node.n, name);
    }
    const list = [...taken];
    const added = nodes.map((node, i) => {
      const inputs = node.i.map((input) => {
        const source = parseInput(input);
        const name = names.get(source.node);
        return name === undefined ? input : formatInput(name, source.output);
      });
      return nodeFromJson({ ...node, n: list[i]!, i: inputs }, this.nextId++, -1);
    });
    this.apply(title, added.map((after, i) => ({ at: this.list.length + i, before: null, after })));
    return added;
  }

  // Removes blocks. Pins that read them are no longer connected.
  remove(ids: readonly number[]): void {
    const gone = new Set(ids.map((id) => this.need(id).name));
    const patches: Patch[] = [];
    for (const [at, node] of this.list.entries()) {
      if (gone.has(node.name) || !node.inputs.some((input) => gone.has(parseInput(input).node))) {
        continue;
      }
      const inputs = node.inputs.filter((input) => !(input.startsWith('^') && gone.has(input.slice(1))))
        .map((input) => (input !== '' && gone.has(parseInput(input).node) ? '' : input));
      patches.push({ at, before: node, after: { ...node, inputs } });
    }
    const places = ids.map((id) => this.indexOf(id)).sort((a, b) => b - a);
    for (const at of new Set(places)) patches.push({ at, before: this.list[at]!, after: null });
    this.apply(gone.size === 1 ? `Remove ${[...gone][0]!}` : `Remove ${gone.size} blocks`, patches);
  }

  rename(id: number, name: string): void {
    this.renameAll([[id, name]], `Rename ${this.need(id).name}`);
  }

  // Gives blocks new names, which differ, at once.
  private renameAll(names: readonly (readonly [number, string])[], title: string): void {
    const renamed = new Map<string, string>();
    for (const [id, name] of names) {
      const before = this.need(id).name;
      if (name !== before) renamed.set(before, name);
    }
    for (const name of renamed.values()) {
      if (!/^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$/.test(name)) {
        throw new Error('a name has letters, digits and _ . \\ / > -, and begins with a letter, digit or .');
      }
      if (this.find(name) !== null && !renamed.has(name)) {
        throw new Error(`there is a block '${name}' already`);
      }
    }
    const changed: EditNode[] = [];
    for (const node of this.list) {
      const inputs = node.inputs.map((input) => {
        const source = parseInput(input);
        const name = input === '' ? undefined : renamed.get(source.node);
        return name === undefined ? input : formatInput(name, source.output);
      });
      // The nodes that it is colocated with.
      const group = node.attrs._class;
      const attrs = typeof group !== 'string' ? node.attrs : {
        ...node.attrs,
        _class: group.replace(/"loc:@((?:[^"\\]|\\[^])*)"/g, (whole, place: string) => {
          const name = renamed.get(unquote(`"${place}"`) ?? '');
          return name === undefined ? whole : quote(`loc:@${name}`);
        }),
      };
      const after = { ...node, name: renamed.get(node.name) ?? node.name, inputs, attrs };
      if (!isSameNode(node, after)) changed.push(after);
    }
    this.replace(title, changed);
  }

  // Moves blocks from a scope that all of them are in, "a/b/", into another. "" is that of all.
  moveTo(ids: readonly number[], from: string, to: string): void {
    const prefix = to.replace(/\/?$/, to === '' ? '' : '/');
    this.renameAll(ids.map((id) => [id, prefix + this.need(id).name.slice(from.length)]),
                   prefix === '' ? `Take out of ${from}` : `Put into ${prefix}`);
  }
  // Returns the scope that blocks are in, "a/b/", or "".
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

  // Sets an attribute to a value in text format; removes it if the value is null.
  setAttr(id: number, name: string, text: string | null): void {
    const node = this.need(id);
    const attrs = { ...node.attrs };
    if (text === null) delete attrs[name];
    else attrs[name] = text;
    // The type of a constant is that of its value.
    const type = /^tensor \{ dtype: (DT_\w+) /.exec(text ?? '')?.[1];
    if (node.op === 'Const' && name === 'value' && type !== undefined) attrs.dtype = `type: ${type}`;
    this.setAttrs(node, attrs, `Set ${name} of ${node.name}`);
  }
  private setAttrs(node: EditNode, attrs: Record<string, string | null>, title: string): void {
    let after: EditNode = { ...node, attrs };
    // The inputs of lists that are shorter or longer now.
    const pins = this.library.inputs(after).filter((pin) => !pin.isNew);
    if (this.library.find(node.op) !== null) {
      const data = after.inputs.filter((input) => !input.startsWith('^'));
      const control = after.inputs.filter((input) => input.startsWith('^'));
      if (pins.length !== data.length) {
        after = { ...after, inputs: [...this.fitInputs(node, after, data), ...control] };
      }
    }
    if (!isSameNode(node, after)) this.replace(title, [after]);
  }
  // Returns the data inputs of `node` for the pins that `after` has: those of each argument.
  private fitInputs(node: EditNode, after: EditNode, data: readonly string[]): string[] {
    const inputs: string[] = [];
    let at = 0;
    for (const arg of this.library.find(node.op)!.i) {
      const before = this.library.sizeOf(node, arg);
      const size = this.library.sizeOf(after, arg);
      for (let i = 0; i < size; ++i) inputs.push(i < before ? (data[at + i] ?? '') : '');
      at += before;
    }
    return inputs;
  }

  setDevice(id: number, device: string): void {
    const node = this.need(id);
    if (device !== node.device) this.replace(`Set the device of ${node.name}`, [{ ...node, device }]);
  }

  // Returns the attributes that connecting sets, or why it does not fit.
  check(from: End, to: End, pin: Pin): Record<string, string> | string {
    const source = this.get(from.id);
    const target = this.get(to.id);
    if (source === null || target === null) return 'the block is not in the graph';
    const output = this.library.outputs(source).find((p) => p.index === from.index);
    if (output === undefined) return `${source.name} has no output ${from.index}`;
    if (this.reaches(target, source)) return 'the connection would make a cycle';
    const data = target.inputs.filter((input) => !input.startsWith('^'));
    // A type is free if no other input fixes it.
    const isFree = (attr: string): boolean => this.library.inputs(target).every((other) =>
      other.isNew || this.library.typeAttr(other.arg) !== attr ||
      (other.index === pin.index && !pin.isNew) || (data[other.index] ?? '') === '');
    return this.library.fit(target, pin, this.library.typeOf(source, output), isFree);
  }

  // Whether `to` reads `from`, by any way. Loops of TensorFlow go through NextIteration.
  private reaches(from: EditNode, to: EditNode): boolean {
    const seen = new Set<string>();
    const work = [to];
    while (work.length > 0) {
      const node = work.pop()!;
      if (node.id === from.id) return true;
      if (node.op === 'NextIteration' || node.op === 'RefNextIteration') continue;
      for (const input of node.inputs) {
        const { node: name } = parseInput(input);
        const source = input === '' || seen.has(name) ? null : this.find(name);
        seen.add(name);
        if (source !== null) work.push(source);
      }
    }
    return false;
  }

  // Connects an output to an input, whose connection it replaces. `to.index` is that of a pin of
  // Library.inputs().
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
    if (this.reaches(target, source)) throw new Error('the connection would make a cycle');
    this.replace(`Run ${leaf(target.name)} after ${leaf(source.name)}`,
                 [{ ...target, inputs: [...target.inputs, input] }]);
  }

  // Disconnects an input by its place among all inputs. A list gets shorter.
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
      // Another argument may have the same size.
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
}
