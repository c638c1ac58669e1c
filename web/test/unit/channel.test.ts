import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { Client, serve } from '../../src/worker/channel.ts';
import { Service } from '../../src/worker/service.ts';
import { graph, randomRows } from './graphs.ts';

// A client and a service in the same thread.
function connect(service: Service): { client: Client; calls: string[] } {
  const { port1, port2 } = new MessageChannel();
  const calls: string[] = [];
  const recorded = new Proxy(service, {
    get(target, name: keyof Service) {
      calls.push(String(name));
      return target[name];
    },
  });
  serve(recorded, port1 as never);
  const client = new Client(port2 as never);
  // Lets the process end.
  port1.unref();
  port2.unref();
  return { client, calls };
}

test('calls return results and errors', async () => {
  const service = new Service();
  service.load(graph(randomRows(10, 1)));
  const { client } = connect(service);
  const keepAlive = setInterval(() => {}, 1000);
  assert.equal(await client.call('find', 'n3'), 3);
  assert.equal(await client.call('find', 'none'), null);
  await assert.rejects(client.call('scene', 99, { fold: false }), /no scope 99/);
  clearInterval(keepAlive);
});

test('a later call cancels one that has not started', async () => {
  const service = new Service();
  service.load(graph(randomRows(10, 1)));
  const { client, calls } = connect(service);
  const keepAlive = setInterval(() => {}, 1000);
  const results = await Promise.all(
    ['a', 'b', 'c', 'n1'].map((query) => client.latest('search', query, 5)));
  clearInterval(keepAlive);
  assert.deepEqual(results.slice(0, 3), [null, null, null]);
  assert.equal(results[3]!.hits[0]!.name, 'n1');
  assert.ok(calls.filter((name) => name === 'search').length < 4);
});

test('a call that runs is cancelled where it pauses', async () => {
  const service = new Service();
  service.load(graph(randomRows(5000, 1)));
  const { client, calls } = connect(service);
  const keepAlive = setInterval(() => {}, 1000);
  const scene = client.call('scene', 0, { fold: false });
  const found = client.call('find', 'n3');
  // Waits until the call has started.
  const cancel = async (): Promise<void> => {
    while (!calls.includes('scene')) await new Promise((resolve) => setTimeout(resolve, 0));
    client.cancel('scene');
  };
  const [result] = await Promise.all([assert.rejects(scene, /cancelled/), cancel()]);
  assert.equal(result, undefined);
  assert.equal(await found, 3);
  assert.equal((await client.call('scene', 0, { fold: false })).items.length, 5000);
  clearInterval(keepAlive);
});

test('latest() does not cancel calls of call(), nor the reverse', async () => {
  const service = new Service();
  service.load(graph(randomRows(10, 1)));
  const { client } = connect(service);
  const keepAlive = setInterval(() => {}, 1000);
  const names = async (calls: Promise<{ name: string } | null>[]): Promise<(string | undefined)[]> =>
    (await Promise.all(calls)).map((result) => result?.name);
  assert.deepEqual(await names([client.call('describe', 1), client.latest('describe', 2)]),
                   ['n1', 'n2']);
  assert.deepEqual(await names([client.latest('describe', 1), client.call('describe', 2)]),
                   ['n1', 'n2']);
  clearInterval(keepAlive);
  assert.ok(client.isIdle);
});

test('all calls fail if the worker fails', async () => {
  const worker = { postMessage() {} } as unknown as Worker;
  const client = new Client(worker);
  const calls = [client.call('find', 'a'), client.call('find', 'b')];
  worker.onerror!({ message: 'no worker' } as ErrorEvent);
  for (const call of calls) await assert.rejects(call, /no worker/);
});

test('descriptions have pins, attributes and documentation', async () => {
  const service = new Service();
  service.load(graph([
    ['s/x', 'Neg', [], { t: [0, 1] }],
    ['s/y', 'Mul', [['s/x', 0], ['lost', 0]], { c: [0], u: [2], a: [3, 4], e: 5, k: 3, h: [6] }],
  ], { strings: ['float', '[2]', 'lost', 'bits', '4', 'no kernel', 'name: a -> b'] }));
  const y = await service.describe(1);
  assert.equal(y.op, 'Mul');
  assert.equal(y.problem, 'no kernel');
  assert.deepEqual(y.changes, ['name: a -> b']);
  assert.deepEqual(y.missing, ['lost']);
  assert.deepEqual(y.inputs, [{ node: 0, name: 's/x', pin: 'x', type: 'float [2]' }]);
  assert.deepEqual(y.control.map((c) => c.name), ['s/x']);
  assert.deepEqual(y.attrs, [{ name: 'bits', value: '4', isDefault: false, doc: 'How many.' }]);
  const x = await service.describe(0);
  assert.deepEqual(x.attrs, [{ name: 'bits', value: '8', isDefault: true, doc: 'How many.' }]);
  assert.deepEqual(x.outputs.map((o) => [o.pin, o.type, o.doc, o.consumers.map((c) => c.name)]),
                   [['z', 'float [2]', 'The result.', ['s/y']]]);
  const s = await service.describe(~1);
  assert.equal(s.numNodes, 2);
  assert.deepEqual(s.ops, [['Mul', 1], ['Neg', 1]]);
  assert.equal(await service.nextNotable(-1), 1);
  assert.equal(await service.nextNotable(1), 1);
});

test('a graph of one scope opens it', () => {
  const service = new Service();
  const summary = service.load(graph([['a/b/x', 'Neg', []], ['a/b/c/y', 'Neg', []]]));
  assert.equal(summary.first, 2);
  assert.equal(summary.scopes, 3);
});
