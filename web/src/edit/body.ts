// Functions of a graph: their headers, and their bodies in the form that the editor uses.
//
// The body of a function is a list of nodes like the graph, plus a node for each argument, result
// and control output. The file has these in the header of the function.
import type { ArgJson, EditFunctionJson, EditNodeJson, OpJson } from '../data/format.ts';
import { fieldText, typeEnum, typeName } from './fields.ts';
import { endOf } from './library.ts';
import type { EditNode, EndKind } from './node.ts';
import { messages, parseText, printText, quote, scalars, unquote } from './text.ts';
import type { Field, Message } from './text.ts';

function text(message: Message, name: string): string {
  const values = scalars(message, name);
  return values.length === 0 ? '' : (unquote(values[values.length - 1]!) ?? '');
}

// Returns the entries of a string map.
function entries(message: Message, name: string): Map<string, string> {
  return new Map(messages(message, name).map((entry) => [text(entry, 'key'), text(entry, 'value')]));
}

// Replaces all fields named `name` by the fields `by`, at the place of the first replaced field.
function replaced(fields: readonly Field[], name: string, by: readonly Field[]): Field[] {
  const at = fields.findIndex(([n]) => n === name);
  const rest = (list: readonly Field[]): Field[] => list.filter(([n]) => n !== name);
  if (at < 0) return [...fields, ...by];
  return [...rest(fields.slice(0, at)), ...by, ...rest(fields.slice(at))];
}

const kTypeFields = ['type', 'type_attr', 'number_attr', 'type_list_attr'];

// Returns the type of a signature's argument as an attribute: 'type: DT_FLOAT', 'placeholder: "N *
// T"'.
function typeOfArg(arg: Message): string {
  const list = text(arg, 'type_list_attr');
  const number = text(arg, 'number_attr');
  const attr = text(arg, 'type_attr');
  const fixed = scalars(arg, 'type')[0] ?? '';
  if (list === '' && number === '' && attr === '') return fixed === '' ? '' : `type: ${fixed}`;
  const one = attr === '' ? typeName(fixed) : attr;
  return `placeholder: ${quote(list !== '' ? list : number === '' ? one : `${number} * ${one}`)}`;
}

// An argument, result or control output in the form of the file.
export interface FileEnd {
  json: EditNodeJson;
  end: EndKind;
  // The definition of an argument or result; null for a control output.
  def: Message | null;
}

// Returns a message with function `before` renamed to `after`, including in function attributes.
// Calls `found` with each name.
function renamed(message: Message, found: (name: string) => void, before = '', after = ''): Message {
  return {
    fields: message.fields.map(([field, value]): Field => {
      if (typeof value === 'string') return [field, value];
      const inner = renamed(value, found, before, after);
      if (field !== 'func') return [field, inner];
      const name = text(inner, 'name');
      found(name);
      if (name !== before || before === '') return [field, inner];
      return [field, { fields: replaced(inner.fields, 'name', [['name', quote(after)]]) }];
    }),
  };
}
// Returns the functions that the value of an attribute names. Returns null if the text cannot be
// read because it has unknown fields.
export function functionsNamed(value: string): string[] | null {
  const names: string[] = [];
  if (!/\bfunc\b/.test(value)) return names;
  try {
    renamed(parseText(value), (name) => names.push(name));
  } catch {
    return null;
  }
  return names;
}
// Returns the value of an attribute with function `before` renamed to `after`.
export function withFunction(value: string | null, before: string, after: string): string | null {
  if (value === null || functionsNamed(value)?.includes(before) !== true) return value;
  return printText(renamed(parseText(value), () => {}, before, after));
}

export class FunctionHeader {
  readonly name: string;
  private readonly message: Message;
  private readonly signature: Message;
  private readonly args: Message[];
  // The types of the function's attributes by name: "type", "list(type)".
  private readonly attrTypes: Map<string, string>;

  constructor(json: EditFunctionJson) {
    this.message = parseText(json.h);
    this.signature = messages(this.message, 'signature')[0] ?? { fields: [] };
    this.name = text(this.signature, 'name');
    this.args = messages(this.signature, 'input_arg');
    this.attrTypes = new Map(messages(this.signature, 'attr')
      .map((attr) => [text(attr, 'name'), text(attr, 'type')]));
  }

  // Returns the arguments, results and control outputs. Inputs are in the form of the file.
  ends(): FileEnd[] {
    const sources = entries(this.message, 'ret');
    const controls = entries(this.message, 'control_ret');
    const make = (op: string, n: string, i: string[], def: Message | null): FileEnd =>
      ({ json: { n, op, d: '', i, a: def === null ? {} : { T: typeOfArg(def) } }, end: endOf(op), def });
    const names = scalars(this.signature, 'control_output').map((name) => unquote(name) ?? '');
    return [
      ...this.args.map((def) => make('_Arg', text(def, 'name'), [], def)),
      ...messages(this.signature, 'output_arg').map((def) =>
        make('_Retval', text(def, 'name'), [sources.get(text(def, 'name')) ?? ''], def)),
      ...[...new Set([...names, ...controls.keys()])].map((name) => {
        const node = controls.get(name);
        return make('_ControlRet', name, node === undefined ? [] : [`^${node}`], null);
      }),
    ];
  }

  // Returns the functions that attributes of the function and its arguments name.
  functionsNamed(): string[] {
    const names: string[] = [];
    renamed(this.message, (name) => names.push(name));
    return names;
  }

  // Returns the definition of the function as an op.
  op(before: OpJson, ends: readonly EditNode[]): OpJson {
    const docs = new Map([...before.i, ...before.o].map((arg) => [arg[0], arg[2]]));
    const args = (end: EndKind): ArgJson[] => ends.filter((node) => node.end === end).map((node) => {
      const value = parseText(node.attrs.T ?? '');
      const type = fieldText('type', node.attrs.T ?? '') ?? text(value, 'placeholder');
      const isList = type.includes(' * ') || this.attrTypes.get(type) === 'list(type)';
      // Attribute T does not store that an argument is a reference.
      const [, known] = (end === 'arg' ? before.i : before.o).find(([name]) => name === node.name) ?? [];
      const isSame = known === `Ref(${type})`;
      return [node.name, isSame ? known : type, docs.get(node.name) ?? '', isList ? 1 : 0];
    });
    return { ...before, i: args('arg'), o: args('result') };
  }

  // Returns the header of the function with this name and these arguments, results and control
  // outputs, as fields of a FunctionDef. `defOf` returns the definition of a node in the file;
  // `inputs` returns its inputs in the form of the file.
  fields(name: string, ends: readonly EditNode[], defOf: (node: EditNode) => Message | null,
         inputs: (node: EditNode) => readonly string[]): Field[] {
    const of = (end: EndKind): EditNode[] => ends.filter((node) => node.end === end);
    const [args, results, controls] = [of('arg'), of('result'), of('control')];
    const defs = (name: string, nodes: readonly EditNode[]): Field[] =>
      nodes.map((node) => [name, this.definition(node, defOf(node))]);
    const named = name === this.name ? this.signature.fields
      : replaced(this.signature.fields, 'name', [['name', quote(name)]]);
    let signature = replaced(named, 'input_arg', defs('input_arg', args));
    signature = replaced(signature, 'output_arg', defs('output_arg', results));
    signature = replaced(signature, 'control_output',
                         controls.map((node) => ['control_output', quote(node.name)]));
    let fields = replaced(this.message.fields, 'signature', [['signature', { fields: signature }]]);
    // The old place of each argument; -1 if it is new. Attributes of arguments are keyed by place.
    const places = args.map((node) => {
      const def = defOf(node);
      return def === null ? -1 : this.args.indexOf(def);
    });
    for (const name of ['arg_attr', 'resource_arg_unique_id']) {
      const moved = messages(this.message, name).flatMap((entry): Field[] => {
        const to = places.indexOf(Number(scalars(entry, 'key')[0] ?? 0));
        return to < 0 ? [] : [[name, { fields: replaced(entry.fields, 'key', [['key', String(to)]]) }]];
      });
      fields = replaced(fields, name, moved);
    }
    const map = (name: string, nodes: readonly EditNode[], at: number, isKept: (key: string) => boolean):
        Field[] => [
      ...messages(this.message, name).filter((entry) => isKept(text(entry, 'key')))
        .map((entry): Field => [name, entry]),
      ...nodes.flatMap((node): Field[] => {
        const input = inputs(node)[0] ?? '';
        if (input === '') return [];
        return [[name, { fields: [['key', quote(node.name)], ['value', quote(input.slice(at))]] }]];
      }),
    ];
    // Keeps results that the signature does not name: the editor does not edit them.
    const known = new Set(this.ends().filter(({ end }) => end === 'result').map(({ json }) => json.n));
    fields = replaced(fields, 'ret', map('ret', results, 0, (key) =>
      !known.has(key) && !results.some((node) => node.name === key)));
    return replaced(fields, 'control_ret', map('control_ret', controls, 1, () => false));
  }

  // Returns the definition of an argument or result; `before` is its definition in the file.
  private definition(node: EditNode, before: Message | null): Message {
    const type = node.attrs.T ?? '';
    let fields = before?.fields ?? [];
    if (before === null || text(before, 'name') !== node.name) {
      fields = [['name', quote(node.name)], ...fields.filter(([name]) => name !== 'name')];
    }
    if (before !== null && typeOfArg(before) === type) return { fields };
    fields = fields.filter(([name]) => !kTypeFields.includes(name));
    const attr = text(parseText(type), 'placeholder');
    const [first, second] = attr.split(' * ');
    const made: Field[] = [];
    if (attr === '') {
      made.push(...parseText(type).fields.filter(([name]) => name === 'type'));
    } else if (second !== undefined) {
      made.push(['number_attr', quote(first!)]);
      made.push(this.attrTypes.has(second) ? ['type_attr', quote(second)] : ['type', typeEnum(second)]);
    } else {
      const isList = this.attrTypes.get(attr) === 'list(type)';
      made.push([isList ? 'type_list_attr' : 'type_attr', quote(attr)]);
    }
    return { fields: [...fields, ...made] };
  }
}

// Returns the fields of a function header as lines of text.
export function headerText(fields: readonly Field[], indent: string): string {
  return fields.map((field) => `${indent}${printText({ fields: [field] })}\n`).join('');
}
