// The page data of an edited graph. For files, tools/view/graph_json.cc creates the same data.
import type { GraphJson, NodeExtra, NodeJson, OpJson, RunJson } from '../data/format.ts';
import { shorten } from '../data/text.ts';
import type { Editor } from './editor.ts';
import { fieldText } from './fields.ts';
import { parseInput } from './node.ts';

// The server's answer to a check of the graph.
export interface Checked {
  // For each node, the types and shapes of its outputs; null if the node cannot run.
  types: (string[] | null)[];
  problems: [number, string][];
  notes: string[];
}

const kMaxOutputs = 64;
const kMaxShown = 200;
const kMaxNotes = 20;

// Returns a note for each name that several functions share.
function doubleNames(editor: Editor): string[] {
  const names = new Set<string>();
  const double = new Set<string>();
  for (const name of editor.functions) {
    if (names.has(name)) double.add(name);
    names.add(name);
  }
  return [...double].slice(0, kMaxNotes).map((name) =>
    `Several functions are named '${shorten(name, kMaxShown)}': calls are of the first`);
}

export function displayGraph(editor: Editor, title: string, checked: Checked | null,
                             run: RunJson | null): GraphJson {
  const { library, nodes } = editor;
  const strings: string[] = [];
  const ids = new Map<string, number>();
  const id = (text: string): number => {
    let found = ids.get(text);
    if (found === undefined) {
      found = strings.length;
      ids.set(text, found);
      strings.push(text);
    }
    return found;
  };
  const ops: OpJson[] = [];
  const opIds = new Map<string, number>();
  const problems = new Map(checked?.problems ?? []);
  const shown = nodes.map((node, at): NodeJson => {
    let op = opIds.get(node.op);
    if (op === undefined) {
      op = ops.length;
      opIds.set(node.op, op);
      ops.push(library.find(node.op) ?? { n: node.op, k: 0, s: '', d: '', i: [], o: [], a: [], f: 0 });
    }
    const def = ops[op]!;
    const extra: NodeExtra = {};
    const inputs: number[] = [];
    const control: number[] = [];
    const unknown: number[] = [];
    for (const input of node.inputs) {
      const source = parseInput(input);
      const found = input === '' ? null : editor.find(source.node, node.body);
      const from = found === null ? -1 : editor.indexOf(found.id);
      if (from < 0 && input !== '') unknown.push(id(input));
      if (source.output < 0) control.push(from);
      else inputs.push(from, source.output);
    }
    if (control.length > 0) extra.c = control;
    if (unknown.length > 0) extra.u = unknown;
    const attrs: number[] = [];
    for (const name of Object.keys(node.attrs).sort()) {
      const text = node.attrs[name] ?? null;
      const attr = library.attr(def, name);
      if (attr !== null && text !== null && text === attr[6]) continue;
      const value = text === null ? '(large)' : (fieldText(attr?.[1] ?? '', text) ?? text);
      attrs.push(id(name), id(shorten(value, kMaxShown)));
      if (node.op === 'Const' && name === 'value') {
        extra.v = id(shorten(value.replace(/^\w+ \[[^\]]*\] /, ''), kMaxShown));
      }
    }
    if (attrs.length > 0) extra.a = attrs;
    if (node.device !== '') extra.d = id(node.device);
    const types = checked?.types[at] ?? null;
    const pins = def.k === 0 ? [] : library.outputs(node);
    if (types !== null) {
      if (types.length > 0) extra.t = types.map(id);
      if (pins.length > kMaxOutputs) extra.no = pins.length;
    } else if (pins.length > 0 && pins.every((pin) => library.typeOf(node, pin) !== '')) {
      extra.t = pins.slice(0, kMaxOutputs)
        .flatMap((pin) => [id(library.typeOf(node, pin)), id('<unknown>')]);
    }
    if (def.i.some((arg) => arg[3] === 1)) extra.ni = def.i.map((arg) => library.sizeOf(node, arg));
    if (def.o.some((arg) => arg[3] === 1)) extra.mo = def.o.map((arg) => library.sizeOf(node, arg));
    const problem = problems.get(at) ?? (def.k === 0 ? 'the op is not registered' : undefined);
    if (problem !== undefined) extra.e = id(problem);
    return Object.keys(extra).length === 0 ? [node.name, op, inputs] : [node.name, op, inputs, extra];
  });
  const json: GraphJson = {
    format: 1, generator: '', title, diff: false, notes: [...(checked?.notes ?? []), ...doubleNames(editor)], ops, functions: [],
    nodes: shown, strings,
  };
  let first = editor.nodesOf(0).length;
  for (const body of editor.bodies) {
    const count = editor.nodesOf(body).length;
    json.functions.push([editor.functionOf(body), first, count]);
    first += count;
  }
  if (run !== null) json.run = run;
  return json;
}
