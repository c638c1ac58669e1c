// The camera: the part of the world that the screen shows.
import type { Box, Transform } from './world.ts';

export class Camera {
  scale = 1;
  x = 0;
  y = 0;
  private animation = 0;

  constructor(private readonly onChange: () => void) {}

  transform(): Transform {
    return { scale: this.scale, x: this.x, y: this.y };
  }
  toWorld(x: number, y: number): [number, number] {
    return [(x - this.x) / this.scale, (y - this.y) / this.scale];
  }

  set(to: Transform): void {
    cancelAnimationFrame(this.animation);
    Object.assign(this, to);
    this.onChange();
  }

  pan(dx: number, dy: number): void {
    this.set({ scale: this.scale, x: this.x + dx, y: this.y + dy });
  }

  // Zooms around the screen point (x, y).
  zoom(factor: number, x: number, y: number): void {
    const scale = Math.min(Math.max(this.scale * factor, 1e-5), 1e6);
    const f = scale / this.scale;
    this.set({ scale, x: x - (x - this.x) * f, y: y - (y - this.y) * f });
  }

  // Centers a box on the screen, with a scale of at most `maxScale`.
  fit(box: Box, width: number, height: number, maxScale: number, isSmooth: boolean): void {
    const pad = 0.9;
    const scale = Math.min(
      (pad * width) / Math.max(box.w, 1e-9), (pad * height) / Math.max(box.h, 1e-9), maxScale);
    this.moveTo({
      scale,
      x: width / 2 - scale * (box.x + box.w / 2),
      y: height / 2 - scale * (box.y + box.h / 2),
    }, isSmooth);
  }

  // Moves a box into the screen if it is outside.
  reveal(box: Box, width: number, height: number, isSmooth: boolean): void {
    const w = box.w * this.scale;
    const h = box.h * this.scale;
    const left = box.x * this.scale + this.x;
    const top = box.y * this.scale + this.y;
    const isReadable = h > 24 && w <= width && h <= height;
    if (isReadable && left >= 0 && top >= 0 && left + w <= width && top + h <= height) return;
    if (isReadable) {
      this.moveTo({ scale: this.scale, x: this.x + width / 2 - left - w / 2,
                    y: this.y + height / 2 - top - h / 2 }, isSmooth);
    } else {
      this.fit({ x: box.x - box.w, y: box.y - box.h, w: 3 * box.w, h: 3 * box.h }, width, height,
               Infinity, isSmooth);
    }
  }

  private moveTo(to: Transform, isSmooth: boolean): void {
    cancelAnimationFrame(this.animation);
    if (!isSmooth) {
      this.set(to);
      return;
    }
    const from = this.transform();
    const begin = performance.now();
    const kMillis = 200;
    const step = (now: number): void => {
      const t = Math.min((now - begin) / kMillis, 1);
      const s = t * t * (3 - 2 * t);
      // The scale changes at a constant logarithmic rate around the fixed point.
      const scale = from.scale * (to.scale / from.scale) ** s;
      const part = to.scale === from.scale ? s : (scale - from.scale) / (to.scale - from.scale);
      this.scale = scale;
      this.x = from.x + (to.x - from.x) * part;
      this.y = from.y + (to.y - from.y) * part;
      this.onChange();
      if (t < 1) this.animation = requestAnimationFrame(step);
    };
    this.animation = requestAnimationFrame(step);
  }
}
