// World: the open scenes, their places, and the items at a place.
import type { Scene } from '../scene/types.ts';

// Scales a point first, then moves it.
export interface Transform {
  scale: number;
  x: number;
  y: number;
}

export interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface PinPlace {
  node: number;
  isOutput: boolean;
  index: number;
  x: number;
  y: number;
}

export interface Placed {
  scene: Scene;
  at: Transform;
  // The item of each node or scope.
  index: Map<number, number>;
  // The left, top, right and bottom bounds of each edge.
  bounds: Float32Array;
}

export function edgeBounds(scene: Scene): Float32Array {
  const bounds = new Float32Array(4 * scene.from.length);
  for (let e = 0; e < scene.from.length; ++e) {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let p = 2 * scene.start[e]!; p < 2 * scene.start[e + 1]!; p += 2) {
      left = Math.min(left, scene.points[p]!);
      right = Math.max(right, scene.points[p]!);
      top = Math.min(top, scene.points[p + 1]!);
      bottom = Math.max(bottom, scene.points[p + 1]!);
    }
    // The curve of a backward edge extends beyond its ends.
    bounds.set([left - 30, top, right + 30, bottom], 4 * e);
  }
  return bounds;
}

export class World {
  readonly placed = new Map<number, Placed>();
  // Increases when a scope opens or closes.
  version = 0;

  add(scene: Scene): void {
    ++this.version;
    const index = new Map<number, number>();
    scene.items.forEach((item, i) => index.set(item.id, i));
    this.placed.set(scene.scope,
                    { scene, at: { scale: 1, x: 0, y: 0 }, index, bounds: edgeBounds(scene) });
    this.place();
  }

  // Closes a scope and all scopes within it.
  remove(scope: number): void {
    const placed = this.placed.get(scope);
    if (placed === undefined) return;
    ++this.version;
    this.placed.delete(scope);
    for (const item of placed.scene.items) if (item.id < 0) this.remove(~item.id);
  }

  // Computes the places of the scenes, starting from the root.
  private place(): void {
    const work = [0];
    while (work.length > 0) {
      const placed = this.placed.get(work.pop()!);
      if (placed === undefined) continue;
      const { scene, at } = placed;
      scene.items.forEach((item, i) => {
        const child = item.id < 0 ? this.placed.get(~item.id) : undefined;
        if (child === undefined) return;
        child.at = {
          scale: at.scale * child.scene.scale,
          x: at.x + at.scale * (scene.x[i]! + child.scene.left),
          y: at.y + at.scale * (scene.y[i]! + child.scene.top),
        };
        work.push(~item.id);
      });
    }
  }

  // Returns the scene and the item that show a node or scope.
  findItem(id: number): { placed: Placed; item: number } | null {
    for (const placed of this.placed.values()) {
      const item = placed.index.get(id);
      if (item !== undefined) return { placed, item };
    }
    return null;
  }

  // Returns the box of an item in world coordinates.
  boxOf(id: number): Box | null {
    const found = this.findItem(id);
    if (found === null) return null;
    const { scene, at } = found.placed;
    const i = found.item;
    return {
      x: at.x + at.scale * scene.x[i]!,
      y: at.y + at.scale * scene.y[i]!,
      w: at.scale * scene.w[i]!,
      h: at.scale * scene.h[i]!,
    };
  }

  bounds(): Box {
    const root = this.placed.get(0)?.scene;
    return { x: 0, y: 0, w: root?.width ?? 1, h: root?.height ?? 1 };
  }

  // Returns the innermost item at a world point; null if there is none.
  hit(x: number, y: number): number | null {
    let found: number | null = null;
    for (let scope: number | undefined = 0; scope !== undefined;) {
      const placed: Placed | undefined = this.placed.get(scope);
      if (placed === undefined) break;
      scope = undefined;
      const { scene, at } = placed;
      const px = (x - at.x) / at.scale;
      const py = (y - at.y) / at.scale;
      for (let i = 0; i < scene.items.length; ++i) {
        if (px < scene.x[i]! || py < scene.y[i]! || px > scene.x[i]! + scene.w[i]! ||
            py > scene.y[i]! + scene.h[i]!) continue;
        found = scene.items[i]!.id;
        if (found < 0) scope = ~found;
        break;
      }
    }
    return found;
  }

  // Returns the blocks and closed scopes that a world rectangle touches.
  within(left: number, top: number, right: number, bottom: number): number[] {
    const found: number[] = [];
    for (const { scene, at } of this.placed.values()) {
      for (let i = 0; i < scene.items.length; ++i) {
        const { id } = scene.items[i]!;
        const x = at.x + at.scale * scene.x[i]!;
        const y = at.y + at.scale * scene.y[i]!;
        if (x <= right && y <= bottom && x + at.scale * scene.w[i]! >= left &&
            y + at.scale * scene.h[i]! >= top && !(id < 0 && this.placed.has(~id))) found.push(id);
      }
    }
    return found;
  }

  // Returns the input or output pins of the blocks that a world rectangle touches.
  pinsWithin(left: number, top: number, right: number, bottom: number, isOutput: boolean): PinPlace[] {
    const found: PinPlace[] = [];
    for (const { scene, at } of this.placed.values()) {
      for (let i = 0; i < scene.items.length; ++i) {
        const item = scene.items[i]!;
        if (item.id < 0) continue;
        const x = at.x + at.scale * scene.x[i]!;
        const y = at.y + at.scale * scene.y[i]!;
        const w = at.scale * scene.w[i]!;
        if (x > right || y > bottom || x + w < left || y + at.scale * scene.h[i]! < top) continue;
        (isOutput ? item.outputs : item.inputs).forEach((pin, index) => {
          if (pin.name.startsWith('…')) return;
          found.push({ node: item.id, isOutput, index, x: isOutput ? x + w : x, y: y + at.scale * pin.y });
        });
      }
    }
    return found;
  }

  // Returns the nearest pin within `radius` of a world point, and its place.
  hitPin(x: number, y: number, radius: number): PinPlace | null {
    let found: PinPlace | null = null;
    let nearest = radius;
    for (const { scene, at } of this.placed.values()) {
      for (let i = 0; i < scene.items.length; ++i) {
        const item = scene.items[i]!;
        if (item.id < 0) continue;
        const left = at.x + at.scale * scene.x[i]!;
        const top = at.y + at.scale * scene.y[i]!;
        const right = left + at.scale * scene.w[i]!;
        if (x < left - radius || x > right + radius || y < top ||
            y > top + at.scale * scene.h[i]!) continue;
        for (const isOutput of [false, true]) {
          (isOutput ? item.outputs : item.inputs).forEach((pin, index) => {
            const px = isOutput ? right : left;
            const py = top + at.scale * pin.y;
            const distance = Math.hypot(px - x, py - y);
            // The last of many pins stands for several pins.
            if (distance > nearest || pin.name.startsWith('…')) return;
            nearest = distance;
            found = { node: item.id, isOutput, index, x: px, y: py };
          });
        }
      }
    }
    return found;
  }
}
