import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchedNames, matchNames, search } from '../../src/model/search.ts';
import { Model } from '../../src/model/model.ts';
import { Matcher, serveMatcher } from '../../src/worker/matcher.ts';
import { graph, randomRows } from './graphs.ts';

// Workers in this thread. They do not answer if `isStuck`.
class Fake {
  static all: Fake[] = [];
  static isStuck = false;
  onmessage: ((event: MessageEvent) => void) | null = null;
  onerror: ((event: ErrorEvent) => void) | null = null;
  isEnded = false;
  private readonly isStuck = Fake.isStuck;
  private readonly inside = {
    onmessage: null as ((event: MessageEvent) => void) | null,
    postMessage: (data: unknown): void => {
      if (this.isEnded || (this.isStuck && data !== 'started')) return;
      queueMicrotask(() => this.onmessage?.({ data } as MessageEvent));
    },
  };
  constructor() {
    Fake.all.push(this);
    serveMatcher(this.inside);
  }
  postMessage(data: unknown): void {
    queueMicrotask(() => this.inside.onmessage?.({ data } as MessageEvent));
  }
  terminate(): void {
    this.isEnded = true;
  }
}

function matcher(names: string[]): Matcher {
  Fake.all = [];
  Fake.isStuck = false;
  return new Matcher(() => new Fake() as unknown as Worker, (port) => port.postMessage(names), 50);
}

test('names are matched, with one worker for several expressions', async () => {
  const model = new Model(graph(randomRows(300, 1)));
  const m = matcher(matchedNames(model));
  assert.deepEqual(await m.find('^n1.$', 3), { nodes: [10, 11, 12], count: 10 });
  assert.deepEqual(await m.find('^n299$', 3), { nodes: [299], count: 1 });
  assert.equal(Fake.all.length, 1);
  await assert.rejects(m.find('(', 3), /not a regular expression/);
  assert.ok(!m.isBusy);
  // Switches to another graph.
  m.reset();
  assert.equal((await m.find('x', 3))!.count, 0);
  assert.deepEqual(Fake.all.map((worker) => worker.isEnded), [true, false]);
  m.reset();
});

test('a search ends when it takes too long or another search follows', async () => {
  const m = matcher(['a', 'b']);
  Fake.isStuck = true;
  await assert.rejects(m.find('a', 3), /stopped after 0\.05 s/);
  const first = m.find('a', 3);
  Fake.isStuck = false;
  const second = m.find('b', 3);
  assert.equal(await first, null);
  assert.deepEqual(await second, { nodes: [1], count: 1 });
  Fake.isStuck = true;
  m.reset();
  const third = m.find('a', 3);
  assert.ok(m.stop());
  assert.ok(!m.stop());
  assert.equal(await third, null);
  assert.deepEqual(Fake.all.map((worker) => worker.isEnded), [true, true, true, true]);
});

test('a search for terms does not match expressions', () => {
  const model = new Model(graph(randomRows(600, 1)));
  assert.equal(search(model, '/^n1.$/', 5).count, 0);
  assert.equal(search(model, 'n59', 5).count, 11);
  assert.deepEqual(matchNames(['a'.repeat(3)], 'a{3}', 1), { nodes: [0], count: 1 });
});
