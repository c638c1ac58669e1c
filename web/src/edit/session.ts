// Session: the graph that the page edits, and the server's answers about it. Tells the page to show
// them.
import type { EditJson, GraphJson, RunJson } from '../data/format.ts';
import { call } from './api.ts';
import type { Feed, ImageRequest, SentGraph } from './api.ts';
import { displayGraph } from './display.ts';
import type { Checked } from './display.ts';
import { Editor } from './editor.ts';
import { kNoFeed } from './feed.ts';
import type { FeedField } from './feed.ts';
import type { End } from './editor.ts';
import { endOf, Library } from './library.ts';
import type { Pin } from './library.ts';
import { fieldText, setInTable, tensorTable } from './fields.ts';
import { formatInput, graphText, parseInput, parseNodes } from './node.ts';
import type { EditNode } from './node.ts';
import { isNpy, tensorOfNpy, toBase64 } from './npy.ts';
import { shorten } from '../data/text.ts';

// The dialog above the picture.
export type Dialog =
  // Blocks to add. The new block is connected to `end`, and is placed in a scope of the body:
  // "layer1/", or "".
  | { kind: 'palette'; end: (End & { isOutput: boolean; type: string }) | null; body: number; scope: string }
  // The inputs of a block that the marked output can be connected to.
  | { kind: 'connect'; to: number }
  | { kind: 'gradients'; of: string; wrt: string; body: number }
  // The scope that blocks are moved into.
  | { kind: 'scope'; ids: number[]; from: string }
  | { kind: 'functions' }
  // The new function that blocks are moved into.
  | { kind: 'function'; ids: number[]; name: string }
  | { kind: 'text'; title: string; text: string; file: string };

// The largest file for a feed or constant: its base64 text fits in a request.
const kMaxFileBytes = 32 * 1024 * 1024;
const kMaxName = 200;

// Returns the scope that shows the body of a function.
function scopeOfFunction(name: string): string {
  return `ƒ ${name}/`;
}


// Shifts the nodes of a run to their places among all nodes.
function runAt(run: RunJson, first: number): RunJson {
  // The node is the first of the six numbers of an event.
  const events = run.events.map((value, i) => (i % 6 === 0 && value >= 0 ? value + first : value));
  return { ...run, events, outputs: run.outputs.map((output) => ({ ...output, n: output.n + first })) };
}

// The interface of the page that a session uses.
export interface Host {
  // Shows a graph. `selected` and `chosen` are its nodes. Calls `placed` when the picture shows the
  // graph; until then, block numbers refer to the previous graph.
  reshow(graph: GraphJson, selected: number | null, chosen: number[], placed: () => void):
    Promise<void>;
  say(message: string): void;
  changed(): void;
}

export class Session {
  readonly editor: Editor;
  file: string;
  dialog: Dialog | null = null;
  // The output where a connection starts.
  from: End | null = null;
  isBusy = false;
  private shown: readonly EditNode[] = [];
  private checked: {
    nodes: readonly EditNode[];
    functions: Editor['functionNames'];
    result: Checked;
  } | null = null;
  private run: { nodes: readonly EditNode[]; feeds: Editor['feeds']; result: RunJson } | null = null;
  private readonly hasServer: boolean;
  private readonly base: number;
  private readonly page: number;
  // The file that the last save refused to overwrite, or "".
  private overwritten = '';
  // Aborts the call in progress if possible, and the check in progress.
  private aborting: AbortController | null = null;
  private checking: AbortController | null = null;
  private isRunning = false;
  // The version that was saved last.
  private saved = 0;
  private clipboard = '';
  private refreshing: Promise<void> | null = null;
  private isStale = false;
  private selectedId: number | null = null;
  private chosenIds: number[] = [];

  constructor(private readonly host: Host, edit: EditJson) {
    this.editor = new Editor(new Library(edit.ops), edit.nodes, edit.rest, edit.functions, edit.library);
    this.file = edit.file;
    this.hasServer = edit.server;
    this.base = edit.base;
    this.page = edit.page;
  }

  get isServed(): boolean {
    return this.hasServer;
  }
  // True if the graph has unsaved changes.
  get isUnsaved(): boolean {
    return this.saved !== this.editor.version;
  }
  private sent(): SentGraph {
    return {
      base: this.base, page: this.page, nodes: this.editor.items(), functions: this.editor.functionItems(),
    };
  }
  // Returns the request member that selects a body.
  private ofBody(body: number): { function?: number } {
    return body === 0 ? {} : { function: this.editor.bodies.indexOf(body) };
  }
  // Returns the node of a block in the picture.
  nodeOf(shown: number | null): EditNode | null {
    const node = shown === null || shown < 0 ? undefined : this.shown[shown];
    return node === undefined ? null : this.editor.get(node.id);
  }
  // Returns the body that a scope of the picture ("ƒ name/layer1/") belongs to; 0 for scopes of the
  // graph.
  bodyOfScope(path: string): number {
    let body = 0;
    // If the names of functions begin alike, the longest match wins.
    for (const of of this.editor.bodies) {
      const name = this.editor.functionOf(of);
      const isLonger = body === 0 || name.length > this.editor.functionOf(body).length;
      if (isLonger && path.startsWith(scopeOfFunction(name))) body = of;
    }
    return body;
  }
  // Returns the path of a node in the picture.
  pathOf(node: EditNode): string {
    return node.body === 0 ? node.name
      : scopeOfFunction(this.editor.functionOf(node.body)) + node.name;
  }
  // Converts a scope of the picture to a scope of its body: "layer1/".
  private localScope(path: string): string {
    const body = this.bodyOfScope(path);
    const local = body === 0 ? path : path.slice(scopeOfFunction(this.editor.functionOf(body)).length);
    // A loop is a scope of names, or has the name of its frame in quotes.
    return local.replace(/⟳ "(?:[^"\\]|\\.)*"\//g, '').replaceAll('⟳ ', '');
  }

  // ---- Showing ----

  // Returns the graph for the first display.
  first(): GraphJson {
    this.shown = [...this.editor.nodes];
    return this.display();
  }
  private display(): GraphJson {
    const nodes = this.editor.nodes;
    // Facts about other nodes do not apply to these nodes.
    const isSame = (of: readonly EditNode[] | undefined): boolean =>
      of !== undefined && of.length === nodes.length && of.every((node, i) => node === nodes[i]);
    const isChecked = isSame(this.checked?.nodes) && this.checked!.functions === this.editor.functionNames;
    const checked = isChecked ? this.checked!.result : null;
    const isRun = isSame(this.run?.nodes) && this.run!.feeds === this.editor.feeds;
    const run = isRun ? this.run!.result : null;
    return displayGraph(this.editor, this.file, checked, run);
  }

  // Shows the current graph, then the server's answer about it. Selects a node.
  refresh(select: number | null = this.selectedId): Promise<void> {
    this.selectedId = select;
    this.isStale = true;
    this.checking?.abort();
    this.refreshing ??= this.refreshAll();
    return this.refreshing;
  }
  // Resolves when the picture shows the current graph and the server's answer about it.
  async refreshed(): Promise<void> {
    await this.refreshing;
  }
  private async refreshAll(): Promise<void> {
    try {
      while (this.isStale) {
        this.isStale = false;
        await this.show();
        await this.check();
      }
    } finally {
      // Cleared here, so that no call slips in after the last check of isStale.
      this.refreshing = null;
    }
  }
  private async show(): Promise<void> {
    for (;;) {
      const nodes = [...this.editor.nodes];
      const selected = this.selectedId;
      const at = selected === null ? -1 : this.editor.indexOf(selected);
      const chosen = this.chosenIds.map((id) => this.editor.indexOf(id)).filter((i) => i >= 0);
      let seen = selected;
      await this.host.reshow(this.display(), at < 0 ? null : at, chosen, () => {
        this.shown = nodes;
        seen = this.selectedId;
      });
      // Another block was selected before the picture changed.
      if (seen === selected || this.isStale) return;
    }
  }
  private async check(): Promise<void> {
    if (!this.hasServer) return;
    const nodes = [...this.editor.nodes];
    const functions = this.editor.functionNames;
    // Changed feeds affect no shape, so the last check is still valid.
    const known = this.checked?.nodes;
    if (known?.length === nodes.length && known.every((node, i) => node === nodes[i]) &&
        this.checked!.functions === functions) {
      return;
    }
    const checking = new AbortController();
    this.checking = checking;
    try {
      const result = await call('check', this.sent(), {}, checking.signal);
      if (result.types.length !== nodes.length) throw new Error('the answer is about another graph');
      this.checked = { nodes, functions, result };
    } catch (error) {
      // An edit starts another check.
      if (!this.isStale) {
        this.host.say(checking.signal.aborted ? 'The check is cancelled' : (error as Error).message);
      }
      return;
    } finally {
      this.checking = null;
    }
    if (!this.isStale) await this.show();
    const problem = this.checked.result.problems.find(([at]) => nodes[at]!.id === this.selectedId);
    if (problem !== undefined) this.host.say(`${nodes[problem[0]]!.name}: ${problem[1]}`);
  }
  // Records which blocks are selected, so that they stay selected.
  select(shown: number | null, chosen: Iterable<number>): void {
    this.selectedId = this.nodeOf(shown)?.id ?? null;
    this.chosenIds = [...chosen].flatMap((id) => this.nodeOf(id)?.id ?? []);
  }

  // ---- Edits ----

  // Makes an edit and shows it, or shows why it is invalid. Returns true if the edit was made.
  do(edit: () => { select?: number | null; choose?: number[]; say?: string } | void): boolean {
    try {
      const done = edit() ?? {};
      if (done.choose !== undefined) this.chosenIds = done.choose;
      void this.refresh(done.select === undefined ? this.selectedId : done.select);
      this.host.say(done.say ?? this.editor.undoTitle ?? '');
      return true;
    } catch (error) {
      this.host.say((error as Error).message);
      return false;
    }
  }

  undo(): void {
    const title = this.editor.undo();
    this.host.say(title === null ? 'Nothing to undo' : `Undone: ${title}`);
    if (title !== null) void this.refresh();
  }
  redo(): void {
    const title = this.editor.redo();
    this.host.say(title === null ? 'Nothing to redo' : `Redone: ${title}`);
    if (title !== null) void this.refresh();
  }

  // Adds a block. Also connects it, in the same step, if the palette was opened at a pin.
  add(op: string): void {
    const { end, body, scope } = this.dialog?.kind === 'palette' ? this.dialog : { end: null, body: 0, scope: '' };
    this.close();
    this.do(() => this.editor.together(() => {
      // Arguments and results of a function are not in a scope.
      const isEnd = body > 0 && endOf(op) !== '';
      const name = scope === '' || isEnd ? '' : this.editor.freeName(scope + op, body);
      const node = this.editor.add(op, name, {}, body);
      const reason = end === null ? '' : this.attach(node, end);
      return { select: node.id, say: `Added ${node.name}${reason === '' ? '' : `, not connected: ${reason}`}` };
    }));
  }
  // Connects a new block to a pin. A producer takes the type of the pin. Returns the reason if it
  // does not fit, otherwise "".
  private attach(node: EditNode, end: End & { isOutput: boolean; type: string }): string {
    const { editor } = this;
    const pins = end.isOutput ? editor.library.inputs(node) : editor.library.outputs(node);
    let reason = 'it has no pin for it';
    for (const pin of pins) {
      try {
        editor.together(() => {
          if (end.isOutput) {
            editor.connect(end, { id: node.id, index: pin.index }, pin.isNew);
            return;
          }
          const attrs = editor.library.typing(node, pin, end.type);
          if (attrs === null) throw new Error(`'${pin.name}' cannot be ${end.type}`);
          for (const [name, value] of Object.entries(attrs)) editor.setAttr(node.id, name, value);
          editor.connect({ id: node.id, index: pin.index }, end);
        });
        return '';
      } catch (error) {
        reason = (error as Error).message;
      }
    }
    return reason;
  }

  // Marks the next output of a block as the start of a connection.
  startConnection(node: EditNode): void {
    const pins = this.editor.library.outputs(node);
    if (pins.length === 0) {
      this.host.say(`${node.name} has no outputs`);
      return;
    }
    const last = this.from?.id === node.id ? pins.findIndex((pin) => pin.index === this.from!.index) : -1;
    const pin = pins[(last + 1) % pins.length]!;
    this.from = { id: node.id, index: pin.index };
    const type = this.editor.library.typeOf(node, pin);
    this.host.say(`Connect from ${node.name}, ${pin.name}${type === '' ? '' : ` (${type})`}`);
  }
  openConnection(node: EditNode): void {
    if (this.from === null || this.editor.get(this.from.id) === null) {
      this.host.say('Mark an output first: Connect from here');
      return;
    }
    this.open({ kind: 'connect', to: node.id });
  }

  connect(from: End, to: End, isNew = false): boolean {
    const isMade = this.do(() => this.editor.connect(from, to, isNew));
    return isMade;
  }
  // Connects an input to the output with this name; "" disconnects the input.
  connectByName(node: EditNode, pin: Pin, text: string): void {
    this.do(() => {
      if (text === '') {
        if (!pin.isNew) this.editor.disconnect(node.id, pin.index);
        return;
      }
      const { node: name, output } = parseInput(text);
      const source = this.editor.find(name, node.body);
      if (source === null) throw new Error(`there is no block '${name}'`);
      this.editor.connect({ id: source.id, index: output }, { id: node.id, index: pin.index }, pin.isNew);
    });
  }
  connectControl(node: EditNode, name: string): void {
    this.do(() => {
      const source = this.editor.find(name, node.body);
      if (source === null) throw new Error(`there is no block '${name}'`);
      this.editor.connectControl(source.id, node.id);
    });
  }

  // ---- Clipboard ----

  // Returns the blocks as the text of a graph.
  copy(nodes: readonly EditNode[]): string {
    if (nodes.some((node) => Object.values(node.attrs).includes(null))) {
      this.host.say('A constant of the file is too large to be copied');
      return '';
    }
    this.clipboard = graphText(nodes);
    this.host.say(`Copied ${this.title(nodes)}`);
    return this.clipboard;
  }
  paste(body: number, text: string = this.clipboard): void {
    this.do(() => {
      const nodes = parseNodes(text);
      if (nodes.length === 0) throw new Error('The clipboard has no nodes in text format');
      return this.added(this.editor.paste(nodes, 'Paste', body), 'Pasted');
    });
  }
  // Duplicates blocks. The copies read the same inputs.
  duplicate(nodes: readonly EditNode[]): void {
    this.do(() => {
      if (nodes.some((node) => Object.values(node.attrs).includes(null))) {
        throw new Error('A constant of the file is too large to be copied');
      }
      const { body } = nodes[0]!;
      if (nodes.some((node) => node.body !== body)) throw new Error('the blocks are in several functions');
      const added = this.editor.paste(parseNodes(graphText(nodes)), `Duplicate ${this.title(nodes)}`, body);
      return this.added(added, 'Added');
    });
  }
  private added(nodes: readonly EditNode[], verb: string):
      { select: number; choose: number[]; say: string } {
    return {
      select: nodes[nodes.length - 1]!.id,
      choose: nodes.length === 1 ? [] : nodes.map((node) => node.id),
      say: `${verb} ${this.title(nodes)}`,
    };
  }
  private title(nodes: readonly EditNode[]): string {
    return nodes.length === 1 ? nodes[0]!.name : `${nodes.length} blocks`;
  }

  // ---- Scopes ----

  // `scope` is the selected scope, "a/b/", or "". Blocks are moved out of it or, if it is "", out
  // of the innermost scope that contains them all.
  openScope(nodes: readonly EditNode[], scope: string): void {
    const ids = nodes.map((node) => node.id);
    const from = scope === '' ? this.editor.commonScope(ids) : this.localScope(scope);
    this.open({ kind: 'scope', ids, from });
  }
  moveTo(ids: number[], from: string, to: string): void {
    this.close();
    this.do(() => {
      this.editor.moveTo(ids, from, to);
      return { select: ids[0]! };
    });
  }
  // Moves blocks to the enclosing scope.
  dissolve(nodes: readonly EditNode[], scope: string): void {
    this.do(() => {
      const ids = nodes.map((node) => node.id);
      const from = scope === '' ? this.editor.commonScope(ids) : this.localScope(scope);
      if (from === '') throw new Error('The blocks are in no common scope');
      this.editor.moveTo(ids, from, from.slice(0, from.slice(0, -1).lastIndexOf('/') + 1));
      return { select: ids[0]! };
    });
  }

  // ---- Functions ----

  // Returns true if the function was added.
  addFunction(name: string): boolean {
    return this.do(() => {
      const body = this.editor.addFunction(name);
      return { select: this.editor.nodesOf(body)[0]!.id };
    });
  }
  openExtraction(nodes: readonly EditNode[]): void {
    this.open({ kind: 'function', ids: nodes.map((node) => node.id), name: this.editor.freeFunction('function') });
  }
  // Returns true if the function was created.
  extractFunction(ids: number[], name: string): boolean {
    return this.do(() => ({ select: this.editor.extractFunction(ids, name).id, choose: [] }));
  }
  renameFunction(body: number, name: string): void {
    this.do(() => this.editor.renameFunction(body, name));
  }
  removeFunction(body: number): void {
    this.do(() => this.editor.removeFunction(body));
  }

  // ---- Files ----

  // Returns the graph as the text of a file. Shows a message and returns null if the page does not
  // have all of it.
  textFile(): string | null {
    if (this.editor.hasAllText) {
      this.saved = this.editor.version;
      return this.editor.text();
    }
    this.host.say(this.hasServer ? 'Large constants or unknown fields of the file are with the server: save there'
      : 'The file has fields that this page does not know: edit it with `gradflow edit`');
    return null;
  }
  async save(): Promise<void> {
    await this.ask('save', async () => {
      const { version } = this.editor;
      const name = this.file;
      const overwrite = this.overwritten === name;
      this.overwritten = '';
      const { file, bytes } = await call('save', this.sent(), { file: name, overwrite })
        .catch((error: Error) => {
          // Saving again confirms the overwrite.
          if (error.message.includes('save again to overwrite it')) this.overwritten = name;
          throw error;
        });
      this.saved = version;
      this.host.say(`Saved ${file}: ${bytes} bytes`);
    });
  }

  // True if a call can be cancelled.
  get canCancel(): boolean {
    return this.isRunning || this.aborting !== null || this.checking !== null;
  }
  // Cancels the call in progress, which then fails. The server stops a run; for other calls, the
  // page drops the answer.
  async cancel(): Promise<void> {
    if (this.isRunning) {
      await call('cancel', null, {}).catch((error: Error) => this.host.say(error.message));
    } else if (this.canCancel) {
      this.aborting?.abort();
      this.checking?.abort();
    } else {
      this.host.say('Nothing runs');
    }
  }
  // Calls the server, one call at a time, and shows errors. Cancelling makes the server stop a run,
  // or the page drop the answer of another call. A save cannot be cancelled.
  private async ask(kind: 'run' | 'save' | 'other', what: (signal: AbortSignal) => Promise<void>):
      Promise<void> {
    if (!this.hasServer) {
      this.host.say('This needs the server of `gradflow edit`');
      return;
    }
    if (this.isBusy) {
      this.host.say('The server is busy');
      return;
    }
    this.isBusy = true;
    this.host.changed();
    const aborting = new AbortController();
    if (kind === 'run') this.isRunning = true;
    if (kind === 'other') this.aborting = aborting;
    try {
      await what(aborting.signal);
    } catch (error) {
      this.host.say((error as Error).message);
    } finally {
      this.isBusy = false;
      this.isRunning = false;
      this.aborting = null;
      this.host.changed();
    }
  }

  // ---- Runs ----

  private feedsOfRun(body: number): Feed[] {
    const feeds: Feed[] = [];
    for (const [id, field] of this.editor.feeds) {
      const node = this.editor.get(id);
      if (node === null || node.body !== body || field.kind === 'none') continue;
      if (field.kind === 'file') {
        if (field.bytes === '') throw new Error(`${node.name}: choose a file`);
        feeds.push(field.isImage ? { name: node.name, ...this.imageRequest(node, field.bytes) }
          : { name: node.name, npy: field.bytes });
        continue;
      }
      const type = this.editor.library.outputType(node, 0);
      const words = field.shape.replace(/[[\]]/g, ' ').split(/[\s,]+/).filter((word) => word !== '');
      const shape = words.map(Number);
      if (shape.some((size) => !Number.isInteger(size) || size < 0)) {
        throw new Error(`${node.name}: expected a shape such as [2,3], found '${field.shape}'`);
      }
      feeds.push(field.kind === 'values' ? { name: node.name, type, shape, values: field.values }
        : { name: node.name, type, shape, random: field.seed });
    }
    return feeds;
  }
  // Returns the feed that a person entered for a node, or a suitable default.
  feedOf(node: EditNode): FeedField {
    const known = this.editor.feeds.get(node.id);
    if (known !== undefined) return known;
    const shape = fieldText('shape', this.editor.library.value(node, 'shape') ?? '') ?? '';
    return { ...kNoFeed, shape: shape === '?' ? '[]' : shape.replaceAll('?', '1') };
  }
  setFeed(node: EditNode, field: FeedField): void {
    this.do(() => this.editor.setFeed(node.id, field));
  }

  // Returns the bytes of a file. Shows a message and returns null if the file is too large for the
  // server.
  private async read(file: File): Promise<Uint8Array | null> {
    if (file.size <= kMaxFileBytes) return new Uint8Array(await file.arrayBuffer());
    this.host.say(`${shorten(file.name, kMaxName)} has ${file.size} bytes, but at most ${kMaxFileBytes} fit`);
    return null;
  }
  // Feeds a file: an array or an image.
  async feedFile(node: EditNode, file: File): Promise<void> {
    const bytes = await this.read(file);
    if (bytes === null) return;
    this.setFeed(node, {
      ...this.feedOf(node), kind: 'file', file: shorten(file.name, kMaxName), bytes: toBase64(bytes),
      isImage: !isNpy(bytes),
    });
    this.host.say(`${shorten(node.name, kMaxName)} is fed from ${shorten(file.name, kMaxName)}`);
  }

  // Returns the request to decode an image to the type and shape of a node's output.
  private imageRequest(node: EditNode, image: string): ImageRequest {
    const dims = (fieldText('shape', this.editor.library.value(node, 'shape') ?? '') ?? '?')
      .replace(/[[\]]/g, '').split(',');
    const last = Number(dims[dims.length - 1]);
    return {
      image, type: this.editor.library.outputType(node, 0) || 'uint8',
      channels: dims.length >= 3 && [1, 3, 4].includes(last) ? last : 0, batch: dims.length === 4,
    };
  }
  // Calls `set` with the constant made from a file.
  private async readConstant(file: File, type: string, set: (value: string) => void): Promise<void> {
    const bytes = await this.read(file);
    if (bytes === null) return;
    if (isNpy(bytes)) {
      this.do(() => set(tensorOfNpy(bytes)));
      return;
    }
    await this.ask('other', async (signal) => {
      const image = toBase64(bytes);
      const { value } = await call('image', null, { image, type, channels: 0, batch: false }, signal);
      this.do(() => set(value));
    });
  }
  // Sets an element in the table of a constant.
  setElement(id: number, attr: string, row: number, column: number, text: string): void {
    this.do(() => {
      const table = tensorTable(this.editor.get(id)?.attrs[attr] ?? '');
      if (table !== null) this.editor.setAttr(id, attr, setInTable(table, row, column, text));
    });
  }
  // Sets an attribute to an array or an image. An image gets the type of the output, or uint8.
  async setToFile(node: EditNode, name: string, file: File): Promise<void> {
    const type = this.editor.library.outputType(node, 0) || 'uint8';
    await this.readConstant(file, type, (value) => this.editor.setAttr(node.id, name, value));
  }
  // Handles a file that was dropped on a block, or on empty space.
  async drop(node: EditNode | null, file: File, body: number): Promise<void> {
    if (node === null) {
      const name = file.name.replace(/\.\w*$/, '').replace(/[^A-Za-z0-9_.-]/g, '_').replace(/^[^A-Za-z0-9]+/, '');
      await this.readConstant(file, 'uint8', (value) => {
        const dtype = /dtype: (DT_\w+)/.exec(value)?.[1] ?? 'DT_UINT8';
        const free = this.editor.freeName(name === '' ? 'Const' : name, body);
        this.selectedId = this.editor.add('Const', free, { value, dtype: `type: ${dtype}` }, body).id;
      });
    } else if (node.op === 'Const') {
      await this.setToFile(node, 'value', file);
    } else if (this.editor.library.outputs(node).length > 0) {
      await this.feedFile(node, file);
    } else {
      this.host.say(`${node.name} has no output to be fed`);
    }
  }

  // Runs the graph, or only the nodes that a node needs. A node of a function runs in the body
  // alone.
  async runGraph(until: EditNode | null): Promise<void> {
    await this.ask('run', async () => {
      const nodes = [...this.editor.nodes];
      const { feeds } = this.editor;
      const body = until?.body ?? 0;
      const isResult = until?.end === 'result' || until?.end === 'control';
      const name = isResult ? parseInput(until.inputs[0] ?? '').node : until?.name;
      if (name === '') throw new Error(`${until!.name} is not connected`);
      const { run } = await call('run', this.sent(), {
        feeds: this.feedsOfRun(body), until: name === undefined ? [] : [name], ...this.ofBody(body),
      });
      const first = nodes.findIndex((node) => node.body === body);
      this.run = { nodes, feeds, result: runAt(run, Math.max(first, 0)) };
      await this.refresh();
      this.host.say('Run');
    });
  }

  async differentiate(of: string, wrt: string[], body: number): Promise<void> {
    this.close();
    await this.ask('other', async (signal) => {
      const { nodes, gradients } =
        await call('gradients', this.sent(), { of, wrt, ...this.ofBody(body) }, signal);
      const found = gradients.filter((name) => name !== null);
      const first = found[0] === undefined ? null : parseInput(found[0]).node;
      this.do(() => {
        this.editor.paste(nodes, `Differentiate ${of}`, body);
        const list = wrt.map((name, i) => `${name}: ${gradients[i] ?? 'no gradient'}`);
        return {
          select: first === null ? null : (this.editor.find(first, body)?.id ?? null),
          say: `Gradients: ${list.join(', ')}`,
        };
      });
    });
  }
  openGradients(node: EditNode | null): void {
    const { library } = this.editor;
    const body = node?.body ?? 0;
    const isFloat = (of: EditNode): boolean =>
      /^(float|double|half|bfloat16|complex64|complex128)$/.test(library.outputType(of, 0));
    const wrt = this.editor.nodesOf(body)
      .filter((n) => (n.op.startsWith('Placeholder') || n.end === 'arg') && isFloat(n)).map((n) => n.name);
    // The gradient of a result is the gradient of the tensor that it reads.
    const of = node?.end === 'result' ? (node.inputs[0] ?? '') : (node?.name ?? '');
    this.open({ kind: 'gradients', of, wrt: wrt.join(', '), body });
  }

  async cpp(): Promise<void> {
    await this.ask('other', async (signal) => {
      const { text } = await call('cpp', this.sent(), {}, signal);
      this.open({ kind: 'text', title: 'C++', text, file: this.file.replace(/\.pb(txt)?$/, '') + '.cc' });
    });
  }

  // ---- Dialogs ----

  open(dialog: Dialog): void {
    this.dialog = dialog;
    this.host.changed();
  }
  close(): void {
    this.dialog = null;
    this.host.changed();
  }
  // `body` is the body of a new unconnected block. `path` is the scope of the picture that gets the
  // block, "layer1/", or "".
  openPalette(end: (End & { isOutput: boolean }) | null, body: number, path = ''): void {
    let type = '';
    let place = body;
    if (end !== null) {
      place = this.editor.get(end.id)!.body;
      const node = this.editor.get(end.id)!;
      const { library } = this.editor;
      const pins = end.isOutput ? library.outputs(node) : library.inputs(node);
      const pin = pins.find((p) => p.index === end.index);
      type = pin === undefined ? '' : library.typeOf(node, pin);
    }
    const scope = path !== '' && this.bodyOfScope(path) === place ? this.localScope(path) : '';
    this.open({ kind: 'palette', end: end === null ? null : { ...end, type }, body: place, scope });
  }
  // Returns the inputs of a block, each with the reason if the marked output does not fit.
  choices(to: number): { pin: Pin; source: string; reason: string }[] {
    const node = this.editor.get(to);
    if (node === null || this.from === null) return [];
    return this.editor.library.inputs(node).map((pin) => {
      const fit = this.editor.check(this.from!, { id: to, index: pin.index }, pin);
      return {
        pin, source: pin.isNew ? '' : (node.inputs[pin.index] ?? ''),
        reason: typeof fit === 'string' ? fit : '',
      };
    });
  }
  fromName(): string {
    const node = this.from === null ? null : this.editor.get(this.from.id);
    return node === null ? '' : formatInput(node.name, this.from!.index);
  }
}
