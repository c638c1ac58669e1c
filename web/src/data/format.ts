// The JSON that `gradflow view` writes (tools/view/graph_json.cc).

// [name, type, documentation, 1 for a list]
export type ArgJson = [string, string, string, 0 | 1];
// [name, type, default or null, documentation], and for an editor: the minimum, the allowed values,
// and the default as message text.
export type AttrJson =
  [string, string, string | null, string, (number | null)?, string[]?, (string | null)?];

export interface OpJson {
  n: string;
  // 0: not registered; 1: registered; 2: a function of the graph.
  k: 0 | 1 | 2;
  // Summary and description.
  s: string;
  d: string;
  i: ArgJson[];
  o: ArgJson[];
  a: AttrJson[];
  // 1 if stateful
  f: 0 | 1;
}

// Properties that most nodes do not have. Numbers are indices into `strings` unless stated
// otherwise.
export interface NodeExtra {
  // Control inputs, as node numbers.
  c?: number[];
  // Inputs that are missing from the graph.
  u?: number[];
  // Attributes that differ from their defaults: [name, value, ...].
  a?: number[];
  // Types and shapes of the outputs: [type, shape, ...].
  t?: number[];
  // The number of outputs, if `t` does not have all of them.
  no?: number;
  // The sizes of the input and output arguments, if some arguments are lists.
  ni?: number[];
  mo?: number[];
  // The device.
  d?: number;
  // The problem of the node.
  e?: number;
  // The first values of a constant.
  v?: number;
  // 1: added, 2: removed, 3: changed; and the differences.
  k?: 1 | 2 | 3;
  h?: number[];
}

// [name, index into `ops`, data inputs as [node or -1, output, ...], extra]
export type NodeJson = [string, number, number[], NodeExtra?];

// Statistics of an output. Values that are not finite are null.
export interface OutputJson {
  // The node and its output.
  n: number;
  o: number;
  // Type and shape.
  t: string;
  s: number[];
  count: number;
  nan: number;
  pinf: number;
  ninf: number;
  // Over the finite elements.
  min: number | null;
  max: number | null;
  mean: number | null;
  sd: number | null;
  // Counts for equal intervals from min to max.
  hist: number[];
  // The first elements.
  first: string;
  // The elements of a vector, or the smallest and largest elements of its parts. Values that are
  // not finite are null.
  c?: (number | null)[];
  // A picture: rows, columns, channels, and levels from 0 to 255; -1 for values that are not
  // finite.
  p?: number[];
}

export interface RunJson {
  // The duration of the whole run in nanoseconds.
  total: number;
  threads: string[];
  // Executions: node or -1, begin, end, thread, bytes allocated, bytes of outputs, .... Times are
  // nanoseconds from the start.
  events: number[];
  // The names of the executions whose node is -1, in order.
  labels: string[];
  outputs: OutputJson[];
}

// An editable node: name, op, device, inputs, and attributes as message text. Long attributes are
// null. `m` is the text of the other fields; null if the text is incomplete.
export interface EditNodeJson {
  n: string;
  op: string;
  d: string;
  i: string[];
  a: Record<string, string | null>;
  m?: string | null;
}

export interface EditJson {
  // True if a server answers calls.
  server: boolean;
  // The numbers of the file's content and of this page. Calls send both.
  base: number;
  page: number;
  file: string;
  // All registered ops.
  ops: OpJson[];
  nodes: EditNodeJson[];
  functions: EditFunctionJson[];
  // The function library without its functions, as text of its fields.
  library: string;
  // The graph without its nodes and its library, as text.
  rest: string;
}

// An editable function. The inputs of its nodes are "node:output_arg:index" or an argument.
export interface EditFunctionJson {
  // The FunctionDef without its nodes, as text of its fields.
  h: string;
  nodes: EditNodeJson[];
}

export interface GraphJson {
  format: number;
  generator: string;
  title: string;
  diff: boolean;
  notes: string[];
  ops: OpJson[];
  // [name, first node, number of nodes]
  functions: [string, number, number][];
  nodes: NodeJson[];
  strings: string[];
  run?: RunJson;
  edit?: EditJson;
}

export const kFormat = 1;

async function unzip(base64: string): Promise<string> {
  const binary = atob(base64.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).text();
}

// Decodes the data block of the page. JSON is accepted as well.
export async function decode(data: string): Promise<GraphJson> {
  const graph = JSON.parse(data.startsWith('{') ? data : await unzip(data)) as GraphJson;
  if (graph.format !== kFormat) {
    throw new Error(`expected data of format ${kFormat}, found ${String(graph.format)}`);
  }
  return graph;
}
