// Calls to the server of `gradflow edit` (tools/edit/edit_api.h).
import type { EditNodeJson, RunJson } from '../data/format.ts';
import type { Checked } from './display.ts';
import type { FunctionItem, NodeItem } from './editor.ts';

// An image file as a tensor. Floating-point values are from 0 to 1. `batch` adds a first dimension
// of size 1.
export interface ImageRequest {
  // The file in base64.
  image: string;
  type: string;
  // 0: the channels of the file.
  channels: number;
  batch: boolean;
}

// The value of a tensor: the bytes of an .npy file in base64, an image, numbers, or a random seed.
export interface Feed extends Partial<ImageRequest> {
  name: string;
  npy?: string;
  shape?: number[];
  values?: string;
  random?: number;
}

interface Calls {
  check: [object, Checked];
  // Runs the graph, or only the body of a function. In the latter case, the nodes of the result are
  // arguments, nodes and results of the body.
  run: [{ feeds: Feed[]; until: string[]; function?: number }, { run: RunJson }];
  save: [{ file: string; overwrite: boolean }, { file: string; bytes: number }];
  // Returns the nodes of the gradient, and the name of the gradient of each tensor.
  gradients: [{ of: string; wrt: string[]; function?: number }, { nodes: EditNodeJson[]; gradients: (string | null)[] }];
  // Returns the value of a constant, in text format.
  image: [ImageRequest, { value: string }];
  cpp: [object, { text: string }];
  // Ends the run in progress.
  cancel: [object, object];
}

// A graph for the server: its nodes. Unchanged nodes of the file are sent as their numbers in the
// content `base`.
export interface SentGraph {
  base: number;
  page: number;
  nodes: NodeItem[];
  // All functions: the functions of the file in order, then new functions.
  functions: FunctionItem[];
}

// The secret of this page. Every call sends it.
let key = '';
export function setKey(secret: string): void {
  key = secret;
}

async function post(name: string, body: string, signal?: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`/api/${name}`, {
      method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Gradflow-Key': key }, body,
      ...(signal === undefined ? {} : { signal }),
    });
  } catch {
    throw new Error(signal?.aborted === true ? 'The call is cancelled'
      : 'the server does not answer; save by download');
  }
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({})) as { error?: string };
  throw new Error(error ?? `the server answered ${response.status}`);
}

// `graph` is null for calls that do not concern a graph.
export async function call<N extends keyof Calls>(
    name: N, graph: SentGraph | null, more: Calls[N][0], signal?: AbortSignal): Promise<Calls[N][1]> {
  const response = await post(name, JSON.stringify({ ...graph, ...more }), signal);
  try {
    return await response.json() as Calls[N][1];
  } catch {
    throw new Error(signal?.aborted === true ? 'The call is cancelled' : 'the answer of the server is no JSON');
  }
}

// Returns the data of this page, as JSON.
export async function pageText(): Promise<string> {
  return (await post('page', '{}')).text();
}
