// The blocks of nodes and scopes: text, pins and size.
import { leaf, plural, shorten } from '../data/text.ts';
import type { Model } from '../model/model.ts';
import type { Ports } from '../model/ports.ts';
import { Flag, kHeader, kLineHeight, kMaxLines, kMaxPins, kPinHeight } from './types.ts';
import type { Item, Pin } from './types.ts';

const kMaxTitle = 200;

// Returns the y coordinate of pin `index`, from the top of its block.
export function pinY(index: number, isSmall: boolean): number {
  if (isSmall) return kHeader / 2;
  return kHeader + (Math.min(index, kMaxPins - 1) + 0.5) * kPinHeight;
}

function pinsOf(count: number, name: (i: number) => string, type: (i: number) => string): Pin[] {
  const pins: Pin[] = [];
  for (let i = 0; i < Math.min(count, kMaxPins); ++i) {
    const isRest = i === kMaxPins - 1 && count > kMaxPins;
    pins.push({
      name: isRest ? `… ${count - i} more` : shorten(name(i), 60),
      y: pinY(i, false),
      type: isRest ? '' : shorten(type(i), 80),
    });
  }
  return pins;
}

// Estimates the width instead of measuring it, so that a graph has the same layout on every
// machine.
function textWidth(text: string, size: number): number {
  return text.length * size * 0.56;
}

export interface Block {
  item: Item;
  width: number;
  height: number;
  // True for constants: the block is only a header, and its output pin is at half its height.
  isSmall: boolean;
}

export function nodeBlock(model: Model, node: number, folded: string[]): Block {
  const op = model.op(node);
  const extra = model.extra(node);
  const isConst = op.n === 'Const';
  const numInputs = model.numInputs(node);
  const numOutputs = model.numOutputs(node);
  const inputNames = model.pinNames(node, false, Math.min(numInputs, kMaxPins));
  const outputNames = model.pinNames(node, true, Math.min(numOutputs, kMaxPins));
  const { start, node: source, pin } = model.inputs;
  const first = start[node]!;
  const inputs = isConst ? [] : pinsOf(numInputs, (i) => inputNames[i]!, (i) =>
    source[first + i]! < 0 ? '' : model.typeOf(source[first + i]!, pin[first + i]!));
  const outputs = pinsOf(numOutputs, (i) => outputNames[i]!, (i) => model.typeOf(node, i));
  const lines: string[] = [];
  if (extra.v !== undefined) lines.push(shorten(model.text(extra.v), 40));
  const attrs = extra.a ?? [];
  // Types are shown on the edges.
  const types = new Set(op.a.filter((a) => a[1] === 'type').map((a) => a[0]));
  for (let i = 0; i < attrs.length; i += 2) {
    const name = model.text(attrs[i]);
    if (isConst || types.has(name)) continue;
    lines.push(shorten(`${name}=${model.text(attrs[i + 1])}`, 40));
  }
  lines.push(...folded);
  if (lines.length > kMaxLines) {
    lines.splice(kMaxLines - 1, lines.length, `… ${lines.length - kMaxLines + 1} more`);
  }
  let flags = isConst ? Flag.kConst : 0;
  if (extra.e !== undefined || op.k === 0) flags |= Flag.kProblem;
  const shapes = extra.t ?? [];
  if (op.k === 1 && op.o.length > 0 && shapes.length === 0) flags |= Flag.kUnknownShape;
  for (let i = 1; i < shapes.length; i += 2) {
    if (model.text(shapes[i]).includes('unknown')) flags |= Flag.kUnknownShape;
  }
  const time = model.run?.time[node] ?? -1;
  if (model.run?.hasNan(node)) flags |= Flag.kNan;
  const item: Item = {
    id: node,
    title: shorten(leaf(model.name(node)), kMaxTitle),
    path: '',
    subtitle: shorten(op.n, kMaxTitle),
    lines,
    inputs,
    outputs,
    flags,
    change: extra.k ?? 0,
    time,
    heat: heatOf(model, time),
  };
  if (isConst) {
    for (const output of outputs) output.y = pinY(0, true);
    const width = Math.max(textWidth(item.title, 11), textWidth(lines[0] ?? '', 10)) + 20;
    return { item, width: Math.min(Math.max(width, 50), 180), height: kHeader, isSmall: true };
  }
  return { item, ...sizeOf(item), isSmall: false };
}

// Returns the ratio of a time to the time of the longest node, from 0 to 1.
function heatOf(model: Model, time: number): number {
  const longest = model.run?.longest ?? 0;
  return longest > 0 && time > 0 ? Math.min(time / longest, 1) : 0;
}

function sizeOf(item: Item): { width: number; height: number } {
  const pins = Math.max(item.inputs.length, item.outputs.length);
  const longest = (list: Pin[]): number =>
    list.reduce((most, pin) => Math.max(most, textWidth(pin.name, 10)), 0);
  const width = Math.max(
    textWidth(item.title, 13) + 24,
    textWidth(item.subtitle, 11) + 24,
    longest(item.inputs) + longest(item.outputs) + 40,
    ...item.lines.map((line) => textWidth(line, 10) + 20));
  return {
    width: Math.min(Math.max(width, 110), 300),
    height: kHeader + pins * kPinHeight + item.lines.length * kLineHeight + 8,
  };
}

export function scopeBlock(model: Model, scope: number, ports: Ports): Block {
  const { name, path, begin, end } = model.scopes[scope]!;
  let flags = 0;
  let change = 0;
  for (let i = begin; i < end; ++i) {
    const extra = model.extra(model.order[i]!);
    if (extra.e !== undefined) flags |= Flag.kProblem;
    if (extra.k !== undefined) change = 3;
    if (model.run?.hasNan(model.order[i]!)) flags |= Flag.kNan;
  }
  const time = model.run?.scopeTime(scope) ?? -1;
  const pins = (list: Ports['inputs']): Pin[] =>
    pinsOf(list.length, (i) => leaf(model.name(list[i]!.node)) +
      (list[i]!.output > 0 ? `:${list[i]!.output}` : ''),
      (i) => model.typeOf(list[i]!.node, list[i]!.output));
  const item: Item = {
    id: ~scope,
    title: shorten(name, kMaxTitle),
    path,
    subtitle: plural(end - begin, 'op'),
    lines: [],
    inputs: pins(ports.inputs),
    outputs: pins(ports.outputs),
    flags,
    change,
    time,
    heat: heatOf(model, time),
  };
  // The box has approximately the size that its scene will need.
  const size = sizeOf(item);
  const area = 14000 * (1 + Math.log2(end - begin));
  const aspect = model.aspect(scope);
  return {
    item,
    width: Math.max(size.width, Math.sqrt(area * aspect)),
    height: Math.max(size.height, Math.sqrt(area / aspect)),
    isSmall: false,
  };
}
