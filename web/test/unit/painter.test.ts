import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { paint } from '../../src/draw/painter.ts';
import type { Picture } from '../../src/draw/painter.ts';
import type { RectStyle, Surface } from '../../src/draw/surface.ts';
import { heatColor, mixColors } from '../../src/draw/theme.ts';
import type { Theme } from '../../src/draw/theme.ts';
import type { Item, Scene } from '../../src/scene/types.ts';
import { Flag } from '../../src/scene/types.ts';
import { edgeBounds } from '../../src/view/world.ts';
import type { Placed, World } from '../../src/view/world.ts';

const kTheme = new Proxy({}, { get: (_, name) => name }) as Theme;

// A surface that counts the drawn shapes.
class Counter implements Surface {
  bars = 0;
  curves = 0;
  lines = 0;
  readonly strokes: string[] = [];
  rect(_x: number, _y: number, _w: number, _h: number, style: RectStyle): void {
    if (style.stroke !== undefined) this.strokes.push(style.stroke);
  }
  bar(): void { ++this.bars; }
  circle(): void {}
  text(): void {}
  layer(): void {}
  moveTo(): void {}
  lineTo(): void { ++this.lines; }
  curveTo(): void { ++this.curves; }
  strokePath(): void {}
}

// A row of blocks with edges between neighbours. Block `special` has a problem.
function picture(count: number, special: number, scale: number): Picture {
  const items = Array.from({ length: count }, (_, i): Item => ({
    id: i, title: '', path: '', subtitle: '', lines: [], inputs: [], outputs: [], change: 0,
    flags: i === special ? Flag.kProblem : 0, time: -1, heat: 0,
  }));
  const edges = count - 1;
  const scene: Scene = {
    scope: 0, width: 200 * count, height: 100, items,
    x: Float64Array.from(items, (_, i) => 200 * i), y: new Float64Array(count),
    w: new Float64Array(count).fill(100), h: new Float64Array(count).fill(40),
    from: Int32Array.from({ length: edges }, (_, e) => e),
    to: Int32Array.from({ length: edges }, (_, e) => e + 1),
    source: Int32Array.from({ length: edges }, (_, e) => e), output: new Int32Array(edges),
    start: Int32Array.from({ length: count }, (_, e) => 2 * e),
    points: Float32Array.from({ length: 4 * edges }, (_, k) =>
      (k % 2 === 1 ? 20 : k % 4 === 0 ? 200 * (k / 4) + 100 : 200 * ((k - 2) / 4) + 200)),
    type: new Int32Array(edges), types: [''], scale: 1, left: 0, top: 0,
  };
  const placed: Placed = {
    scene, at: { scale: 1, x: 0, y: 0 }, index: new Map(), bounds: edgeBounds(scene),
  };
  return {
    world: { placed: new Map([[0, placed]]) } as unknown as World,
    camera: { scale, x: 0, y: 0 }, width: 1e9, height: 1000, theme: kTheme, selected: null,
    chosen: new Set(), marks: null,
  };
}

test('draws every second block of very many blocks, and the blocks that stand out', () => {
  const surface = new Counter();
  // The special block has an odd number, so it would be skipped otherwise.
  assert.equal(paint(surface, picture(30_000, 12_345, 0.1)), 30_000);
  assert.equal(surface.bars, 15_000);
  assert.deepEqual(surface.strokes, ['problem']);
  assert.equal(surface.lines, 10_000);
});

test('a changed block stands out', () => {
  const surface = new Counter();
  const all = picture(30_000, -1, 0.1);
  all.world.placed.get(0)!.scene.items[12_345]!.change = 3;
  paint(surface, all);
  assert.deepEqual(surface.strokes, ['line']);
  assert.equal(surface.bars, 15_000);
});

// The relative luminance as defined by WCAG.
function luminance(color: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const c = parseInt(color.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

test('lines and marks have a contrast of at least 3, and text of at least 4.5', () => {
  const style = readFileSync(join(process.env.GRADFLOW_WEB!, 'src/style.css'), 'utf8');
  const themes = [...style.matchAll(/color-scheme: (light|dark);([^}]*)/g)];
  assert.equal(themes.length, 3);
  for (const [, name, text] of themes) {
    const colors = Object.fromEntries(
      [...text!.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map((match) => [match[1]!, match[2]!]));
    const expectContrast = (a: string, b: string, least: number): void => {
      const [x, y] = [luminance(colors[a]!), luminance(colors[b]!)];
      const contrast = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
      assert.ok(contrast >= least, `${name}: ${a} on ${b}: ${contrast}`);
    };
    for (const on of ['background', 'scope', 'block']) {
      for (const line of ['edge', 'line', 'accent', 'mark', 'problem']) expectContrast(line, on, 3);
      for (const line of ['text', 'soft']) expectContrast(line, on, 4.5);
    }
    for (const on of ['added', 'removed', 'changed', 'constant']) expectContrast('text', on, 4.5);
  }
});

test('heat colours are valid in SVG 1.1', () => {
  const theme = { problem: 'rgb(200, 0, 100)', block: 'rgb(0, 100, 100)' } as Theme;
  assert.equal(heatColor(theme, 0), 'rgb(16, 92, 100)');
  assert.equal(heatColor(theme, 1), 'rgb(90, 55, 100)');
  assert.equal(mixColors('rgb(1, 2, 3)', 'odd', 0.5), 'odd');
});

test('draws the selected block and some others if very many blocks and edges stand out', () => {
  const blocks = new Counter();
  const all = picture(30_000, -1, 0.1);
  const { scene } = all.world.placed.get(0)!;
  for (const item of scene.items) item.flags = Flag.kProblem;
  paint(blocks, { ...all, selected: 12_345 });
  assert.equal(blocks.strokes.length, 3_751);
  assert.equal(blocks.strokes.filter((stroke) => stroke === 'accent').length, 1);
  assert.equal(blocks.bars, 0);

  const edges = new Counter();
  const marks = { scopes: new Uint8Array(), nodes: new Uint8Array(30_000).fill(1) };
  paint(edges, { ...picture(30_000, -1, 0.1), marks: marks as unknown as Picture['marks'] });
  assert.equal(edges.lines, 3_750);
});

test('up to 20,000 small blocks are all drawn', () => {
  const surface = new Counter();
  paint(surface, picture(20_000, 12_345, 0.1));
  assert.equal(surface.bars, 19_999);
});

test('edges are lines where they are short, curves elsewhere', () => {
  const far = new Counter();
  paint(far, picture(100, -1, 0.1));
  assert.deepEqual([far.lines, far.curves], [99, 0]);
  const near = new Counter();
  paint(near, picture(100, -1, 0.5));
  assert.deepEqual([near.lines, near.curves], [0, 99]);
});
