// Accessibility: axe finds no violation in any state of the page, and the tree names every block.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { Fixture, constant, expectNoViolation, node, placeholder, settle, towers } from './support.ts';

let fixture: Fixture;
let path: string;
const pages: Record<string, () => Promise<string>> = {};
before(() => {
  fixture = new Fixture();
  path = fixture.view('towers', towers(6, 3));
  const other = fixture.file('other.pbtxt', towers(6, 3) + node('new', 'Odd', ['x']));
  const diff = fixture.view('diff', towers(6, 3), ['--diff', other]);
  const x = fixture.npy('x', [1, -2, 0, 4, 5, 6], [2, 3]);
  const run = fixture.report('run', placeholder('x', [2, 3]) + node('s/y', 'Log', ['x']) +
    node('s/z', 'Neg', ['s/y']), ['--feed', `x=${x}`, '--report-tensors', 'all']);
  const edited = fixture.file('edited.pbtxt', placeholder('x', [2]) + node('y', 'Mul', ['x', '']) +
    constant('c', 1) + `node { name: "call" op: "f" input: "x" } library { function {
      signature { name: "f" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }
      node_def { name: "n" op: "Neg" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
      ret { key: "r" value: "n:y:0" } } }`);
  pages.view = async () => path;
  pages.diff = async () => diff;
  pages.run = async () => run;
  let count = 0;
  // Each page gets a separate server process and file, because a page edits its file.
  pages.edit = () => fixture.serve([fixture.file(`edited${count++}.pbtxt`, readFileSync(edited, 'utf8'))]);
});
after(() => fixture.close());

async function select(page: Page, name: string): Promise<void> {
  await page.evaluate(async (n) => {
    const app = window.gradflow;
    await app.select((await app.client.call('find', n))!);
  }, name);
}

// The states of each page, in order.
const kStates: Record<string, [string, (page: Page) => Promise<void>][]> = {
  view: [
    ['overview', async () => {}],
    ['block', async (page) => select(page, 'tower0/layer1/mul')],
    ['search', async (page) => page.locator('#search').fill('layer')],
    ['keys', async (page) => {
      await page.locator('#search').fill('');
      await fixture.press(page, '?');
    }],
  ],
  diff: [['difference', async (page) => fixture.press(page, 'n')]],
  run: [
    ['run', async () => {}],
    ['values', async (page) => select(page, 's/y')],
  ],
  edit: [
    ['edited graph', async () => {}],
    ['edited block', async (page) => {
      await select(page, 'x');
      await page.getByLabel('Feed', { exact: true }).selectOption('random');
    }],
    ['palette', async (page) => {
      await fixture.press(page, 'b');
      await page.keyboard.type('fake');
    }],
    ['connection', async (page) => {
      await page.keyboard.press('Escape');
      await fixture.press(page, 'f');
      await select(page, 'y');
      await fixture.press(page, 'g');
    }],
    ['constant', async (page) => {
      await page.keyboard.press('Escape');
      await select(page, 'c');
    }],
    ['function', async (page) => {
      await select(page, 'ƒ f');
      await fixture.press(page, 'Enter', 'b');
      await page.keyboard.type('_Arg');
      await page.keyboard.press('Enter');
    }],
    ['functions', async (page) => fixture.press(page, 'L')],
  ],
};
const kContexts: [string, BrowserContextOptions][] = [
  ['light', {}],
  ['dark', { colorScheme: 'dark' }],
  ['forced colours', { forcedColors: 'active' }],
  // The size of 1280 x 1024 at 400 %.
  ['a zoom of 400 %', { viewport: { width: 320, height: 256 } }],
];

for (const [context, options] of kContexts) {
  for (const [name, states] of Object.entries(kStates)) {
    test(`axe: ${states.map(([state]) => state).join(', ')}; ${context}`, async () => {
      const page = await fixture.open(await pages[name]!(), options);
      await settle(page);
      for (const [state, enter] of states) {
        await enter(page);
        await settle(page);
        await expectNoViolation(page, `${state}, ${context}`);
      }
      await page.close();
    });
  }
}

test('axe sees at least 12 states', () => {
  assert.ok(Object.values(kStates).flat().length >= 12);
});

test('at a zoom of 400 % everything is reachable', async () => {
  // The size of 1280 x 1024 at 400 %.
  const page = await fixture.open(path, { viewport: { width: 320, height: 256 } });
  await select(page, 'out');
  await settle(page);
  const isWide = await page.evaluate(
    () => document.documentElement.scrollWidth > document.documentElement.clientWidth);
  assert.ok(!isWide, 'no horizontal scrolling');
  for (const id of ['search', 'panel', 'view']) {
    const box = await page.locator(`#${id}`).boundingBox();
    assert.ok(box !== null && box.width > 100 && box.height > 20, id);
  }
});

test('the tree names every block with op and type', async () => {
  const page = await fixture.open(fixture.view('small',
    placeholder('x', [2, 3]) + constant('s/c', 5) + node('s/y', 'Mul', ['x', 's/c'])));
  await page.evaluate(() => window.gradflow.openScope(1));
  await settle(page);
  const labels = await page.locator('[role=treeitem]').evaluateAll(
    (items) => items.map((item) => `${item.getAttribute('aria-level')} ` +
      `${item.getAttribute('aria-posinset')}/${item.getAttribute('aria-setsize')} ` +
      `${item.getAttribute('aria-label')}`));
  assert.deepEqual(labels, [
    '1 1/2 s, 2 ops, float [2,3]', '2 1/2 c, Const, float [], 5', '2 2/2 y, Mul, float [2,3]',
    '1 2/2 x, Placeholder, float [2,3], shape=[2,3]',
  ].map((label) => label.replace('s, 2 ops, float [2,3]', 's, 2 ops')));
  await fixture.press(page, 'ArrowDown');
  const active = await page.locator('#tree').getAttribute('aria-activedescendant');
  assert.equal(await page.locator(`#${active}`).getAttribute('aria-selected'), 'true');
});
