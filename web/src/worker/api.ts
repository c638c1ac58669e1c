// What the worker does for the page. All arguments and results can be cloned.
import type { EditJson, GraphJson, OutputJson } from '../data/format.ts';
import type { Scene, SceneOptions } from '../scene/types.ts';

export interface Summary {
  title: string;
  generator: string;
  diff: boolean;
  // Why the graph cannot run.
  notes: string[];
  nodes: number;
  scopes: number;
  ops: number;
  // Added, removed and changed nodes.
  changes: [number, number, number];
  // The scope to open at first: that of all nodes, or the root.
  first: number;
  // Nanoseconds of the run; -1 if there was none.
  runTime: number;
  // Of a page that edits the graph.
  edit: EditJson | null;
}

export interface Neighbour {
  node: number;
  name: string;
  pin: string;
  type: string;
}

export interface AttrText {
  name: string;
  value: string;
  isDefault: boolean;
  doc: string;
}

// A node or scope, for the panel. Lists have at most kMaxListed items.
export interface Description {
  id: number;
  name: string;
  op: string;
  summary: string;
  doc: string;
  problem: string;
  device: string;
  change: number;
  changes: string[];
  inputs: Neighbour[];
  control: Neighbour[];
  // Inputs that are not in the graph.
  missing: string[];
  outputs: { pin: string; type: string; doc: string; consumers: Neighbour[] }[];
  attrs: AttrText[];
  value: string;
  // Of a scope, its ops and how often each occurs.
  ops: [string, number][];
  numNodes: number;
  // Of a run: nanoseconds, -1 if it did not run; share of the run; thread; bytes.
  time: number;
  share: number;
  thread: string;
  allocated: number;
  results: OutputJson[];
}

export interface EventText {
  node: number;
  name: string;
  begin: number;
  end: number;
  thread: number;
}

export interface Timeline {
  total: number;
  threads: string[];
  events: EventText[];
  // [time, bytes, ...]
  memory: number[];
}

export interface Hit {
  node: number;
  name: string;
  op: string;
}

export interface Marks {
  nodes: Uint8Array;
  scopes: Uint8Array;
  count: number;
}

export interface Api {
  // `data` is that of the page, or a graph in JSON.
  open(data: string): Promise<Summary>;
  // Shows another graph: one that was edited.
  replace(graph: GraphJson): Promise<Summary>;
  scene(scope: number, options: SceneOptions): Promise<Scene>;
  describe(id: number): Promise<Description>;
  // Searches for terms. Regular expressions are matched in another worker: matchedNames() sends it
  // the names, and hits() tells what it has found.
  search(query: string, limit: number): Promise<{ hits: Hit[]; count: number }>;
  matchedNames(port: MessagePort): Promise<void>;
  hits(nodes: number[]): Promise<Hit[]>;
  mark(kind: 'in' | 'out' | 'between', node: number, other: number): Promise<Marks>;
  // The scopes around a node or scope, from the root.
  ancestors(id: number): Promise<number[]>;
  // The node or scope of a name, in a function with its scope; null if there is none.
  find(name: string): Promise<number | null>;
  // The functions that a node calls, as scopes: its op, or those that its attributes name.
  callees(node: number): Promise<number[]>;
  nameOf(id: number): Promise<string>;
  timeline(): Promise<Timeline | null>;
  // The node that was the first to have a NaN; -1 if none has.
  firstNan(): Promise<number>;
  // The nodes of the critical path, from first to last.
  criticalPath(): Promise<Marks & { path: number[] }>;
  // The next node with a problem or a change after `node`; -1 if there is none.
  nextNotable(node: number): Promise<number>;
}

export const kMaxListed = 200;
