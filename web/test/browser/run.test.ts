// The page of a run: times, values, the timeline, the critical path, the first NaN.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { Fixture, constant, expectNoViolation, message, node, placeholder, selected, settle } from './support.ts';

let fixture: Fixture;
let path: string;
before(() => {
  fixture = new Fixture();
  // log(-x) is NaN for x > 0, and so are its consumers. The other branch has no NaN.
  const text = placeholder('x', [2, 3]) + constant('s/two', 2) +
    node('s/twice', 'Mul', ['x', 's/two']) + node('s/minus', 'Neg', ['x']) +
    node('log', 'Log', ['s/minus']) + node('sum', 'AddV2', ['log', 's/twice']);
  const x = fixture.npy('x', [1, 2, 3, 4, 5, 0], [2, 3]);
  // Uses one thread: with more threads, a worker may run any of the blocks.
  path = fixture.report('run', text, ['--threads', '1', '--feed', `x=${x}`, '--fetch', 'sum',
                                      '--report-tensors', 'all']);
});
after(() => fixture.close());

async function show(page: Page, name: string): Promise<string> {
  await page.evaluate(async (name) => {
    const app = window.gradflow;
    await app.select((await app.client.call('find', name))!);
  }, name);
  await settle(page);
  return page.locator('#panel').innerText();
}

test('blocks of nodes and of scopes have times', async () => {
  const page = await fixture.open(path);
  assert.match(await page.locator('#panel').innerText(), /Run in \d/);
  const labels = await page.locator('[role=treeitem]').evaluateAll(
    (items) => items.map((item) => item.getAttribute('aria-label')!));
  assert.match(labels.find((label) => label.startsWith('log'))!, /has NaN, [\d.]+ (ns|µs|ms)$/);
  assert.match(labels.find((label) => label.startsWith('s,'))!, /3 ops,.* [\d.]+ (ns|µs|ms)$/);
  assert.match(await show(page, 'log'), /[\d.]+ (ns|µs|ms), [\d.]+ % of the run, thread caller/);
  assert.match(await show(page, 's'), /[\d.]+ (ns|µs|ms), [\d.]+ % of the run/);
});

test('values have statistics, a histogram and a picture', async () => {
  const page = await fixture.open(path);
  const twice = await show(page, 's/twice');
  assert.match(twice, /float \[2,3\]/);
  assert.match(twice, /min 0, max 10, mean 5,\s+stddev 3.41565/);
  assert.match(twice, /2 4 6/);
  assert.equal(await page.locator('#panel .histogram rect').count(), 32);
  assert.match((await page.locator('#panel .histogram').getAttribute('aria-label'))!,
               /^Histogram: 1 0/);
  const levels = await page.evaluate(() => {
    const canvas = document.querySelector('#panel .picture') as HTMLCanvasElement;
    const { data } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height);
    return [canvas.width, canvas.height, ...[...data].filter((_, i) => i % 4 === 0)];
  });
  assert.deepEqual(levels, [3, 2, 51, 102, 153, 204, 255, 0]);
  const log = await show(page, 'log');
  assert.match(log, /5 NaNs/);
  assert.match(log, /1 -Inf/);
  assert.ok(!log.includes('min '));
});

test('a vector has a curve', async () => {
  const x = fixture.npy('v', [1, 3, NaN, 2, 2.5], [5]);
  const page = await fixture.open(fixture.report(
    'vector', placeholder('x', [5]) + node('y', 'Neg', ['x']), ['--feed', `x=${x}`]));
  await show(page, 'y');
  assert.equal(await page.locator('#panel .picture').count(), 0);
  assert.deepEqual(
    await page.locator('#panel .curve polyline').evaluateAll((all) => all.map((line) => line.getAttribute('points'))),
    ['0,1 1,39', '3,20 4,29.5']);
  assert.equal(await page.locator('#panel .curve').getAttribute('aria-label'), 'Curve of y, from -1 to -2.5');
  await page.close();
});

test('buttons lead to the first NaN and to the critical path', async () => {
  const page = await fixture.open(path);
  await page.getByRole('button', { name: 'Go to the first NaN' }).click();
  await settle(page);
  assert.equal(await selected(page), 'log');
  await page.getByRole('button', { name: 'Highlight the critical path' }).click();
  await settle(page);
  assert.match(await message(page), /on the critical path$/);
  // A page without a run has no such buttons.
  const view = await fixture.open(fixture.view('norun', placeholder('x', [2])));
  assert.equal(await view.getByRole('button', { name: 'Go to the first NaN' }).count(), 0);
});

test('the timeline is also available as a table', async () => {
  const page = await fixture.open(path);
  await page.getByText(/^Timeline as a table: \d+ executions$/).click();
  const rows = await page.locator('.events tbody tr').allInnerTexts();
  const events = await page.evaluate(() => window.gradflow.timeline!.data.events.length);
  assert.equal(rows.length, events);
  assert.ok(rows.some((row) => /^log\s+[\d.]+ (ns|µs|ms)\s+[\d.]+ (ns|µs|ms)\s+caller$/.test(row)), rows.join('\n'));
  await expectNoViolation(page, 'table of the timeline');
  await page.locator('.events').getByRole('button', { name: 'log' }).click();
  await settle(page);
  assert.equal(await selected(page), 'log');
});

test('a long timeline has pages', async () => {
  let text = placeholder('x', [2]);
  for (let i = 0; i < 250; ++i) text += node(`n${i}`, 'Neg', [i === 0 ? 'x' : `n${i - 1}`]);
  const x = fixture.npy('pages', [1, 2], [2]);
  const page = await fixture.open(fixture.report('pages', text, ['--threads', '1', '--feed', `x=${x}`]));
  await page.getByText(/^Timeline as a table/).click();
  const events = await page.evaluate(() => window.gradflow.timeline!.data.events.length);
  assert.ok(events > 200);
  assert.equal(await page.locator('.events caption').innerText(), '1 to 200');
  await page.getByRole('button', { name: 'Later executions' }).click();
  assert.equal(await page.locator('.events caption').innerText(), `201 to ${events}`);
  await page.getByRole('button', { name: 'Earlier executions' }).click();
  assert.equal(await page.locator('.events tbody tr').count(), 200);
});

test('infinities, and tensors of one and zero elements, are described', async () => {
  const x = fixture.npy('special', [0, 1, -1], [3]);
  const one = fixture.npy('one', [7], [1]);
  const none = fixture.npy('none', [], [0]);
  const scalar = fixture.npy('scalar', [4], []);
  const page = await fixture.open(fixture.report('special',
    placeholder('x', [3]) + placeholder('one', [1]) + placeholder('none', [0]) + placeholder('scalar', []) +
    node('inverse', 'Reciprocal', ['x']) + node('square', 'Square', ['one']) + node('empty', 'Neg', ['none']) +
    node('single', 'Neg', ['scalar']),
    ['--feed', `x=${x}`, '--feed', `one=${one}`, '--feed', `none=${none}`, '--feed', `scalar=${scalar}`,
     '--report-tensors', 'all']));
  const inverse = await show(page, 'inverse');
  assert.match(inverse, /1 \+Inf/);
  assert.doesNotMatch(inverse, /-Inf|NaN/);
  assert.match(inverse, /inf 1 -1/);
  // An infinite element is a gap in the curve.
  assert.equal(await page.locator('#panel .curve polyline').count(), 1);
  const square = await show(page, 'square');
  assert.match(square, /float \[1\]/);
  assert.match(square, /min 49, max 49, mean 49,\s+stddev 0/);
  const single = await show(page, 'single');
  assert.match(single, /float \[\]/);
  assert.match(single, /min -4, max -4/);
  const empty = await show(page, 'empty');
  assert.match(empty, /float \[0\]/);
  assert.doesNotMatch(empty, /min |NaN|Inf/);
  assert.equal(await page.locator('#panel .histogram, #panel .curve, #panel .picture').count(), 0);
  await page.close();
});

test('an SVG picture uses only colours of SVG 1.1', async () => {
  for (const options of [{}, { forcedColors: 'active' }] as const) {
    const page = await fixture.open(path, options);
    const colors = await page.evaluate(() =>
      [...window.gradflow.svg().matchAll(/(?:fill|stroke)="([^"]*)"/g)].map((match) => match[1]!));
    assert.ok(colors.length > 10);
    for (const color of colors) assert.match(color, /^(none|rgb\(\d+, \d+, \d+\))$/);
  }
});

test('one key leads to the first NaN, one to the critical path', async () => {
  const page = await fixture.open(path);
  await fixture.press(page, 'N');
  assert.equal(await selected(page), 'log');
  await fixture.press(page, 'r');
  assert.match(await message(page), /^[34] blocks on the critical path$/);
  const marked = await page.evaluate(async () => {
    const { client, marks } = window.gradflow;
    return marks!.nodes[(await client.call('find', 'sum'))!];
  });
  assert.equal(marked, 1);
});

test('the timeline zooms, moves and leads to blocks', async () => {
  const page = await fixture.open(path);
  const range = () => page.evaluate(() =>
    [window.gradflow.timeline!.begin, window.gradflow.timeline!.end]);
  const [begin, end] = await range() as [number, number];
  assert.equal(begin, 0);
  await fixture.press(page, 'w', 'w');
  const [zoomedBegin, zoomedEnd] = await range() as [number, number];
  assert.ok(zoomedBegin > 0 && zoomedEnd < end);
  await fixture.press(page, 'd');
  assert.ok((await range())[0]! > zoomedBegin);
  await fixture.press(page, 'a', 'a', 's', 's', 's');
  assert.deepEqual(await range(), [begin, end]);
  const point = await page.evaluate(() => {
    const app = window.gradflow;
    const canvas = document.getElementById('timeline')!;
    const box = canvas.getBoundingClientRect();
    const event = app.timeline!.data.events.find((e) => e.name === 'log')!;
    const at = (event.begin + event.end) / 2 / app.timeline!.data.total;
    return { x: box.left + at * box.width, y: box.top + 18 + 5, node: event.node };
  });
  await page.mouse.click(point.x, point.y);
  await settle(page);
  assert.equal(await selected(page), 'log');
});

test('ranges of the timeline snap to blocks, and a thread is pinned', async () => {
  const page = await fixture.open(path);
  const place = await page.evaluate(() => {
    const app = window.gradflow;
    const canvas = document.getElementById('timeline')!;
    const box = canvas.getBoundingClientRect();
    const x = (time: number): number => box.left + (time / app.timeline!.data.total) * box.width;
    const of = (name: string) => app.timeline!.data.events.find((e) => e.name === name)!;
    return { from: x(of('log').begin), to: x(of('sum').end), y: box.top + 25,
             begin: of('log').begin, end: of('sum').end };
  });
  const mark = (): Promise<{ begin: number; end: number } | null> =>
    page.evaluate(() => window.gradflow.timeline!.mark);
  await page.keyboard.down('Shift');
  await page.mouse.move(place.from, place.y);
  await page.mouse.down();
  await page.mouse.move((place.from + place.to) / 2, place.y);
  await page.mouse.move(place.to, place.y);
  await page.mouse.up();
  await page.keyboard.up('Shift');
  // Both ends snap to starts or ends of executions, independent of the pixels.
  const edges = await page.evaluate(() =>
    window.gradflow.timeline!.data.events.flatMap((e) => [e.begin, e.end]));
  const { begin, end } = (await mark())!;
  assert.ok(edges.includes(begin) && edges.includes(end), `${begin} ${end}`);
  assert.match(await message(page), /^[\d.]+ (ns|µs|ms), from/);
  // Marks a range with keys.
  await page.evaluate(() => { window.gradflow.timeline!.mark = null; });
  await show(page, 'log');
  await fixture.press(page, 'M');
  await show(page, 'sum');
  await fixture.press(page, 'M');
  assert.deepEqual(await mark(), { begin: place.begin, end: place.end });
  await fixture.press(page, 'T');
  assert.equal(await message(page), 'Thread caller is pinned');
  await fixture.press(page, 'T');
  assert.equal(await message(page), 'Thread caller is not pinned');
  await page.close();
});

test('a page without a run has no timeline', async () => {
  const page = await fixture.open(fixture.view('none', placeholder('x', [2])));
  assert.ok(!await page.locator('#timeline').isVisible());
  await fixture.press(page, 'w');
  assert.equal(await message(page), 'No run is recorded');
  await fixture.press(page, 'N');
  assert.equal(await message(page), 'No value is NaN');
});

test('the benchmark writes a page', async () => {
  const x = fixture.npy('b', [1, 2], [2]);
  const graph = fixture.file('bench.pbtxt', placeholder('x', [2]) + node('y', 'Neg', ['x']));
  const page = await fixture.open(fixture.run(
    'bench', ['bench', graph, '--feed', `x=${x}`, '--repeat', '1'], '--report'));
  assert.match(await show(page, 'y'), /mean -1.5/);
});

// If the environment variable GRADFLOW_PICTURE is set, writes the picture of README.md and
// docs/viewing_graphs.md: the page of `./dev demo`.
test('the quantised block of the demo is shown with its run', async () => {
  const program = process.env.GRADFLOW ?? '../build/release/tools/gradflow';
  execFileSync(join(dirname(program), '../examples/qat_block/qat_block'), ['prepare', fixture.folder],
               { stdio: ['ignore', 'ignore', 'inherit'] });
  const feeds = ['images', 'upstream'].flatMap(
    (name) => ['--feed', `${name}=${join(fixture.folder, name + '.npy')}`]);
  const page = await fixture.open(fixture.run(
    'block', ['run', join(fixture.folder, 'qat_block.pb'), ...feeds, '--fetch', 'per_tensor/grad_min',
              '--fetch', 'per_channel/grad_input', '--report-tensors', 'all'],
    '--report'), { viewport: { width: 1100, height: 620 } });
  // The gradient of an image has statistics and a picture.
  const text = await show(page, 'per_channel/grad_input');
  assert.match(text, /float \[[\d,]+\][^]*mean/);
  assert.equal(await page.locator('#panel .picture').count(), 1);
  // The normalisation and its consumers.
  await page.evaluate(async () => {
    const app = window.gradflow;
    const boxes = await Promise.all(['norm', 'per_channel', 'per_tensor', 'upstream'].map(async (name) =>
      app.world.boxOf((await app.client.call('find', name))!)!));
    const x = Math.min(...boxes.map((box) => box.x));
    const y = Math.min(...boxes.map((box) => box.y));
    const w = Math.max(...boxes.map((box) => box.x + box.w)) - x;
    const h = Math.max(...boxes.map((box) => box.y + box.h)) - y;
    app.camera.fit({ x, y, w, h }, app.width, app.height, Infinity, false);
  });
  await settle(page);
  const picture = await page.screenshot();
  assert.ok(picture.length > 10_000);
  const path = process.env.GRADFLOW_PICTURE;
  if (path !== undefined) writeFileSync(path, picture);
});
