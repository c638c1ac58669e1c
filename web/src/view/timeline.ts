// The part of a run that the timeline shows.
import type { EventText, Timeline } from '../worker/api.ts';

export class TimelineView {
  // Nanoseconds.
  begin = 0;
  end: number;

  constructor(readonly data: Timeline) {
    this.end = Math.max(data.total, 1);
  }

  // Zooms about the middle, then moves by a share of what is shown.
  move(zoom: number, pan: number): void {
    const total = Math.max(this.data.total, 1);
    const length = Math.min(Math.max((this.end - this.begin) / zoom, 10), total);
    const middle = (this.begin + this.end) / 2 + pan * length;
    this.begin = Math.min(Math.max(middle - length / 2, 0), total - length);
    this.end = this.begin + length;
  }

  // Returns the event of a thread at a time, or the nearest within `near` nanoseconds.
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
