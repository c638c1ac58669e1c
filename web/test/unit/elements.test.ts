import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bfloatBits, bfloatValue, halfBits, halfValue } from '../../src/edit/elements.ts';
import { fieldText, parseField, tensorTable } from '../../src/edit/fields.ts';

const write = (field: string): string => parseField(['a', 'tensor', null, '', null, [], null], field);

test('16-bit floats round to nearest, ties to even', () => {
  for (let bits = 0; bits < 65536; ++bits) {
    for (const [to, from] of [[halfBits, halfValue], [bfloatBits, bfloatValue]] as const) {
      const value = from(bits);
      if (Number.isNaN(value)) assert.ok(Number.isNaN(from(to(value))));
      else assert.equal(to(value), bits);
    }
  }
  for (const [value, bits] of [
    [1 + 2 ** -11, 0x3c00], [1 + 3 * 2 ** -11, 0x3c02], [65504, 0x7bff], [65519.99, 0x7bff], [65520, 0x7c00],
    [2 ** -25, 0], [1.5 * 2 ** -24, 2], [2 ** -24, 1], [-1023.5 * 2 ** -24, 0x8400], [-0, 0x8000],
  ] as const) assert.equal(halfBits(value), bits, String(value));
  assert.equal(bfloatBits(1 + 2 ** -8), 0x3f80);
  assert.equal(bfloatBits(1 + 3 * 2 ** -8), 0x3f82);
});

test('constants of all types are written and read', () => {
  const cases: [string, string][] = [
    ['half [3] 1 -0.1 inf', 'half_val: 15360 half_val: 44646 half_val: 31744'],
    ['bfloat16 [2] 1 nan', 'half_val: 16256 half_val: 32704'],
    ['complex64 [2] 1+2j -1.5e-3-0.5j', 'scomplex_val: 1 scomplex_val: 2 scomplex_val: -1.5e-3 scomplex_val: -0.5'],
    ['complex128 [] inf-infj', 'dcomplex_val: inf dcomplex_val: -inf'],
    ['qint8 [1] -3', 'int_val: -3'], ['quint8 [] 3', 'int_val: 3'], ['qint32 [] 3', 'int_val: 3'],
    ['qint16 [] 3', 'int_val: 3'], ['quint16 [] 3', 'int_val: 3'],
  ];
  for (const [field, list] of cases) {
    const text = write(field);
    assert.ok(text.endsWith(`${list} }`), text);
    assert.equal(fieldText('tensor', text), field.replace('-0.1', '-0.1'));
  }
  assert.match(write('complex64 [2] 3 4'), /scomplex_val: 3 scomplex_val: 0 scomplex_val: 4 scomplex_val: 0 }$/);
  for (const wrong of ['half [] x', 'complex64 [] 1+j2', 'complex64 [] j', 'qint8 [] 1.5', 'resource [] 1']) {
    assert.throws(() => write(wrong), /is not a value|expected a type/, wrong);
  }
});

test('tensor contents are read', () => {
  const read = (type: string, shape: string, content: string): string | null =>
    fieldText('tensor', `tensor { dtype: DT_${type} tensor_shape { ${shape} } tensor_content: "${content}" }`);
  const vector = 'dim { size: 2 }';
  assert.equal(read('INT8', vector, '\\377\\001'), 'int8 [2] -1 1');
  assert.equal(read('UINT16', vector, '\\377\\001\\000\\001'), 'uint16 [2] 511 256');
  assert.equal(read('INT64', '', '\\001\\000\\000\\000\\000\\000\\000\\200'), 'int64 [] -9223372036854775807');
  assert.equal(read('BOOL', vector, '\\001\\000'), 'bool [2] true false');
  assert.equal(read('HALF', vector, '\\000<\\001\\000'), 'half [2] 1 5.96e-8');
  assert.equal(read('BFLOAT16', vector, '\\200?\\200\\277'), 'bfloat16 [2] 1 -1');
  assert.equal(read('DOUBLE', '', '\\232\\231\\231\\231\\231\\231\\271?'), 'double [] 0.1');
  assert.equal(read('COMPLEX64', '', '\\000\\000\\200?\\000\\000\\200\\277'), 'complex64 [] 1-1j');
  assert.equal(read('QUINT8', vector, 'ab'), 'quint8 [2] 97 98');
  // Strings have no tensor content. A content of a wrong or large size stays text.
  assert.equal(read('STRING', '', 'a'), null);
  assert.equal(read('INT8', vector, 'abc'), null);
  assert.equal(read('INT8', 'dim { size: 5000 }', 'a'.repeat(5000)), null);
  assert.equal(read('FLOAT', 'dim { size: 0 }', ''), 'float [0]');
  assert.equal(tensorTable('tensor { dtype: DT_INT8 tensor_shape { dim { size: 2 } } tensor_content: "ab" }')!.rows[0]![1], '98');
});
