// The elements of constants in three forms: as people write them, as a TensorProto lists them, and
// as bytes.
import { unquoteBytes, unquote } from './text.ts';

// Contents with more elements are shown as message text.
const kMaxElements = 4096;

function numberText(value: number, isSame: (text: number) => boolean): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (Object.is(value, -0)) return '-0';
  for (let digits = 3; digits < 17; ++digits) {
    const text = Number(value.toPrecision(digits));
    if (isSame(text)) return String(text);
  }
  return String(value);
}
function parseNumber(text: string): number {
  const infinite = /^([-+]?)inf(inity)?$/i.exec(text);
  if (infinite !== null) return infinite[1] === '-' ? -Infinity : Infinity;
  return /^[-+]?nan$/i.test(text) ? NaN : Number(text);
}

// Returns the bits of the nearest 16-bit float. Ties round to even.
export function halfBits(value: number): number {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (Number.isNaN(value)) return 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  // The exponent of the unit in the last place. Subnormal numbers have the smallest exponent.
  const unit = Math.max(Math.floor(Math.log2(size === 0 ? 1 : size)), -14) - 10;
  const scaled = size / 2 ** unit;
  let rounded = Math.floor(scaled);
  const rest = scaled - rounded;
  if (rest > 0.5 || (rest === 0.5 && rounded % 2 === 1)) ++rounded;
  // The leading bit carries into the exponent.
  return sign | (rounded < 1024 ? rounded : ((unit + 24) << 10) + rounded);
}
export function halfValue(bits: number): number {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const size = exponent === 31 ? (fraction === 0 ? Infinity : NaN)
    : exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25);
  return bits & 0x8000 ? -size : size;
}
const kFloat = new DataView(new ArrayBuffer(4));
export function bfloatBits(value: number): number {
  if (Number.isNaN(value)) return 0x7fc0;
  kFloat.setFloat32(0, value);
  const bits = kFloat.getUint32(0);
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}
export function bfloatValue(bits: number): number {
  kFloat.setUint32(0, (bits << 16) >>> 0);
  return kFloat.getFloat32(0);
}

const kComplex = /^([-+]?[^-+]*(?:e[-+]\d+)?)(?:([-+](?:[^-+]*(?:e[-+]\d+)?))[ij])?$/i;
const kNumber = /^[-+]?(inf|infinity|nan|(\d+\.?\d*|\.\d+)(e[-+]?\d+)?)$/i;
export function isNumber(text: string): boolean {
  return kNumber.test(text);
}

// The notation for elements of a type.
interface Kind {
  // The name of the TensorProto's list.
  list: string;
  // The number of list entries per element.
  width: number;
  // The number of bytes per element; 0 if the type has no tensor content.
  bytes: number;
  isElement: (text: string) => boolean;
  // Converts list entries to one element, and back.
  read: (entries: string[]) => string;
  write: (text: string) => string[];
  // Reads one element of a tensor content.
  at: (view: DataView, offset: number) => string;
}

function plain(list: string, bytes: number, isElement: Kind['isElement'], at: Kind['at']): Kind {
  return { list, width: 1, bytes, isElement, read: ([entry]) => entry!, write: (text) => [text], at };
}
const isInteger = (text: string): boolean => /^-?\d{1,20}$/.test(text);
const float32 = (value: number): string => numberText(value, (n) => Math.fround(n) === value);
const float64 = (value: number): string => numberText(value, (n) => n === value);
function small(toBits: (value: number) => number, value: (bits: number) => number): Kind {
  const text = (bits: number): string => numberText(value(bits), (n) => toBits(n) === bits);
  return {
    list: 'half_val', width: 1, bytes: 2, isElement: isNumber,
    read: ([entry]) => text(Number(entry)), write: (t) => [String(toBits(parseNumber(t)))],
    at: (view, offset) => text(view.getUint16(offset, true)),
  };
}
function complex(list: string, bytes: number, part: (view: DataView, offset: number) => string): Kind {
  const join = (re: string, im: string): string => `${re}${/^[-+]/.test(im) ? '' : '+'}${im}j`;
  const split = (text: string): [string, string] => {
    const match = kComplex.exec(text);
    return [match?.[1] ?? '', match?.[2]?.replace(/^\+/, '') ?? '0'];
  };
  return {
    list, width: 2, bytes, isElement: (text) => split(text).every(isNumber),
    read: ([re, im]) => join(re!, im!), write: split,
    at: (view, offset) => join(part(view, offset), part(view, offset + bytes / 2)),
  };
}
const ints: [string, string, number, (view: DataView, offset: number) => number | bigint][] = [
  ['int8', 'int_val', 1, (v, o) => v.getInt8(o)], ['int16', 'int_val', 2, (v, o) => v.getInt16(o, true)],
  ['int32', 'int_val', 4, (v, o) => v.getInt32(o, true)], ['uint8', 'int_val', 1, (v, o) => v.getUint8(o)],
  ['uint16', 'int_val', 2, (v, o) => v.getUint16(o, true)],
  ['uint32', 'uint32_val', 4, (v, o) => v.getUint32(o, true)],
  ['int64', 'int64_val', 8, (v, o) => v.getBigInt64(o, true)],
  ['uint64', 'uint64_val', 8, (v, o) => v.getBigUint64(o, true)],
];
const kKinds = new Map<string, Kind>([
  ['float', plain('float_val', 4, isNumber, (v, o) => float32(v.getFloat32(o, true)))],
  ['double', plain('double_val', 8, isNumber, (v, o) => float64(v.getFloat64(o, true)))],
  ['half', small(halfBits, halfValue)],
  ['bfloat16', small(bfloatBits, bfloatValue)],
  ['bool', plain('bool_val', 1, (text) => /^(true|false)$/.test(text), (v, o) => String(v.getUint8(o) !== 0))],
  ['string', plain('string_val', 0, (text) => text.startsWith('"'), () => '')],
  ['complex64', complex('scomplex_val', 8, (v, o) => float32(v.getFloat32(o, true)))],
  ['complex128', complex('dcomplex_val', 16, (v, o) => float64(v.getFloat64(o, true)))],
  ...ints.map(([type, list, bytes, get]): [string, Kind] =>
    [type, plain(list, bytes, isInteger, (v, o) => String(get(v, o)))]),
]);
// Quantised integers are written like integers of the same size.
for (const type of ['int8', 'uint8', 'int16', 'uint16', 'int32']) kKinds.set(`q${type}`, kKinds.get(type)!);

export function hasElements(type: string): boolean {
  return kKinds.has(type);
}
export function listOf(type: string): string {
  return kKinds.get(type)!.list;
}
export function isElement(type: string, text: string): boolean {
  return kKinds.get(type)!.isElement(text);
}
// Returns the list entries of elements.
export function writeElements(type: string, elements: readonly string[]): string[] {
  return elements.flatMap((text) => kKinds.get(type)!.write(text));
}
// Returns the elements of a list; null if an entry is missing.
export function readElements(type: string, entries: readonly string[]): string[] | null {
  const { width, read } = kKinds.get(type)!;
  if (entries.length % width !== 0) return null;
  return Array.from({ length: entries.length / width }, (_, i) => read(entries.slice(i * width, (i + 1) * width)));
}
// Returns the elements of a tensor content, given as a string literal. Returns null if the content
// is too long or has the wrong size.
export function readContent(type: string, literal: string, count: number): string[] | null {
  const { bytes, at } = kKinds.get(type)!;
  if (bytes === 0 || count > kMaxElements) return null;
  const content = unquoteBytes(literal);
  if (content.length !== count * bytes) return null;
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  return Array.from({ length: count }, (_, i) => at(view, i * bytes));
}

// Returns an element in the form that a table shows.
export function shownElement(type: string, element: string): string {
  return type === 'string' ? (unquote(element) ?? '') : element;
}
