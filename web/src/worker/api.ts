// The worker's API for the page. All arguments and results can be cloned.
import type { EditJson, GraphJson, OutputJson } from '../data/format.ts';
import type { Scene, SceneOptions } from '../scene/types.ts';

export interface Summary {
  title: string;
  generator: string;
  diff: boolean;
  // The reasons why the graph cannot run.
  notes: string[];
  nodes: number;
  scopes: number;
  ops: number;
  // The numbers of added, removed and changed nodes.
  changes: [number, number, number];
  // The scope to open first: the innermost scope that contains all nodes, or the root.
  first: number;
  // The duration of the run in nanoseconds; -1 if there was no run.
  runTime: number;
  // Null unless the page edits the graph.
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

// A node or scope for the panel. Lists have at most kMaxListed items.
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
  // Inputs that are missing from the graph.
  missing: string[];
  outputs: { pin: string; type: string; doc: string; consumers: Neighbour[] }[];
  attrs: AttrText[];
  value: string;
  // For a scope, its ops and the number of each.
  ops: [string, number][];
  numNodes: number;
  // For a run: nanoseconds (-1 if the node did not run), share of the run, thread, bytes.
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
  // `data` is the data block of the page, or a graph in JSON.
  open(data: string): Promise<Summary>;
  // Shows an edited graph.
  replace(graph: GraphJson): Promise<Summary>;
  scene(scope: number, options: SceneOptions): Promise<Scene>;
  describe(id: number): Promise<Description>;
  // Searches for terms. Another worker matches regular expressions: matchedNames() sends the names
  // to it, and hits() describes the nodes that it finds.
  search(query: string, limit: number): Promise<{ hits: Hit[]; count: number }>;
  matchedNames(port: MessagePort): Promise<void>;
  hits(nodes: number[]): Promise<Hit[]>;
  mark(kind: 'in' | 'out' | 'between', node: number, other: number): Promise<Marks>;
  // Returns the scopes around a node or scope, starting with the root.
  ancestors(id: number): Promise<number[]>;
  // Returns the node or scope with a name; null if there is none. Names in functions include the
  // scope.
  find(name: string): Promise<number | null>;
  // Returns the functions that a node calls, as scopes: its op, or functions named in its
  // attributes.
  callees(node: number): Promise<number[]>;
  nameOf(id: number): Promise<string>;
  timeline(): Promise<Timeline | null>;
  // Returns the node that finished first with a NaN; -1 if there is none.
  firstNan(): Promise<number>;
  // Returns the nodes of the critical path, from first to last.
  criticalPath(): Promise<Marks & { path: number[] }>;
  // Returns the next node after `node` with a problem or a change; -1 if there is none.
  nextNotable(node: number): Promise<number>;
}

export const kMaxListed = 200;
