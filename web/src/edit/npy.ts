// Reads constants from .npy files, and encodes the bytes of files.
import { typeEnum } from './fields.ts';

// Larger constants make the page slow.
const kMaxBytes = 1 << 20;

const kTypes: Record<string, string> = {
  f4: 'float', f8: 'double', f2: 'half', i1: 'int8', i2: 'int16', i4: 'int32', i8: 'int64', u1: 'uint8',
  u2: 'uint16', u4: 'uint32', u8: 'uint64', b1: 'bool', c8: 'complex64', c16: 'complex128',
};

// Returns true if the bytes begin like an .npy file.
export function isNpy(bytes: Uint8Array): boolean {
  return [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59].every((byte, i) => bytes[i] === byte);
}

export function toBase64(bytes: Uint8Array): string {
  let text = '';
  // Splits the bytes, because a call accepts a limited number of arguments.
  for (let i = 0; i < bytes.length; i += 32768) {
    text += String.fromCharCode(...bytes.subarray(i, i + 32768));
  }
  return btoa(text);
}

// Returns the value of a tensor attribute in text format. Throws an error that states the
// expected form.
export function tensorOfNpy(bytes: Uint8Array): string {
  if (bytes.length < 12 || !isNpy(bytes)) {
    throw new Error('expected an .npy file');
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const begin = bytes[6] === 1 ? 10 : 12;
  const size = begin === 10 ? view.getUint16(8, true) : view.getUint32(8, true);
  const header = new TextDecoder('latin1').decode(bytes.subarray(begin, begin + size));
  const descr = /'descr':\s*'([<|=>])([a-z]\d+)'/.exec(header);
  const shape = /'shape':\s*\(([\d,\s]*)\)/.exec(header);
  const type = descr === null ? undefined : kTypes[descr[2]!];
  if (type === undefined || shape === null || !/'fortran_order':\s*(True|False)/.test(header)) {
    throw new Error('expected an .npy file of numbers');
  }
  const dims = shape[1]!.split(',').map((dim) => dim.trim()).filter((dim) => dim !== '').map(Number);
  const width = Number(descr![2]!.slice(1));
  const count = dims.reduce((product, dim) => product * dim, 1);
  if (descr![1] === '>' && width > 1) throw new Error('expected the byte order of Intel processors');
  if (header.includes("'fortran_order': True") && dims.length > 1) {
    throw new Error('expected rows after rows, found columns after columns');
  }
  const content = bytes.subarray(begin + size);
  if (content.length !== count * width) {
    throw new Error(`expected ${count * width} bytes of elements, found ${content.length}`);
  }
  if (content.length > kMaxBytes) {
    throw new Error(`expected at most ${kMaxBytes} bytes, found ${content.length}`);
  }
  let text = '';
  for (const byte of content) text += '\\' + byte.toString(8).padStart(3, '0');
  const sizes = dims.map((dim) => `dim { size: ${dim} }`).join(' ');
  return `tensor { dtype: ${typeEnum(type)} tensor_shape { ${sizes === '' ? '' : sizes + ' '}} ` +
    `tensor_content: "${text}" }`;
}
