// The part of a run that the timeline shows.
import type { EventText, Timeline } from '../worker/api.ts';

export class TimelineView {
  // In nanoseconds.
  begin = 0;
  end: number;
  // A measured time range.
  mark: { begin: number; end: number } | null = null;
  // Threads in the order of their rows. Pinned threads come first.
  rows: number[];
  private numPinned = 0;

  constructor(readonly data: Timeline) {
    this.end = Math.max(data.total, 1);
    this.rows = data.threads.map((_, thread) => thread);
  }

  private inOrder: EventText[] | null = null;
  // Returns the events ordered by start time.
  sorted(): readonly EventText[] {
    this.inOrder ??= [...this.data.events].sort((a, b) => a.begin - b.begin || a.end - b.end);
    return this.inOrder;
  }

  // Pins the row of a thread to the top, below other pinned rows, or unpins it. Returns true if the
  // row is now pinned.
  pin(thread: number): boolean {
    const pinned = this.rows.slice(0, this.numPinned);
    const isPinned = !pinned.includes(thread);
    const top = isPinned ? [...pinned, thread] : pinned.filter((other) => other !== thread);
    const rest = this.data.threads.map((_, other) => other).filter((other) => !top.includes(other));
    this.numPinned = top.length;
    this.rows = [...top, ...rest];
    return isPinned;
  }
  isPinned(thread: number): boolean {
    return this.rows.indexOf(thread) < this.numPinned;
  }

  // Returns the nearest start or end of an event within `near` nanoseconds, otherwise `time`.
  snap(time: number, near: number): number {
    let found = time;
    let best = near;
    for (const event of this.data.events) {
      for (const edge of [event.begin, event.end]) {
        const distance = Math.abs(edge - time);
        if (distance > best) continue;
        best = distance;
        found = edge;
      }
    }
    return found;
  }

  // Zooms around the middle, then pans by a fraction of the visible range.
  move(zoom: number, pan: number): void {
    const total = Math.max(this.data.total, 1);
    const length = Math.min(Math.max((this.end - this.begin) / zoom, 10), total);
    const middle = (this.begin + this.end) / 2 + pan * length;
    this.begin = Math.min(Math.max(middle - length / 2, 0), total - length);
    this.end = this.begin + length;
  }

  // Returns the event of a thread at a time, or the nearest event within `near` nanoseconds.
  find(thread: number, time: number, near: number): EventText | null {
    let found: EventText | null = null;
    let best = near;
    for (const event of this.data.events) {
      if (event.thread !== thread) continue;
      const distance = Math.max(event.begin - time, time - event.end, 0);
      if (distance <= best) {
        best = distance;
        found = event;
      }
    }
    return found;
  }
}
