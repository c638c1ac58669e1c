// Mouse, pen and touch input on the picture.
import type { PinPlace } from '../view/world.ts';
import type { App } from './app.ts';

// Movements shorter than this are clicks.
const kClick = 4;

// The distance within which a pointer hits a pin.
const kPinRadius = 9;

// Connects a pin with another pin, a block, or a new block.
function drop(app: App, from: PinPlace, to: PinPlace | null, block: number | null): void {
  const session = app.edit;
  const node = session?.nodeOf(from.node) ?? null;
  if (session === null || node === null) return;
  const end = { id: node.id, index: from.index };
  const other = session.nodeOf(to?.node ?? block);
  if (to !== null && other !== null) {
    const target = { id: other.id, index: to.index };
    if (to.isOutput === from.isOutput) app.say('An output goes to an input');
    else if (from.isOutput) session.connect(end, target);
    else session.connect(target, end);
  } else if (other === null && (block === null || (block < 0 && app.isOpen(~block)))) {
    // Dropped on empty space, perhaps within an open scope.
    const path = block === null ? '' : `${app.pathOf(block)}/`;
    session.openPalette({ ...end, isOutput: from.isOutput }, node.body, path);
  } else if (other !== null && from.isOutput && other !== node) {
    session.from = end;
    session.openConnection(other);
  } else if (other === null) {
    app.say('Open the scope to connect a block in it');
  }
}

// Returns the places of the visible pins that a pin may be connected to.
function findFits(app: App, from: PinPlace): { x: number; y: number }[] {
  const session = app.edit;
  const node = session?.nodeOf(from.node) ?? null;
  if (session === null || node === null) return [];
  const [left, top] = app.camera.toWorld(0, 0);
  const [right, bottom] = app.camera.toWorld(app.width, app.height);
  // Limits the number of pins. So many pins are too small to be seen.
  const pins = app.world.pinsWithin(left, top, right, bottom, !from.isOutput).slice(0, 2000);
  const ids = new Map(pins.map((pin) => [pin.node, session.nodeOf(pin.node)?.id ?? -1]));
  const fitting = new Set(session.editor
    .fitting({ id: node.id, index: from.index }, from.isOutput, new Set(ids.values()))
    .map((end) => `${end.id}:${end.index}`));
  return pins.filter((pin) => fitting.has(`${ids.get(pin.node)!}:${pin.index}`));
}

export function listenToPointer(app: App, focus: () => void): void {
  const { canvas } = app;
  const pointers = new Map<number, { x: number; y: number }>();
  let moved = 0;

  const place = (event: PointerEvent | WheelEvent | MouseEvent): { x: number; y: number } => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const hit = (event: MouseEvent): number | null => {
    const { x, y } = place(event);
    return app.world.hit(...app.camera.toWorld(x, y));
  };

  // The pin where a drag started; null if the drag pans.
  let pin: PinPlace | null = null;
  // True if the drag is a rectangle around blocks.
  let isBox = false;
  const pinAt = (event: MouseEvent): PinPlace | null => {
    const { x, y } = place(event);
    return app.world.hitPin(...app.camera.toWorld(x, y), kPinRadius / app.camera.scale);
  };

  canvas.addEventListener('pointerdown', (event) => {
    pointers.set(event.pointerId, place(event));
    canvas.setPointerCapture(event.pointerId);
    if (pointers.size === 1) moved = 0;
    isBox = app.edit !== null && pointers.size === 1 && event.shiftKey;
    pin = app.edit !== null && pointers.size === 1 && !isBox ? pinAt(event) : null;
    focus();
  });
  canvas.addEventListener('pointermove', (event) => {
    const before = pointers.get(event.pointerId);
    if (before === undefined) return;
    const now = place(event);
    moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (isBox) {
      const from = app.drag ?? { fromX: before.x, fromY: before.y };
      app.drag = { isBox, fromX: from.fromX, fromY: from.fromY, toX: now.x, toY: now.y };
      app.draw();
    } else if (pin !== null) {
      const { scale, x, y } = app.camera.transform();
      if (app.drag === null) app.fits = findFits(app, pin);
      app.drag = {
        isBox, fromX: pin.x * scale + x, fromY: pin.y * scale + y, toX: now.x, toY: now.y,
      };
      app.draw();
    } else if (pointers.size === 2) {
      // Two fingers pan and zoom.
      const other = [...pointers].find(([id]) => id !== event.pointerId)![1];
      const distance = (p: { x: number; y: number }): number =>
        Math.max(Math.hypot(p.x - other.x, p.y - other.y), 1);
      app.camera.zoom(distance(now) / distance(before), other.x, other.y);
    } else if (moved >= kClick) {
      app.camera.pan(now.x - before.x, now.y - before.y);
    }
    pointers.set(event.pointerId, now);
  });
  const release = (event: PointerEvent): void => {
    pointers.delete(event.pointerId);
  };
  canvas.addEventListener('pointerup', (event) => {
    release(event);
    if (pin !== null && moved >= kClick) drop(app, pin, pinAt(event), hit(event));
    if (isBox && app.drag !== null && moved >= kClick) {
      const { fromX, fromY, toX, toY } = app.drag;
      app.chooseBox(fromX, fromY, toX, toY);
    }
    isBox = false;
    pin = null;
    app.drag = null;
    app.fits = [];
    app.draw();
  });
  canvas.addEventListener('pointercancel', (event) => {
    release(event);
    isBox = false;
    pin = null;
    app.drag = null;
    app.fits = [];
    app.draw();
  });

  canvas.addEventListener('click', (event) => {
    if (moved >= kClick) return;
    const id = hit(event);
    if (event.shiftKey && app.edit !== null) {
      if (id !== null) app.choose(id);
      return;
    }
    if (id === null) {
      app.clearSelection();
    } else {
      app.chosen = new Set();
      void app.select(id, false);
    }
  });
  canvas.addEventListener('dblclick', (event) => {
    const id = hit(event);
    if (id === null || id >= 0) return;
    if (app.isOpen(~id)) app.closeScope(~id);
    else void app.openScope(~id);
  });
  // Dropped files become feeds and constants.
  canvas.addEventListener('dragover', (event) => {
    if (app.edit !== null) event.preventDefault();
  });
  canvas.addEventListener('drop', (event) => {
    const file = event.dataTransfer?.files[0];
    if (app.edit === null || file === undefined) return;
    event.preventDefault();
    const id = hit(event);
    void app.edit.drop(app.edit.nodeOf(id), file, app.bodyOf(id));
  });
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    const { x, y } = place(event);
    const lines = event.deltaMode === 0 ? 1 : 16;
    if (event.shiftKey) app.camera.pan(-event.deltaY * lines - event.deltaX * lines, 0);
    else app.camera.zoom(Math.exp(-event.deltaY * lines * 0.002), x, y);
  }, { passive: false });
}
