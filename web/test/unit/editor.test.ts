import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ArgJson, AttrJson, OpJson } from '../../src/data/format.ts';
import { displayGraph } from '../../src/edit/display.ts';
import { Editor } from '../../src/edit/editor.ts';
import { kNoFeed } from '../../src/edit/feed.ts';
import type { FeedField } from '../../src/edit/feed.ts';
import { fieldText, functionName, parseField, setInTable, tensorTable } from '../../src/edit/fields.ts';
import { Library } from '../../src/edit/library.ts';
import { nodeText, parseNodes } from '../../src/edit/node.ts';
import { parseText, printText, quote, unquote } from '../../src/edit/text.ts';
import type { Message } from '../../src/edit/text.ts';
import { Service } from '../../src/worker/service.ts';
import { random } from './graphs.ts';

function op(n: string, i: [string, string, (0 | 1)?][], o: [string, string, (0 | 1)?][],
            a: AttrJson[]): OpJson {
  const arg = ([name, type, list]: [string, string, (0 | 1)?]): ArgJson => [name, type, '', list ?? 0];
  return { n, k: 1, s: '', d: '', i: i.map(arg), o: o.map(arg), a, f: 0 };
}
const kNumbers = ['float', 'double', 'int32'];
const T: AttrJson = ['T', 'type', null, '', null, kNumbers, null];
const kOps: OpJson[] = [
  op('Placeholder', [], [['output', 'dtype']], [
    ['dtype', 'type', null, '', null, [], null],
    ['shape', 'shape', '<unknown>', '', null, [], 'shape { unknown_rank: true }']]),
  op('Mul', [['x', 'T'], ['y', 'T']], [['z', 'T']], [T]),
  op('AddN', [['inputs', 'N * T', 1]], [['sum', 'T']], [['N', 'int', null, '', 1, [], null], T]),
  op('IdentityN', [['input', 'T', 1]], [['output', 'T', 1]],
     [['T', 'list(type)', null, '', 1, [], null]]),
  op('Cast', [['x', 'SrcT']], [['y', 'DstT']],
     [['SrcT', 'type', null, '', null, [], null], ['DstT', 'type', null, '', null, [], null]]),
  op('Softmax', [['logits', 'T']], [['softmax', 'T']],
     [['T', 'type', null, '', null, ['float', 'double'], null],
      ['mode', 'string', '"a"', '', null, ['a', 'b'], 's: "a"']]),
  op('NoOp', [], [], []),
  op('Const', [], [['output', 'dtype']], [['value', 'tensor', null, '', null, [], null],
                                          ['dtype', 'type', null, '', null, [], null]]),
];

function editor(text = ''): Editor {
  return new Editor(new Library(kOps), parseNodes(text), 'versions { producer: 987 }\n');
}
const kSmall = `
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "i" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "y" op: "Mul" input: "x" input: "" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "s" op: "Softmax" input: "y" input: "^i" attr { key: "_class" value { list { s: "loc:@y" } } } }
`;
function id(e: Editor, name: string): number {
  return e.find(name)!.id;
}
function text(e: Editor, name: string): string {
  return nodeText(e.find(name)!, '').trim().split('\n').slice(2).join(' ');
}

test('messages are parsed and printed', () => {
  const messages: [string, string][] = [
    ['', ''],
    ['type: DT_FLOAT', 'type: DT_FLOAT'],
    ["s: 'a' \"b\\n\" # comment }", 's: "ab\\n"'],
    ['shape < dim { size: 2 }, dim { size: -1 } >; b:true', 'shape { dim { size: 2 } dim { size: -1 } } b: true'],
    ['list { i: [1, -2, 3] }', 'list { i: 1 i: -2 i: 3 }'],
    ['f: 1.5e-3 f: -inf', 'f: 1.5e-3 f: -inf'],
    ["s: 'it\\'s \"q\"'", 's: "it\'s \\"q\\""'],
  ];
  for (const [from, to] of messages) {
    assert.equal(printText(parseText(from)), to);
    assert.equal(printText(parseText(to)), to);
  }
  for (const bad of ['a {', 'a }', 'a: }', 'a: [1', '1: 2', 'a: "x', 'a: @', '{'.repeat(9), 'a{'.repeat(300) + '}'.repeat(300)]) {
    assert.throws(() => parseText(bad), Error, bad);
  }
  for (const string of ['', 'a"b\\c\'', 'line\nline\t\0', '𝔘ü', '</script>', '\u202e']) {
    assert.equal(unquote(quote(string)), string);
    assert.equal(printText(parseText(`s: ${quote(string)}`)), `s: ${quote(string)}`);
  }
  assert.equal(unquote('"\\303\\274\\x41\\u00fc"'), 'üAü');
  assert.equal(unquote('"\\377"'), null);
});

test('attributes are converted to fields and back', () => {
  const attr = (type: string, min: number | null = null, allowed: string[] = []): AttrJson =>
    ['a', type, null, '', min, allowed, null];
  const fields: [AttrJson, string, string][] = [
    [attr('int'), '-3', 'i: -3'],
    [attr('int'), '9223372036854775807', 'i: 9223372036854775807'],
    [attr('float'), '1e-5', 'f: 1e-5'],
    [attr('float'), 'nan', 'f: nan'],
    [attr('bool'), 'true', 'b: true'],
    [attr('string'), 'a "b"', 's: "a \\"b\\""'],
    [attr('type', null, ['half']), 'half', 'type: DT_HALF'],
    [attr('shape'), '[2,?]', 'shape { dim { size: 2 } dim { size: -1 } }'],
    [attr('shape'), '[]', 'shape { }'],
    [attr('shape'), '?', 'shape { unknown_rank: true }'],
    [attr('list(int)'), '1, 2', 'list { i: 1 i: 2 }'],
    [attr('list(int)'), '', 'list { }'],
    [attr('list(string)'), '"a, b", "c"', 'list { s: "a, b" s: "c" }'],
    [attr('list(type)'), 'float, int32', 'list { type: DT_FLOAT type: DT_INT32 }'],
    [attr('list(shape)'), '[1,2], ?', 'list { shape { dim { size: 1 } dim { size: 2 } } shape { unknown_rank: true } }'],
    [attr('tensor'), 'float [] 1.5', 'tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1.5 }'],
    [attr('tensor'), 'int32 [2,2] 1 2 3 4', 'tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } dim { size: 2 } } int_val: 1 int_val: 2 int_val: 3 int_val: 4 }'],
    [attr('tensor'), 'string [1] "a b"', 'tensor { dtype: DT_STRING tensor_shape { dim { size: 1 } } string_val: "a b" }'],
  ];
  for (const [a, field, message] of fields) {
    assert.equal(parseField(a, field), message);
    assert.equal(fieldText(a[1], message), field);
  }
  assert.equal(parseField(attr('tensor'), 'float 1, 2'),
               'tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1 float_val: 2 }');
  const wrong: [AttrJson, string, RegExp][] = [
    [attr('int'), '1.5', /expected an integer, found '1.5'/],
    [attr('int', 2), '1', /expected at least 2, found 1/],
    [attr('float'), '1,5', /expected a number/],
    [attr('bool'), 'yes', /expected true or false/],
    [attr('string', null, ['a', 'b']), 'c', /expected one of a, b/],
    [attr('type', null, ['float']), 'int32', /expected one of float/],
    [attr('shape'), '[a]', /expected a size or \?/],
    [attr('list(int)', 2), '1', /expected at least 2 items, found 1/],
    [attr('tensor'), 'float [3] 1 2', /expected 3 values/],
    [attr('tensor'), 'int32 [] 1.5', /not a value of type int32/],
    [attr('tensor'), 'float [?] 1', /no \?/],
    [attr('func'), 'func {', /expected/],
  ];
  for (const [a, field, reason] of wrong) assert.throws(() => parseField(a, field), reason, field);
});

test('small constants are edited as tables', () => {
  const of = (field: string): string => parseField(['a', 'tensor', null, '', null, [], null], field);
  const matrix = tensorTable(of('float [2,3] 1 2 3 4 5 6'))!;
  assert.deepEqual(matrix.rows, [['1', '2', '3'], ['4', '5', '6']]);
  assert.equal(fieldText('tensor', setInTable(matrix, 1, 0, '-2.5e3')), 'float [2,3] 1 2 3 -2.5e3 5 6');
  assert.throws(() => setInTable(matrix, 0, 0, 'x'), /'x' is not a value of type float/);
  assert.throws(() => setInTable(matrix, 0, 0, ' '), /expected a number/);
  assert.throws(() => setInTable(matrix, 0, 0, '1 2'), /expected 6 values/);
  // One value for all elements, a scalar, and strings.
  assert.equal(fieldText('tensor', setInTable(tensorTable(of('int32 [3] 7'))!, 0, 1, '8')), 'int32 [3] 7 8 7');
  assert.deepEqual(tensorTable(of('bool [] true'))!.rows, [['true']]);
  const texts = tensorTable(of('string [2] "a \\"b\\"" "c"'))!;
  assert.deepEqual(texts.rows, [['a "b"', 'c']]);
  assert.equal(fieldText('tensor', setInTable(texts, 0, 1, '')), 'string [2] "a \\"b\\"" ""');
  for (const other of ['float [1,1,1] 1', 'float [0]', 'float [257] 1']) assert.equal(tensorTable(of(other)), null, other);
  assert.equal(tensorTable('tensor { dtype: DT_FLOAT tensor_content: "" }'), null);
  // TensorFlow's usual form.
  const content = 'tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } tensor_content: "\\315\\314\\314=\\000\\000\\200\\377" }';
  assert.deepEqual(tensorTable(content)!.rows, [['0.1', '-inf']]);
  assert.equal(fieldText('tensor', content), 'float [2] 0.1 -inf');
  assert.equal(setInTable(tensorTable(content)!, 0, 1, '7'),
               'tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 0.1 float_val: 7 }');
  for (const other of [content.replace('size: 2', 'size: 3'), content.replace('size: 2', 'size: -1'),
                       content.replace(/ }$/, ' float_val: 1 }')]) {
    assert.equal(tensorTable(other), null, other);
  }
  assert.equal(functionName('func { name: "f" }'), 'f');
  assert.equal(functionName('func { name: "f" attr { key: "T" value { type: DT_FLOAT } } }'), null);
  assert.equal(functionName(''), null);
});

test('connecting sets types and sizes, or gives the reason for refusal', () => {
  const e = editor(kSmall);
  e.connect({ id: id(e, 'x'), index: 0 }, { id: id(e, 'y'), index: 1 });
  assert.equal(text(e, 'y'), 'input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } }');
  assert.throws(() => e.connect({ id: id(e, 'i'), index: 0 }, { id: id(e, 'y'), index: 1 }),
                /'y' is float as another input of type T, but the tensor is int32/);
  assert.throws(() => e.connect({ id: id(e, 'i'), index: 0 }, { id: id(e, 's'), index: 0 }),
                /'logits' takes float, double, but the tensor is int32/);
  assert.throws(() => e.connect({ id: id(e, 's'), index: 0 }, { id: id(e, 'y'), index: 0 }), /cycle/);
  assert.throws(() => e.connect({ id: id(e, 'x'), index: 1 }, { id: id(e, 'y'), index: 0 }), /no output 1/);
  assert.throws(() => e.connect({ id: id(e, 'x'), index: 0 }, { id: id(e, 'y'), index: 2 }), /no input 2/);
  // A new block takes the type of the output that it is connected to.
  const mul = e.add('Mul');
  assert.equal(text(e, 'Mul'), 'input: "" input: ""');
  e.connect({ id: id(e, 'i'), index: 0 }, { id: mul.id, index: 1 });
  assert.equal(text(e, 'Mul'), 'input: "" input: "i" attr { key: "T" value { type: DT_INT32 } }');
  e.disconnect(mul.id, 1);
  e.connect({ id: id(e, 'x'), index: 0 }, { id: mul.id, index: 0 });
  assert.equal(text(e, 'Mul'), 'input: "x" input: "" attr { key: "T" value { type: DT_FLOAT } }');
  // Lists become longer and shorter.
  const add = e.add('AddN');
  for (const name of ['x', 'y', 'Mul']) {
    const count = e.get(add.id)!.inputs.length;
    e.connect({ id: id(e, name), index: 0 }, { id: add.id, index: count }, true);
  }
  assert.equal(text(e, 'AddN'), 'input: "x" input: "y" input: "Mul" ' +
    'attr { key: "N" value { i: 3 } } attr { key: "T" value { type: DT_FLOAT } }');
  e.disconnect(add.id, 1);
  assert.equal(text(e, 'AddN'), 'input: "x" input: "Mul" ' +
    'attr { key: "N" value { i: 2 } } attr { key: "T" value { type: DT_FLOAT } }');
  const both = e.add('IdentityN');
  e.connect({ id: id(e, 'x'), index: 0 }, { id: both.id, index: 0 }, true);
  e.connect({ id: id(e, 'i'), index: 0 }, { id: both.id, index: 1 }, true);
  assert.equal(text(e, 'IdentityN'), 'input: "x" input: "i" ' +
    'attr { key: "T" value { list { type: DT_FLOAT type: DT_INT32 } } }');
  assert.deepEqual(e.library.outputs(e.get(both.id)!).map((pin) => e.library.typeOf(e.get(both.id)!, pin)),
                   ['float', 'int32']);
  // The only input of a type may be replaced by an input of another type.
  const cast = e.add('Cast');
  e.setAttr(cast.id, 'DstT', 'type: DT_DOUBLE');
  e.connect({ id: id(e, 'x'), index: 0 }, { id: cast.id, index: 0 });
  e.connect({ id: id(e, 'y'), index: 0 }, { id: id(e, 's'), index: 0 });
  e.connect({ id: cast.id, index: 0 }, { id: id(e, 's'), index: 0 });
  assert.equal(e.find('s')!.attrs.T, 'type: DT_DOUBLE');
  // Control edges.
  const noOp = e.add('NoOp');
  e.connectControl(id(e, 'x'), noOp.id);
  e.connectControl(id(e, 'x'), noOp.id);
  assert.equal(text(e, 'NoOp'), 'input: "^x"');
  assert.throws(() => e.connectControl(id(e, 's'), id(e, 'x')), /cycle/);
});

test('blocks are renamed and removed, and attributes set', () => {
  const e = editor(kSmall);
  e.rename(id(e, 'y'), 'layer/y');
  assert.equal(text(e, 's'), 'input: "layer/y" input: "^i" ' +
    'attr { key: "_class" value { list { s: "loc:@layer/y" } } }');
  assert.throws(() => e.rename(id(e, 'x'), 'i'), /there is a block 'i' already/);
  for (const name of ['', ' ', '_x', 'a b', 'a:0', '^a']) {
    assert.throws(() => e.rename(id(e, 'x'), name), /a name has letters/);
  }
  e.remove([id(e, 'layer/y'), id(e, 'i')]);
  assert.equal(text(e, 's'), 'input: "" attr { key: "_class" value { list { s: "loc:@layer/y" } } }');
  assert.equal(e.undoTitle, 'Remove 2 blocks');
  e.undo();
  assert.equal(text(e, 's').startsWith('input: "layer/y" input: "^i"'), true);
  const constant = e.add('Const');
  e.setAttr(constant.id, 'value', parseField(kOps[7]!.a[0]!, 'double [] 2'));
  assert.equal(e.library.outputType(e.get(constant.id)!, 0), 'double');
  e.setAttr(id(e, 's'), 'mode', 's: "b"');
  e.setAttr(id(e, 's'), 'mode', null);
  assert.equal(e.find('s')!.attrs.mode, undefined);
  // A shorter list keeps the first inputs.
  const add = e.add('AddN');
  e.setAttr(add.id, 'N', 'i: 3');
  assert.deepEqual(e.get(add.id)!.inputs, ['', '', '']);
  e.setDevice(add.id, '/cpu:0');
  assert.match(text(e, 'AddN'), /device: "\/cpu:0"/);
});

test('untouched nodes are sent to the server as numbers', () => {
  const e = editor(kSmall);
  assert.deepEqual(e.items(), [0, 1, 2, 3]);
  e.rename(id(e, 'x'), 'z');
  assert.deepEqual(e.items(), [
    { t: 'name: "z"\nop: "Placeholder"\n', b: 0, k: ['dtype'] }, 1,
    { t: 'name: "y"\nop: "Mul"\ninput: "z"\ninput: ""\n', b: 2, k: ['T'] }, 3,
  ]);
  // A reverted change is no change.
  e.rename(id(e, 'z'), 'x');
  assert.deepEqual(e.items(), [0, 1, 2, 3]);
  e.setAttr(id(e, 'y'), 'T', 'type: DT_DOUBLE');
  assert.deepEqual(e.items()[2], {
    t: 'name: "y"\nop: "Mul"\ninput: "x"\ninput: ""\nattr { key: "T" value { type: DT_DOUBLE } }\n',
    b: 2, k: [],
  });
  e.undo();
  e.add('NoOp');
  assert.deepEqual(e.items(), [0, 1, 2, 3, { t: '  name: "NoOp"\n  op: "NoOp"\n' }]);
});

test('pasted nodes get free names and read each other', () => {
  const e = editor(kSmall);
  e.paste(parseNodes(kSmall + kSmall.replace(/"x"/g, '"x_1"')));
  assert.deepEqual(e.nodes.slice(4, 8).map((node) => node.name), ['x_1', 'i_1', 'y_1', 's_1']);
  assert.equal(new Set(e.nodes.map((node) => node.name)).size, e.nodes.length);
  assert.deepEqual(e.find('y_1')!.inputs, ['x_1', '']);
  assert.deepEqual(e.find('s_1')!.inputs, ['y_1', '^i_1']);
  e.undo();
  assert.equal(e.nodes.length, 4);
});

test('blocks move between scopes in one step, and their readers follow', () => {
  const e = editor(kSmall);
  const all = (): string => e.nodes.map((n) => `${n.name}(${n.inputs.join()})`).join(' ');
  const before = e.text();
  e.moveTo([id(e, 'x'), id(e, 'y')], '', 'a/b');
  assert.equal(all(), 'a/b/x() i() a/b/y(a/b/x,) s(a/b/y,^i)');
  assert.match(text(e, 's'), /loc:@a\/b\/y/);
  assert.equal(e.undoTitle, 'Put into a/b/');
  assert.equal(e.commonScope([id(e, 'a/b/x'), id(e, 'a/b/y')]), 'a/b/');
  assert.equal(e.commonScope([id(e, 'a/b/x'), id(e, 'i')]), '');
  e.moveTo([id(e, 'a/b/x'), id(e, 'a/b/y')], 'a/b/', 'a/');
  assert.equal(all(), 'a/x() i() a/y(a/x,) s(a/y,^i)');
  e.moveTo([id(e, 'a/x')], 'a/', '');
  assert.equal(all(), 'x() i() a/y(x,) s(a/y,^i)');
  assert.equal(e.undoTitle, 'Take out of a/');
  for (let n = 0; n < 3; ++n) e.undo();
  assert.equal(e.text(), before);
  // A block may take the name of another block that moves, but not of a block that stays.
  e.rename(id(e, 'i'), 'a/x');
  e.moveTo([id(e, 'x'), id(e, 'a/x')], '', 'a');
  assert.equal(all(), 'a/x() a/a/x() y(a/x,) s(y,^a/a/x)');
  assert.throws(() => e.moveTo([id(e, 'y')], '', 'a b'), /a name has letters/);
  e.rename(id(e, 'y'), 'b/x');
  assert.throws(() => e.moveTo([id(e, 'b/x')], 'b/', 'a'), /there is a block 'a\/x' already/);
});

test('an edit after undoing discards the undone edits', () => {
  const e = editor(kSmall);
  e.add('NoOp');
  e.undo();
  e.add('Mul');
  assert.equal(e.redoTitle, null);
  assert.equal(e.redo(), null);
  assert.equal(e.nodes.length, 5);
});

// ---- Functions ----

const kHeader = `
signature {
  name: "f" description: "Doc." input_arg { name: "a" type: DT_FLOAT description: "First" } input_arg { name: "b" type: DT_INT32 }
  output_arg { name: "y" type: DT_FLOAT } output_arg { name: "i" type: DT_INT32 } control_output: "done" }
arg_attr { key: 1 value { attr { key: "_name" value { s: "B" } } } }
ret { key: "y" value: "y:z:0" } ret { key: "i" value: "b" } ret { key: "odd" value: "y:z:0" }
control_ret { key: "done" value: "sink" }
attr { key: "_own" value { b: true } }
`;
const kBody = `
node { name: "y" op: "Mul" input: "a" input: "pair:output:1" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "pair" op: "IdentityN" input: "a" input: "a" attr { key: "T" value { list { type: DT_FLOAT type: DT_FLOAT } } } }
node { name: "sink" op: "NoOp" input: "^y" }
node { name: "odd" op: "Unknown" input: "a" input: "lost:out:2" input: "y" }
node { name: "after" op: "Mul" input: "odd:out:1" input: "y:z:0" attr { key: "T" value { placeholder: "T" } } }
`;
const kCaller = `
node { name: "u" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "v" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "call" op: "f" input: "u" input: "v" input: "^u" }
node { name: "r" op: "Mul" input: "call" input: "call" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "s" op: "Cast" input: "call:1" }
`;
const kSecond = `
node { name: "inner" op: "f" input: "x" input: "n" }
node { name: "t" op: "Cast" input: "inner:i:0" }
`;
function withFunctions(): Editor {
  const call: OpJson = { ...op('f', [['a', 'float'], ['b', 'int32']], [['y', 'float'], ['i', 'int32']], []), k: 2 };
  return new Editor(new Library([...kOps, call]), parseNodes(kCaller), 'versions { producer: 987 }\n', [
    { h: kHeader, nodes: parseNodes(kBody) },
    { h: 'signature { name: "g" input_arg { name: "x" type: DT_FLOAT } input_arg { name: "n" type: DT_INT32 } }',
      nodes: parseNodes(kSecond) },
  ], 'gradient { function_name: "f" gradient_func: "g" }\n');
}
function inBody(e: Editor, name: string, body = 1, end = ''): number {
  return e.nodesOf(body).find((node) => node.name === name && (node.end === '' ? '' : node.end) === end)!.id;
}
function inputsIn(e: Editor, body: number): string {
  return e.nodesOf(body).map((node) => `${node.name}(${node.inputs.join()})`).join(' ');
}

test('function bodies are read as graphs, and written unchanged', () => {
  const e = withFunctions();
  assert.deepEqual(e.functions, ['f', 'g']);
  assert.equal(inputsIn(e, 1), 'a() b() y(a,pair:1) pair(a,a) sink(^y) odd(a,lost:out:2,y) ' +
    'after(odd:out:1,y) y(y) i(b) done(^sink)');
  assert.equal(inputsIn(e, 2), 'x() n() inner(x,n) t(inner:1)');
  assert.deepEqual(e.functionItems(), [0, 1]);
  assert.match(e.text(), /library \{\n {2}function \{[^]*input: "pair:output:1"[^]*gradient \{[^]*versions/);
  // The graph and each function have separate names.
  assert.equal(e.find('y'), null);
  assert.equal(e.find('y', 1)!.op, 'Mul');
  assert.equal(e.find('i', 1), null);
});

test('function bodies are edited like the graph', () => {
  const e = withFunctions();
  const y = inBody(e, 'y');
  e.rename(y, 'layer/y');
  assert.equal(inputsIn(e, 1), 'a() b() layer/y(a,pair:1) pair(a,a) sink(^layer/y) odd(a,lost:out:2,layer/y) ' +
    'after(odd:out:1,layer/y) y(layer/y) i(b) done(^sink)');
  const item = e.functionItems()[0] as { f: number; h: string; nodes: unknown[] };
  assert.match(item.h, /ret \{ key: "odd" value: "y:z:0" \}\nret \{ key: "y" value: "layer\/y:z:0" \}/);
  assert.match(item.h, /description: "First"[^]*arg_attr \{ key: 1[^]*control_ret \{ key: "done" value: "sink" \}[^]*_own/);
  assert.deepEqual(item.nodes, [
    { t: 'name: "layer/y"\nop: "Mul"\ninput: "a"\ninput: "pair:output:1"\n', b: 0, k: ['T'] }, 1,
    { t: 'name: "sink"\nop: "NoOp"\ninput: "^layer/y"\n', b: 2, k: [] },
    { t: 'name: "odd"\nop: "Unknown"\ninput: "a"\ninput: "lost:out:2"\ninput: "layer/y:z:0"\n', b: 3, k: [] },
    { t: 'name: "after"\nop: "Mul"\ninput: "odd:out:1"\ninput: "layer/y:z:0"\n', b: 4, k: ['T'] },
  ]);
  e.undo();
  assert.deepEqual(e.functionItems(), [0, 1]);
  // Nodes of unknown ops are also renamed.
  e.rename(inBody(e, 'odd'), 'even');
  assert.equal(e.find('after', 1)!.inputs[0], 'even:out:1');
  e.undo();
  // Checks types, cycles, and connections between bodies.
  assert.throws(() => e.connect({ id: inBody(e, 'b', 1, 'arg'), index: 0 }, { id: y, index: 0 }), /takes|is float/);
  assert.throws(() => e.connect({ id: y, index: 0 }, { id: y, index: 1 }), /cycle/);
  assert.throws(() => e.connect({ id: id(e, 'u'), index: 0 }, { id: y, index: 0 }), /different functions/);
  assert.throws(() => e.connectControl(id(e, 'u'), y), /different functions/);
  assert.throws(() => e.rename(y, 'pair'), /there is a block 'pair' already/);
  assert.throws(() => e.moveTo([y, id(e, 'u')], '', 's'), /several functions/);
  assert.throws(() => e.rename(inBody(e, 'a', 1, 'arg'), 's/a'), /name of an argument/);
  // Names are unique per body, and a result may have the name of a node.
  const added = e.add('NoOp', 'u', {}, 1);
  assert.equal(e.nodesOf(1).indexOf(added), 7);
  e.rename(inBody(e, 'i', 1, 'result'), 'u');
  assert.throws(() => e.rename(inBody(e, 'y', 1, 'result'), 'u'), /already/);
  for (let i = 0; i < 2; ++i) e.undo();
  // The inputs of lists whose size is a placeholder are kept.
  e.setAttr(inBody(e, 'after'), 'T', 'type: DT_FLOAT');
  assert.deepEqual(e.find('after', 1)!.inputs, ['odd:out:1', 'y']);
  e.undo();
  e.remove([y]);
  assert.equal(inputsIn(e, 1), 'a() b() pair(a,a) sink() odd(a,lost:out:2,) after(odd:out:1,) y() i(b) done(^sink)');
  assert.equal((e.functionItems()[0] as { h: string }).h.includes('key: "y"'), false);
  e.undo();
  assert.deepEqual(e.functionItems(), [0, 1]);
});

test('calls follow the signature of a function', () => {
  const e = withFunctions();
  const first = e.text();
  const call = (): string => e.find('call')!.inputs.join();
  const arg = e.add('_Arg', '', {}, 1);
  assert.equal(arg.name, 'argument');
  assert.equal(e.nodesOf(1)[2], arg);
  assert.equal(call(), 'u,v,,^u');
  assert.deepEqual(e.library.inputs(e.find('call')!).map((pin) => pin.name), ['a', 'b', 'argument']);
  e.setAttr(arg.id, 'T', 'type: DT_DOUBLE');
  assert.equal(e.library.find('f')!.i[2]![1], 'double');
  e.rename(arg.id, 'c');
  // Results have the types of the tensors that they read.
  const result = e.add('_Retval', '', {}, 1);
  e.connect({ id: arg.id, index: 0 }, { id: result.id, index: 0 });
  assert.equal(e.library.outputType(e.find('call')!, 2), 'double');
  assert.match((e.functionItems()[0] as { h: string }).h,
               /output_arg \{ name: "result" type: DT_DOUBLE \}[^]*ret \{ key: "result" value: "c" \}/);
  assert.equal(e.find('inner', 2)!.inputs.join(), 'x,n,');
  // Removing the first argument removes its inputs from the calls. Attributes stay with their
  // arguments.
  e.remove([inBody(e, 'a', 1, 'arg')]);
  assert.equal(call(), 'v,,^u');
  assert.match((e.functionItems()[0] as { h: string }).h, /arg_attr \{ key: 0 value \{ attr \{ key: "_name"/);
  assert.equal(e.find('pair', 1)!.inputs.join(), ',');
  // Removing a result renumbers the outputs after it.
  e.remove([inBody(e, 'y', 1, 'result')]);
  assert.equal(inputsIn(e, 0), 'u() v() call(v,,^u) r(,) s(call)');
  assert.equal(inputsIn(e, 2), 'x() n() inner(n,) t(inner)');
  // The bodies of other functions name the outputs.
  e.rename(inBody(e, 'i', 1, 'result'), 'index');
  const other = e.functionItems()[1] as { f: number; h?: string; nodes: { t: string }[] };
  assert.equal(other.h, undefined);
  assert.match(other.nodes[1]!.t, /input: "inner:index:0"/);
  const last = e.text();
  let undone = 0;
  while (e.undo() !== null) ++undone;
  assert.equal(undone, 8);
  assert.equal(e.text(), first);
  assert.equal(e.library.find('f')!.i.length, 2);
  assert.deepEqual(e.functionItems(), [0, 1]);
  while (e.redo() !== null);
  assert.equal(e.text(), last);
});

test('readers of an argument follow when a node of the same name replaces it', () => {
  const e = withFunctions();
  e.remove([inBody(e, 'a', 1, 'arg')]);
  const a = e.add('Mul', 'a', {}, 1);
  e.setAttr(a.id, 'T', 'type: DT_FLOAT');
  e.connect({ id: a.id, index: 0 }, { id: inBody(e, 'y'), index: 0 });
  assert.match(JSON.stringify(e.functionItems()[0]), /name: \\"y\\"\\nop: \\"Mul\\"\\ninput: \\"a:z:0\\"/);
});

test('types of a function may be attributes', () => {
  const header = `signature { name: "p" input_arg { name: "x" type_attr: "T" } input_arg { name: "l" type_attr: "T" number_attr: "N" }
    output_arg { name: "o" type_list_attr: "Ts" } attr { name: "T" type: "type" } attr { name: "N" type: "int" } attr { name: "Ts" type: "list(type)" } }`;
  const called: OpJson = {
    ...op('p', [['x', 'T'], ['l', 'N * T', 1]], [['o', 'Ts', 1]],
          [['T', 'type', null, '', null, [], null], ['N', 'int', null, '', null, [], null],
           ['Ts', 'list(type)', null, '', null, [], null]]), k: 2,
  };
  const e = new Editor(new Library([...kOps, called]), [], '', [{ h: header, nodes: [] }]);
  assert.deepEqual(e.functionItems(), [0]);
  assert.deepEqual(e.nodesOf(1).map((node) => node.attrs.T),
                   ['placeholder: "T"', 'placeholder: "N * T"', 'placeholder: "Ts"']);
  e.setAttr(inBody(e, 'x', 1, 'arg'), 'T', 'type: DT_HALF');
  e.add('_Arg', 'more', { T: 'placeholder: "N * float"' }, 1);
  assert.deepEqual(e.library.find('p')!.i.map((arg) => [arg[0], arg[1], arg[3]]),
                   [['x', 'half', 0], ['l', 'N * T', 1], ['more', 'N * float', 1]]);
  const { h } = e.functionItems()[0] as { h: string };
  assert.match(h, /input_arg \{ name: "x" type: DT_HALF \} input_arg \{ name: "l" type_attr: "T" number_attr: "N" \}/);
  assert.match(h, /input_arg \{ name: "more" number_attr: "N" type: DT_FLOAT \}/);
  assert.match(h, /output_arg \{ name: "o" type_list_attr: "Ts" \}/);
});

test('a graph with unknown fields is shown', () => {
  const e = editor(`node { name: "a" op: "IdentityN" input: "x" attr { key: "T" value { list { type: DT_FLOAT } } } }`);
  const unknown = { ...e.find('a')!, attrs: { T: 'list { type: DT_FLOAT } 15: "x"' } };
  assert.deepEqual(e.library.outputs(unknown), []);
  assert.equal(functionName('func { name: "f" } 15: 1'), null);
  for (const type of ['constructor', '__proto__', 'toString']) {
    assert.throws(() => parseField(['a', 'tensor', null, '', null, [], null], `${type} [] 1`), /expected a type/, type);
  }
});

test('a function whose edits are undone is sent as in the file', () => {
  const e = withFunctions();
  e.remove([inBody(e, 'sink')]);
  e.paste(parseNodes('node { name: "sink" op: "NoOp" input: "^y" }'), 'Paste', 1);
  // The same node in another place is not the node of the file.
  assert.notEqual(e.functionItems()[0], 0);
  e.undo();
  e.undo();
  assert.deepEqual(e.functionItems(), [0, 1]);
  // A new signature also changes the functions that call it.
  e.rename(inBody(e, 'i', 1, 'result'), 'k');
  assert.deepEqual(e.functionItems().map((item) => typeof item), ['object', 'object']);
  e.rename(inBody(e, 'k', 1, 'result'), 'i');
  assert.deepEqual(e.functionItems(), [0, 1]);
});

test('blocks and arguments are pasted into bodies', () => {
  const e = withFunctions();
  const text = e.nodesOf(1).map((node) => `node { ${nodeText(node)} }`).join('\n');
  e.paste(parseNodes(text), 'Paste', 2);
  assert.equal(inputsIn(e, 2), 'x() n() a() b() inner(x,n) t(inner:1) y(a,pair:1) pair(a,a) sink(^y) ' +
    'odd(a,lost:out:2,y) after(odd:out:1,y) y(y) i(b) done(^sink)');
  e.paste(parseNodes(text), 'Paste', 1);
  assert.equal(e.nodesOf(1).length, 20);
  assert.equal(e.find('y_1', 1)!.inputs.join(), 'a_1,pair_1:1');
  assert.equal(e.find('call')!.inputs.join(), 'u,v,,,^u');
  // The graph itself has no arguments.
  e.paste(parseNodes(text));
  assert.ok(e.nodesOf(0).every((node) => node.end === ''));
});

test('a function is added, called, renamed and removed', () => {
  const e = editor(kSmall);
  const before = e.text();
  const body = e.addFunction('double');
  assert.deepEqual([e.functions, inputsIn(e, body)], [['double'], 'x() y(x)']);
  assert.deepEqual(e.functionItems(), [{ h: 'signature { name: "double" input_arg { name: "x" type: DT_FLOAT } ' +
    'output_arg { name: "y" type: DT_FLOAT } }\nret { key: "y" value: "x" }\n', nodes: [] }]);
  assert.match(e.text(), /library {\n {2}function {\n {4}signature { name: "double" /);
  // The function is an op like others.
  const call = e.add('double');
  e.connect({ id: id(e, 'x'), index: 0 }, { id: call.id, index: 0 });
  assert.match(String(e.check({ id: id(e, 'i'), index: 0 }, { id: call.id, index: 0 }, e.library.inputs(call)[0]!)),
               /'x' is float, but the tensor is int32/);
  assert.ok(e.library.ops.some((o) => o.n === 'double'));
  assert.throws(() => e.removeFunction(body), /'double' stays: 'double' uses it/);
  // Its calls have the new name.
  e.renameFunction(body, 'twice');
  assert.deepEqual([e.functions, e.get(call.id)!.op], [['twice'], 'twice']);
  assert.equal(e.library.find('double'), null);
  assert.equal(e.library.outputType(e.get(call.id)!, 0), 'float');
  const of = e.add('_Arg', '', { T: 'type: DT_INT32' }, body);
  assert.equal(e.get(call.id)!.inputs.join(), 'x,');
  assert.equal(e.undo(), `Add ${of.name}`);
  assert.equal(e.undo(), 'Rename function double');
  assert.deepEqual([e.functions, e.get(call.id)!.op], [['double'], 'double']);
  e.redo();
  e.remove([call.id]);
  e.removeFunction(body);
  assert.deepEqual([e.functions, e.bodies, e.nodesOf(body).length], [[], [], 0]);
  assert.equal(e.text(), before);
  assert.throws(() => e.add('NoOp', '', {}, body), /the function is not in the graph/);
  assert.throws(() => e.paste(parseNodes(kSmall), 'Paste', body), /the function is not in the graph/);
  while (e.undo() !== null);
  assert.deepEqual([e.text(), e.functionItems()], [before, []]);
});

test('selected blocks become a function', () => {
  const e = editor(`
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "a/p" op: "IdentityN" input: "x" input: "x" attr { key: "T" value { list { type: DT_FLOAT type: DT_FLOAT } } } }
    node { name: "m" op: "Mul" input: "a/p:1" input: "x" input: "^n" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "n" op: "NoOp" }
    node { name: "s" op: "Softmax" input: "m" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "t" op: "Mul" input: "a/p:1" input: "m" input: "^m" attr { key: "T" value { type: DT_FLOAT } } }`);
  const before = e.text();
  const feed = { ...kNoFeed, kind: 'random' as const };
  e.setFeed(id(e, 'm'), feed);
  const call = e.extractFunction([id(e, 'a/p'), id(e, 'm'), id(e, 's')], 'f');
  const body = e.bodyOf('f');
  assert.equal(inputsIn(e, body), 'x() a/p(x,x) m(a/p:1,x) s(m) p(a/p:1) m(m) s(s) m_1(^m)');
  assert.equal(inputsIn(e, 0), 'x() n() t(f,f:1,^f) f(x,^n)');
  assert.equal(call.name, 'f');
  assert.deepEqual(e.library.outputs(call).map((pin) => [pin.name, e.library.typeOf(call, pin)]),
                   [['p', 'float'], ['m', 'float'], ['s', 'float']]);
  assert.equal(e.feeds.get(e.find('m', body)!.id), feed);
  expectWhole(e);
  const after = state(e);
  e.undo();
  e.undo();
  assert.deepEqual([e.text(), e.items(), e.functions], [before, [0, 1, 2, 3, 4, 5], []]);
  e.redo();
  e.redo();
  assert.equal(state(e), after);
});

test('blocks that cannot become a function stay', () => {
  const e = editor(`${kSmall}
    node { name: "z" op: "Mul" input: "s" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "u" op: "Odd" } node { name: "v" op: "Mul" input: "u" input: "gone" }`);
  const before = e.text();
  const refused: [string[], RegExp][] = [
    [['y', 'z'], /colocated|between these/], [['s'], /colocated/], [['v'], /the type of 'u' is not known/],
    [['u', 'v'], /there is no block 'gone'/],
  ];
  for (const [names, reason] of refused) {
    assert.throws(() => e.extractFunction(names.map((name) => id(e, name)), 'f'), reason, names.join());
  }
  e.setAttr(id(e, 's'), '_class', null);
  assert.throws(() => e.extractFunction([id(e, 'y'), id(e, 'z')], 'f'), /between these/);
  assert.throws(() => e.extractFunction([id(e, 'y')], 'Mul'), /already/);
  e.undo();
  assert.deepEqual([e.text(), e.functions], [before, []]);
  const f = withFunctions();
  assert.throws(() => f.extractFunction([inBody(f, 'a', 1, 'arg')], 'h'), /stays in its function/);
  assert.throws(() => f.extractFunction([inBody(f, 'after')], 'h'), /types of 'after' are those/);
  assert.throws(() => f.extractFunction([inBody(f, 'pair'), inBody(f, 't', 2)], 'h'), /several functions/);
  // Extracts within a function. Its results and control outputs follow.
  f.extractFunction([inBody(f, 'y'), inBody(f, 'sink')], 'h');
  assert.equal(inputsIn(f, 1), 'a() b() pair(a,a) odd(a,lost:out:2,h) after(odd:out:1,h) h(a,pair:1) ' +
    'y(h) i(b) done(^h)');
  assert.equal(inputsIn(f, 3), 'a() pair() y(a,pair) sink(^y) y(y) sink(^sink)');
  const large = new Editor(new Library(kOps), [{ n: 'c', op: 'Const', d: '', i: [], a: { value: null } }], '');
  assert.throws(() => large.extractFunction([0], 'f'), /large attribute of 'c'/);
});

const kRefOps: OpJson[] = [
  op('Variable', [], [['ref', 'Ref(dtype)']], [['dtype', 'type', null, '', null, [], null]]),
  op('Assign', [['ref', 'Ref(T)'], ['value', 'T']], [['output_ref', 'Ref(T)']], [T]),
  ...kOps,
];

test('a reference and the blocks that change it stay together', () => {
  const kFloat = 'value { type: DT_FLOAT }';
  const e = new Editor(new Library(kRefOps), parseNodes(`
    node { name: "v" op: "Variable" attr { key: "dtype" ${kFloat} } }
    node { name: "x" op: "Placeholder" attr { key: "dtype" ${kFloat} } }
    node { name: "a" op: "Assign" input: "v" input: "x" attr { key: "T" ${kFloat} } }
    node { name: "m" op: "Mul" input: "v" input: "a" attr { key: "T" ${kFloat} } }`), '');
  const before = e.text();
  for (const names of [['a'], ['v'], ['v', 'x']]) {
    assert.throws(() => e.extractFunction(names.map((name) => id(e, name)), 'f'),
                  /'a' changes 'v' by reference/, names.join());
  }
  assert.equal(e.text(), before);
  // The value of a variable becomes an ordinary argument.
  e.extractFunction([id(e, 'm')], 'f');
  assert.equal(inputsIn(e, 1), 'v() a() m(v,a) m(m)');
  e.undo();
  e.extractFunction([id(e, 'v'), id(e, 'a')], 'f');
  assert.equal(inputsIn(e, e.bodyOf('f')), 'x() v() a(v,x) v(v) a(a)');
});

test('a new function changes no other control inputs, and keeps all fields of its nodes', () => {
  const e = new Editor(new Library(kOps), [
    ...parseNodes(`node { name: "n" op: "NoOp" } node { name: "p" op: "NoOp" input: "^n" input: "^n" }
      node { name: "q" op: "NoOp" input: "^n" input: "^r" input: "^n" input: "^s" }`),
    { n: 'r', op: 'NoOp', d: '', i: [], a: {}, m: 'experimental_debug_info { original_node_names: "o" }\n' },
    { n: 's', op: 'NoOp', d: '', i: [], a: {} }, { n: 'u', op: 'NoOp', d: '', i: [], a: {}, m: null },
  ], '');
  e.extractFunction([id(e, 'r'), id(e, 's')], 'f');
  assert.equal(inputsIn(e, 0), 'n() p(^n,^n) q(^n,^f,^n) u() f()');
  assert.deepEqual(e.items().slice(0, 2), [0, 1]);
  const [item] = e.functionItems() as { nodes: { t: string }[] }[];
  assert.match(item!.nodes[0]!.t, /experimental_debug_info \{ original_node_names: "o" \}/);
  assert.doesNotMatch(item!.nodes[1]!.t, /experimental/);
  // The page lacks fields that it does not know; the server has them.
  assert.throws(() => e.extractFunction([id(e, 'u')], 'g'), /'u' has fields that this page does not know/);
  assert.equal(e.hasAllText, false);
  // A changed node of the file gets its fields from the server.
  e.undo();
  e.rename(id(e, 'r'), 'r2');
  assert.doesNotMatch((e.items()[3] as { t: string }).t, /experimental/);
  assert.match(e.text(), /experimental_debug_info/);
});

test('extracting thousands of blocks takes linear time', () => {
  const count = 20_000;
  const e = new Editor(new Library(kOps), Array.from({ length: count }, (_, i) =>
    ({ n: `s${i % 7}/x${i}/n`, op: 'Mul', d: '', i: [`in${i}/n`, ''], a: { T: 'type: DT_FLOAT' } })).concat(
    Array.from({ length: count }, (_, i) =>
      ({ n: `in${i}/n`, op: 'Placeholder', d: '', i: [], a: { dtype: 'type: DT_FLOAT' } as never }))), '');
  const before = e.nodes;
  // All arguments and results want the name "n". A quadratic algorithm would take 10^9 steps.
  const call = e.extractFunction(Array.from({ length: count }, (_, i) => i), 'f');
  assert.equal(call.inputs.length, count);
  assert.equal(e.nodesOf(1).length, 3 * count);
  assert.equal(e.nodesOf(1).at(-1)!.name, `n_${count - 1}`);
  e.undo();
  assert.deepEqual(e.nodes.length, before.length);
  assert.ok(e.nodes.every((node, i) => node === before[i]));
});

test('a function keeps the references of its signature when its name changes', () => {
  const ref: OpJson = { ...op('f', [['v', 'Ref(float)']], [['y', 'float']], []), k: 2 };
  const e = new Editor(new Library([...kOps, ref]), [], '', [
    { h: 'signature { name: "f" input_arg { name: "v" type: DT_FLOAT is_ref: true } output_arg { name: "y" type: DT_FLOAT } }' +
         ' ret { key: "y" value: "v" }', nodes: [] },
    { h: 'signature { name: "f" }', nodes: [] }]);
  e.renameFunction(1, 'h');
  assert.deepEqual(e.library.find('h')!.i, [['v', 'Ref(float)', '', 0]]);
  e.undo();
  assert.deepEqual(e.library.find('f')!.i, [['v', 'Ref(float)', '', 0]]);
  assert.deepEqual(displayGraph(e, '', null, null).notes, ["Several functions are named 'f': calls are of the first"]);
});

test('a function cannot have the name of another op', () => {
  const e = withFunctions();
  for (const name of ['f', 'g', 'Mul', '_Arg', '', '0', 'a b', 'a/b', '</script>']) {
    assert.throws(() => e.addFunction(name), /name of a function|already/, name);
    if (name !== 'g') assert.throws(() => e.renameFunction(2, name), /name of a function|already/, name);
  }
  assert.equal(e.version, 0);
  assert.equal(e.freeFunction('f'), 'f_2');
  assert.equal(e.freeFunction('h'), 'h');
});

test('function attributes follow a new name, and keep functions from being removed', () => {
  const attrs = (name: string): string => `attr { key: "F" value { func { name: "${name}" attr { key: "G" ` +
    `value { list { func { name: "f" } func { name: "${name}" } } } } } } }`;
  const e = new Editor(new Library(kOps), parseNodes(`node { name: "m" op: "Map" ${attrs('f')} }
    node { name: "s" op: "Map" attr { key: "F" value { s: "f" } } }`), '',
    ['f', 'g'].map((name) => ({ h: `signature { name: "${name}" }`, nodes: [] })));
  // The library has neither function as an op, so no node can call them.
  assert.throws(() => e.renameFunction(1, 'h'), /also the name of an op/);
  assert.match(e.removalProblems().get(1)!, /'m' uses it/);
  e.removeFunction(2);
  assert.deepEqual(e.functions, ['f']);
  e.undo();
  const functionOp = (n: string): OpJson => ({ ...op(n, [], [], []), k: 2 });
  const named = new Editor(new Library([...kOps, functionOp('f'), functionOp('g')]),
    parseNodes(`node { name: "m" op: "Map" ${attrs('g')} }`), '',
    ['f', 'g'].map((name) => ({ h: `signature { name: "${name}" }`, nodes: [] })));
  named.renameFunction(2, 'h');
  assert.equal(text(named, 'm'), 'attr { key: "F" value { func { name: "h" attr { key: "G" value { list { ' +
    'func { name: "f" } func { name: "h" } } } } } } }');
  assert.deepEqual(named.functionItems(), [0, { f: 1, h: 'signature { name: "h" }\n', nodes: [] }]);
  named.undo();
  assert.deepEqual(named.functionItems(), [0, 1]);
});

test('functions that the file names elsewhere keep their names', () => {
  const e = withFunctions();
  assert.throws(() => e.renameFunction(1, 'h'), /'f' keeps its name: a gradient function of the file/);
  assert.match(e.removalProblems().get(2)!, /gradient function/);
  const functionOp: OpJson = { ...op('f', [], [], []), k: 2 };
  const make = (nodes: string, header: string): Editor =>
    new Editor(new Library([...kOps, functionOp]), parseNodes(nodes), '', [
      { h: 'signature { name: "f" }', nodes: [] }, { h: `signature { name: "g" } ${header}`, nodes: [] }]);
  const inHeader = make('', 'attr { key: "of" value { func { name: "f" } } }');
  assert.throws(() => inHeader.renameFunction(1, 'h'), /an attribute of function 'g' names it/);
  assert.throws(() => inHeader.removeFunction(1), /an attribute of function 'g' names it/);
  // The page does not have long attributes of the file.
  const long = new Editor(new Library([...kOps, functionOp]), [{ n: 'm', op: 'Map', d: '', i: [], a: { F: null } }], '',
                          [{ h: 'signature { name: "f" }', nodes: [] }]);
  assert.throws(() => long.renameFunction(1, 'h'), /attribute 'F' of 'm' may name it/);
  // Text that the page cannot read may also name the function.
  const odd = new Editor(new Library([...kOps, functionOp]),
    [{ n: 'm', op: 'Map', d: '', i: [], a: { F: 'func { name: "f" 7: 1 <' } }], '', [{ h: 'signature { name: "f" }', nodes: [] }]);
  assert.throws(() => odd.renameFunction(1, 'h'), /attribute 'F' of 'm' may name it/);
  assert.match(odd.removalProblems().get(1)!, /attribute 'F' of 'm' may name it/);
  for (const field of ['gradient_func', 'registered_op_type']) {
    const registered = new Editor(new Library([...kOps, functionOp]), [], '', [{ h: 'signature { name: "f" }', nodes: [] }],
                                  `registered_gradients { ${field}: "f" }`);
    assert.throws(() => registered.renameFunction(1, 'h'), /a gradient function of the file names it/, field);
    assert.throws(() => registered.removeFunction(1), /a gradient function of the file names it/, field);
  }
  const constant = new Editor(new Library([...kOps, functionOp]),
                              [{ n: 'c', op: 'Const', d: '', i: [], a: { value: null } }], '',
                              [{ h: 'signature { name: "f" }', nodes: [] }]);
  constant.renameFunction(1, 'h');
  assert.deepEqual(constant.functions, ['h']);
});

test('feeds are undone and redone, and do not change the file', () => {
  const e = editor(kSmall);
  const x = id(e, 'x');
  const feed = { ...kNoFeed, kind: 'values' as const, shape: '[2]', values: '1, 2' };
  const none = e.feeds;
  e.setFeed(x, feed);
  e.setFeed(x, { ...feed });
  assert.equal(e.undoTitle, 'Feed x');
  e.setFeed(x, { ...feed, values: '3, 4' });
  const last = e.feeds;
  assert.deepEqual([e.feeds.get(x)!.values, e.version], ['3, 4', 0]);
  e.undo();
  assert.equal(e.feeds.get(x)!.values, '1, 2');
  // A removed block that is restored keeps its feed.
  e.remove([x]);
  e.undo();
  assert.equal(e.feeds.get(x)!.values, '1, 2');
  e.undo();
  assert.equal(e.feeds, none);
  assert.equal(e.undo(), null);
  e.redo();
  assert.equal(e.feeds.get(x)!.values, '1, 2');
  assert.equal(e.redo(), 'Remove x');
  assert.notEqual(e.feeds, last);
  assert.throws(() => e.setFeed(x, kNoFeed), /not in the graph/);
});

test('a history of large files forgets its oldest edits', () => {
  const e = editor(kSmall);
  e.maxFeedBytes = 1000;
  const x = id(e, 'x');
  e.rename(x, 'first');
  const { version } = e;
  const file = (i: number): FeedField =>
    ({ ...kNoFeed, kind: 'file', file: `${i}.npy`, bytes: String(i).repeat(400) });
  for (let i = 0; i < 5; ++i) e.setFeed(x, file(i));
  assert.equal(e.feeds.get(x)!.file, '4.npy');
  let undone = 0;
  while (e.undo() !== null) ++undone;
  assert.equal(undone, 1);
  assert.equal(e.feeds.get(x)!.file, '3.npy');
  // The graph still differs from the file.
  assert.equal(e.version, version);
  assert.equal(e.find('first')!.id, x);
  e.redo();
  assert.equal(e.feeds.get(x)!.file, '4.npy');
});

// Makes one random edit. An invalid edit changes nothing.
function edit(e: Editor, next: () => number): void {
  const pick = <V>(list: readonly V[]): V => list[Math.floor(next() * list.length)]!;
  const body = pick([0, ...e.bodies]);
  // Some edits mix bodies, which is invalid.
  const node = (): number => {
    const list = next() < 0.98 ? e.nodesOf(body) : e.nodes;
    return list.length === 0 ? -1 : pick(list).id;
  };
  const before = e.text();
  try {
    switch (Math.floor(next() * 12)) {
      case 0: e.add(next() < 0.3 ? pick(['_Arg', '_Retval', '_ControlRet']) : pick([...e.library.ops]).n, '', {}, body); break;
      case 1: e.remove(next() < 0.8 ? [node()] : [node(), node()]); break;
      case 2: case 3: {
        const to = e.get(node())!;
        const pin = pick(e.library.inputs(to));
        e.connect({ id: node(), index: next() < 0.9 ? 0 : 1 }, { id: to.id, index: pin.index }, pin.isNew);
        break;
      }
      case 4: {
        const to = e.get(node())!;
        e.disconnect(to.id, Math.floor(next() * to.inputs.length));
        break;
      }
      case 5: e.rename(node(), `${pick(['a', 'a', 'b/', 's/t/'])}${Math.floor(next() * 50)}`); break;
      case 6: {
        const of = e.get(node())!;
        const attr = pick(e.library.find(of.op)!.a);
        const value = { type: 'float', int: '2', string: 'b', shape: '[2,?]', tensor: 'float [] 1', 'list(type)': 'int32' }[attr[1]]!;
        e.setAttr(of.id, attr[0], next() < 0.2 ? null : parseField(attr, value));
        break;
      }
      case 7: {
        const from = pick([e.nodes, e.nodesOf(body)]);
        e.paste(parseNodes(from.slice(0, 3).map((n) => `node { ${nodeText(n)} }`).join('\n')), 'Paste', body);
        break;
      }
      case 8: {
        const ids = [...new Set([node(), node()])];
        e.moveTo(ids, e.commonScope(ids), pick(['', 's', 's/t/']));
        break;
      }
      case 9: e.setFeed(node(), { ...kNoFeed, kind: 'random', shape: '[2]', seed: Math.floor(next() * 3) }); break;
      case 10: {
        if (next() < 0.3) e.addFunction(pick(['f', 'fn', 'fn2', 'Mul', '0']));
        else if (next() < 0.3) e.extractFunction([...new Set([node(), node()])], pick(['f', 'fn', 'h']));
        else if (next() < 0.5) e.renameFunction(pick(e.bodies), pick(['f', 'g', 'fn', 'h_2']));
        else e.removeFunction(pick(e.bodies));
        break;
      }
      default: e.connectControl(node(), node());
    }
  } catch (error) {
    assert.ok(error instanceof Error && e.text() === before, String(error));
  }
  // Keeps the graph small, so that edits interact.
  if (e.nodesOf(body).length > 50) e.remove(e.nodesOf(body).slice(0, 30).map((n) => n.id));
}

// The state of the graph in files, and the state that a server receives.
function state(e: Editor): string {
  return JSON.stringify([e.text(), e.items(), e.functionItems(), e.functions.map((name) => e.library.find(name)),
                         [...e.feeds]]);
}

for (const [what, make] of [['a graph', () => editor(kSmall)], ['a graph and its functions', withFunctions]] as const) {
  test(`10,000 random edits of ${what} undone and redone give the same, byte for byte`, () => {
    const e = make();
    const next = random(20);
    const first = state(e);
    for (let i = 0; i < 10_000; ++i) {
      edit(e, next);
      if (i % 100 === 0) expectWhole(e);
    }
    const last = state(e);
    let undone = 0;
    while (e.undo() !== null) ++undone;
    assert.ok(undone > 5000, `${undone} edits changed the graph`);
    assert.equal(state(e), first);
    assert.ok(e.items().every((item, i) => item === i));
    assert.deepEqual(e.functionItems(), e.functions.map((_, f) => f));
    assert.equal(e.feeds.size, 0);
    let redone = 0;
    while (e.redo() !== null) ++redone;
    assert.equal(redone, undone);
    assert.equal(state(e), last);
    // Undoes and redoes a random number of edits.
    for (let i = 0; i < 2000; ++i) {
      const text = e.text();
      const steps = Math.floor(next() * 20);
      let made = 0;
      for (let s = 0; s < steps; ++s) if (e.undo() !== null) ++made;
      for (let s = 0; s < made; ++s) e.redo();
      assert.equal(e.text(), text);
      e.undo();
    }
  });
}

// Asserts that names are unique, that bodies are in order, and that a written file reads back the
// same.
function expectWhole(e: Editor): void {
  const names = e.nodes.map((node) => `${node.body} ${/r|c/.exec(node.end.replace('arg', ''))?.[0] ?? ''} ${node.name}`);
  assert.equal(new Set(names).size, names.length);
  const ranks = e.nodes.map((node) => 4 * node.body + ['arg', '', 'result', 'control'].indexOf(node.end));
  assert.deepEqual(ranks, [...ranks].sort((a, b) => a - b));
  for (const body of e.bodies) {
    const name = e.functionOf(body);
    const ends = (end: string): string[] =>
      e.nodesOf(body).filter((node) => node.end === end).map((node) => node.name);
    const def = e.library.find(name);
    if (def?.k !== 2) continue;
    assert.deepEqual(def.i.map((arg) => arg[0]), ends('arg'));
    assert.deepEqual(def.o.map((arg) => arg[0]), ends('result'));
  }
  const library = parseText(e.text()).fields.find(([name]) => name === 'library')?.[1];
  if (library === undefined || typeof library === 'string') return;
  const functions = library.fields.filter(([name]) => name === 'function')
    .map(([, value]) => value as Message);
  const again = new Editor(new Library([...e.library.ops.filter((o) => o.k !== 2),
                                        ...e.functions.map((name) => e.library.find(name)!)
                                          .filter((o) => o?.k === 2)]), [], '',
    functions.map((f) => ({
      h: printText({ fields: f.fields.filter(([name]) => name !== 'node_def') }),
      nodes: parseNodes(printText({ fields: f.fields.filter(([name]) => name === 'node_def')
        .map(([, value]) => ['node', value]) })),
    })));
  assert.deepEqual(again.functions, e.functions);
  e.bodies.forEach((body, f) => assert.equal(inputsIn(again, f + 1), inputsIn(e, body)));
}

test('the page shows what is edited', async () => {
  const e = editor(kSmall);
  const service = new Service();
  const json = displayGraph(e, 'graph.pb', {
    types: [['float', '[2]'], ['int32', '[]'], null, null],
    problems: [[2, 'input 1 is not connected']], notes: [],
  }, null);
  await service.replace(json);
  const y = await service.describe(2);
  assert.equal(y.problem, 'input 1 is not connected');
  assert.deepEqual(y.inputs.map((input) => [input.pin, input.name, input.type]), [['x', 'x', 'float [2]']]);
  assert.deepEqual(y.missing, []);
  assert.deepEqual(y.attrs.map((attr) => [attr.name, attr.value]), [['T', 'float']]);
  const scene = await service.scene(0, { fold: false });
  assert.deepEqual(scene.items[2]!.inputs.map((pin) => pin.name), ['x', 'y']);
  // An empty graph also has a picture.
  await service.replace(displayGraph(editor(), '', null, null));
  assert.deepEqual((await service.scene(0, { fold: false })).items, []);
});
