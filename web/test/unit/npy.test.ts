import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tensorOfNpy } from '../../src/edit/npy.ts';
import { parseText } from '../../src/edit/text.ts';

function npy(header: string, bytes: number[]): Uint8Array {
  const text = header.padEnd(53) + '\n';
  return Uint8Array.from([0x93, ...Buffer.from('NUMPY'), 1, 0, text.length, 0, ...Buffer.from(text), ...bytes]);
}
const kFloats = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}";

test('an .npy file becomes a constant', () => {
  const text = tensorOfNpy(npy(kFloats, [0, 0, 128, 63, 0, 0, 0, 192]));
  assert.equal(text, 'tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } ' +
    'tensor_content: "\\000\\000\\200\\077\\000\\000\\000\\300" }');
  parseText(text);
  assert.match(tensorOfNpy(npy("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", [1])),
               /DT_BOOL tensor_shape \{ \} tensor_content: "\\001"/);
});

test('other files are refused', () => {
  const wrong: [Uint8Array, RegExp][] = [
    [new Uint8Array(), /an .npy file/],
    [Uint8Array.from(Buffer.from('PK\u0003\u0004 and more of it')), /an .npy file/],
    [npy(kFloats, [0, 0, 0]), /expected 8 bytes of elements, found 3/],
    [npy(kFloats.replace('<f4', '>f4'), Array(8).fill(0)), /byte order/],
    [npy(kFloats.replace('<f4', '<U4'), Array(8).fill(0)), /of numbers/],
    [npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,2)}", Array(8).fill(0)), /rows/],
    [npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", Array(8).fill(0)), /of numbers/],
  ];
  for (const [bytes, reason] of wrong) assert.throws(() => tensorOfNpy(bytes), reason);
});
