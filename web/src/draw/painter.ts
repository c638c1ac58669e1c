// Draws the visible part of the open scenes, in three levels of detail.
import { duration } from '../data/text.ts';
import { Flag, kHeader, kLineHeight, kPinHeight } from '../scene/types.ts';
import type { Item, Scene } from '../scene/types.ts';
import type { Marks } from '../worker/api.ts';
import type { Placed, Transform, World } from '../view/world.ts';
import type { Surface } from './surface.ts';
import { heatColor } from './theme.ts';
import type { Theme } from './theme.ts';

export interface Picture {
  world: World;
  camera: Transform;
  width: number;
  height: number;
  theme: Theme;
  selected: number | null;
  chosen: ReadonlySet<number>;
  // Highlighted blocks.
  marks: Marks | null;
}

// Blocks show pins, with text of 6 pixels, at this scale or above.
const kDetailScale = 0.6;
// Edges show types, with text of 7 pixels, at this scale or above.
const kTypeScale = 0.78;
// Blocks show a title at this scale or above.
const kTitleScale = 0.2;
// The largest numbers of visible edges and small blocks that are all drawn. Above these limits,
// only every second, third, ... is drawn, plus at most kMaxSpecial that stand out.
const kMaxEdges = 10000;
const kMaxSmall = 20000;
const kMaxSpecial = 4000;

// Edges shorter than this many pixels are drawn as lines.
const kStraight = 12;

function fitText(text: string, size: number, width: number): string {
  const fits = Math.floor(width / (size * 0.56));
  if (text.length <= fits) return text;
  return fits < 2 ? '' : text.slice(0, fits - 1) + '…';
}

const kChangeMarks = ['', '+', '−', '~'];

// Returns at most `most` elements of a list, evenly spaced.
function sample<T>(list: readonly T[], most: number): readonly T[] {
  const step = Math.ceil(list.length / most);
  return step <= 1 ? list : list.filter((_, k) => k % step === 0);
}

class Painter {
  private blocks = 0;

  constructor(private readonly surface: Surface, private readonly picture: Picture) {}

  paint(): number {
    const { camera, width, height, theme } = this.picture;
    this.surface.rect(0, 0, width, height, { fill: theme.background });
    const root = this.picture.world.placed.get(0);
    if (root !== undefined) this.paintScene(root, camera);
    return this.blocks;
  }

  private isMarked(id: number): boolean {
    const { marks } = this.picture;
    if (marks === null) return false;
    return (id < 0 ? marks.scopes[~id] : marks.nodes[id]) === 1;
  }

  private paintScene(placed: Placed, camera: Transform): void {
    const { scene, at } = placed;
    const scale = camera.scale * at.scale;
    const to: Transform = {
      scale,
      x: camera.x + camera.scale * at.x,
      y: camera.y + camera.scale * at.y,
    };
    // The visible part of the scene.
    const left = -to.x / scale;
    const top = -to.y / scale;
    const right = (this.picture.width - to.x) / scale;
    const bottom = (this.picture.height - to.y) / scale;
    const seen: number[] = [];
    for (let i = 0; i < scene.items.length; ++i) {
      if (scene.x[i]! <= right && scene.y[i]! <= bottom && scene.x[i]! + scene.w[i]! >= left &&
          scene.y[i]! + scene.h[i]! >= top) seen.push(i);
    }
    const open = seen.filter((i) => this.isOpen(scene.items[i]!, scene.w[i]! * scale));
    for (const i of open) this.paintFrame(scene, i, to);
    this.surface.layer();
    this.paintEdges(placed, to, left, top, right, bottom);
    for (const i of open) {
      const child = this.picture.world.placed.get(~scene.items[i]!.id)!;
      this.paintScene(child, camera);
    }
    const isFrame = new Set(open);
    const closed = seen.filter((i) => !isFrame.has(i));
    const paint = (i: number): void =>
      this.paintItem(scene.items[i]!, to.x + scale * scene.x[i]!, to.y + scale * scene.y[i]!,
                     scale * scene.w[i]!, scale * scene.h[i]!, scale);
    const step = scale < kTitleScale ? Math.ceil(closed.length / kMaxSmall) : 1;
    if (step <= 1) {
      for (const i of closed) paint(i);
    } else {
      const special: number[] = [];
      for (let k = 0; k < closed.length; ++k) {
        const i = closed[k]!;
        if (this.standsOut(scene.items[i]!)) special.push(i);
        else if (k % step === 0) paint(i);
      }
      for (const i of sample(special, kMaxSpecial)) paint(i);
      const selected = special.find((i) => scene.items[i]!.id === this.picture.selected);
      if (selected !== undefined) paint(selected);
    }
    this.blocks += closed.length;
  }

  // An open scope that is small on the screen is drawn as closed.
  private isOpen(item: Item, width: number): boolean {
    return item.id < 0 && width > 40 && this.picture.world.placed.has(~item.id);
  }

  private paintEdges(placed: Placed, to: Transform, left: number, top: number, right: number,
                     bottom: number): void {
    const { scene, bounds } = placed;
    const { theme, selected, marks } = this.picture;
    const seen: number[] = [];
    for (let e = 0; e < scene.from.length; ++e) {
      if (bounds[4 * e]! <= right && bounds[4 * e + 1]! <= bottom && bounds[4 * e + 2]! >= left &&
          bounds[4 * e + 3]! >= top) seen.push(e);
    }
    const step = Math.ceil(seen.length / kMaxEdges);
    const idAt = (item: number): number => (item < 0 ? NaN : scene.items[item]!.id);
    const special: number[] = [];
    const plain: number[] = [];
    const control: number[] = [];
    for (let k = 0; k < seen.length; ++k) {
      const e = seen[k]!;
      const from = idAt(scene.from[e]!);
      const target = idAt(scene.to[e]!);
      const isPath = marks !== null && (Number.isNaN(from) || this.isMarked(from)) &&
        (Number.isNaN(target) || this.isMarked(target));
      if (from === selected || target === selected || isPath) special.push(e);
      else if (k % step === 0) (scene.output[e]! < 0 ? control : plain).push(e);
    }
    const width = Math.min(Math.max(1.4 * to.scale, 0.4), 2);
    for (const [edges, dashed] of [[plain, false], [control, true]] as const) {
      for (const e of edges) this.addCurve(scene, e, to);
      this.surface.strokePath(theme.edge, width, dashed);
    }
    for (const e of sample(special, kMaxSpecial)) {
      this.addCurve(scene, e, to);
      this.surface.strokePath(theme.accent, Math.max(2 * width, 1.5), scene.output[e]! < 0);
    }
    if (to.scale >= kTypeScale) {
      for (const e of seen) this.paintType(scene, e, to);
    }
  }

  private addCurve(scene: Scene, e: number, to: Transform): void {
    const { points, start } = scene;
    let p = 2 * start[e]!;
    let x = to.x + to.scale * points[p]!;
    let y = to.y + to.scale * points[p + 1]!;
    this.surface.moveTo(x, y);
    for (p += 2; p < 2 * start[e + 1]!; p += 2) {
      const nextX = to.x + to.scale * points[p]!;
      const nextY = to.y + to.scale * points[p + 1]!;
      // A short edge looks the same as a straight line.
      if (nextX >= x && Math.abs(nextX - x) + Math.abs(nextY - y) < kStraight) {
        this.surface.lineTo(nextX, nextY);
        x = nextX;
        y = nextY;
        continue;
      }
      // The curve is horizontal at both ends.
      const bend = nextX >= x ? (nextX - x) / 2 : 40 * to.scale;
      this.surface.curveTo(x + bend, y, nextX - bend, nextY, nextX, nextY);
      x = nextX;
      y = nextY;
    }
  }

  // Writes the type and shape on the edge if there is room.
  private paintType(scene: Scene, e: number, to: Transform): void {
    const text = scene.types[scene.type[e]!]!;
    if (text === '') return;
    const { points, start } = scene;
    const p = 2 * start[e + 1]! - 4;
    const size = 9 * to.scale;
    const room = to.scale * (points[p + 2]! - points[p]!);
    const shown = fitText(text, size, room - 8);
    if (shown.length < Math.min(text.length, 6)) return;
    this.surface.text(
      shown, to.x + to.scale * (points[p]! + points[p + 2]!) / 2,
      to.y + to.scale * ((points[p + 1]! + points[p + 3]!) / 2 - 6),
      { color: this.picture.theme.soft, size, align: 'center' });
  }

  private fill(item: Item): string {
    const { theme } = this.picture;
    if (item.change === 1) return theme.added;
    if (item.change === 2) return theme.removed;
    if (item.change === 3) return theme.changed;
    if (item.time >= 0) return heatColor(theme, item.heat);
    if (item.flags & Flag.kConst) return theme.constant;
    return item.id < 0 ? theme.scope : theme.block;
  }

  private standsOut(item: Item): boolean {
    const { selected, chosen } = this.picture;
    return item.id < 0 || item.change > 0 || item.id === selected || chosen.has(item.id) ||
      (item.flags & (Flag.kProblem | Flag.kNan)) !== 0 || this.isMarked(item.id);
  }
  private stroke(item: Item): { stroke: string; width: number } {
    const { theme, selected, chosen } = this.picture;
    if (item.id === selected) return { stroke: theme.accent, width: 3 };
    if (chosen.has(item.id)) return { stroke: theme.accent, width: 2 };
    if (this.isMarked(item.id)) return { stroke: theme.mark, width: 2.5 };
    if (item.flags & (Flag.kProblem | Flag.kNan)) return { stroke: theme.problem, width: 2 };
    return { stroke: item.id < 0 ? theme.scopeLine : theme.line, width: 1 };
  }

  // Draws the frame and title of an open scope.
  private paintFrame(scene: Scene, i: number, to: Transform): void {
    const { theme } = this.picture;
    const item = scene.items[i]!;
    const x = to.x + to.scale * scene.x[i]!;
    const y = to.y + to.scale * scene.y[i]!;
    const w = to.scale * scene.w[i]!;
    const h = to.scale * scene.h[i]!;
    this.surface.rect(x, y, w, h, { fill: theme.scope, radius: 6 * to.scale, ...this.stroke(item) });
    const size = Math.min(13 * to.scale, 16);
    if (size < 5) return;
    this.surface.text(fitText(item.title, size, w - 12), x + 6, y + 8 + size / 2,
                      { color: theme.text, size, bold: true });
  }

  private paintItem(item: Item, x: number, y: number, w: number, h: number, scale: number): void {
    const { theme } = this.picture;
    const fill = this.fill(item);
    if (scale < kTitleScale) {
      // At this scale, only blocks that stand out have a border.
      const [shownW, shownH] = [Math.max(w, 1), Math.max(h, 1)];
      if (this.standsOut(item)) {
        this.surface.rect(x, y, shownW, shownH, { fill, ...this.stroke(item) });
      } else {
        this.surface.bar(x, y, shownW, shownH, fill);
      }
      return;
    }
    const isRemoved = item.change === 2;
    this.surface.rect(x, y, w, h,
                      { fill, radius: 5 * scale, dashed: isRemoved, ...this.stroke(item) });
    const mark = (item.flags & Flag.kNan ? 'NaN ' : '') + (item.flags & Flag.kProblem ? '!' : '') +
      (item.flags & Flag.kUnknownShape ? '?' : '') + kChangeMarks[item.change]!;
    const markWidth = mark === '' ? 0 : (6 * mark.length + 6) * scale;
    const inner = w - 12 * scale - markWidth;
    const size = (item.flags & Flag.kConst ? 11 : 13) * scale;
    this.surface.text(fitText(item.title, size, inner), x + 7 * scale, y + 11 * scale,
                      { color: theme.text, size, bold: !(item.flags & Flag.kConst) });
    if (mark !== '') {
      this.surface.text(mark, x + w - 6 * scale, y + 11 * scale,
                        { color: theme.text, size: 12 * scale, bold: true, align: 'right' });
    }
    const second = item.flags & Flag.kConst ? (item.lines[0] ?? item.subtitle) : item.subtitle;
    const hasTime = item.time >= 0 && !(item.flags & Flag.kConst);
    const time = hasTime ? duration(item.time) : '';
    const timeWidth = hasTime ? (6.2 * time.length + 8) * scale : 0;
    this.surface.text(fitText(second, 10.5 * scale, w - 12 * scale - timeWidth), x + 7 * scale,
                      y + 25 * scale,
                      { color: hasTime ? theme.text : theme.soft, size: 10.5 * scale });
    this.surface.text(time, x + w - 6 * scale, y + 25 * scale,
                      { color: theme.text, size: 10.5 * scale, align: 'right' });
    if (scale >= kDetailScale) this.paintDetails(item, x, y, w, scale);
  }

  private paintDetails(item: Item, x: number, y: number, w: number, scale: number): void {
    const { theme } = this.picture;
    const size = 10 * scale;
    const isConst = (item.flags & Flag.kConst) !== 0;
    const half = item.outputs.length === 0 || item.inputs.length === 0 ? 1 : 0.55;
    for (const pin of item.inputs) {
      this.surface.circle(x, y + pin.y * scale, 3 * scale, theme.edge);
      this.surface.text(fitText(pin.name, size, w * half - 12 * scale), x + 8 * scale,
                        y + pin.y * scale, { color: theme.text, size });
    }
    for (const pin of item.outputs) {
      this.surface.circle(x + w, y + pin.y * scale, 3 * scale, theme.edge);
      if (isConst) continue;
      this.surface.text(fitText(pin.name, size, w * half - 12 * scale), x + w - 8 * scale,
                        y + pin.y * scale, { color: theme.text, size, align: 'right' });
    }
    if (isConst) return;
    const top = kHeader + Math.max(item.inputs.length, item.outputs.length) * kPinHeight;
    item.lines.forEach((line, i) => {
      this.surface.text(fitText(line, size, w - 14 * scale), x + 7 * scale,
                        y + (top + (i + 0.5) * kLineHeight) * scale, { color: theme.soft, size });
    });
  }
}

// Paints the picture. Returns the number of visible blocks.
export function paint(surface: Surface, picture: Picture): number {
  return new Painter(surface, picture).paint();
}
