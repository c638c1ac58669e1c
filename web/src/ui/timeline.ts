// The timeline: a row for each thread, and the memory of outputs.
import { bytesText, duration } from '../data/text.ts';
import type { App } from './app.ts';

// Heights in pixels: the line of text at the top, the memory at the bottom, and a row at most.
const kTop = 18;
const kMemory = 26;
const kMaxRow = 26;

// Returns the height of a row in a canvas of this height.
function rowHeight(app: App, height: number): number {
  const rows = Math.max(app.timeline?.data.threads.length ?? 1, 1);
  return Math.min((height - kTop - kMemory) / rows, kMaxRow);
}

function draw(app: App, canvas: HTMLCanvasElement): void {
  const view = app.timeline;
  canvas.hidden = view === null;
  if (view === null) return;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  const ratio = window.devicePixelRatio;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const c = canvas.getContext('2d')!;
  c.scale(ratio, ratio);
  const { theme } = app;
  c.fillStyle = theme.background;
  c.fillRect(0, 0, width, height);
  const scale = width / (view.end - view.begin);
  const row = rowHeight(app, height);
  c.font = '11px system-ui, sans-serif';
  c.textBaseline = 'middle';

  const rowOf = view.rows.map((_, thread) => view.rows.indexOf(thread));
  // The end of the last rectangle in each row. Executions within the same pixel are drawn once.
  const drawn = new Float64Array(view.data.threads.length).fill(-1);
  for (const event of view.data.events) {
    if (event.end < view.begin || event.begin > view.end) continue;
    const x = (event.begin - view.begin) * scale;
    const right = (event.end - view.begin) * scale;
    if (right < drawn[event.thread]! + 0.5 && event.node !== app.selected) continue;
    drawn[event.thread] = Math.max(right, x + 1);
    const y = kTop + rowOf[event.thread]! * row;
    const isMarked = event.node >= 0 && app.marks?.nodes[event.node] === 1;
    c.fillStyle = event.node === app.selected && event.node >= 0 ? theme.accent
      : isMarked ? theme.mark : theme.edge;
    c.fillRect(x, y + 1, Math.max(right - x, 1), row - 2);
    const room = Math.floor((right - x - 6) / 6.2);
    if (room >= 4 && row >= 12) {
      c.fillStyle = theme.background;
      const name = event.name.slice(event.name.lastIndexOf('/') + 1);
      c.fillText(name.slice(0, room), x + 3, y + row / 2);
    }
  }

  if (view.mark !== null) {
    const x = (view.mark.begin - view.begin) * scale;
    const right = (view.mark.end - view.begin) * scale;
    c.strokeStyle = theme.mark;
    c.lineWidth = 2;
    c.strokeRect(x, kTop + 1, Math.max(right - x, 1), row * view.rows.length - 2);
  }
  c.fillStyle = theme.text;
  // Draws the line below the pinned rows.
  view.rows.forEach((thread, i) => {
    const isLast = view.isPinned(thread) && !view.isPinned(view.rows[i + 1] ?? -1);
    if (isLast) c.fillRect(0, kTop + (i + 1) * row - 1, width, 1);
  });
  c.fillText(`${duration(view.begin)} to ${duration(view.end)}`, 6, kTop / 2);
  c.textAlign = 'right';
  const { memory } = view.data;
  let most = 1;
  for (let i = 1; i < memory.length; i += 2) most = Math.max(most, memory[i]!);
  c.fillText(`outputs: up to ${bytesText(most)}`, width - 6, kTop / 2);
  c.fillStyle = theme.accent;
  for (let i = 0; i < memory.length; i += 2) {
    const x = (memory[i]! - view.begin) * scale;
    const right = ((memory[i + 2] ?? view.data.total) - view.begin) * scale;
    const h = (kMemory * memory[i + 1]!) / most;
    if (right >= 0 && x <= width) c.fillRect(x, height - h, Math.max(right - x, 0.5), h);
  }
}

export function listenToTimeline(app: App, canvas: HTMLCanvasElement): void {
  app.onChange(() => draw(app, canvas));
  new ResizeObserver(() => draw(app, canvas)).observe(canvas);
  let last = 0;
  let moved = 0;
  // The start of the range that a Shift-drag marks.
  let markFrom: number | null = null;
  // Returns the time at a place, or the nearby start or end of an event.
  const timeAt = (event: MouseEvent): number => {
    const view = app.timeline!;
    const box = canvas.getBoundingClientRect();
    const pixel = (view.end - view.begin) / box.width;
    return view.snap(view.begin + (event.clientX - box.left) * pixel, 6 * pixel);
  };
  canvas.addEventListener('pointerdown', (event) => {
    markFrom = event.shiftKey && app.timeline !== null ? timeAt(event) : null;
    last = event.clientX;
    moved = 0;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (event.buttons === 0) return;
    moved += Math.abs(event.clientX - last);
    if (markFrom !== null) app.markRange(markFrom, timeAt(event));
    else if (moved > 3) app.moveTimeline(1, (last - event.clientX) / canvas.clientWidth);
    last = event.clientX;
  });
  canvas.addEventListener('click', (event) => {
    const view = app.timeline;
    if (view === null || moved > 3) return;
    const box = canvas.getBoundingClientRect();
    const thread = view.rows[Math.floor((event.clientY - box.top - kTop) / rowHeight(app, box.height))];
    if (thread === undefined) return;
    const pixel = (view.end - view.begin) / box.width;
    const found = view.find(thread, view.begin + (event.clientX - box.left) * pixel, 4 * pixel);
    if (found === null) return;
    if (found.node >= 0) void app.select(found.node);
    else app.say(`${found.name}: ${duration(found.end - found.begin)}`);
  });
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    app.moveTimeline(Math.exp(-event.deltaY * 0.002), 0);
  }, { passive: false });
}
