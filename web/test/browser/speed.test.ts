// Speed of the page. The limits are for an idle machine with two cores. They are multiplied by the
// environment variable GRADFLOW_SLOW, which is 2 by default, and by the number of processes per
// core.
import assert from 'node:assert/strict';
import { cpus, loadavg } from 'node:os';
import { after, before, test } from 'node:test';
import { Fixture, chain, towers } from './support.ts';

const slow = Number(process.env.GRADFLOW_SLOW ?? 2) * Math.max(1, loadavg()[0]! / cpus().length);

let fixture: Fixture;
before(() => { fixture = new Fixture(); });
after(() => fixture.close());

function expectBelow(what: string, millis: number, limit: number): void {
  console.log(`${what}: ${millis.toFixed(0)} ms, limit ${limit} x ${slow.toFixed(1)}`);
  assert.ok(millis < limit * slow, what);
}

// Returns the milliseconds from the start of the page to its first complete picture.
async function timeToReady(path: string): Promise<number> {
  const page = await fixture.open(path);
  const millis = await page.evaluate(() => performance.now());
  await page.close();
  return millis;
}

test('10,000 ops without scopes are a picture in 1 s', async () => {
  expectBelow('10,000 flat', await timeToReady(fixture.view('chain', chain(10_000))), 1000);
});

test('100,000 ops in closed scopes are a picture in 3 s, and no task takes 50 ms', async () => {
  const path = fixture.view('towers', towers(33_000, 200));
  expectBelow('100,000 in scopes', await timeToReady(path), 3000);
  const page = await fixture.open(path);
  // Measures the main thread while a person uses the page.
  const longest = await page.evaluate(async () => {
    const app = window.gradflow;
    let longest = 0;
    const observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) longest = Math.max(longest, entry.duration);
    });
    observer.observe({ type: 'longtask' });
    for (const query of ['t', 'to', 'tow', 'tower1/layer3']) await app.find(query);
    await app.select(app.search.hits[0]!.node);
    await app.mark('in');
    await app.setFolded(true);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const result = longest;
    // Checks that a long task is detected.
    const end = performance.now() + 80;
    while (performance.now() < end);
    await new Promise((resolve) => setTimeout(resolve, 500));
    if (longest < 80) throw new Error('the observer sees no tasks');
    return result;
  });
  expectBelow('longest task', longest, 50);
});

test('a key of a search of 100,000 names takes 50 ms', async () => {
  const page = await fixture.open(fixture.view('search', towers(33_000, 200)));
  const millis = await page.evaluate(async () => {
    const app = window.gradflow;
    await app.find('first');
    const begin = performance.now();
    await app.find('layer77/mu');
    return performance.now() - begin;
  });
  expectBelow('search', millis, 50);
});

test('the difference of two graphs of 10,000 takes 2 s', async () => {
  // Changes names, one constant and some edges.
  const other = fixture.file('other.pbtxt', towers(3333, 50).replace(/tower7\//g, 'block7/')
    .replace('float_val: 99 ', 'float_val: 98 ').replace('input: "tower20/layer3/mul"', 'input: "x"'));
  const begin = performance.now();
  const path = fixture.view('diff', towers(3333, 50), ['--diff', other]);
  expectBelow('diff, with both files read and the page written', performance.now() - begin, 2000);
  const page = await fixture.open(path);
  assert.deepEqual(await page.evaluate(() => window.gradflow.summary!.changes.slice(0, 2)), [0, 0]);
  await page.close();
});

test('opening a scope of 1,000 takes 100 ms', async () => {
  const page = await fixture.open(fixture.view('thousand', chain(1000)
    .replace(/"n(\d+)"/g, '"s/n$1"')));
  const millis = await page.evaluate(async () => {
    const app = window.gradflow;
    app.closeAll();
    let best = Infinity;
    for (let round = 0; round < 5; ++round) {
      const begin = performance.now();
      await app.openScope(1);
      best = Math.min(best, performance.now() - begin);
      app.closeAll();
    }
    return best;
  });
  expectBelow('open', millis, 100);
});

// The frames of a moving picture.
interface Frames {
  // The 95th percentile and the median of the drawing time.
  late: number;
  median: number;
  // The CPU milliseconds per frame of the whole page.
  processor: number;
  // The smallest number of visible blocks.
  blocks: number;
}

// Pans over `text` on a screen of this size. `scale` is the scale of the blocks; 0 shows all
// blocks.
async function pan(text: string, width: number, height: number, ratio: number, scale: number):
    Promise<Frames> {
  const page = await fixture.open(fixture.view('pan', text));
  // Measures CPU time, which does not depend on other load of the machine.
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const taskMillis = async (): Promise<number> => {
    const { metrics } = await session.send('Performance.getMetrics');
    return 1000 * metrics.find((metric) => metric.name === 'TaskDuration')!.value;
  };
  const kFrames = 60;
  await page.evaluate(async (of) => {
    const app = window.gradflow;
    app.resize(of.width, of.height, of.ratio);
    const { w, h } = app.world.bounds();
    const scale = of.scale > 0 ? of.scale : 0.98 * Math.min(of.width / w, of.height / h);
    app.camera.set({ scale, x: of.width / 2 - scale * w / 2, y: of.height / 2 - scale * h / 2 });
    await new Promise((resolve) => setTimeout(resolve, 200));
  }, { width, height, ratio, scale });
  const before = await taskMillis();
  const { times, blocks } = await page.evaluate(async ({ step, kFrames }) => {
    const app = window.gradflow;
    const times: number[] = [];
    let blocks = Infinity;
    for (let i = 0; i < kFrames; ++i) {
      app.camera.pan(step, 0);
      await new Promise((resolve) => requestAnimationFrame(resolve));
      await new Promise((resolve) => setTimeout(resolve, 0));
      times.push(app.frameMillis);
      blocks = Math.min(blocks, app.frameBlocks);
    }
    return { times: times.sort((a, b) => a - b), blocks };
  }, { step: scale > 0 ? -20 : 0.5, kFrames });
  const processor = (await taskMillis() - before) / kFrames;
  await page.close();
  const frames = {
    late: times[Math.floor(0.95 * kFrames)]!, median: times[kFrames / 2]!, processor, blocks,
  };
  console.log(`${blocks} blocks: median ${frames.median.toFixed(1)} ms, ` +
    `${processor.toFixed(1)} ms of the processor a frame`);
  return frames;
}
// Parallel chains.
function chains(count: number, length: number): string {
  let text = '';
  for (let c = 0; c < count; ++c) text += chain(length).replace(/"(n\d+|x)"/g, `"c${c}_$1"`);
  return text;
}

test('panning over 600 detailed blocks takes 17 ms a frame', async () => {
  // The size of a large screen that shows this many blocks in full detail.
  const { late, blocks } = await pan(chains(30, 100), 3700, 2300, 0.5, 0.61);
  assert.ok(blocks >= 600, `${blocks} blocks`);
  expectBelow('95th percentile of a frame', late, 17);
});

// A screen of 3840 x 2160 that shows whole graphs.
for (const count of [5_000, 10_000, 20_000, 50_000]) {
  test(`panning over ${count.toLocaleString('en')} small blocks takes 17 ms a frame`, async () => {
    const length = Math.sqrt(count / 2);
    const { late, blocks } = await pan(chains(Math.round(2 * length), Math.round(length)), 3840, 2160, 1, 0);
    assert.ok(blocks >= count * 0.98, `${blocks} blocks`);
    expectBelow('95th percentile of a frame', late, 17);
  });
}
