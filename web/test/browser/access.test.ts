// Accessibility: axe finds nothing in the states of the page, and the tree names every block.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { Fixture, constant, expectNoViolation, node, placeholder, settle, towers } from './support.ts';

let fixture: Fixture;
let path: string;
let diff: string;
before(() => {
  fixture = new Fixture();
  path = fixture.view('towers', towers(6, 3));
  const other = fixture.file('other.pbtxt', towers(6, 3) + node('new', 'Odd', ['x']));
  diff = fixture.view('diff', towers(6, 3), ['--diff', other]);
});
after(() => fixture.close());

const kStates: [string, (page: Page) => Promise<void>][] = [
  ['overview', async () => {}],
  ['block', async (page) => {
    await page.evaluate(() => window.gradflow.client.call('find', 'tower0/layer1/mul')
      .then((id) => window.gradflow.select(id!)));
  }],
  ['search', async (page) => page.locator('#search').fill('layer')],
  ['keys', async (page) => fixture.press(page, '?')],
];
const kContexts: [string, BrowserContextOptions][] = [
  ['light', {}],
  ['dark', { colorScheme: 'dark' }],
  ['forced colours', { forcedColors: 'active' }],
];

for (const [context, options] of kContexts) {
  for (const [state, enter] of kStates) {
    test(`axe: ${state}, ${context}`, async () => {
      const page = await fixture.open(path, options);
      await enter(page);
      await settle(page);
      await expectNoViolation(page, `${state}, ${context}`);
      await page.close();
    });
  }
}

test('axe: problems and differences', async () => {
  const page = await fixture.open(diff);
  await fixture.press(page, 'n');
  await expectNoViolation(page, 'diff');
});

test('at a zoom of 400 % nothing is lost', async () => {
  // 1280 x 1024 at 400 %.
  const page = await fixture.open(path, { viewport: { width: 320, height: 256 } });
  await page.evaluate(() => window.gradflow.client.call('find', 'out')
    .then((id) => window.gradflow.select(id!)));
  await settle(page);
  await expectNoViolation(page, '400 %');
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
