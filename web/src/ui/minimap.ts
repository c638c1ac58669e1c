// The minimap: the whole graph in small, with a frame around the visible part.
import type { Theme } from '../draw/theme.ts';
import type { App } from './app.ts';

export class Minimap {
  private scale = 1;
  private left = 0;
  private top = 0;
  private readonly blocks = document.createElement('canvas');
  private version = -1;
  private theme: Theme | null = null;

  constructor(private readonly app: App, private readonly canvas: HTMLCanvasElement) {
    const move = (event: PointerEvent): void => {
      if (event.buttons === 0) return;
      const box = canvas.getBoundingClientRect();
      const x = (event.clientX - box.left - this.left) / this.scale;
      const y = (event.clientY - box.top - this.top) / this.scale;
      const { camera, width, height } = app;
      camera.set({ scale: camera.scale, x: width / 2 - x * camera.scale,
                   y: height / 2 - y * camera.scale });
    };
    canvas.addEventListener('pointerdown', move);
    canvas.addEventListener('pointermove', move);
    app.onDraw(() => this.draw());
  }

  // Draws the blocks. Called once for each state of the scopes and colours.
  private drawBlocks(): void {
    const { app, canvas, blocks } = this;
    const context = blocks.getContext('2d')!;
    blocks.width = canvas.width;
    blocks.height = canvas.height;
    context.fillStyle = app.theme.background;
    context.fillRect(0, 0, blocks.width, blocks.height);
    for (const { scene, at } of app.world.placed.values()) {
      const step = Math.ceil(scene.items.length / 5000);
      for (let i = 0; i < scene.items.length; i += step) {
        const id = scene.items[i]!.id;
        context.fillStyle = id < 0 && app.isOpen(~id) ? app.theme.scope : app.theme.edge;
        context.fillRect(
          this.left + this.scale * (at.x + at.scale * scene.x[i]!),
          this.top + this.scale * (at.y + at.scale * scene.y[i]!),
          Math.max(this.scale * at.scale * scene.w[i]!, 1),
          Math.max(this.scale * at.scale * scene.h[i]!, 1));
      }
    }
  }

  private draw(): void {
    const { app, canvas } = this;
    const context = canvas.getContext('2d');
    const root = app.world.placed.get(0);
    if (context === null || root === undefined) return;
    const { width, height } = canvas;
    const { scene } = root;
    this.scale = Math.min(width / Math.max(scene.width, 1), height / Math.max(scene.height, 1));
    this.left = (width - this.scale * scene.width) / 2;
    this.top = (height - this.scale * scene.height) / 2;
    if (this.version !== app.world.version || this.theme !== app.theme) {
      this.version = app.world.version;
      this.theme = app.theme;
      this.drawBlocks();
    }
    context.drawImage(this.blocks, 0, 0);
    const [x0, y0] = app.camera.toWorld(0, 0);
    const [x1, y1] = app.camera.toWorld(app.width, app.height);
    context.strokeStyle = app.theme.accent;
    context.lineWidth = 2;
    context.strokeRect(
      this.left + this.scale * x0, this.top + this.scale * y0,
      Math.max(this.scale * (x1 - x0), 3), Math.max(this.scale * (y1 - y0), 3));
  }
}
