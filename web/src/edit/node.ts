// EditNode: a node in the editor, and its text.
import type { EditNodeJson } from '../data/format.ts';
import { messages, parseText, printText, quote, scalars, unquote } from './text.ts';
import type { Message } from './text.ts';

// The role of a node in a function body: an argument, a result, a control output, or "" for a plain
// node.
export type EndKind = '' | 'arg' | 'result' | 'control';

// Immutable. Inputs have the form of a GraphDef, even in function bodies, with data before control
// inputs: "a", "a:1", "^a"; "" for an unconnected pin.
export interface EditNode {
  // Never changes, unlike the name.
  readonly id: number;
  readonly name: string;
  readonly op: string;
  readonly device: string;
  readonly inputs: readonly string[];
  // Values in text format. Null stands for a long value that only the file has.
  readonly attrs: Readonly<Record<string, string | null>>;
  // The other fields of the file's node in text format; null if the page does not have them.
  readonly more: string | null;
  // The node of the file that this node was read from, or -1.
  readonly base: number;
  // 0: a node of the graph; n: a node in the body of function n - 1.
  readonly body: number;
  readonly end: EndKind;
}

// Splits the name of a tensor into its node and its output. The output is -1 for a control input,
// and 0 for an unknown output in a function body, such as "a:sum:0".
export function parseInput(input: string): { node: string; output: number } {
  if (input.startsWith('^')) return { node: input.slice(1), output: -1 };
  const match = /^([^:]*):(\d{1,9}|[A-Za-z_]\w*(?::\d+)?)$/.exec(input);
  if (match === null) return { node: input, output: 0 };
  return { node: match[1]!, output: /^\d/.test(match[2]!) ? Number(match[2]) : 0 };
}
// Returns an input that reads the same output of another node.
export function redirectInput(input: string, node: string): string {
  const { node: before } = parseInput(input);
  const at = input.startsWith('^') ? 1 : 0;
  return input.slice(0, at) + node + input.slice(at + before.length);
}
export function formatInput(node: string, output: number): string {
  return output < 0 ? `^${node}` : output === 0 ? node : `${node}:${output}`;
}

export function nodeFromJson(json: EditNodeJson, id: number, base: number, body = 0,
                             end: EndKind = ''): EditNode {
  return {
    id, base, body, end, name: json.n, op: json.op, device: json.d, inputs: json.i, attrs: json.a,
    more: json.m === undefined ? '' : json.m,
  };
}

export function isSameNode(a: EditNode, b: EditNode): boolean {
  if (a === b) return true;
  const names = Object.keys(a.attrs);
  return a.name === b.name && a.op === b.op && a.device === b.device &&
    a.inputs.length === b.inputs.length && a.inputs.every((input, i) => input === b.inputs[i]) &&
    names.length === Object.keys(b.attrs).length &&
    names.every((name) => a.attrs[name] === b.attrs[name]);
}

// Returns the fields of a node in text format, without the attributes in `omit`.
export function nodeText(node: EditNode, indent = '  ', omit: ReadonlySet<string> = new Set()):
    string {
  const lines = [`name: ${quote(node.name)}`, `op: ${quote(node.op)}`];
  for (const input of node.inputs) lines.push(`input: ${quote(input)}`);
  if (node.device !== '') lines.push(`device: ${quote(node.device)}`);
  for (const name of Object.keys(node.attrs).sort()) {
    const text = node.attrs[name];
    if (omit.has(name) || text === null || text === undefined) continue;
    const value = text === '' ? '{ }' : `{ ${text} }`;
    lines.push(`attr { key: ${quote(name)} value ${value} }`);
  }
  if (node.more !== null && node.more !== '') lines.push(node.more);
  return lines.map((line) => indent + line + '\n').join('');
}

// Returns nodes as the text of a graph.
export function graphText(nodes: readonly EditNode[]): string {
  return nodes.map((node) => `node {\n${nodeText(node)}}\n`).join('');
}

function onlyString(message: Message, name: string): string {
  const values = scalars(message, name);
  const text = values.length === 0 ? '' : unquote(values[values.length - 1]!);
  if (text === null) throw new Error(`'${name}' is not UTF-8`);
  return text;
}

// Parses the nodes of a graph in text format.
export function parseNodes(text: string): EditNodeJson[] {
  return messages(parseText(text), 'node').map((node) => {
    const a: Record<string, string | null> = {};
    for (const attr of messages(node, 'attr')) {
      const value = messages(attr, 'value')[0];
      a[onlyString(attr, 'key')] = value === undefined ? '' : printText(value);
    }
    return {
      n: onlyString(node, 'name'), op: onlyString(node, 'op'), d: onlyString(node, 'device'),
      i: scalars(node, 'input').map((input) => unquote(input) ?? ''), a,
    };
  });
}
