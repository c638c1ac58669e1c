// Searches ops.
import type { OpJson } from '../data/format.ts';
import { kEndOps } from './library.ts';
import type { Library } from './library.ts';

// Returns the ops whose names or summaries contain the words of a query. First come names that
// begin with the first word, then names that contain it, then all others. If `pin` is given,
// returns only ops that have an input or output of this type. A function body also offers arguments
// and results.
export function searchOps(library: Library, query: string, limit: number,
                          pin: { isInput: boolean; type: string } | null, inBody = false): OpJson[] {
  const words = query.toLowerCase().split(/\s+/).filter((word) => word !== '');
  const found: { op: OpJson; rank: number }[] = [];
  for (const op of [...library.ops.filter(({ n }) => !n.startsWith('_')), ...(inBody ? kEndOps : [])]) {
    if (pin !== null && !library.takes(op, pin.type, pin.isInput)) continue;
    const name = op.n.toLowerCase();
    const text = `${name} ${op.s.toLowerCase()}`;
    if (!words.every((word) => text.includes(word))) continue;
    const first = words[0] ?? '';
    const rank = name === first ? 0 : name.startsWith(first) ? 1 : name.includes(first) ? 2 : 3;
    found.push({ op, rank });
  }
  found.sort((a, b) => a.rank - b.rank || a.op.n.length - b.op.n.length ||
    (a.op.n < b.op.n ? -1 : 1));
  return found.slice(0, limit).map(({ op }) => op);
}
