// The calls of the server of `gradflow edit` (tools/edit/edit_api.h).
import type { EditNodeJson, RunJson } from '../data/format.ts';
import type { Checked } from './display.ts';
import type { NodeItem } from './editor.ts';

// The value of a tensor: the bytes of an .npy file in base64, numbers, or a seed of random numbers.
export interface Feed {
  name: string;
  npy?: string;
  type?: string;
  shape?: number[];
  values?: string;
  random?: number;
}

interface Calls {
  check: [object, Checked];
  run: [{ feeds: Feed[]; until: string[] }, { run: RunJson }];
  save: [{ file: string }, { file: string; bytes: number }];
  // The nodes of the gradient, and the name of that of each tensor.
  gradients: [{ of: string; wrt: string[] }, { nodes: EditNodeJson[]; gradients: (string | null)[] }];
  cpp: [object, { text: string }];
}

export async function call<N extends keyof Calls>(name: N, nodes: NodeItem[], more: Calls[N][0]):
    Promise<Calls[N][1]> {
  let response: Response;
  try {
    response = await fetch(`/api/${name}`, {
      method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ nodes, ...more }),
    });
  } catch {
    throw new Error('the server does not answer; save by download');
  }
  const result = await response.json() as { error?: string };
  if (!response.ok) throw new Error(result.error ?? `the server answered ${response.status}`);
  return result as Calls[N][1];
}
