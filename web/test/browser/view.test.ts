// The page of a graph: picture, panel, search, scopes, highlights, keys.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { kCommands } from '../../src/ui/commands.ts';
import { Fixture, chain, constant, message, node, openScopes, placeholder, selected, settle, towers }
  from './support.ts';

let fixture: Fixture;
let towersPage: string;
before(() => {
  fixture = new Fixture();
  towersPage = fixture.view('towers', towers(6, 3));
});
after(() => fixture.close());

// Returns the number of different colours in the middle of the picture.
const kCountColors = (): number => {
  const canvas = document.getElementById('canvas') as HTMLCanvasElement;
  const { width, height } = canvas;
  const { data } = canvas.getContext('2d')!.getImageData(0, 0, width, height);
  const colors = new Set<number>();
  for (let i = 0; i < data.length; i += 4) {
    colors.add(data[i]! * 65536 + data[i + 1]! * 256 + data[i + 2]!);
  }
  return colors.size;
};

test('a graph is a picture, with its summary in the panel', async () => {
  const page = await fixture.open(towersPage);
  await settle(page);
  assert.ok(await page.evaluate(kCountColors) > 10);
  assert.match(await page.title(), /^towers.pbtxt/);
  assert.match(await page.locator('#panel').innerText(), /20 blocks, 5 ops, 8 scopes/);
});

test('a click selects a block and a double click opens a scope', async () => {
  const page = await fixture.open(towersPage);
  const point = (name: string) => page.evaluate(async (name) => {
    const app = window.gradflow;
    const box = app.world.boxOf((await app.client.call('find', name))!)!;
    const rect = app.canvas.getBoundingClientRect();
    return {
      x: rect.left + app.camera.x + app.camera.scale * (box.x + box.w / 2),
      y: rect.top + app.camera.y + app.camera.scale * (box.y + 6),
    };
  }, name);
  const x = await point('x');
  await page.mouse.click(x.x, x.y);
  await settle(page);
  assert.equal(await selected(page), 'x');
  assert.match(await page.locator('#panel').innerText(), /Placeholder/);
  const tower = await point('tower1');
  await page.mouse.dblclick(tower.x, tower.y);
  await settle(page);
  assert.deepEqual(await openScopes(page), ['tower1']);
  const again = await point('tower1');
  await page.mouse.dblclick(again.x, again.y);
  await settle(page);
  assert.deepEqual(await openScopes(page), []);
  // A click on empty space selects nothing.
  const view = (await page.locator('#view').boundingBox())!;
  await page.mouse.click(view.x + 5, view.y + view.height - 5);
  await settle(page);
  assert.equal(await selected(page), '');
});

test('dragging pans and the wheel zooms about the pointer', async () => {
  const page = await fixture.open(towersPage);
  const camera = () => page.evaluate(() => window.gradflow.camera.transform());
  const view = (await page.locator('#view').boundingBox())!;
  const before = await camera();
  await page.mouse.move(view.x + 100, view.y + 100);
  await page.mouse.down();
  await page.mouse.move(view.x + 160, view.y + 130, { steps: 5 });
  await page.mouse.up();
  const moved = await camera();
  // The first pixels do not count as a drag.
  assert.ok(Math.abs(moved.x - before.x - 60) < 15 && Math.abs(moved.y - before.y - 30) < 15);
  await page.mouse.wheel(0, -200);
  await page.waitForFunction((scale) => window.gradflow.camera.transform().scale > scale * 1.3,
                             moved.scale);
  const zoomed = await camera();
  const worldX = (c: { x: number; scale: number }): number => (160 - c.x) / c.scale;
  assert.ok(Math.abs(worldX(zoomed) - worldX(moved)) < 1);
  assert.equal(await selected(page), '');
});

test('the panel has pins, types, attributes and documentation', async () => {
  const quant = 'attr { key: "num_bits" value { i: 4 } }';
  const page = await fixture.open(fixture.view('quant',
    placeholder('x', [2, 3]) + constant('min', -1) + constant('max', 1) +
    `node { name: "q/grad" op: "FakeQuantWithMinMaxVarsGradient" input: "x" input: "x"
            input: "min" input: "max" ${quant} }` +
    node('y', 'Neg', ['q/grad:1'])));
  await page.evaluate(async () => {
    const app = window.gradflow;
    await app.select((await app.client.call('find', 'q/grad'))!);
  });
  await settle(page);
  const text = await page.locator('#panel').innerText();
  for (const part of [
    'q/grad', 'FakeQuantWithMinMaxVarsGradient', 'gradients', 'inputs', 'float [2,3]',
    'backprops_wrt_input', 'backprop_wrt_max', 'num_bits', '4', 'narrow_range', 'false (default)',
  ]) assert.ok(text.includes(part), `${part} in\n${text}`);
  // Links lead to neighbours.
  await page.getByRole('button', { name: 'y', exact: true }).click();
  await settle(page);
  assert.equal(await selected(page), 'y');
});

test('search finds names, ops, attributes, shapes and expressions', async () => {
  const page = await fixture.open(towersPage);
  const hits = async (query: string): Promise<string[]> => {
    await page.locator('#search').fill(query);
    await settle(page);
    const texts = await page.locator('#results button').allInnerTexts();
    return texts.map((text) => text.split(/\s/)[0]!);
  };
  assert.deepEqual(await hits('layer0 mul'), ['tower0/layer0/mul', 'tower1/layer0/mul']);
  assert.equal((await hits('op:relu')).length, 6);
  assert.equal((await hits('shape:[4,8]')).length, 14);
  assert.deepEqual(await hits('/^(x|out)$/'), ['x', 'out']);
  await hits('/(/');
  assert.equal(await page.locator('#results [role=status]').innerText(), 'not a regular expression');
  await page.locator('#search').press('Escape');
  await settle(page);
  assert.equal(await page.locator('#results').count(), 0);
  assert.equal(await page.evaluate(() => document.activeElement!.id), 'tree');
  // Selecting a hit opens the scopes around it.
  await hits('tower1/layer2/mul');
  await page.locator('#results button').first().click();
  await settle(page);
  assert.equal(await selected(page), 'tower1/layer2/mul');
  assert.deepEqual(await openScopes(page), ['tower1', 'tower1/layer2']);
  const isSeen = await page.evaluate(() => {
    const { camera, world, selected, width, height } = window.gradflow;
    const box = world.boxOf(selected!)!;
    const x = camera.x + camera.scale * box.x;
    const y = camera.y + camera.scale * box.y;
    return x >= 0 && y >= 0 && x < width && y < height && box.h * camera.scale > 20;
  });
  assert.ok(isSeen);
});

test('an expression that takes exponential time does not block the page', async () => {
  const page = await fixture.open(fixture.view('hang',
    placeholder('x', [2]) + node('a'.repeat(900) + '!', 'Neg', ['x'])));
  const status = page.locator('#results [role=status]');
  await page.locator('#search').fill('/^(a+)+$/');
  await page.waitForFunction(() => window.gradflow.search.isBusy);
  // Meanwhile, the panel can show a block.
  await page.evaluate(() => window.gradflow.select(0));
  await page.waitForFunction(() => window.gradflow.description?.name === 'x');
  assert.ok(await page.evaluate(() => window.gradflow.search.isBusy));
  assert.equal(await status.innerText(), 'Searching; Escape cancels');
  // The next key ends the search.
  await page.locator('#search').fill('/^x$/');
  await settle(page);
  assert.deepEqual(await page.locator('#results button').allInnerTexts(), ['x Placeholder']);
  // Escape in the picture also ends the search, and so does the time limit.
  await page.locator('#search').fill('/^(a+)+$/');
  await page.locator('#tree').focus();
  await page.keyboard.press('Escape');
  assert.equal(await status.innerText(), 'The search is cancelled');
  assert.equal(await message(page), 'The search is cancelled');
  await page.locator('#search').fill('/^(a+)+$/');
  await settle(page);
  assert.match(await status.innerText(), /^stopped after 2 s: the expression takes too long/);
  await page.locator('#search').fill('x');
  await settle(page);
  assert.equal(await page.locator('#results button').count(), 1);
  await page.close();
});

test('letters are commands only where the picture has the focus', async () => {
  const page = await fixture.open(towersPage);
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  // The picture has the focus at first.
  await page.keyboard.press('t');
  const first = await theme();
  assert.notEqual(first, undefined);
  for (const id of ['panel', 'search']) {
    await page.locator(`#${id}`).focus();
    await page.keyboard.press('t');
    assert.equal(await theme(), first, id);
  }
  await page.evaluate(() => (document.activeElement as HTMLElement).blur());
  await page.keyboard.press('t');
  assert.equal(await theme(), first);
  const fit = page.getByRole('button', { name: 'Show all' });
  await fit.focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('t');
  assert.equal(await theme(), first);
  // A click on a button returns the focus to the picture.
  await fit.click();
  await page.keyboard.press('t');
  assert.notEqual(await theme(), first);
  await page.close();
});

test('keys follow edges, open scopes, and highlight', async () => {
  const page = await fixture.open(towersPage);
  await page.evaluate(() => window.gradflow.client.call('find', 'x')
    .then((id) => window.gradflow.select(id!)));
  await fixture.press(page, 'ArrowRight');
  assert.equal(await selected(page), 'tower0/layer0/mul');
  await fixture.press(page, 'ArrowRight');
  assert.equal(await selected(page), 'tower0/layer0/relu');
  await fixture.press(page, 'i');
  assert.equal(await message(page), '4 blocks in the fan-in');
  await fixture.press(page, 'm', 'u');
  assert.equal(await selected(page), 'tower0/layer0');
  await fixture.press(page, 'Enter');
  assert.deepEqual(await openScopes(page), ['tower0']);
  await fixture.press(page, 'Enter');
  assert.deepEqual(await openScopes(page), ['tower0', 'tower0/layer0']);
  await page.evaluate(() => window.gradflow.client.call('find', 'out')
    .then((id) => window.gradflow.select(id!)));
  await fixture.press(page, 'p');
  // Each layer without its constant, plus both ends.
  assert.equal(await message(page), '12 blocks on the paths');
  await fixture.press(page, 'ArrowLeft');
  assert.equal(await selected(page), 'tower1/layer2/relu');
  await fixture.press(page, 'o');
  assert.equal(await message(page), '2 blocks in the fan-out');
  await fixture.press(page, 'E');
  assert.deepEqual(await openScopes(page), []);
});

test('every command has a key that works', async () => {
  const keys = kCommands.map((command) => command.key);
  assert.equal(new Set(keys).size, keys.length);
  const page = await fixture.open(towersPage);
  await page.evaluate(() => {
    window.print = () => { document.title = 'printed'; };
  });
  const state = () => page.evaluate(() => {
    const app = window.gradflow;
    return JSON.stringify([
      app.camera.transform(), app.selected, app.message, app.isHelpOpen, app.isFolded,
      [...app.world.placed.keys()], document.activeElement?.id, document.title,
      document.documentElement.dataset.theme, app.marks === null,
    ]);
  });
  const choose = (name: string) => page.evaluate(async (name) => {
    const app = window.gradflow;
    await app.select((await app.client.call('find', name))!, false);
  }, name);
  for (const command of kCommands) {
    await choose(command.id === 'toggle' ? 'tower0' : 'tower0/layer1/mul');
    await page.evaluate(() => {
      window.gradflow.say('');
      window.gradflow.camera.set({ scale: 0.1, x: 1, y: 1 });
    });
    await page.locator('#tree').focus();
    const before = await state();
    if (command.id === 'svg') {
      const [download] = await Promise.all(
        [page.waitForEvent('download'), page.keyboard.press(command.key)]);
      const svg = readFileSync((await download.path())!, 'utf8');
      assert.match(svg, /^<svg xmlns=[^]*<\/svg>\n$/);
      assert.equal(download.suggestedFilename(), 'graph.svg');
      continue;
    }
    await page.keyboard.press(command.key);
    await settle(page);
    assert.notEqual(await state(), before, command.id);
    if (command.id === 'help') {
      // The list of keys contains all commands, and they can be chosen there.
      const listed = await page.locator('#help [data-command]').evaluateAll(
        (buttons) => buttons.map((button) => (button as HTMLElement).dataset.command!));
      assert.deepEqual(listed.sort(), kCommands.map((c) => c.id).sort());
      await page.keyboard.press('Escape');
    }
  }
});

test('the minimap moves the picture, and a print has the picture and the panel', async () => {
  const page = await fixture.open(towersPage);
  await page.evaluate(() => window.gradflow.camera.zoom(4, 0, 0));
  await settle(page);
  const camera = () => page.evaluate(() => window.gradflow.camera.transform());
  const before = await camera();
  const box = (await page.locator('#minimap').boundingBox())!;
  await page.mouse.click(box.x + box.width - 4, box.y + box.height / 2);
  await settle(page);
  const after = await camera();
  assert.equal(after.scale, before.scale);
  assert.ok(after.x < before.x - 50, `${before.x} ${after.x}`);
  await page.emulateMedia({ media: 'print' });
  for (const [id, isSeen] of [['bar', false], ['minimap', false], ['canvas', true], ['panel', true]] as const) {
    assert.equal(await page.locator(`#${id}`).isVisible(), isSeen, id);
  }
  await page.close();
});

test('constants fold into their consumers and back', async () => {
  const page = await fixture.open(towersPage + '#n=tower0%2Flayer0%2Fmul');
  const titles = () => page.evaluate(() =>
    [...window.gradflow.world.placed.values()].flatMap((p) => p.scene.items.map((i) => i.title)));
  assert.ok((await titles()).includes('w'));
  await fixture.press(page, 'c');
  assert.ok(!(await titles()).includes('w'));
  const lines = await page.evaluate(() => {
    const found = window.gradflow.world.findItem(window.gradflow.selected!)!;
    return found.placed.scene.items[found.item]!.lines;
  });
  assert.deepEqual(lines, ['y = 1']);
  await fixture.press(page, 'c');
  assert.ok((await titles()).includes('w'));
});

test('the address is a bookmark', async () => {
  const page = await fixture.open(towersPage);
  await page.evaluate(async () => {
    const app = window.gradflow;
    await app.select((await app.client.call('find', 'tower1/layer0/relu'))!);
  });
  await settle(page);
  const hash = await page.evaluate(() => location.hash);
  const again = await fixture.open(towersPage + hash);
  assert.equal(await selected(again), 'tower1/layer0/relu');
  assert.deepEqual(await openScopes(again), ['tower1', 'tower1/layer0']);
  const none = await fixture.open(towersPage + '#n=nothing&o=%zz&o=no');
  assert.equal(await message(none), 'There is no nothing');
});

test('problems are marked and listed', async () => {
  const page = await fixture.open(fixture.view('broken',
    placeholder('x', [2]) + 'node { name: "odd" op: "NoSuchOp" input: "x" }' +
    node('y', 'Neg', ['odd'])));
  assert.match(await page.locator('#panel').innerText(), /Cannot run[^]*NoSuchOp/);
  await fixture.press(page, 'n');
  assert.equal(await selected(page), 'odd');
  assert.match(await page.locator('#panel').innerText(), /Cannot run: the op is not registered/);
  const label = await page.locator('[role=treeitem]', { hasText: '' }).nth(1)
    .getAttribute('aria-label');
  assert.match(label!, /odd, NoSuchOp.*cannot run/);
});

test('functions are shown', async () => {
  const page = await fixture.open(fixture.view('function', `
    ${placeholder('x', [2])} node { name: "call" op: "twice" input: "x" }
    library { function {
      signature { name: "twice" input_arg { name: "a" type: DT_FLOAT }
                  output_arg { name: "r" type: DT_FLOAT } }
      node_def { name: "sum" op: "AddV2" input: "a" input: "a"
                 attr { key: "T" value { type: DT_FLOAT } } }
      ret { key: "r" value: "sum:z:0" } } }`));
  await page.evaluate(() => window.gradflow.client.call('find', 'ƒ twice')
    .then((id) => window.gradflow.openScope(~id!)));
  await settle(page);
  const titles = await page.evaluate(() => [...window.gradflow.world.placed.values()]
    .flatMap((p) => p.scene.items.map((i) => `${i.title} ${i.subtitle}`)));
  // A bookmark of a block in a function opens the function.
  await page.evaluate(async () => window.gradflow.select((await window.gradflow.client.call('find', 'ƒ twice/sum'))!));
  await settle(page);
  const again = await fixture.open(page.url().replace(/^file:\/\//, ''));
  await settle(again);
  assert.equal(await selected(again), 'ƒ twice/sum');
  assert.match(await again.locator('#panel').innerText(), /AddV2/);
  assert.deepEqual(titles.sort(),
                   ['a _Arg', 'call twice', 'r _Retval', 'sum AddV2', 'x Placeholder', 'ƒ twice 3 ops']);
});

test('differences are marked', async () => {
  const other = fixture.file('other.pbtxt', towers(6, 3).replace('float_val: 2', 'float_val: 20')
    .replace('node { name: "out" op: "AddV2"', 'node { name: "end" op: "AddV2"') +
    node('new', 'Neg', ['x']));
  const page = await fixture.open(fixture.view('diff', towers(6, 3), ['--diff', other]));
  assert.match(await page.locator('#panel').innerText(), /1 added, 0 removed, 2 changed/);
  await page.locator('#search').fill('is:changed');
  await settle(page);
  assert.deepEqual((await page.locator('#results button').allInnerTexts())
    .map((text) => text.split(/\s/)[0]), ['tower0/layer1/w', 'end']);
  await page.locator('#results button').first().click();
  await settle(page);
  assert.match(await page.locator('#panel').innerText(), /Changed[^]*values: 2>[^]*values: 20>/);
  // The scopes around a change are also marked.
  const change = await page.evaluate(async () => {
    const { client, world } = window.gradflow;
    const found = world.findItem((await client.call('find', 'tower0'))!)!;
    return found.placed.scene.items[found.item]!.change;
  });
  assert.equal(change, 3);
});

test('hostile names and values are shown as text', async () => {
  const kName = '</script><img src=x onerror=alert(1)>"\'\u202e';
  const page = await fixture.open(fixture.view('hostile', `
    node { name: ${JSON.stringify(kName)} op: "<b>op</b>" device: "<i>d</i>"
           attr { key: "bytes" value { s: "\\xff\\xfe</script>" } }
           attr { key: "<u>" value { s: "<s>" } } }
    node { name: "${'n'.repeat(10_000)}" op: "NoOp" }`));
  await page.evaluate(() => window.gradflow.select(0));
  await settle(page);
  const panel = page.locator('#panel');
  assert.equal(await panel.locator('img, b b, i, u, s, script').count(), 0);
  const text = await panel.innerText();
  for (const part of ['</script><img src=x onerror=alert(1)>"\'\\u202e', '<b>op</b>', '<i>d</i>',
                      '<u>', '\\377\\376</script>']) {
    assert.ok(text.includes(part), `${part} in\n${text}`);
  }
  await page.evaluate(() => window.gradflow.select(1));
  await settle(page);
  await page.locator('#search').fill('nnnn');
  await settle(page);
  assert.equal(await page.locator('#results button').count(), 1);
  assert.match(await page.evaluate(() => window.gradflow.svg()), /^<svg[^]*<\/svg>\n$/);
  // The SVG file is valid XML.
  const isXml = await page.evaluate(() => new DOMParser()
    .parseFromString(window.gradflow.svg(), 'image/svg+xml').querySelector('parsererror') === null);
  assert.ok(isXml);
});

test('documentation is shown as text', async () => {
  const kDoc = '</script><img src=x onerror=alert(1)> "quoted" \'\u202e & &amp; <b>bold</b>\n\u2028 end';
  const page = await fixture.open(fixture.view('doc', `
    node { name: "call" op: "hostile" }
    library { function { signature { name: "hostile" summary: ${JSON.stringify(kDoc)}
      description: ${JSON.stringify(kDoc + 'x'.repeat(20_000))}
      attr { name: "a" type: "int" description: ${JSON.stringify(kDoc)} default_value { i: 3 } }
      output_arg { name: "r" type: DT_FLOAT description: ${JSON.stringify(kDoc)} } } } }`));
  await page.evaluate(async () => {
    await window.gradflow.select((await window.gradflow.client.call('find', 'call'))!);
  });
  await settle(page);
  const panel = page.locator('#panel');
  assert.equal(await panel.locator('img, script, b b').count(), 0);
  const text = await panel.innerText();
  const count = text.split('</script><img src=x onerror=alert(1)> "quoted" \'\\u202e & &amp; <b>bold</b>').length - 1;
  assert.ok(count >= 3, text.slice(0, 3000));
  assert.ok(text.includes('\\u2028 end'));
  assert.ok(!text.includes('\u202e'));
  await page.close();
});

test('the tree of a large scope has pages', async () => {
  const page = await fixture.open(fixture.view('large', chain(250)));
  const places = (): Promise<number[]> => page.locator('[role=treeitem]').evaluateAll(
    (items) => items.map((item) => Number(item.getAttribute('aria-posinset'))));
  const seen = new Set(await places());
  await fixture.press(page, 'Home');
  assert.equal(await message(page), 'Block 1 of 250');
  for (let i = 1; i <= 3; ++i) {
    await fixture.press(page, 'PageDown');
    for (const place of await places()) seen.add(place);
  }
  assert.equal(await message(page), 'Block 250 of 250');
  assert.equal(seen.size, 250);
  await fixture.press(page, 'PageUp');
  assert.equal(await message(page), 'Block 150 of 250');
  await page.close();
});

test('an empty graph and a single block are shown', async () => {
  const page = await fixture.open(fixture.view('empty', 'versions { producer: 22 }'));
  assert.match(await page.locator('#panel').innerText(), /0 blocks/);
  await fixture.press(page, 'ArrowDown', '0', 'n');
  const one = await fixture.open(fixture.view('one', constant('c', 3)));
  await fixture.press(one, 'ArrowDown', 'ArrowRight', 'i', 'p', 'u');
});

test('damaged data give an error message', async () => {
  const text = readFileSync(towersPage, 'utf8');
  const path = fixture.file('damaged.html', text.replace(/(id="data"[^>]*>)[^<]*/, '$1H4sIAAAA'));
  const page = await fixture.open(path, {}, 'failed');
  assert.match(await page.locator('#message').innerText(), /^The graph cannot be shown: ./);
});

test('a page of a long chain starts with a readable part', async () => {
  const page = await fixture.open(fixture.view('chain', chain(500)));
  assert.ok(await page.evaluate(() => window.gradflow.camera.scale) > 0.3);
});

test('the picture is drawn in the colours that the user wants', async () => {
  const backgrounds = new Set<string>();
  for (const options of [{}, { colorScheme: 'dark' }, { forcedColors: 'active' }] as const) {
    const page = await fixture.open(towersPage, options);
    await settle(page);
    backgrounds.add(await page.evaluate(() => window.gradflow.theme.background));
    assert.ok(await page.evaluate(kCountColors) > 5);
    await page.close();
  }
  assert.equal(backgrounds.size, 3);
});
