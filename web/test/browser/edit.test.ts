// `gradflow edit` in a browser: from an empty graph to a run, keys, drags, the clipboard, and
// files.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import {
  Fixture, constant, expectNoViolation, message, node, openScopes, placeholder, selected, settle,
} from './support.ts';
import { kCommands, kEditCommands } from '../../src/ui/commands.ts';

let fixture: Fixture;
before(() => {
  fixture = new Fixture();
});
after(() => fixture.close());

async function editor(name: string, text = '', options: BrowserContextOptions = {}): Promise<Page> {
  const path = text === '' ? join(fixture.folder, name) : fixture.file(name, text);
  const page = await fixture.open(await fixture.serve([path]), options);
  await settle(page);
  return page;
}
function names(page: Page): Promise<string[]> {
  return page.evaluate(() => window.gradflow.edit!.editor.nodes.map((n) => n.name));
}
function inputs(page: Page, name: string): Promise<readonly string[]> {
  return page.evaluate((n) => window.gradflow.edit!.editor.find(n)!.inputs, name);
}
async function select(page: Page, name: string): Promise<void> {
  await page.evaluate(async (n) => {
    const id = await window.gradflow.client.call('find', n);
    await window.gradflow.select(id!);
  }, name);
  await settle(page);
}
// Adds a block with the palette, and names it.
async function add(page: Page, op: string, name: string): Promise<void> {
  await fixture.press(page, 'b');
  await page.keyboard.type(op);
  await page.keyboard.press('Enter');
  await settle(page);
  await field(page, 'Name', name);
}
async function field(page: Page, label: string, value: string): Promise<void> {
  await page.getByLabel(label, { exact: true }).fill(value);
  await page.getByLabel(label, { exact: true }).press('Enter');
  await settle(page);
}
async function choose(page: Page, label: string, value: string): Promise<void> {
  await page.getByLabel(label, { exact: true }).selectOption(value);
  await settle(page);
}
// Returns the screen position of a block's pin.
async function pin(page: Page, name: string, isOutput: boolean, index: number):
    Promise<[number, number]> {
  return page.evaluate(async ([n, output, i]) => {
    const app = window.gradflow;
    const id = (await app.client.call('find', n as string))!;
    const box = app.world.boxOf(id)!;
    const { placed, item } = app.world.findItem(id)!;
    const it = placed.scene.items[item]!;
    const list = output ? it.outputs : it.inputs;
    const { scale, x, y } = app.camera.transform();
    const canvas = app.canvas.getBoundingClientRect();
    return [canvas.left + x + scale * (output ? box.x + box.w : box.x),
            canvas.top + y + scale * (box.y + placed.at.scale * list[i as number]!.y)];
  }, [name, isOutput, index] as const);
}

test('from an empty graph to a run: a block is placed, fed, run, seen and saved', async () => {
  const page = await editor('fake_quant.pbtxt');
  assert.deepEqual(await names(page), []);
  await add(page, 'FakeQuantWithMinMaxVarsGradient', 'backprop');
  assert.match(await message(page), /./);
  for (const [name, values, shape] of [
    ['gradients', '1, 2, 3, 4', '[4]'], ['inputs', '-2, 0, 0.5, 9', '[4]'], ['min', '-1', '[]'],
    ['max', '1', '[]'],
  ] as const) {
    await add(page, 'Placeholder', name);
    await choose(page, 'Attribute dtype', 'float');
    await settle(page);
    if (name === 'gradients' || name === 'inputs') {
      // Feeds a file.
      await choose(page, 'Feed', 'file');
      await page.getByLabel('File of the feed').setInputFiles(
        fixture.npy(name, values.split(', ').map(Number), [4]));
    } else {
      await choose(page, 'Feed', 'values');
      await field(page, 'Shape of the feed', shape);
      await field(page, 'Numbers of the feed', values);
      fixture.npy(name, [Number(values)], []);
    }
    await settle(page);
  }
  await select(page, 'backprop');
  assert.match(await page.locator('#panel').innerText(), /Cannot run: input 0 is not connected/);
  for (const name of ['gradients', 'inputs', 'min', 'max']) await field(page, `Input ${name}`, name);
  assert.doesNotMatch(await page.locator('#panel').innerText(), /Cannot run/);
  await fixture.press(page, 'R');
  await settle(page);
  assert.equal(await message(page), 'Run');
  const results = (await page.locator('#panel .values').allInnerTexts()).map((text) => text.trim());
  // Gradients pass where the input is in the range. The other gradients go to the bounds of the
  // range.
  assert.deepEqual(results, ['0 2 3 0', '1', '4']);
  await fixture.press(page, 'q');
  await settle(page);
  assert.match(await message(page), /^Saved fake_quant\.pbtxt: \d+ bytes$/);
  const feeds = ['gradients', 'inputs', 'min', 'max']
    .flatMap((name) => ['--feed', `${name}=${join(fixture.folder, name + '.npy')}`]);
  const run = fixture.output(['run', join(fixture.folder, 'fake_quant.pbtxt'), ...feeds]);
  assert.deepEqual([...run.matchAll(/values: ([^>]*)>/g)].map((match) => match[1]!.trim()),
                   ['[0 2 3 0]', '1', '4'].map((text, i) => (i === 0 && !run.includes('[0') ? '0 2 3 0' : text)));
  await page.close();
});

const kPair = placeholder('x', [2]) + node('y', 'Mul', ['x', '']) + node('z', 'Relu', ['']);

test('two pins are connected in at most 12 keys', async () => {
  const page = await editor('keys.pbtxt', kPair);
  let keys = 0;
  const press = async (key: string): Promise<void> => {
    ++keys;
    await page.keyboard.press(key);
    await settle(page);
  };
  await page.locator('#tree').focus();
  while (await selected(page) !== 'y') await press('ArrowDown');
  await press('f');
  while (await selected(page) !== 'z') await press('ArrowDown');
  await press('g');
  await press('Enter');
  assert.deepEqual(await inputs(page, 'z'), ['y']);
  assert.ok(keys <= 12, `${keys} keys`);
  // Undo and redo also work with keys.
  await fixture.press(page, 'z');
  assert.deepEqual(await inputs(page, 'z'), ['']);
  await fixture.press(page, 'Z');
  assert.deepEqual(await inputs(page, 'z'), ['y']);
  await page.close();
});

test('an invalid edit is refused, with the reason', async () => {
  const page = await editor('types.pbtxt', kPair + `
    node { name: "i" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
    node { name: "w" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: 3 } } } } }`);
  await select(page, 'i');
  await fixture.press(page, 'f');
  await select(page, 'y');
  await fixture.press(page, 'g');
  const choices = await page.locator('.edit-dialog .choice').allInnerTexts();
  assert.match(choices[1]!, /'y' is float as another input of type T, but the tensor is int32/);
  await expectNoViolation(page, 'connect');
  await page.keyboard.press('Escape');
  // The type fits, but the shape does not.
  await field(page, 'Input y', 'w');
  assert.match(await message(page), /^y: .*\[2\].*\[3\]/);
  assert.match(await page.locator('#panel').innerText(), /Cannot run/);
  await field(page, 'Input y', 'z');
  await field(page, 'Input y', 'y');
  assert.match(await message(page), /cycle/);
  await field(page, 'Name', 'a b');
  assert.match(await message(page), /a name has letters/);
  await page.close();
});

test('a drag connects pins, or lists the ops that fit', async () => {
  const page = await editor('drag.pbtxt', kPair);
  await drag(page, await pin(page, 'x', true, 0), await pin(page, 'z', false, 0));
  assert.deepEqual(await inputs(page, 'z'), ['x']);
  const before = await page.evaluate(() => window.gradflow.camera.transform());
  const [x, y] = await pin(page, 'y', true, 0);
  await drag(page, [x, y], [x + 60, y + 170]);
  assert.deepEqual(await page.evaluate(() => window.gradflow.camera.transform()), before);
  assert.match(await page.locator('.edit-dialog h2').innerText(), /takes float/);
  await page.getByLabel('Op', { exact: true }).fill('abs');
  const found = await page.locator('.edit-dialog .choice b').allInnerTexts();
  assert.ok(found.includes('Abs') && !found.includes('PopulationCount'), found.join(' '));
  await page.getByLabel('Op', { exact: true }).press('Enter');
  await settle(page);
  assert.deepEqual(await inputs(page, 'Abs'), ['y']);
  await page.close();
});

async function drag(page: Page, from: [number, number], to: [number, number], inBetween?: () => Promise<void>):
    Promise<void> {
  await page.mouse.move(...from);
  await page.mouse.down();
  await page.mouse.move((from[0] + to[0]) / 2, (from[1] + to[1]) / 2 + 20);
  await page.mouse.move(...to);
  await inBetween?.();
  await page.mouse.up();
  await settle(page);
}

test('a drag within an open scope or function adds a block there, in one step', async () => {
  const page = await editor('inside.pbtxt', placeholder('x', [2]) + node('s/y', 'Mul', ['x', 'x']) +
    node('s/z', 'Neg', ['s/y']) + `library { ${kFunction} }`);
  for (const [scope, block, added] of [['s', 's/y', 's/Abs'], ['ƒ twice', 'ƒ twice/sum', 'ƒ twice/Abs']] as const) {
    await select(page, scope);
    await fixture.press(page, 'Enter');
    const [x, y] = await pin(page, block, true, 0);
    // Near the lower edge of the scope, where it has no blocks.
    const edge = await page.evaluate(async (name) => {
      const app = window.gradflow;
      const box = app.world.boxOf((await app.client.call('find', name))!)!;
      const canvas = app.canvas.getBoundingClientRect();
      const { scale, x, y } = app.camera.transform();
      return [canvas.left + x + scale * (box.x + box.w / 2), canvas.top + y + scale * (box.y + box.h) - 4];
    }, scope) as [number, number];
    await drag(page, [x, y], edge);
    assert.match(await page.locator('.edit-dialog h2').innerText(), /takes float/);
    await page.getByLabel('Op', { exact: true }).fill('abs');
    await page.getByLabel('Op', { exact: true }).press('Enter');
    await settle(page);
    assert.equal(await selected(page), added);
    assert.match(await message(page), /^Added (s\/)?Abs$/);
    await fixture.press(page, 'z');
    assert.equal(await page.evaluate(() => window.gradflow.edit!.editor.undoTitle), null);
    await select(page, scope);
    await fixture.press(page, 'Enter');
  }
  await page.close();
});

test('while a pin is dragged, the pins that fit are marked', async () => {
  const page = await editor('fit.pbtxt', kPair + `
    node { name: "i" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }`);
  const marked = () => page.evaluate(() => window.gradflow.fits.length);
  const from = await pin(page, 'z', false, 0);
  await drag(page, from, [from[0] + 20, from[1] + 200], async () => {
    // Both placeholders and the product, but not the dragged block.
    assert.equal(await marked(), 3);
  });
  assert.equal(await marked(), 0);
  await page.keyboard.press('Escape');
  await page.close();
});

test('dialogs keep the focus, and show hostile names as text', async () => {
  const page = await editor('modal.pbtxt', kPair);
  await page.evaluate(() => {
    const { editor } = window.gradflow.edit!;
    const parsed = editor.get(editor.find('z')!.id)!;
    Object.assign(parsed, { name: 'z\u202e' });
  });
  await select(page, 'x');
  await fixture.press(page, 'f');
  await page.evaluate(() => {
    const edit = window.gradflow.edit!;
    edit.openConnection(edit.editor.nodes[2]!);
  });
  assert.equal(await page.locator('.edit-dialog h2').innerText(), 'Connect x to z\\u202e');
  for (let i = 0; i < 8; ++i) {
    await page.keyboard.press('Tab');
    assert.ok(await page.evaluate(() => document.activeElement === document.body ||
      document.activeElement!.closest('dialog') !== null), `after ${i + 1} tabs`);
  }
  // The page behind the dialog takes neither focus nor keys.
  await page.locator('#search').focus({ timeout: 1000 }).catch(() => {});
  assert.notEqual(await page.evaluate(() => document.activeElement!.id), 'search');
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => document.activeElement!.id === 'tree');
  assert.equal(await page.locator('dialog').count(), 0);
  await page.close();
});

test('pages of the same file do not overwrite each other', async () => {
  const path = fixture.file('two.pbtxt', kPair);
  const first = await fixture.open(await fixture.serve([path]));
  await settle(first);
  // Another page of the same browser, at the address without the token.
  const second = await first.context().newPage();
  await second.goto(new URL(first.url()).origin);
  await second.waitForFunction(() => document.documentElement.dataset.state === 'ready');
  await settle(second);
  assert.equal(new URL(first.url()).search, '');
  await add(first, 'NoOp', 'mine');
  await fixture.press(first, 'q');
  assert.match(await message(first), /^Saved/);
  await add(second, 'NoOp', 'theirs');
  await fixture.press(second, 'q');
  assert.match(await message(second), /^FAILED_PRECONDITION: 'two.pbtxt' has changed since the page was loaded/);
  assert.match(readFileSync(path, 'utf8'), /mine/);
  await fixture.press(second, 'q');
  assert.match(await message(second), /^Saved/);
  assert.match(readFileSync(path, 'utf8'), /theirs/);
  await fixture.press(first, 'q');
  assert.match(await message(first), /has changed since the page saved it/);
  assert.match(fixture.faults.pop()!, /status of 400/);
  // Another existing file.
  const other = fixture.file('other_name.pbtxt', '# Theirs.\n');
  await first.evaluate(() => window.gradflow.clearSelection());
  await field(first, 'File', 'other_name.pbtxt');
  await first.getByRole('button', { name: 'Save', exact: true }).first().click();
  await settle(first);
  assert.match(await message(first), /'other_name.pbtxt' exists; save again to overwrite it/);
  assert.match(fixture.faults.pop()!, /status of 400/);
  assert.equal(readFileSync(other, 'utf8'), '# Theirs.\n');
  await first.getByRole('button', { name: 'Save', exact: true }).first().click();
  await settle(first);
  assert.match(readFileSync(other, 'utf8'), /mine/);
  await first.context().close();
});

test('a page with the cookie and without the key has no graph', async () => {
  const page = await editor('key.pbtxt', kPair);
  assert.equal(await page.evaluate(() => document.cookie), '');
  await page.evaluate(() => localStorage.clear());
  await page.reload();
  await page.waitForFunction(() => document.documentElement.dataset.state === 'failed');
  assert.match(await message(page), /expected the page's own request/);
  assert.match(fixture.faults.pop()!, /status of 403/);
  assert.equal(await page.evaluate(() => window.gradflow.summary), null);
  await page.close();
});

test('runs write no files unless they may', async () => {
  const out = join(fixture.folder, 'written.txt');
  const text = (name: string, value: string): string => `node { name: "${name}" op: "Const"
    attr { key: "dtype" value { type: DT_STRING } } attr { key: "value" value { tensor { dtype: DT_STRING
      tensor_shape { } string_val: ${JSON.stringify(value)} } } } }`;
  const graph = text('name', out) + text('contents', 'yes') + `
    node { name: "write" op: "WriteFile" input: "name" input: "contents" }`;
  const page = await editor('write.pbtxt', graph);
  await select(page, 'write');
  await fixture.press(page, 'F');
  assert.match(await message(page), /'write' \(WriteFile\): .*--allow-write/);
  assert.match(fixture.faults.pop()!, /status of 400/);
  await page.close();
  assert.ok(!existsSync(out));
  const allowed = await fixture.open(await fixture.serve(['--allow-write', fixture.folder, fixture.file('allowed.pbtxt', graph)]));
  await settle(allowed);
  await select(allowed, 'write');
  await fixture.press(allowed, 'F');
  assert.equal(readFileSync(out, 'utf8'), 'yes');
  await allowed.close();
});

test('blocks are copied, pasted and removed', async () => {
  const page = await editor('copy.pbtxt', kPair);
  await select(page, 'z');
  await fixture.press(page, 'y', 'Y');
  assert.deepEqual(await names(page), ['x', 'y', 'z', 'z_1']);
  await fixture.press(page, 'Delete');
  assert.deepEqual(await names(page), ['x', 'y', 'z']);
  // Pastes text from another program.
  await page.evaluate((text) => {
    const data = new DataTransfer();
    data.setData('text/plain', text);
    document.getElementById('tree')!.dispatchEvent(
      new ClipboardEvent('paste', { clipboardData: data, bubbles: true }));
  }, 'node { name: "a" op: "NoOp" } node { name: "b" op: "NoOp" input: "^a" }');
  await settle(page);
  assert.deepEqual(await names(page), ['x', 'y', 'z', 'a', 'b']);
  assert.equal(await selected(page), 'b');
  await fixture.press(page, 'z');
  assert.deepEqual(await names(page), ['x', 'y', 'z']);
  await page.close();
});

test('a selection of several blocks is copied, moved and removed in one step', async () => {
  const page = await editor('several.pbtxt', kPair + constant('c', 1) + node('s/in', 'Relu', ['y']));
  const names_ = (): Promise<string> => names(page).then((list) => list.join(' '));
  // Selects with keys.
  await select(page, 'x');
  await fixture.press(page, 'X');
  await select(page, 'z');
  await fixture.press(page, 'X');
  assert.equal(await message(page), '2 blocks selected');
  assert.equal(await page.locator('[role=treeitem][aria-selected=true]').count(), 2);
  await expectNoViolation(page, 'selection');
  await fixture.press(page, 'K');
  await expectNoViolation(page, 'scope');
  await page.keyboard.type('layer');
  await page.keyboard.press('Enter');
  await settle(page);
  assert.equal(await names_(), 'layer/x y layer/z c s/in');
  assert.deepEqual(await inputs(page, 'y'), ['layer/x', '']);
  assert.match(await page.locator('#panel').innerText(), /Selection: 2 blocks/);
  await fixture.press(page, 'D');
  assert.equal(await names_(), 'layer/x y layer/z c s/in layer/x_1 layer/z_1');
  await fixture.press(page, 'Delete');
  assert.equal(await names_(), 'layer/x y layer/z c s/in');
  await fixture.press(page, 'z', 'z', 'z');
  assert.equal(await names_(), 'x y z c s/in');
  await fixture.press(page, 'Z');
  assert.equal(await names_(), 'layer/x y layer/z c s/in');
  // A scope is renamed and then dissolved.
  await fixture.press(page, 'Escape');
  await select(page, 'layer');
  await fixture.press(page, 'K');
  await page.locator('.edit-dialog input').fill('tower/first');
  await page.keyboard.press('Enter');
  await settle(page);
  assert.equal(await names_(), 'tower/first/x y tower/first/z c s/in');
  await fixture.press(page, 'Escape');
  await select(page, 'tower');
  await fixture.press(page, 'U');
  assert.equal(await names_(), 'first/x y first/z c s/in');
  await fixture.press(page, 'z', 'z', 'z', 'Escape');
  assert.equal(await names_(), 'x y z c s/in');
  // Copies all blocks, including the block of the scope.
  await fixture.press(page, 'A', 'y', 'Y');
  assert.equal(await names_(), 'x y z c s/in x_1 y_1 z_1 c_1 s/in_1');
  assert.deepEqual(await inputs(page, 's/in_1'), ['y_1']);
  await fixture.press(page, 'z', 'Escape');
  // Selects with Shift and clicks, then with a rectangle around everything.
  await page.evaluate(() => window.gradflow.fitAll(false));
  await settle(page);
  for (const name of ['x', 'y']) {
    const [x, y] = await pin(page, name, true, 0);
    await page.keyboard.down('Shift');
    await page.mouse.click(x - 15, y - 18);
    await page.keyboard.up('Shift');
    await settle(page);
  }
  assert.equal(await message(page), '2 blocks selected');
  await page.mouse.click(30, 700);
  await settle(page);
  assert.equal(await page.evaluate(() => window.gradflow.chosen.size), 0);
  const canvas = (await page.locator('#canvas').boundingBox())!;
  await page.keyboard.down('Shift');
  await page.mouse.move(canvas.x + 2, canvas.y + 2);
  await page.mouse.down();
  await page.mouse.move(canvas.x + 200, canvas.y + 200);
  await page.mouse.move(canvas.x + canvas.width - 2, canvas.y + canvas.height - 2);
  await page.mouse.up();
  await page.keyboard.up('Shift');
  await settle(page);
  assert.equal(await message(page), '5 blocks selected');
  await fixture.press(page, 'Delete');
  assert.equal(await names_(), '');
  await fixture.press(page, 'z');
  assert.equal(await names_(), 'x y z c s/in');
  await page.close();
});

const kFunction = `
  function { signature { name: "twice" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }
    node_def { name: "sum" op: "AddV2" input: "a" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "r" value: "sum:z:0" } }
  function { signature { name: "other" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }
    # As it came.
    ret { key: "r" value: "a" } }
`;
// Selects a block of an open function.
async function selectIn(page: Page, scope: string, title: string): Promise<void> {
  await page.evaluate(async ([path, name]) => {
    const app = window.gradflow;
    const id = ~(await app.client.call('find', path!))!;
    const scene = app.world.placed.get(id)!.scene;
    await app.select(scene.items.find((item) => item.title === name)!.id);
  }, [scope, title]);
  await settle(page);
}
function body(page: Page, f: number): Promise<string> {
  return page.evaluate((n) => window.gradflow.edit!.editor.nodesOf(n)
    .map((node) => `${node.name}(${node.inputs.join()})`).join(' '), f);
}

test('a key leads from a call to the function and back', async () => {
  const page = await editor('function.pbtxt', placeholder('x', [2]) + `
    node { name: "call" op: "twice" input: "x" }
    node { name: "if" op: "If" input: "x" input: "x" attr { key: "then_branch" value { func { name: "twice" } } }
           attr { key: "else_branch" value { func { name: "other" } } } }
    library { ${kFunction} }`);
  await select(page, 'call');
  await fixture.press(page, 'B');
  assert.equal(await selected(page), 'ƒ twice');
  assert.deepEqual(await openScopes(page), ['ƒ twice']);
  await selectIn(page, 'ƒ twice', 'sum');
  assert.match(await page.locator('#panel').innerText(), /AddV2[^]*Inputs[^]*Attributes/);
  await fixture.press(page, 'B');
  assert.equal(await selected(page), 'call');
  await select(page, 'if');
  await fixture.press(page, 'B');
  const first = await selected(page);
  await fixture.press(page, 'B', 'B');
  assert.deepEqual([first, await selected(page)].sort(), ['ƒ other', 'ƒ twice']);
  await page.close();
});

test('the body of a function is edited, run and saved; the graph gives the same values', async () => {
  const path = fixture.file('body.pbtxt', `# Mine.\n${placeholder('x', [2])}${node('y', 'Neg', ['x'])}library {${kFunction}}\n`);
  const before = readFileSync(path, 'utf8');
  const page = await fixture.open(await fixture.serve([path]));
  await settle(page);
  await select(page, 'ƒ twice');
  await fixture.press(page, 'Enter');
  await selectIn(page, 'ƒ twice', 'sum');
  // The shapes are known unless they depend on the shapes of the arguments.
  await field(page, 'Name', 'total');
  assert.equal(await body(page, 1), 'a() total(a,a) r(total)');
  // A block from the palette is added to the function of the selected block.
  await fixture.press(page, 'b');
  assert.match(await page.locator('.edit-dialog').innerText(), /Add a block/);
  await page.keyboard.type('_Arg');
  await expectNoViolation(page, 'palette of a function');
  await page.keyboard.press('Enter');
  await settle(page);
  assert.equal(await selected(page), 'ƒ twice/argument');
  await field(page, 'Name', 'b');
  await choose(page, 'Attribute T', 'float');
  await settle(page);
  await add(page, 'Mul', 'product');
  assert.equal(await body(page, 1), 'a() b() total(a,a) product(,) r(total)');
  await field(page, 'Input x', 'total');
  await field(page, 'Input y', 'x');
  assert.equal(await message(page), "there is no block 'x'");
  await field(page, 'Input y', 'product');
  assert.match(await message(page), /cycle/);
  await field(page, 'Input y', 'b');
  // Connects the result with keys.
  await fixture.press(page, 'f');
  await selectIn(page, 'ƒ twice', 'r');
  await fixture.press(page, 'g', 'Enter');
  assert.equal(await body(page, 1), 'a() b() total(a,a) product(total,b) r(product)');
  await expectNoViolation(page, 'result');
  // A type that does not fit is refused; a shape that does not fit is a problem.
  await selectIn(page, 'ƒ twice', 'b');
  await choose(page, 'Attribute T', 'int32');
  await settle(page);
  await selectIn(page, 'ƒ twice', 'product');
  assert.match(await page.locator('#panel').innerText(), /Cannot run: .*int32/);
  await field(page, 'Input y', 'a');
  await field(page, 'Input y', 'b');
  assert.match(await message(page), /is float as another input of type T, but the tensor is int32/);
  await fixture.press(page, 'z', 'z');
  assert.equal(await body(page, 1), 'a() b() total(a,a) product(total,b) r(product)');
  assert.doesNotMatch(await page.locator('#panel').innerText(), /Cannot run/);
  // The body can run alone.
  for (const [name, values] of [['a', '1, 2'], ['b', '3, 4']] as const) {
    await selectIn(page, 'ƒ twice', name);
    await choose(page, 'Feed', 'values');
    await field(page, 'Shape of the feed', '[2]');
    await field(page, 'Numbers of the feed', values);
  }
  await selectIn(page, 'ƒ twice', 'product');
  await fixture.press(page, 'F');
  assert.equal(await message(page), 'Run');
  assert.equal((await page.locator('#panel .values').first().innerText()).trim(), '6 16');
  await page.evaluate(() => window.gradflow.selectParent());
  await settle(page);
  assert.equal(await selected(page), 'ƒ twice');
  // The graph gives the same result, before and after it is saved.
  await select(page, 'x');
  await choose(page, 'Feed', 'file');
  const npy = fixture.npy('x', [5, -6], [2]);
  await page.getByLabel('File of the feed').setInputFiles(npy);
  await select(page, 'y');
  await fixture.press(page, 'R');
  assert.equal(await message(page), 'Run');
  const values = (await page.locator('#panel .values').first().innerText()).trim();
  assert.equal(values, '-5 6');
  await fixture.press(page, 'q');
  assert.match(await message(page), /^Saved body\.pbtxt/);
  const saved = readFileSync(path, 'utf8');
  const run = fixture.output(['run', path, '--feed', `x=${npy}`]);
  assert.match(run, new RegExp(`values: ${values}>`));
  // Untouched parts keep their bytes.
  const other = before.slice(before.indexOf('  function { signature { name: "other"'));
  assert.ok(saved.endsWith(other), saved);
  assert.ok(saved.startsWith(before.slice(0, before.indexOf('  function'))), saved);
  const text = fixture.output(['inspect', path]);
  assert.match(text, /Placeholder|Neg/);
  // The saved function is the function of the page.
  await page.reload();
  await page.waitForFunction(() => document.documentElement.dataset.state === 'ready');
  await settle(page);
  assert.equal(await body(page, 1), 'a() b() total(a,a) product(total,b) r(product)');
  assert.equal(await body(page, 2), 'a() r(a)');
  // The C++ program contains the functions.
  await fixture.press(page, 'C');
  await settle(page);
  assert.match(await page.locator('.edit-dialog textarea').inputValue(),
               /AddFunctions[^]*name: "product"[^]*ops::Neg\(root\.WithOpName\("y"\), x\)/);
  await page.close();
});

test('arguments and results change the calls, and selections stay in a function', async () => {
  const page = await editor('signature.pbtxt', placeholder('x', [2]) +
    'node { name: "call" op: "twice" input: "x" } ' + node('y', 'Neg', ['call']) + `library {${kFunction}}`);
  const first = await page.evaluate(() => window.gradflow.edit!.editor.text());
  await select(page, 'ƒ twice');
  await fixture.press(page, 'Enter', 'b');
  await page.keyboard.type('_Retval');
  await page.keyboard.press('Enter');
  await settle(page);
  await field(page, 'Input input', 'a');
  await field(page, 'Name', 'first');
  await select(page, 'call');
  assert.match(await page.locator('#panel').innerText(), /first float/);
  await selectIn(page, 'ƒ twice', 'r');
  await fixture.press(page, 'Delete');
  assert.deepEqual(await inputs(page, 'y'), ['']);
  await fixture.press(page, 'z');
  assert.deepEqual(await inputs(page, 'y'), ['call']);
  // Moves all blocks of a function into a scope of the function.
  await selectIn(page, 'ƒ twice', 'sum');
  await fixture.press(page, 'K');
  await page.keyboard.type('layer');
  await page.keyboard.press('Enter');
  await settle(page);
  assert.equal(await body(page, 1), 'a() layer/sum(a,a) r(layer/sum) first(a)');
  assert.ok((await openScopes(page)).includes('ƒ twice/layer'));
  await fixture.press(page, 'y');
  await select(page, 'ƒ other');
  await fixture.press(page, 'Y');
  assert.equal(await body(page, 2), 'a() layer/sum(a,a) r(a)');
  await select(page, 'ƒ twice/layer');
  await fixture.press(page, 'U');
  assert.equal(await body(page, 1), 'a() sum(a,a) r(sum) first(a)');
  await select(page, 'ƒ other');
  await fixture.press(page, 'Delete');
  assert.equal(await body(page, 2), '');
  for (let i = 0; i < 7; ++i) await fixture.press(page, 'z');
  assert.equal(await page.evaluate(() => window.gradflow.edit!.editor.text()), first);
  await fixture.press(page, 'z');
  assert.equal(await message(page), 'Nothing to undo');
  await page.close();
});

test('a function is made, called, renamed, saved and removed', async () => {
  const path = fixture.file('functions.pbtxt', `# Mine.\n${placeholder('x', [2])}`);
  const before = readFileSync(path, 'utf8');
  const page = await fixture.open(await fixture.serve([path]));
  await settle(page);
  // Adds a function with keys.
  await fixture.press(page, 'L');
  await expectNoViolation(page, 'no functions');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('Relu');
  await page.keyboard.press('Enter');
  await settle(page);
  assert.equal(await message(page), "there is an op or a function 'Relu' already");
  await page.keyboard.press('Control+A');
  await page.keyboard.type('twice');
  await page.keyboard.press('Enter');
  await settle(page);
  assert.equal(await selected(page), 'ƒ twice/x');
  assert.equal(await body(page, 1), 'x() y(x)');
  await add(page, 'AddV2', 'sum');
  await field(page, 'Input x', 'x');
  await field(page, 'Input y', 'x');
  await selectIn(page, 'ƒ twice', 'y');
  await field(page, 'Input input', 'sum');
  await select(page, 'x');
  await add(page, 'twice', 'call');
  await field(page, 'Input x', 'x');
  // A call follows the new name, and keeps the function in use.
  await fixture.press(page, 'L');
  await expectNoViolation(page, 'functions');
  assert.ok(await page.getByLabel('Remove twice').isDisabled());
  await page.getByLabel('Name of twice').fill('double');
  await page.getByLabel('Name of twice').press('Enter');
  await settle(page);
  await page.keyboard.press('Escape');
  await select(page, 'call');
  assert.match(await page.locator('#panel').innerText(), /double/);
  assert.deepEqual(await page.evaluate(() => window.gradflow.edit!.editor.functions), ['double']);
  await fixture.press(page, 'B');
  assert.equal(await selected(page), 'ƒ double');
  // The body can run alone.
  await selectIn(page, 'ƒ double', 'x');
  await choose(page, 'Feed', 'values');
  await field(page, 'Shape of the feed', '[2]');
  await field(page, 'Numbers of the feed', '1, 2');
  await selectIn(page, 'ƒ double', 'sum');
  await fixture.press(page, 'F');
  assert.equal(await message(page), 'Run');
  assert.equal((await page.locator('#panel .values').first().innerText()).trim(), '2 4');
  await fixture.press(page, 'q');
  assert.match(await message(page), /^Saved functions\.pbtxt/);
  const saved = readFileSync(path, 'utf8');
  assert.ok(saved.startsWith(before.trimEnd()), saved);
  assert.match(saved, /op: "double"[^]*name: "double"/);
  await page.reload();
  await page.waitForFunction(() => document.documentElement.dataset.state === 'ready');
  await settle(page);
  assert.equal(await body(page, 1), 'x() sum(x,x) y(sum)');
  // The function is removed completely.
  await select(page, 'call');
  await fixture.press(page, 'Delete', 'L');
  await page.getByLabel('Remove double').click();
  await settle(page);
  assert.equal(await message(page), 'Remove function double');
  await page.keyboard.press('Escape');
  await fixture.press(page, 'q');
  const without = readFileSync(path, 'utf8');
  assert.ok(without.startsWith(before.trimEnd()), without);
  assert.match(without.slice(before.trimEnd().length), /^\nlibrary {\s*}\n$/);
  await fixture.press(page, 'z', 'z', 'q');
  assert.equal(readFileSync(path, 'utf8'), saved);
  await page.close();
});

test('the selection becomes a function, whose body gives the same values', async () => {
  const page = await editor('extract.pbtxt', placeholder('x', [2]) + node('s/y', 'Square', ['x']) +
    node('s/z', 'Mul', ['s/y', 'x']) + node('out', 'Neg', ['s/z']));
  await select(page, 's');
  await fixture.press(page, 'O');
  await expectNoViolation(page, 'make a function');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('cube');
  await page.keyboard.press('Enter');
  await settle(page);
  assert.equal(await selected(page), 'cube');
  assert.deepEqual(await inputs(page, 'out'), ['cube']);
  assert.equal(await body(page, 1), 'x() s/y(x) s/z(s/y,x) z(s/z)');
  await fixture.press(page, 'B');
  await selectIn(page, 'ƒ cube', 'x');
  await choose(page, 'Feed', 'values');
  await field(page, 'Shape of the feed', '[2]');
  await field(page, 'Numbers of the feed', '2, 3');
  await selectIn(page, 'ƒ cube', 'z');
  await fixture.press(page, 'F');
  assert.equal(await message(page), 'Run');
  await page.evaluate(() => window.gradflow.selectParent());
  await settle(page);
  await select(page, 'ƒ cube/s/z');
  assert.equal((await page.locator('#panel .values').first().innerText()).trim(), '8 27');
  await page.close();
});

test('a feed is undone and redone, with the values of its run', async () => {
  const page = await editor('fed.pbtxt', placeholder('x', [2]) + node('y', 'Neg', ['x']));
  await select(page, 'x');
  await choose(page, 'Feed', 'values');
  await field(page, 'Numbers of the feed', '1, 2');
  await select(page, 'y');
  await fixture.press(page, 'R');
  const values = page.locator('#panel .values');
  assert.equal((await values.first().innerText()).trim(), '-1 -2');
  await select(page, 'x');
  await field(page, 'Numbers of the feed', '3, 4');
  await select(page, 'y');
  assert.equal(await values.count(), 0);
  await fixture.press(page, 'z');
  assert.equal(await message(page), 'Undone: Feed x');
  assert.equal((await values.first().innerText()).trim(), '-1 -2');
  await fixture.press(page, 'Z', 'R');
  assert.equal((await values.first().innerText()).trim(), '-3 -4');
  await fixture.press(page, 'z', 'z', 'z');
  await select(page, 'x');
  assert.equal(await page.getByLabel('Feed', { exact: true }).inputValue(), 'none');
  // Feeds are not part of a file.
  assert.equal(await page.evaluate(() => window.gradflow.edit!.isUnsaved), false);
  await page.close();
});

test('images become feeds and constants', async () => {
  const page = await editor('image.pbtxt', placeholder('x', [1, 1, 2, 3]) + node('y', 'Neg', ['x']));
  // An image with a red and a blue pixel.
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAADUlEQVR4nGP4' +
    'zwAE/wEHAAH/4iOeWQAAAABJRU5ErkJggg==';
  const bytes = Buffer.from(png, 'base64');
  await select(page, 'x');
  await choose(page, 'Feed', 'file');
  await page.getByLabel('File of the feed').setInputFiles(
    { name: 'a.png', mimeType: 'image/png', buffer: bytes });
  await settle(page);
  await fixture.press(page, 'R');
  assert.equal(await message(page), 'Run');
  assert.match(await page.locator('#panel .values').first().innerText(), /\[1 0 0\]\[0 0 1\]/);
  // Files are dropped on empty space and on the new block.
  const drop = async (x: number, y: number, name: string): Promise<void> => {
    await page.evaluate(([x, y, name, png]) => {
      const data = new DataTransfer();
      const bytes = Uint8Array.from(atob(png as string), (c) => c.charCodeAt(0));
      data.items.add(new File([bytes], name as string, { type: 'image/png' }));
      document.getElementById('canvas')!.dispatchEvent(new DragEvent('drop', {
        dataTransfer: data, clientX: x as number, clientY: y as number, bubbles: true, cancelable: true,
      }));
    }, [x, y, name, png] as const);
    await settle(page);
  };
  await drop(30, 700, 'my picture.png');
  assert.deepEqual(await names(page), ['x', 'y', 'my_picture']);
  assert.equal(await page.getByLabel('Attribute value').inputValue(), 'uint8 [1,2,3] 255 0 0 0 0 255');
  await fixture.press(page, 'z');
  assert.deepEqual(await names(page), ['x', 'y']);
  await page.evaluate(() => window.gradflow.fitAll(false));
  const [x, y] = await pin(page, 'y', true, 0);
  await drop(x - 15, y - 18, 'b.png');
  assert.equal(await message(page), 'y is fed from b.png');
  await drop(30, 700, 'none.txt');
  await page.close();
});

test('a constant is edited as a table', async () => {
  const page = await editor('table.pbtxt', `node { name: "m" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 2 } } float_val: 1 } } } }`);
  await select(page, 'm');
  await field(page, 'Element 1, 0', '-3');
  assert.equal(await page.getByLabel('Attribute value').inputValue(), 'float [2,2] 1 1 -3 1');
  await field(page, 'Element 0, 0', 'three');
  assert.equal(await message(page), "'three' is not a value of type float");
  await expectNoViolation(page, 'table');
  await fixture.press(page, 'R');
  assert.equal((await page.locator('#panel .values').first().innerText()).trim(), '[1 1][-3 1]');
  await page.close();
});

test('the tensor content of a constant is shown as a table', async () => {
  const page = await editor('content.pbtxt', `node { name: "m" op: "Const" attr { key: "dtype" value { type: DT_HALF } }
    attr { key: "value" value { tensor { dtype: DT_HALF tensor_shape { dim { size: 2 } } tensor_content: "\\000<\\000\\300" } } } }`);
  await select(page, 'm');
  assert.equal(await page.getByLabel('Attribute value').inputValue(), 'half [2] 1 -2');
  await field(page, 'Element 0, 1', '0.5');
  await fixture.press(page, 'R');
  assert.equal((await page.locator('#panel .values').first().innerText()).trim(), '1 0.5');
  await page.close();
});

test('a function attribute is chosen from the functions of the graph', async () => {
  const page = await editor('func.pbtxt', placeholder('x', [2]) + `
    node { name: "call" op: "apply" input: "x" attr { key: "body" value { func { name: "twice" } } } }
    library { ${kFunction} function { signature { name: "apply" input_arg { name: "a" type: DT_FLOAT }
      attr { name: "body" type: "func" } } } }`);
  await select(page, 'call');
  assert.equal(await page.getByLabel('Attribute body').inputValue(), 'twice');
  await choose(page, 'Attribute body', 'other');
  await settle(page);
  assert.equal(await page.evaluate(() => window.gradflow.edit!.editor.find('call')!.attrs.body),
               'func { name: "other" }');
  await page.close();
});

test('a key that is pressed twice removes one block', async () => {
  const page = await editor('twice.pbtxt', kPair + node('x/in', 'Relu', ['x']));
  await select(page, 'x');
  await page.locator('#tree').focus();
  // Presses the key again before the picture shows the graph without the block.
  await page.evaluate(() => {
    for (let i = 0; i < 3; ++i) {
      document.getElementById('tree')!.dispatchEvent(
        new KeyboardEvent('keydown', { key: 'Delete', bubbles: true }));
    }
  });
  await settle(page);
  assert.deepEqual(await names(page), ['y', 'z', 'x/in']);
  await page.close();
});

test('a page that is loaded again shows the saved graph, and warns of losing changes', async () => {
  const page = await editor('again.pbtxt', kPair);
  const types: string[] = [];
  page.on('dialog', (dialog) => {
    types.push(dialog.type());
    void dialog.accept();
  });
  await select(page, 'z');
  await fixture.press(page, 'Delete', 'q');
  assert.match(await message(page), /^Saved again\.pbtxt/);
  const load = async (): Promise<void> => {
    await page.reload();
    await page.waitForFunction(() => document.documentElement.dataset.state === 'ready');
    await settle(page);
  };
  await load();
  assert.deepEqual(types, []);
  assert.deepEqual(await names(page), ['x', 'y']);
  // The page saves the graph that it shows.
  await add(page, 'NoOp', 'n');
  await fixture.press(page, 'q');
  assert.deepEqual([...readFileSync(join(fixture.folder, 'again.pbtxt'), 'utf8')
    .matchAll(/name: "(\w+)"/g)].map((match) => match[1]), ['x', 'y', 'n']);
  await fixture.press(page, 'z');
  await load();
  assert.deepEqual(types, ['beforeunload']);
  assert.deepEqual(await names(page), ['x', 'y', 'n']);
  // A file that another program has changed is overwritten at the second attempt.
  fixture.file('again.pbtxt', 'node { name: "other" op: "NoOp" }');
  await fixture.press(page, 'q');
  assert.match(await message(page), /has changed since the page was loaded; save again/);
  // The browser lists the refused request.
  assert.match(fixture.faults.pop()!, /status of 400/);
  assert.match(readFileSync(join(fixture.folder, 'again.pbtxt'), 'utf8'), /other/);
  await fixture.press(page, 'q');
  assert.match(await message(page), /^Saved again/);
  assert.doesNotMatch(readFileSync(join(fixture.folder, 'again.pbtxt'), 'utf8'), /other/);
  await page.close();
});

test('a gradient is added, run, undone; the graph becomes C++', async () => {
  const page = await editor('gradient.pbtxt',
                            placeholder('x', [2]) + node('y', 'Square', ['x']));
  await select(page, 'y');
  await fixture.press(page, 'G');
  assert.equal(await page.locator('.edit-dialog input').nth(1).inputValue(), 'x');
  await expectNoViolation(page, 'differentiate');
  await page.locator('.edit-dialog button[type=submit]').click();
  await settle(page);
  assert.match(await message(page), /^Gradients: x: gradients\//);
  const all = await names(page);
  assert.ok(all.length > 3 && all.slice(2).every((name) => name.startsWith('gradients/')));
  await select(page, 'x');
  await choose(page, 'Feed', 'random');
  await settle(page);
  await fixture.press(page, 'R');
  assert.equal(await message(page), 'Run');
  await fixture.press(page, 'z');
  assert.equal(await message(page), 'Undone: Feed x');
  await fixture.press(page, 'z');
  assert.deepEqual(await names(page), ['x', 'y']);
  await fixture.press(page, 'C');
  await settle(page);
  assert.match(await page.locator('.edit-dialog textarea').inputValue(),
               /ops::Square\(root\.WithOpName\("y"\), x\)/);
  await expectNoViolation(page, 'C++');
  await page.close();
});

test('without a server, the page edits and saves by download', async () => {
  const path = fixture.file('alone.pbtxt', '# A comment.\n' + kPair + 'versions { producer: 27 }');
  const page = await fixture.open(fixture.run('alone', ['edit', path]));
  await settle(page);
  await select(page, 'z');
  await field(page, 'Input features', 'y');
  const download = page.waitForEvent('download');
  await fixture.press(page, 'q');
  const file = await download;
  assert.equal(file.suggestedFilename(), 'alone.pbtxt');
  const saved = fixture.file('saved.pbtxt', readFileSync(await file.path(), 'utf8'));
  assert.match(readFileSync(saved, 'utf8'), /input: "y"[^]*producer: 27/);
  assert.match(fixture.output(['inspect', saved]), /3 nodes|Relu/);
  await fixture.press(page, 'R');
  assert.match(await message(page), /needs the server/);
  await page.close();
});

test('every command of the editor has its own key, and all work on an empty graph', async () => {
  const keys = [...kCommands, ...kEditCommands].map((command) => command.key);
  assert.equal(new Set(keys).size, keys.length);
  const page = await editor('empty.pb');
  for (const { id, key } of kEditCommands) {
    // Skips commands that write files.
    if (id === 'save' || id === 'download') continue;
    await fixture.press(page, key);
    await page.keyboard.press('Escape');
    await settle(page);
  }
  assert.deepEqual(await names(page), []);
  await page.close();
});

test('fields keep what is typed while the page is rendered anew', async () => {
  const page = await editor('typing.pbtxt', placeholder('x', [1]) + `
    node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value"
      value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1 float_val: 2 } } } }`);
  const type = async (label: string, value: string): Promise<void> => {
    await page.getByLabel(label, { exact: true }).fill(value);
    // Renders the page as if a late server answer had arrived.
    await page.evaluate(() => window.gradflow.changed());
    assert.equal(await page.getByLabel(label, { exact: true }).inputValue(), value);
  };
  await select(page, 'x');
  await choose(page, 'Feed', 'values');
  await type('Shape of the feed', '[2]');
  await page.keyboard.press('Enter');
  await type('Numbers of the feed', '1, 2');
  await page.keyboard.press('Enter');
  const feed = (): Promise<string[]> => page.evaluate(() => {
    const { editor } = window.gradflow.edit!;
    const { kind, shape, values } = editor.feeds.get(editor.find('x')!.id)!;
    return [kind, shape, values];
  });
  assert.deepEqual(await feed(), ['values', '[2]', '1, 2']);
  // Escape restores the text of the field.
  await type('Numbers of the feed', '3');
  await page.keyboard.press('Escape');
  assert.equal(await page.getByLabel('Numbers of the feed').inputValue(), '1, 2');
  assert.deepEqual(await feed(), ['values', '[2]', '1, 2']);
  // A rejected value is not kept.
  await select(page, 'c');
  await type('Element 0, 0', 'three');
  await page.keyboard.press('Enter');
  await settle(page);
  assert.equal(await page.getByLabel('Element 0, 0').inputValue(), '1');
  await page.close();
});

test('fields change the current state, not the state at rendering', async () => {
  const page = await editor('stale.pbtxt', placeholder('x', [1]));
  await select(page, 'x');
  await choose(page, 'Feed', 'values');
  // Both events arrive before the page is rendered again.
  const feed = await page.evaluate(() => {
    const { changed } = window.gradflow;
    window.gradflow.changed = () => undefined;
    for (const [label, value] of [['Shape of the feed', '[2]'], ['Numbers of the feed', '1, 2']]) {
      const input = document.querySelector<HTMLInputElement>(`[aria-label="${label}"]`)!;
      input.value = value!;
      input.dispatchEvent(new Event('change', { bubbles: true }));
    }
    window.gradflow.changed = changed;
    const { editor } = window.gradflow.edit!;
    const { shape, values } = editor.feeds.get(editor.find('x')!.id)!;
    return [shape, values];
  });
  assert.deepEqual(feed, ['[2]', '1, 2']);
  await page.close();
});

test('every command of the editor does something', async () => {
  const page = await editor('commands.pbtxt', kPair + node('s/w', 'Relu', ['x']));
  const state = (): Promise<string> => page.evaluate(() => {
    const app = window.gradflow;
    const edit = app.edit!;
    return JSON.stringify([
      edit.editor.text(), edit.dialog, edit.from, app.message, [...app.chosen], document.activeElement?.id,
      app.summary?.runTime,
    ]);
  });
  for (const { id, key } of kEditCommands) {
    await page.evaluate(() => {
      const app = window.gradflow;
      app.edit!.close();
      while (app.edit!.editor.undoTitle !== null) app.edit!.undo();
      app.clearSelection();
    });
    await settle(page);
    await select(page, id === 'ungroup' ? 's/w' : 'y');
    // Prepares what some commands need: an output, or an edit to undo or redo.
    if (id === 'to') await page.evaluate(() => { window.gradflow.edit!.from = { id: 0, index: 0 }; });
    if (id === 'undo' || id === 'redo') await fixture.press(page, 'D');
    if (id === 'redo') await fixture.press(page, 'z');
    if (id === 'paste') await fixture.press(page, 'y');
    await page.evaluate(() => window.gradflow.say(''));
    const before = await state();
    await page.locator('#tree').focus();
    const download = id === 'download' ? page.waitForEvent('download') : null;
    await page.keyboard.press(key);
    if (download !== null) {
      assert.equal((await download).suggestedFilename(), 'commands.pbtxt');
      continue;
    }
    await settle(page);
    assert.notEqual(await state(), before, id);
    // Runs need more than this graph has, and report it.
    if (fixture.faults.length > 0) {
      assert.ok(['run', 'run-to', 'cpp'].includes(id), id);
      assert.match(fixture.faults.pop()!, /status of 400/);
      assert.match(await message(page), /not connected|cannot run|names no node/);
    }
  }
  await page.close();
});

const kIgamma = Array.from({ length: 1000 }, (_, i) => node(`n${i + 1}`, 'Igamma', ['v', `n${i}`])).join('');

test('a run is cancelled', async () => {
  const page = await editor('cancel.pbtxt', constant('v', 3) + `
    node { name: "dims" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value"
      value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 100000 } } } }` +
    node('n0', 'Fill', ['dims', 'v']) + kIgamma);
  await page.locator('#tree').focus();
  await page.keyboard.press('R');
  await page.waitForFunction(() => window.gradflow.edit!.isBusy);
  // The run may not have started yet.
  await page.evaluate(async () => {
    const app = window.gradflow;
    while (app.edit!.isBusy) {
      document.getElementById('tree')!.dispatchEvent(new KeyboardEvent('keydown', { key: 'W', bubbles: true }));
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  });
  assert.match(await message(page), /^CANCELLED|Nothing runs/);
  await settle(page);
  assert.match(fixture.faults.pop()!, /status of 400/);
  await fixture.press(page, 'W');
  assert.equal(await message(page), 'Nothing runs');
  await page.close();
});

test('names and documentation are shown as text, not as markup', async () => {
  const page = await editor('hostile.pbtxt', `
    node { name: "</script><b>x" op: "<img src=x onerror=alert(1)>" input: "\\u202e" device: "<i>"
           attr { key: "<u>" value { s: "</script>\\000\\377" } } }`);
  await fixture.press(page, 'ArrowDown');
  await settle(page);
  assert.match(await page.locator('#panel').innerText(), /<img src=x onerror=alert\(1\)>/);
  assert.equal(await page.locator('#panel img, #panel b b, #panel u, #panel i').count(), 0);
  await page.close();
});

for (const [context, options] of [
  ['light', {}], ['dark', { colorScheme: 'dark' }], ['forced colours', { forcedColors: 'active' }],
] as [string, BrowserContextOptions][]) {
  test(`axe: editing, ${context}`, async () => {
    const page = await editor(`axe-${context}.pbtxt`, kPair + constant('c', 1), options);
    await expectNoViolation(page, 'graph');
    await select(page, 'x');
    await choose(page, 'Feed', 'random');
    await settle(page);
    await expectNoViolation(page, 'block');
    await fixture.press(page, 'b');
    await page.keyboard.type('fake');
    await expectNoViolation(page, 'palette');
    await page.close();
  });
}
