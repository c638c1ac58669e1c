// Library: the ops, and the pins, types and attributes that their definitions give to a node.
import type { ArgJson, AttrJson, OpJson } from '../data/format.ts';
import { fieldText, typeEnum } from './fields.ts';
import type { EditNode, EndKind } from './node.ts';
import { messages, parseText, scalars } from './text.ts';
import type { Message } from './text.ts';

// The largest number of pins of a list argument. A node with more inputs gets a pin for each,
// because no input may be lost.
const kMaxList = 4096;

export interface Pin {
  // "x", or "values[2]" for an element of a list.
  name: string;
  arg: ArgJson;
  // The index among the data inputs or among the outputs.
  index: number;
  // The pin after the end of a list. Connecting it makes the list longer.
  isNew: boolean;
}

// The arguments and results of a function as ops, for the blocks of its body. A type that is an
// attribute of the function is a placeholder: 'placeholder: "T"'.
const kEndType: AttrJson = ['T', 'type', null, 'The type in the signature.', null, [], null];
function endOp(n: string, s: string, i: ArgJson[], o: ArgJson[]): OpJson {
  const d = 'A change of the signature changes the calls of the function, too.';
  return { n, k: 1, s, d, i, o, a: i.length + o.length === 0 ? [] : [kEndType], f: 0 };
}
export const kEndOps: readonly OpJson[] = [
  endOp('_Arg', 'An argument of the function.', [], [['output', 'T', '', 0]]),
  endOp('_Retval', 'A result of the function.', [['input', 'T', '', 0]], []),
  endOp('_ControlRet', 'A control output of the function: runs after one block.', [], []),
];
const kEnds: Readonly<Record<string, EndKind>> =
  { _Arg: 'arg', _Retval: 'result', _ControlRet: 'control' };
// Returns the kind of a new node in a function body.
export function endOf(op: string): EndKind {
  return Object.hasOwn(kEnds, op) ? kEnds[op]! : '';
}

// The parts of an argument's type: "N * T", "Ref(float)".
interface ArgType {
  number: string;
  type: string;
}
export function isReference(arg: ArgJson): boolean {
  return arg[1].startsWith('Ref(');
}
function argType(arg: ArgJson): ArgType {
  const parts = arg[1].replace(/^Ref\((.*)\)$/, '$1').split(' * ');
  return parts.length === 2 ? { number: parts[0]!, type: parts[1]! }
    : { number: '', type: parts[0]! };
}

export class Library {
  private readonly byName = new Map<string, OpJson>();

  constructor(ops: readonly OpJson[]) {
    // If several functions share a name, the first is used.
    for (const op of [...kEndOps, ...ops]) if (!this.byName.has(op.n)) this.byName.set(op.n, op);
  }

  // All ops, including the functions of the graph.
  get ops(): readonly OpJson[] {
    return [...this.byName.values()].filter((op) => !kEndOps.includes(op));
  }

  // Adds a function of the graph, or replaces its signature.
  setFunction(op: OpJson): void {
    this.byName.set(op.n, op);
  }

  removeFunction(name: string): void {
    this.byName.delete(name);
  }

  find(name: string): OpJson | null {
    return this.byName.get(name) ?? null;
  }
  attr(op: OpJson | null, name: string): AttrJson | null {
    return op?.a.find((attr) => attr[0] === name) ?? null;
  }

  // Returns the text of an attribute or its default; null if neither exists.
  value(node: EditNode, name: string): string | null {
    const own = node.attrs[name];
    if (own !== undefined) return own;
    return this.attr(this.find(node.op), name)?.[6] ?? null;
  }

  private types(node: EditNode, attr: string): string[] {
    const text = this.value(node, attr);
    if (text === null) return [];
    let list: Message | undefined;
    try {
      list = messages(parseText(text), 'list')[0];
    } catch {
      // The text contains unknown fields.
      return [];
    }
    return list === undefined ? []
      : scalars(list, 'type').map((type) => type.replace('DT_', '').toLowerCase());
  }

  // Returns the number of tensors of an argument.
  sizeOf(node: EditNode, arg: ArgJson): number {
    if (arg[3] === 0) return 1;
    const { number, type } = argType(arg);
    // A list of types has one entry per pin.
    if (number === '') return this.types(node, type).length;
    const size = Number(fieldText('int', this.value(node, number) ?? '') ?? 0);
    const most = Math.max(kMaxList, node.inputs.length);
    return Math.min(Math.max(Number.isFinite(size) ? size : 0, 0), most);
  }

  private pins(node: EditNode, args: readonly ArgJson[], isInput: boolean): Pin[] {
    const pins: Pin[] = [];
    let index = 0;
    for (const arg of args) {
      const size = this.sizeOf(node, arg);
      for (let i = 0; i < size; ++i) {
        pins.push({ name: arg[3] === 0 ? arg[0] : `${arg[0]}[${i}]`, arg, index, isNew: false });
        ++index;
      }
      if (arg[3] === 1 && isInput) pins.push({ name: `${arg[0]}[+]`, arg, index, isNew: true });
    }
    return pins;
  }
  inputs(node: EditNode): Pin[] {
    return this.pins(node, this.find(node.op)?.i ?? [], true);
  }
  outputs(node: EditNode): Pin[] {
    return this.pins(node, this.find(node.op)?.o ?? [], false);
  }

  // Returns the type of a pin, such as "float"; "" if it is not known yet.
  typeOf(node: EditNode, pin: Pin): string {
    const { type } = argType(pin.arg);
    const attr = this.attr(this.find(node.op), type);
    if (attr === null) return type;
    if (attr[1] === 'list(type)') {
      const first = this.inputsOrOutputsBefore(node, pin);
      return this.types(node, type)[pin.index - first] ?? '';
    }
    return fieldText('type', this.value(node, type) ?? '') ?? '';
  }

  // Returns the index of output "arg:index" of a node, as in a function body; -1 if there is no
  // such output.
  outputIndex(node: EditNode, arg: string, index: number): number {
    let first = 0;
    for (const output of this.find(node.op)?.o ?? []) {
      const size = this.sizeOf(node, output);
      if (output[0] === arg) return index < size ? first + index : -1;
      first += size;
    }
    return -1;
  }
  // Returns the name "arg:index" of an output; null if there is no such output.
  outputName(node: EditNode, index: number): string | null {
    const pin = this.outputs(node).find((p) => p.index === index);
    return pin === undefined ? null
      : `${pin.arg[0]}:${index - this.inputsOrOutputsBefore(node, pin)}`;
  }

  // Returns the index of the first pin of an argument.
  private inputsOrOutputsBefore(node: EditNode, pin: Pin): number {
    const op = this.find(node.op)!;
    const args = op.i.includes(pin.arg) ? op.i : op.o;
    let first = 0;
    for (const arg of args) {
      if (arg === pin.arg) break;
      first += this.sizeOf(node, arg);
    }
    return first;
  }

  outputType(node: EditNode, output: number): string {
    const pin = this.outputs(node).find((p) => p.index === output);
    return pin === undefined ? '' : this.typeOf(node, pin);
  }

  // Returns the attributes, by name, that connecting a tensor of `type` to an input sets; or, as a
  // string, the reason why it does not fit. `isFree` returns true if no other tensor determines a
  // type attribute.
  fit(node: EditNode, pin: Pin, type: string, isFree: (attr: string) => boolean):
      Record<string, string> | string {
    const op = this.find(node.op);
    const parts = argType(pin.arg);
    const attr = this.attr(op, parts.type);
    const sets: Record<string, string> = {};
    if (type === '') {
      // The type is checked when it becomes known.
    } else if (attr === null) {
      if (parts.type !== type.replace(/_ref$/, '')) {
        return `'${pin.name}' is ${parts.type}, but the tensor is ${type}`;
      }
    } else {
      const base = type.replace(/_ref$/, '');
      const allowed = attr[5] ?? [];
      if (allowed.length > 0 && !allowed.includes(base)) {
        return `'${pin.name}' takes ${allowed.join(', ')}, but the tensor is ${base}`;
      }
      if (attr[1] === 'list(type)') {
        const types = this.types(node, attr[0]);
        types[pin.index - this.inputsOrOutputsBefore(node, pin)] = base;
        sets[attr[0]] = `list { ${types.map((t) => `type: ${typeEnum(t)}`).join(' ')} }`;
      } else if (fieldText('type', this.value(node, attr[0]) ?? '') !== base) {
        if (!isFree(attr[0])) {
          return `'${pin.name}' is ${fieldText('type', this.value(node, attr[0]) ?? '') ?? '?'} ` +
            `as another input of type ${attr[0]}, but the tensor is ${base}`;
        }
        sets[attr[0]] = `type: ${typeEnum(base)}`;
      } else if (node.attrs[attr[0]] === undefined) {
        sets[attr[0]] = `type: ${typeEnum(base)}`;
      }
    }
    if (pin.isNew && parts.number !== '') sets[parts.number] = `i: ${this.sizeOf(node, pin.arg) + 1}`;
    return sets;
  }

  // Returns the attributes that give an output a type; null if the output cannot have this type.
  typing(node: EditNode, pin: Pin, type: string): Record<string, string> | null {
    const name = argType(pin.arg).type;
    const attr = this.attr(this.find(node.op), name);
    if (type === '') return {};
    if (attr === null) return name === type ? {} : null;
    const allowed = attr[5] ?? [];
    if (attr[1] !== 'type' || (allowed.length > 0 && !allowed.includes(type))) return null;
    return { [name]: `type: ${typeEnum(type)}` };
  }

  // Returns the type attribute of an argument, or "".
  typeAttr(arg: ArgJson): string {
    return argType(arg).type;
  }
  numberAttr(arg: ArgJson): string {
    return argType(arg).number;
  }

  // Returns true if an op has an input that accepts a tensor of `type`, or an output that can have
  // this type.
  takes(op: OpJson, type: string, isInput: boolean): boolean {
    return (isInput ? op.i : op.o).some((arg) => {
      const name = argType(arg).type;
      const attr = this.attr(op, name);
      if (attr === null) return type === '' || name === type;
      const allowed = attr[5] ?? [];
      return type === '' || allowed.length === 0 || allowed.includes(type);
    });
  }
}
