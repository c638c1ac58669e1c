// Pages of `gradflow view` in a browser. The environment variable GRADFLOW is the program's path.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import type { App } from '../../src/ui/app.ts';

declare global {
  interface Window {
    gradflow: App;
  }
}

const gradflow = process.env.GRADFLOW ?? '../build/release/tools/gradflow';
export const root = process.env.GRADFLOW_WEB!;

export class Fixture {
  readonly folder = mkdtempSync(join(tmpdir(), 'gradflow-page-'));
  private browser: Browser | undefined;
  private readonly servers: ChildProcess[] = [];
  // Faults that no page may have: errors, requests, policy violations.
  readonly faults: string[] = [];

  // Writes the page of a graph in text format, and returns its path.
  view(name: string, text: string, options: string[] = []): string {
    const graph = join(this.folder, name + '.pbtxt');
    writeFileSync(graph, text);
    return this.run(name, ['view', graph, ...options]);
  }
  // Runs the program and returns its output.
  output(args: string[]): string {
    return execFileSync(gradflow, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  }
  run(name: string, args: string[], option = '-o'): string {
    const page = join(this.folder, name + '.html');
    execFileSync(gradflow, [...args, option, page], { stdio: ['ignore', 'pipe', 'inherit'] });
    return page;
  }
  // Runs a graph in text format, and writes the page of the run.
  report(name: string, text: string, options: string[]): string {
    return this.run(name, ['run', this.file(name + '.pbtxt', text), ...options], '--report');
  }
  // Writes an array of floats, and returns its path.
  npy(name: string, values: number[], shape: number[]): string {
    const list = shape.map((n) => `${n},`).join('');
    const header = `{'descr': '<f4', 'fortran_order': False, 'shape': (${list}), }`;
    const size = Math.ceil((header.length + 11) / 64) * 64 - 10;
    const start = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, size % 256, size >> 8]);
    const path = join(this.folder, name + '.npy');
    writeFileSync(path, Buffer.concat([
      start, Buffer.from(header.padEnd(size - 1) + '\n'), Buffer.from(Float32Array.from(values).buffer),
    ]));
    return path;
  }
  file(name: string, text: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, text);
    return path;
  }

  // Starts `gradflow edit`, and returns its address.
  async serve(args: string[]): Promise<string> {
    const server = spawn(gradflow, ['edit', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    this.servers.push(server);
    let text = '';
    for await (const data of server.stdout) {
      text += String(data);
      const match = /^Open (http:\S+)$/m.exec(text);
      if (match !== null) return match[1]!;
    }
    throw new Error(`the server ended: ${text}`);
  }

  // Opens a file or the address of a server. Only the server may receive requests.
  async open(path: string, options: BrowserContextOptions = {}, state = 'ready'): Promise<Page> {
    const origin = path.startsWith('http:') ? new URL(path).origin : 'file://';
    this.browser ??= await chromium.launch({
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu'],
    });
    const context =
      await this.browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    const page = await context.newPage();
    page.on('pageerror', (error) => this.faults.push(`error: ${error.message}`));
    page.on('console', (message) => {
      if (message.type() === 'error' || /Content.Security.Policy/i.test(message.text())) {
        this.faults.push(`console: ${message.text()}`);
      }
    });
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(origin + '/') && !url.startsWith('blob:')) {
        this.faults.push(`request: ${url}`);
      }
    });
    await page.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => {
        console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
      });
    });
    await page.goto(path.startsWith('http:') ? path : `file://${path}`);
    await page.waitForFunction(() => document.documentElement.dataset.state !== undefined);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.state), state);
    return page;
  }

  // Presses keys in the picture.
  async press(page: Page, ...keys: string[]): Promise<void> {
    await page.locator('#tree').focus();
    for (const key of keys) {
      await page.keyboard.press(key);
      await settle(page);
    }
  }

  async close(): Promise<void> {
    await this.browser?.close();
    for (const server of this.servers) {
      server.kill('SIGINT');
      const [code] = server.exitCode === null ? await once(server, 'exit') : [server.exitCode];
      if (code !== 0) this.faults.push(`the server ended with ${code}`);
    }
    rmSync(this.folder, { recursive: true });
    assert.deepEqual(this.faults, []);
  }
}

// Waits until the worker has answered, and the picture is still and drawn.
export async function settle(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const app = window.gradflow;
    await app.client.call('find', '');
    let before = '';
    for (let i = 0; i < 200; ++i) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      await app.client.call('find', '');
      await app.edit?.refreshed();
      const now = JSON.stringify([app.camera.transform(), app.selected, app.message]);
      if (now === before && app.client.isIdle && !app.search.isBusy && app.edit?.isBusy !== true) {
        // Runs after the frame that draws the picture, which was requested earlier.
        await new Promise((resolve) => requestAnimationFrame(resolve));
        return;
      }
      before = now;
    }
    throw new Error('the page does not settle');
  });
}

// Asserts that axe finds no violation in a state of the page.
export async function expectNoViolation(page: Page, state: string): Promise<void> {
  // Evaluated by the debugger, which the policy of the page does not restrict.
  await page.evaluate(readFileSync(join(root, 'node_modules/axe-core/axe.min.js'), 'utf8'));
  const violations = await page.evaluate(async () => {
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
    const { axe } = window as unknown as { axe: { run: (options: object) => Promise<{
      violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
    }> } };
    const result = await axe.run({ runOnly: { type: 'tag', values: tags } });
    return result.violations.map((v) => `${v.id}: ${v.nodes[0]!.html} ${v.nodes[0]!.failureSummary}`);
  });
  assert.deepEqual(violations, [], state);
}

export function message(page: Page): Promise<string> {
  return page.evaluate(() => window.gradflow.message);
}
export function selected(page: Page): Promise<string> {
  return page.evaluate(async () => {
    const app = window.gradflow;
    return app.selected === null ? '' : app.client.call('nameOf', app.selected);
  });
}
export function openScopes(page: Page): Promise<string[]> {
  return page.evaluate(async () => {
    const app = window.gradflow;
    const names: string[] = [];
    for (const scope of app.world.placed.keys()) names.push(await app.client.call('nameOf', ~scope));
    return names.filter((name) => name !== '').sort();
  });
}

// ---- Graphs ----

const kFloat = 'attr { key: "T" value { type: DT_FLOAT } }';

export function placeholder(name: string, dims: number[]): string {
  const shape = dims.map((d) => `dim { size: ${d} }`).join(' ');
  return `node { name: "${name}" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "shape" value { shape { ${shape} } } } }\n`;
}
export function constant(name: string, value: number): string {
  return `node { name: "${name}" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: ${value} } } } }\n`;
}
export function node(name: string, op: string, inputs: string[], more = ''): string {
  const list = inputs.map((input) => `input: "${input}"`).join(' ');
  return `node { name: "${name}" op: "${op}" ${list} ${kFloat} ${more} }\n`;
}

// x -> tower0/layer0/{mul, relu} -> ... in towers of `perTower` layers; x also connects to the end.
export function towers(layers: number, perTower: number): string {
  let text = placeholder('x', [4, 8]);
  let last = 'x';
  for (let i = 0; i < layers; ++i) {
    const scope = `tower${Math.floor(i / perTower)}/layer${i % perTower}/`;
    text += constant(scope + 'w', i + 1) + node(scope + 'mul', 'Mul', [last, scope + 'w']) +
      node(scope + 'relu', 'Relu', [scope + 'mul']);
    last = scope + 'relu';
  }
  return text + node('out', 'AddV2', [last, 'x']);
}

// A chain of `count` nodes without scopes. Some edges skip nodes.
export function chain(count: number): string {
  let text = placeholder('x', [4]);
  for (let i = 0; i < count - 1; ++i) {
    const near = i === 0 ? 'x' : `n${i - 1}`;
    const far = i < 5 ? 'x' : `n${i - 2 - (i * 7) % 4}`;
    text += i % 3 === 0 ? node(`n${i}`, 'Relu', [near]) : node(`n${i}`, 'AddV2', [near, far]);
  }
  return text;
}
