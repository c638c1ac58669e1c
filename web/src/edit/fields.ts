// Converts attributes between the text of a field, as people write it, and message text.
import type { AttrJson } from '../data/format.ts';
import {
  hasElements, isElement, isNumber, listOf, readContent, readElements, shownElement, writeElements,
} from './elements.ts';
import { messages, parseText, printText, quote, scalars, unquote } from './text.ts';
import type { Message } from './text.ts';

// "float" <-> "DT_FLOAT"
export function typeEnum(type: string): string {
  return 'DT_' + type.toUpperCase();
}
export function typeName(name: string): string {
  return name.replace(/^DT_/, '').toLowerCase();
}

export const kTypes = [
  'float', 'double', 'half', 'bfloat16', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16',
  'uint32', 'uint64', 'bool', 'string', 'complex64', 'complex128', 'qint8', 'quint8', 'qint16',
  'quint16', 'qint32', 'resource', 'variant',
];

function shapeText(shape: Message): string {
  if (scalars(shape, 'unknown_rank').includes('true')) return '?';
  const dims = messages(shape, 'dim').map((dim) => scalars(dim, 'size')[0] ?? '0');
  return `[${dims.map((dim) => (dim.startsWith('-') ? '?' : dim)).join(',')}]`;
}

export function parseShape(text: string): string {
  const trimmed = text.trim();
  if (trimmed === '?') return 'unknown_rank: true';
  const match = /^\[?([^[\]]*)\]?$/.exec(trimmed);
  if (match === null) throw new Error('expected a shape such as [2,?], or ?');
  const inner = match[1]!.trim();
  return (inner === '' ? [] : inner.split(/[\s,]+/)).map((dim) => {
    if (dim === '?' || dim === '-1') return 'dim { size: -1 }';
    if (!/^\d{1,18}$/.test(dim)) throw new Error(`expected a size or ?, found '${dim}'`);
    return `dim { size: ${Number(dim)} }`;
  }).join(' ');
}

// The elements of a constant: either one value for all elements, or one value for each.
interface Elements {
  type: string;
  shape: string;
  values: string[];
}
// Returns null if the constant has another form.
function elementsOf(tensor: Message): Elements | null {
  const type = typeName(scalars(tensor, 'dtype')[0] ?? '');
  if (!hasElements(type)) return null;
  const list = listOf(type);
  const known = new Set(['dtype', 'tensor_shape', 'tensor_content', list]);
  if (tensor.fields.some(([name]) => !known.has(name))) return null;
  const shape = shapeText(messages(tensor, 'tensor_shape')[0] ?? { fields: [] });
  const content = scalars(tensor, 'tensor_content')[0];
  if (content === undefined || content === '""') {
    const values = readElements(type, scalars(tensor, list));
    return values === null ? null : { type, shape, values };
  }
  const sizes = shape.match(/[^[\],]+/g) ?? [];
  const values = tensor.fields.some(([name]) => name === list) || shape.includes('?') ? null
    : readContent(type, content, sizes.reduce((product, size) => product * Number(size), 1));
  return values === null ? null : { type, shape, values };
}
// "float [2,2] 1 2 3 4"
function tensorText(tensor: Message): string | null {
  const elements = elementsOf(tensor);
  return elements === null ? null : [elements.type, elements.shape, ...elements.values].join(' ');
}

function parseTensor(text: string): string {
  const match = /^\s*(\w+)\s*(\[[^\]]*\])?\s*([^]*)$/.exec(text);
  const type = match?.[1] ?? '';
  if (match === null || !hasElements(type)) {
    throw new Error(`expected a type, a shape and values, such as float [2] 1 2`);
  }
  let values: string[];
  if (type === 'string') {
    values = scalars(parseText(match[3]!.replace(/("(?:[^"\\]|\\[^])*")[\s,]*/g, 's: $1 ')), 's');
  } else {
    values = match[3]!.split(/[\s,;[\]]+/).filter((value) => value !== '');
  }
  for (const value of values) {
    if (!isElement(type, value)) throw new Error(`'${value}' is not a value of type ${type}`);
  }
  const shape = match[2] === undefined
    ? (values.length === 1 ? '' : `dim { size: ${values.length} }`) : parseShape(match[2]);
  const sizes = [...shape.matchAll(/size: (-?\d+)/g)].map((size) => Number(size[1]));
  if (sizes.some((size) => size < 0)) throw new Error('the shape of a constant has no ?');
  const count = sizes.reduce((product, size) => product * size, 1);
  if (values.length !== count && !(values.length === 1 && count > 0)) {
    throw new Error(`expected ${count} values, or one for all, found ${values.length}`);
  }
  const inner = [`dtype: ${typeEnum(type)}`, shape === '' ? 'tensor_shape { }' : `tensor_shape { ${shape} }`,
                 ...writeElements(type, values).map((value) => `${listOf(type)}: ${value}`)];
  return `tensor { ${inner.join(' ')} }`;
}

// A constant as a table. A scalar is a single cell, a vector a single row.
export interface TensorTable {
  type: string;
  shape: string;
  rows: string[][];
}
// The largest number of elements in a table.
const kMaxTable = 256;

// Returns the table of a constant of rank 2 or less; null if it is too large or has another form.
// `text` is the text of an attribute.
export function tensorTable(text: string): TensorTable | null {
  let message: Message;
  try {
    message = parseText(text);
  } catch {
    return null;
  }
  const tensor = messages(message, 'tensor')[0];
  const elements = tensor === undefined || message.fields.length !== 1 ? null : elementsOf(tensor);
  if (elements === null || elements.shape.includes('?')) return null;
  const { type, shape, values } = elements;
  const dims = shape === '[]' ? [] : shape.slice(1, -1).split(',').map(Number);
  const [rows, columns] = dims.length === 2 ? dims as [number, number] : [1, dims[0] ?? 1];
  if (dims.length > 2 || rows * columns < 1 || rows * columns > kMaxTable) return null;
  if (values.length !== 1 && values.length !== rows * columns) return null;
  const at = (i: number): string => shownElement(type, values[values.length === 1 ? 0 : i]!);
  return {
    type, shape,
    rows: Array.from({ length: rows }, (_, r) => Array.from({ length: columns }, (_, c) => at(r * columns + c))),
  };
}
// Returns the constant of a table with one element changed. Throws an error that states the
// expected form.
export function setInTable(table: TensorTable, row: number, column: number, value: string): string {
  const written = (text: string): string => (table.type === 'string' ? quote(text) : text.trim());
  const values = table.rows.flatMap((line, r) =>
    line.map((old, c) => written(r === row && c === column ? value : old)));
  if (table.type !== 'string' && written(value) === '') throw new Error('expected a number');
  return parseTensor(`${table.type} ${table.shape} ${values.join(' ')}`);
}

// Returns the name of the function in an attribute; null if the function has attributes or the text
// has another form.
export function functionName(text: string): string | null {
  let message: Message;
  try {
    message = parseText(text);
  } catch {
    return null;
  }
  const func = messages(message, 'func')[0];
  if (message.fields.length !== 1 || func?.fields.length !== 1) return null;
  const name = scalars(func, 'name')[0];
  return name === undefined ? null : unquote(name);
}

function scalarText(type: string, value: string | Message): string | null {
  if (typeof value !== 'string') {
    if (type === 'shape') return shapeText(value);
    return type === 'tensor' ? tensorText(value) : null;
  }
  if (type === 'type') return typeName(value);
  return type === 'string' ? unquote(value) : value;
}

const kKeys: Record<string, string> = {
  int: 'i', float: 'f', bool: 'b', string: 's', type: 'type', shape: 'shape', tensor: 'tensor',
};

// Returns the value for a field; null if it can only be shown as message text. `type` is the type
// of an attribute: "int", "list(type)".
export function fieldText(type: string, text: string): string | null {
  let message: Message;
  try {
    message = parseText(text);
  } catch {
    return null;
  }
  const element = /^list\((.*)\)$/.exec(type)?.[1];
  const key = kKeys[element ?? type];
  if (key === undefined) return null;
  if (element === undefined) {
    const field = message.fields.find(([name]) => name === key);
    return field === undefined || message.fields.length !== 1 ? null : scalarText(type, field[1]);
  }
  const list = messages(message, 'list')[0];
  if (list === undefined) return message.fields.length === 0 ? '' : null;
  const items = list.fields.map(([name, value]) => (name === key ? scalarText(element, value) : null));
  if (items.some((item) => item === null) || element === 'tensor') return null;
  return items.map((item) => (element === 'string' ? quote(item!) : item)).join(', ');
}

function parseScalar(type: string, text: string, attr: AttrJson): string {
  const allowed = attr[5] ?? [];
  const trimmed = text.trim();
  const check = (isRight: boolean, what: string): void => {
    if (!isRight) throw new Error(`expected ${what}, found '${trimmed}'`);
  };
  switch (type) {
    case 'int': {
      check(/^-?\d{1,19}$/.test(trimmed), 'an integer');
      return `i: ${BigInt(trimmed)}`;
    }
    case 'float':
      check(isNumber(trimmed), 'a number');
      return `f: ${trimmed}`;
    case 'bool':
      check(/^(true|false)$/.test(trimmed), 'true or false');
      return `b: ${trimmed}`;
    case 'type':
      check(/^\w+$/.test(trimmed), 'a type');
      check(allowed.length === 0 || allowed.includes(trimmed), `one of ${allowed.join(', ')}`);
      return `type: ${typeEnum(trimmed)}`;
    case 'shape': {
      const shape = parseShape(text);
      return shape === '' ? 'shape { }' : `shape { ${shape} }`;
    }
    case 'string':
      check(allowed.length === 0 || allowed.includes(text), `one of ${allowed.join(', ')}`);
      return `s: ${quote(text)}`;
    case 'tensor':
      return parseTensor(text);
    default:
      return printText(parseText(text));
  }
}

// Converts the text of a field to message text. Throws an error that states the expected form.
export function parseField(attr: AttrJson, text: string): string {
  const type = attr[1];
  const min = attr[4] ?? null;
  const element = /^list\((.*)\)$/.exec(type)?.[1];
  if (element === undefined) {
    const value = parseScalar(type, text, attr);
    if (type === 'int' && min !== null && BigInt(text.trim()) < BigInt(min)) {
      throw new Error(`expected at least ${min}, found ${text.trim()}`);
    }
    return value;
  }
  let items: string[];
  if (element === 'string') {
    items = scalars(parseText(text.replace(/("(?:[^"\\]|\\[^])*")[\s,]*/g, 's: $1 ')), 's')
      .map((item) => `s: ${item}`);
  } else if (element === 'shape') {
    items = (text.match(/\[[^\]]*\]|\?/g) ?? []).map((item) => parseScalar(element, item, attr));
  } else if (kKeys[element] === undefined || element === 'tensor') {
    return printText(parseText(text));
  } else {
    items = text.split(/[\s,]+/).filter((item) => item !== '')
      .map((item) => parseScalar(element, item, attr));
  }
  if (min !== null && items.length < min) {
    throw new Error(`expected at least ${min} items, found ${items.length}`);
  }
  return items.length === 0 ? 'list { }' : `list { ${items.join(' ')} }`;
}
