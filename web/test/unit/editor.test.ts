import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ArgJson, AttrJson, OpJson } from '../../src/data/format.ts';
import { displayGraph } from '../../src/edit/display.ts';
import { Editor } from '../../src/edit/editor.ts';
import { fieldText, parseField } from '../../src/edit/fields.ts';
import { Library } from '../../src/edit/library.ts';
import { nodeText, parseNodes } from '../../src/edit/node.ts';
import { parseText, printText, quote, unquote } from '../../src/edit/text.ts';
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

test('text of messages', () => {
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

test('fields of attributes', () => {
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

test('connecting sets types and sizes, or says why not', () => {
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
  // A new block takes the type of what it is connected to.
  const mul = e.add('Mul');
  assert.equal(text(e, 'Mul'), 'input: "" input: ""');
  e.connect({ id: id(e, 'i'), index: 0 }, { id: mul.id, index: 1 });
  assert.equal(text(e, 'Mul'), 'input: "" input: "i" attr { key: "T" value { type: DT_INT32 } }');
  e.disconnect(mul.id, 1);
  e.connect({ id: id(e, 'x'), index: 0 }, { id: mul.id, index: 0 });
  assert.equal(text(e, 'Mul'), 'input: "x" input: "" attr { key: "T" value { type: DT_FLOAT } }');
  // Lists get longer and shorter.
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
  // The only input of a type may be replaced by one of another type.
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

test('renaming, removing, and values of attributes', () => {
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

test('the items of a server keep what is untouched', () => {
  const e = editor(kSmall);
  assert.deepEqual(e.items(), [0, 1, 2, 3]);
  e.rename(id(e, 'x'), 'z');
  assert.deepEqual(e.items(), [
    { t: 'name: "z"\nop: "Placeholder"\n', b: 0, k: ['dtype'] }, 1,
    { t: 'name: "y"\nop: "Mul"\ninput: "z"\ninput: ""\n', b: 2, k: ['T'] }, 3,
  ]);
  // A change that is taken back is none.
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

test('blocks move between scopes in one step, with what reads them', () => {
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
  // A name may be that of another one that moves, too, but not of one that stays.
  e.rename(id(e, 'i'), 'a/x');
  e.moveTo([id(e, 'x'), id(e, 'a/x')], '', 'a');
  assert.equal(all(), 'a/x() a/a/x() y(a/x,) s(y,^a/a/x)');
  assert.throws(() => e.moveTo([id(e, 'y')], '', 'a b'), /a name has letters/);
  e.rename(id(e, 'y'), 'b/x');
  assert.throws(() => e.moveTo([id(e, 'b/x')], 'b/', 'a'), /there is a block 'a\/x' already/);
});

test('an edit after undoing ends what could be redone', () => {
  const e = editor(kSmall);
  e.add('NoOp');
  e.undo();
  e.add('Mul');
  assert.equal(e.redoTitle, null);
  assert.equal(e.redo(), null);
  assert.equal(e.nodes.length, 5);
});

// Makes one random edit; what does not fit changes nothing.
function edit(e: Editor, next: () => number): void {
  const pick = <V>(list: readonly V[]): V => list[Math.floor(next() * list.length)]!;
  const node = (): number => (e.nodes.length === 0 ? -1 : pick(e.nodes).id);
  const before = e.text();
  try {
    switch (Math.floor(next() * 10)) {
      case 0: e.add(pick(kOps).n); break;
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
      case 5: e.rename(node(), `${pick(['a', 'b/', 's/t/'])}${Math.floor(next() * 50)}`); break;
      case 6: {
        const of = e.get(node())!;
        const attr = pick(e.library.find(of.op)!.a);
        const value = { type: 'float', int: '2', string: 'b', shape: '[2,?]', tensor: 'float [] 1', 'list(type)': 'int32' }[attr[1]]!;
        e.setAttr(of.id, attr[0], next() < 0.2 ? null : parseField(attr, value));
        break;
      }
      case 7: e.paste(parseNodes(e.nodes.slice(0, 3).map((n) => `node { ${nodeText(n)} }`).join('\n'))); break;
      case 8: {
        const ids = [...new Set([node(), node()])];
        e.moveTo(ids, e.commonScope(ids), pick(['', 's', 's/t/']));
        break;
      }
      default: e.connectControl(node(), node());
    }
  } catch (error) {
    assert.ok(error instanceof Error && e.text() === before, String(error));
  }
  // Keeps the graph small, so that edits meet.
  if (e.nodes.length > 60) e.remove(e.nodes.slice(0, 30).map((n) => n.id));
}

test('10,000 random edits undone and redone give the same graph, byte for byte', () => {
  const e = editor(kSmall);
  const next = random(20);
  const first = e.text();
  for (let i = 0; i < 10_000; ++i) edit(e, next);
  const last = e.text();
  const items = JSON.stringify(e.items());
  let undone = 0;
  while (e.undo() !== null) ++undone;
  assert.ok(undone > 5000, `${undone} edits changed the graph`);
  assert.equal(e.text(), first);
  assert.deepEqual(e.items(), [0, 1, 2, 3]);
  let redone = 0;
  while (e.redo() !== null) ++redone;
  assert.equal(redone, undone);
  assert.equal(e.text(), last);
  assert.equal(JSON.stringify(e.items()), items);
  // Back and forth, at random.
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
  // An empty graph has a picture too.
  await service.replace(displayGraph(editor(), '', null, null));
  assert.deepEqual((await service.scene(0, { fold: false })).items, []);
});
