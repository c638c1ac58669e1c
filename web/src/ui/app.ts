// App: the state of the page and its changes. Knows no DOM except the canvas.
import type { GraphJson } from '../data/format.ts';
import { duration, plural } from '../data/text.ts';
import type { EditNode } from '../edit/node.ts';
import { Session } from '../edit/session.ts';
import type { Description, EventText, Hit, Marks, Summary } from '../worker/api.ts';
import type { Client } from '../worker/channel.ts';
import type { Matcher } from '../worker/matcher.ts';
import { paint } from '../draw/painter.ts';
import { CanvasSurface, SvgSurface } from '../draw/surface.ts';
import { readTheme } from '../draw/theme.ts';
import type { Theme } from '../draw/theme.ts';
import { Camera } from '../view/camera.ts';
import { formatBookmark, parseBookmark } from '../view/bookmark.ts';
import { TimelineView } from '../view/timeline.ts';
import { World } from '../view/world.ts';
import { expressionOf } from '../model/search.ts';
import type { Scene } from '../scene/types.ts';

export interface SearchState {
  query: string;
  isBusy: boolean;
  hits: Hit[];
  count: number;
  error: string;
}

const kMaxHits = 200;
const kNoSearch: SearchState = { query: '', isBusy: false, hits: [], count: 0, error: '' };

export class App {
  readonly world = new World();
  readonly camera: Camera;
  summary: Summary | null = null;
  selected: number | null = null;
  // The blocks and scopes that edits apply to, if there are several, instead of the selected block.
  chosen: ReadonlySet<number> = new Set();
  description: Description | null = null;
  marks: Marks | null = null;
  // The call that followCall() started from, and the scope of the function.
  private call: { node: number; callee: number } | null = null;
  // The first end of a path.
  pathStart: number | null = null;
  search: SearchState = kNoSearch;
  // The recorded run; null if there is no run.
  timeline: TimelineView | null = null;
  // The edited graph; null on a page that only shows a graph.
  edit: Session | null = null;
  // A line from a pin to the pointer, or a rectangle around blocks, in screen coordinates.
  drag: { isBox: boolean; fromX: number; fromY: number; toX: number; toY: number } | null = null;
  // The pins where the drag may end, in world coordinates.
  fits: { x: number; y: number }[] = [];
  isFolded = false;
  isHelpOpen = false;
  // The last event as text, which assistive technology reads.
  message = '';
  theme: Theme;
  width = 1;
  height = 1;
  // The duration and the number of blocks of the last frame.
  frameMillis = 0;
  frameBlocks = 0;
  private isDirty = false;
  private readonly listeners: (() => void)[] = [];

  constructor(readonly client: Client, readonly matcher: Matcher, readonly canvas: HTMLCanvasElement) {
    this.camera = new Camera(() => this.draw());
    this.theme = readTheme();
  }

  // Calls `listener` after each state change.
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }
  changed(): void {
    for (const listener of this.listeners) listener();
    this.draw();
  }
  say(message: string): void {
    this.message = message;
    this.changed();
  }

  // ---- Drawing ----

  draw(): void {
    if (this.isDirty) return;
    this.isDirty = true;
    requestAnimationFrame(() => {
      this.isDirty = false;
      this.drawNow();
    });
  }

  private picture() {
    const { world, width, height, theme, selected, chosen, marks } = this;
    return { world, camera: this.camera.transform(), width, height, theme, selected, chosen, marks };
  }

  drawNow(): void {
    const begin = performance.now();
    const context = this.canvas.getContext('2d')!;
    const ratio = this.canvas.width / this.width;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const surface = new CanvasSurface(context);
    this.frameBlocks = paint(surface, this.picture());
    surface.finish();
    if (this.drag !== null) {
      const { isBox, fromX, fromY, toX, toY } = this.drag;
      context.strokeStyle = this.theme.accent;
      context.lineWidth = isBox ? 1 : 2;
      context.beginPath();
      if (isBox) {
        context.rect(fromX, fromY, toX - fromX, toY - fromY);
      } else {
        context.moveTo(fromX, fromY);
        context.lineTo(toX, toY);
        const { scale, x, y } = this.camera.transform();
        for (const fit of this.fits) {
          const [cx, cy] = [fit.x * scale + x, fit.y * scale + y];
          context.moveTo(cx + 6, cy);
          context.arc(cx, cy, 6, 0, 2 * Math.PI);
        }
      }
      context.stroke();
    }
    this.frameMillis = performance.now() - begin;
    for (const listener of this.drawListeners) listener();
  }
  private readonly drawListeners: (() => void)[] = [];
  onDraw(listener: () => void): void {
    this.drawListeners.push(listener);
  }

  resize(width: number, height: number, ratio: number): void {
    this.width = Math.max(width, 1);
    this.height = Math.max(height, 1);
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.drawNow();
  }

  restyle(): void {
    this.theme = readTheme();
    this.changed();
  }

  // Returns the visible picture as an SVG file.
  svg(): string {
    const surface = new SvgSurface();
    paint(surface, this.picture());
    return surface.finish(this.width, this.height, this.theme.background,
                          this.summary?.title ?? '');
  }

  // ---- Graphs and scopes ----

  async open(data: string, bookmark: string): Promise<void> {
    this.summary = await this.client.call('open', data);
    if (this.summary.edit !== null) {
      this.edit = new Session(this, this.summary.edit);
      const { generator } = this.summary;
      this.summary = { ...await this.client.call('replace', this.edit.first()), generator };
    }
    if (this.summary.runTime >= 0) {
      const timeline = await this.client.call('timeline');
      if (timeline !== null) this.timeline = new TimelineView(timeline);
    }
    await this.load(0);
    // The root may contain only one scope.
    for (const scope of await this.client.call('ancestors', ~this.summary.first)) {
      await this.load(scope);
    }
    await this.load(this.summary.first);
    this.showFirst();
    await this.restore(bookmark);
    this.changed();
    await this.edit?.refresh();
  }

  // Returns the nodes that an edit applies to, in the order of the graph: the nodes of the chosen
  // blocks and scopes, or of the selected one.
  editedNodes(): EditNode[] {
    const { edit, selected } = this;
    if (edit === null) return [];
    const ids = new Set<number>();
    const prefixes: string[] = [];
    for (const shown of this.chosen.size > 0 ? this.chosen : selected === null ? [] : [selected]) {
      const node = edit.nodeOf(shown);
      const path = shown < 0 ? this.pathOf(shown) : '';
      if (node !== null) ids.add(node.id);
      if (path !== '') prefixes.push(`${path}/`);
    }
    return edit.editor.nodes.filter((node) =>
      ids.has(node.id) || prefixes.some((prefix) => edit.pathOf(node).startsWith(prefix)));
  }

  // Returns the body that gets new blocks: the body of a node or scope, or the graph.
  bodyOf(id: number | null): number {
    if (this.edit === null || id === null) return 0;
    return id >= 0 ? (this.edit.nodeOf(id)?.body ?? 0) : this.edit.bodyOfScope(`${this.pathOf(id)}/`);
  }

  // Returns the scope that is the whole selection, "a/b/"; "" if the selection is not a single
  // scope.
  editedScope(): string {
    const [id, more] = this.chosen.size > 0 ? this.chosen : [this.selected];
    const path = id === null || id === undefined || more !== undefined ? '' : this.pathOf(id);
    return path === '' ? '' : `${path}/`;
  }

  // Shows another graph with the same scopes open and chosen. Selects nodes of the new graph.
  async reshow(graph: GraphJson, selected: number | null, chosen: number[], placed: () => void):
      Promise<void> {
    const chosenPaths = [...this.chosen].filter((id) => id < 0).map((id) => this.pathOf(id));
    const paths: string[] = [];
    for (const scope of this.world.placed.keys()) {
      if (scope !== 0) paths.push(await this.client.call('nameOf', ~scope));
    }
    const wasEmpty = this.summary?.nodes === 0;
    const generator = this.summary?.generator ?? '';
    const isMatching = this.matcher.isBusy;
    this.matcher.reset();
    const summary = { ...await this.client.call('replace', graph), generator };
    const timeline = summary.runTime >= 0 ? await this.client.call('timeline') : null;
    const options = { fold: this.isFolded };
    const scenes = [await this.client.call('scene', 0, options)];
    const open = new Set([0]);
    const ends: (number | null)[] = [selected];
    for (const path of paths) {
      const id = await this.client.call('find', path);
      ends.push(id !== null && id < 0 ? id : null);
    }
    for (const id of ends) {
      if (id === null) continue;
      const scopes = await this.client.call('ancestors', id);
      for (const scope of id < 0 ? [...scopes, ~id] : scopes) {
        if (open.has(scope)) continue;
        open.add(scope);
        scenes.push(await this.client.call('scene', scope, options));
      }
    }
    const all = new Set(chosen);
    for (const path of chosenPaths) {
      const id = await this.client.call('find', path);
      if (id !== null && id < 0) all.add(id);
    }
    const description = selected === null ? null : await this.client.call('describe', selected);
    // Updates everything at once.
    this.summary = summary;
    if (timeline === null) this.timeline = null;
    else if (this.timeline?.data.total !== timeline.total) this.timeline = new TimelineView(timeline);
    this.world.remove(0);
    for (const scene of scenes) this.world.add(scene);
    this.marks = null;
    this.pathStart = null;
    this.call = null;
    this.selected = selected;
    this.chosen = all;
    this.description = description;
    placed();
    // Repeats the search with the current names.
    if (isMatching) void this.find(this.search.query);
    if (wasEmpty) this.fitAll(false);
    const box = selected === null ? null : this.world.boxOf(selected);
    if (box !== null) this.camera.reveal(box, this.width, this.height, false);
    this.changed();
  }

  private numLoading = 0;
  private async load(scope: number): Promise<Scene | null> {
    if (this.world.placed.has(scope)) return this.world.placed.get(scope)!.scene;
    ++this.numLoading;
    try {
      const scene = await this.client.call('scene', scope, { fold: this.isFolded });
      this.world.add(scene);
      return scene;
    } finally {
      --this.numLoading;
    }
  }
  // Cancels everything in progress: scopes that are being opened, a search, a server call. Returns
  // true if anything was in progress.
  cancel(): boolean {
    if (this.numLoading > 0) {
      this.client.cancel('scene');
    } else if (this.search.isBusy) {
      this.stopSearch();
      this.search = { ...kNoSearch, query: this.search.query, error: 'The search is cancelled' };
      this.say('The search is cancelled');
    } else if (this.edit?.canCancel === true) {
      void this.edit.cancel();
    } else {
      return false;
    }
    return true;
  }

  isOpen(scope: number): boolean {
    return this.world.placed.has(scope);
  }

  async openScope(scope: number): Promise<void> {
    try {
      await this.load(scope);
    } catch (error) {
      this.say(`${this.titleOf(~scope)}: ${(error as Error).message}`);
      return;
    }
    this.say(`Opened ${this.titleOf(~scope)}`);
    const box = this.world.boxOf(~scope);
    if (box !== null) this.camera.fit(box, this.width, this.height, Infinity, this.isSmooth());
    this.keepBookmark();
  }

  closeScope(scope: number): void {
    if (scope === 0) return;
    this.world.remove(scope);
    this.keepBookmark();
    this.say(`Closed ${this.titleOf(~scope)}`);
  }

  closeAll(): void {
    for (const scope of [...this.world.placed.keys()]) if (scope !== 0) this.world.remove(scope);
    if (this.selected !== null && this.world.boxOf(this.selected) === null) this.clearSelection();
    this.keepBookmark();
    this.fitAll(true);
    this.say('Closed all scopes');
  }

  // Rebuilds all open scopes, with or without constants.
  async setFolded(isFolded: boolean): Promise<void> {
    const scenes: Scene[] = [];
    ++this.numLoading;
    try {
      for (const scope of this.world.placed.keys()) {
        scenes.push(await this.client.call('scene', scope, { fold: isFolded }));
      }
    } finally {
      --this.numLoading;
    }
    this.isFolded = isFolded;
    this.world.remove(0);
    for (const scene of scenes) this.world.add(scene);
    this.say(isFolded ? 'Constants are lines of their consumers' : 'Constants are blocks');
  }

  // Shows the whole graph, or its beginning if the whole graph would be unreadably small.
  private showFirst(): void {
    this.fitAll(false);
    const kReadable = 0.4;
    const { w, h } = this.world.bounds();
    const scale = Math.min(kReadable, (0.9 * this.height) / h);
    if (scale < 2 * this.camera.scale) return;
    const first = Math.min(w, (0.9 * this.width) / scale);
    this.camera.fit({ x: 0, y: 0, w: first, h }, this.width, this.height, scale, false);
  }

  fitAll(isSmooth: boolean): void {
    this.camera.fit(this.world.bounds(), this.width, this.height, 1.5,
                    isSmooth && this.isSmooth());
  }

  private isSmooth(): boolean {
    return !matchMedia('(prefers-reduced-motion: reduce)').matches;
  }

  // ---- Selection ----

  titleOf(id: number): string {
    const found = this.world.findItem(id);
    return found === null ? '' : found.placed.scene.items[found.item]!.title;
  }

  // Returns the path of a visible scope, or "".
  pathOf(id: number): string {
    const found = this.world.findItem(id);
    return found === null ? '' : found.placed.scene.items[found.item]!.path;
  }

  private setChosen(chosen: Iterable<number>): void {
    this.chosen = new Set(chosen);
    this.edit?.select(this.selected, this.chosen);
    const count = this.editedNodes().length;
    this.say(`${plural(count, 'block')} selected`);
  }
  // Adds a block or scope to the chosen ones, or removes it. The selected block is chosen first.
  choose(id: number | null): void {
    if (this.edit === null || id === null) {
      this.say('Select a block first');
      return;
    }
    const chosen = new Set(this.chosen);
    if (chosen.size === 0 && this.selected !== null) chosen.add(this.selected);
    if (id !== this.selected || this.chosen.size > 0) {
      if (!chosen.delete(id)) chosen.add(id);
    }
    this.setChosen(chosen);
  }
  // Chooses all blocks and scopes next to the selected one.
  chooseAll(): void {
    const found = this.selected === null ? null : this.world.findItem(this.selected);
    const placed = found?.placed ?? this.world.placed.get(this.summary?.first ?? 0);
    if (this.edit !== null) this.setChosen(placed?.scene.items.map((item) => item.id) ?? []);
  }
  // Adds the items that a screen rectangle touches to the chosen ones.
  chooseBox(x0: number, y0: number, x1: number, y1: number): void {
    const [left, top] = this.camera.toWorld(Math.min(x0, x1), Math.min(y0, y1));
    const [right, bottom] = this.camera.toWorld(Math.max(x0, x1), Math.max(y0, y1));
    this.setChosen([...this.chosen, ...this.world.within(left, top, right, bottom)]);
  }

  // Selects a node or scope, opens the scopes around it, and shows it.
  async select(id: number, isRevealed = true): Promise<void> {
    this.selected = id;
    this.edit?.select(id, this.chosen);
    if (this.world.findItem(id) === null) {
      for (const scope of await this.client.call('ancestors', id)) await this.load(scope);
    }
    const box = this.world.boxOf(id);
    if (isRevealed && box !== null) {
      this.camera.reveal(box, this.width, this.height, this.isSmooth());
    }
    this.changed();
    const description = await this.client.latest('describe', id);
    if (description === null || this.selected !== id) return;
    this.description = description;
    this.keepBookmark();
    this.changed();
  }

  clearSelection(): void {
    this.selected = null;
    this.chosen = new Set();
    this.edit?.select(null, []);
    this.description = null;
    this.marks = null;
    this.keepBookmark();
    this.changed();
  }

  // Selects the first producer or consumer.
  async follow(isBack: boolean): Promise<void> {
    if (this.selected === null) return;
    const d = await this.client.call('describe', this.selected);
    const next = isBack ? (d.inputs[0] ?? d.control[0])
      : d.outputs.flatMap((output) => output.consumers)[0];
    if (next === undefined) this.say(isBack ? 'No producer' : 'No consumer');
    else await this.select(next.node);
  }

  // Selects the item that is `step` places from the selected item in the order of the tree, or the
  // first or last item.
  async selectPage(step: number): Promise<void> {
    const found = this.selected === null ? null : this.world.findItem(this.selected);
    const scene = (found?.placed ?? this.world.placed.get(this.summary?.first ?? 0))?.scene;
    if (scene === undefined || scene.items.length === 0) return;
    const at = found === null ? (step > 0 ? -1 : 0) : found.item;
    const next = Math.min(Math.max(at + step, 0), scene.items.length - 1);
    await this.select(scene.items[next]!.id);
    this.say(`Block ${next + 1} of ${scene.items.length}`);
  }

  // Selects the next or previous item of the scene, from top to bottom and left to right.
  async selectBeside(step: number): Promise<void> {
    const found = this.selected === null ? null : this.world.findItem(this.selected);
    const scene = (found?.placed ?? this.world.placed.get(this.summary?.first ?? 0))?.scene;
    if (scene === undefined || scene.items.length === 0) return;
    const order = scene.items.map((_, i) => i)
      .sort((a, b) => scene.x[a]! - scene.x[b]! || scene.y[a]! - scene.y[b]!);
    const at = found === null ? (step > 0 ? -1 : 0) : order.indexOf(found.item);
    const next = order[(at + step + order.length) % order.length]!;
    await this.select(scene.items[next]!.id);
  }

  async selectParent(): Promise<void> {
    if (this.selected === null) return;
    const scopes = await this.client.call('ancestors', this.selected);
    const parent = scopes[scopes.length - 1];
    if (parent !== undefined && parent !== 0) await this.select(~parent);
    else this.clearSelection();
  }

  // Selects the function that the selected block calls, or the call that led to this function.
  async followCall(): Promise<void> {
    if (this.selected === null) {
      this.say('Select a block first');
      return;
    }
    const callees = this.selected < 0 ? [] : await this.client.call('callees', this.selected);
    if (callees.length > 0) {
      // Repeated calls go through the functions in turn.
      const last = this.call?.node === this.selected ? callees.indexOf(this.call.callee) : -1;
      const callee = callees[(last + 1) % callees.length]!;
      this.call = { node: this.selected, callee };
      await this.load(callee);
      await this.select(~callee);
      this.say(`Opened ${this.titleOf(~callee)}`);
    } else if (this.call !== null) {
      await this.select(this.call.node);
    } else {
      this.say('The block calls no function');
    }
  }

  async selectNotable(): Promise<void> {
    const next = await this.client.call('nextNotable', this.selected ?? -1);
    if (next < 0) this.say('Nothing is marked as a problem or change');
    else await this.select(next);
  }

  // Changes the part of the run that the timeline shows.
  moveTimeline(zoom: number, pan: number): void {
    if (this.timeline === null) {
      this.say('No run is recorded');
      return;
    }
    this.timeline.move(zoom, pan);
    this.changed();
  }

  // Measures a time range.
  markRange(from: number, to: number): void {
    if (this.timeline === null) return;
    const [begin, end] = [Math.min(from, to), Math.max(from, to)];
    this.timeline.mark = { begin, end };
    this.say(`${duration(end - begin)}, from ${duration(begin)} to ${duration(end)}`);
  }
  // Marks the time of the selected block, or the range from the marked block to it. Removes the
  // mark if the same block is marked.
  markTime(): void {
    const event = this.eventOfBlock();
    if (event === null) return;
    const mark = this.timeline!.mark;
    if (mark !== null && mark.begin === event.begin && mark.end === event.end) {
      this.timeline!.mark = null;
      this.say('The mark is removed');
    } else {
      this.markRange(Math.min(mark?.begin ?? Infinity, event.begin), Math.max(mark?.end ?? 0, event.end));
    }
  }
  pinThread(): void {
    const event = this.eventOfBlock();
    if (event === null) return;
    const isPinned = this.timeline!.pin(event.thread);
    this.say(`Thread ${this.timeline!.data.threads[event.thread]!} is ${isPinned ? 'pinned' : 'not pinned'}`);
  }
  // Returns the first execution of the selected block. Shows a message and returns null if there is
  // none.
  private eventOfBlock(): EventText | null {
    const event = this.timeline?.data.events.find(({ node }) => node >= 0 && node === this.selected);
    if (event !== undefined) return event;
    this.say(this.timeline === null ? 'No run is recorded' : 'Select a block that has run');
    return null;
  }

  // ---- Highlights ----

  async mark(kind: 'in' | 'out'): Promise<void> {
    if (this.selected === null || this.selected < 0) {
      this.say('Select a block first');
      return;
    }
    const marks = await this.client.latest('mark', kind, this.selected, -1);
    if (marks === null) return;
    this.marks = marks;
    this.say(`${marks.count} blocks in the fan-${kind}`);
  }

  async markCriticalPath(): Promise<void> {
    const marks = await this.client.call('criticalPath');
    if (marks.count === 0) {
      this.say('No run is recorded');
      return;
    }
    this.marks = marks;
    this.say(`${marks.count} blocks on the critical path`);
  }

  async selectFirstNan(): Promise<void> {
    const node = await this.client.call('firstNan');
    if (node < 0) this.say('No value is NaN');
    else await this.select(node);
  }

  startPath(): void {
    this.pathStart = this.selected !== null && this.selected >= 0 ? this.selected : null;
    this.say(this.pathStart === null ? 'Select a block first' : 'Path starts here');
  }

  async endPath(): Promise<void> {
    if (this.pathStart === null || this.selected === null || this.selected < 0) {
      this.say('Mark a start, then select the end');
      return;
    }
    const marks = await this.client.latest('mark', 'between', this.pathStart, this.selected);
    if (marks === null) return;
    this.marks = marks.count > 0 ? marks : null;
    this.say(marks.count > 0 ? `${marks.count} blocks on the paths` : 'There is no path');
  }

  clearMarks(): void {
    this.marks = null;
    this.say('Highlights are off');
  }

  // ---- Search ----

  private numSearches = 0;
  async find(query: string): Promise<void> {
    this.stopSearch();
    const number = this.numSearches;
    this.search = { ...this.search, query, isBusy: true, error: '' };
    this.changed();
    let result: SearchState = kNoSearch;
    try {
      const found = await this.findAll(query);
      result = { ...kNoSearch, ...found, query };
    } catch (error) {
      result = { ...kNoSearch, query, error: (error as Error).message };
    }
    // Another search may have started.
    if (number !== this.numSearches) return;
    this.search = result;
    this.changed();
  }
  private async findAll(query: string): Promise<{ hits: Hit[]; count: number }> {
    const expression = expressionOf(query);
    if (expression === null) return this.client.call('search', query, kMaxHits);
    const found = await this.matcher.find(expression, kMaxHits);
    return found === null ? kNoSearch
      : { hits: await this.client.call('hits', found.nodes), count: found.count };
  }
  private stopSearch(): void {
    ++this.numSearches;
    this.client.cancel('search');
    this.matcher.stop();
  }

  // ---- Bookmarks ----

  private async keepBookmark(): Promise<void> {
    const name = this.selected === null ? '' : await this.client.call('nameOf', this.selected);
    const open: string[] = [];
    for (const scope of this.world.placed.keys()) {
      if (scope !== 0) open.push(await this.client.call('nameOf', ~scope));
    }
    const hash = formatBookmark({ name, open });
    history.replaceState(null, '', hash === '' ? ' ' : hash);
  }

  async restore(hash: string): Promise<void> {
    const { name, open } = parseBookmark(hash);
    for (const path of open) {
      const id = await this.client.call('find', path);
      if (id === null || id >= 0) continue;
      for (const scope of await this.client.call('ancestors', id)) await this.load(scope);
      await this.load(~id);
    }
    if (name === '') return;
    const id = await this.client.call('find', name);
    if (id === null) this.say(`There is no ${name}`);
    else await this.select(id);
  }
}
