// Search: terms separated by spaces. All terms must match.
//
//   text          the name contains it, ignoring case
//   op:Mat        the name of the op contains it
//   attr:n=8      an attribute, written as "name=value", contains it
//   shape:[2,?]   the type and shape of an output contain it
//   is:problem    also is:added, is:removed, is:changed
//   /expression/  the name matches the regular expression
import type { Model } from './model.ts';

// The number of characters of a longer name that are matched.
const kMaxMatched = 1000;

export class QueryError extends Error {}

type Test = (model: Model, node: number) => boolean;

function termTest(term: string): Test {
  const contains = (text: string, part: string): boolean => text.toLowerCase().includes(part);
  const split = term.indexOf(':');
  const key = term.slice(0, Math.max(split, 0));
  const part = term.slice(split + 1).toLowerCase();
  switch (key) {
    case 'op':
      return (model, node) => contains(model.op(node).n, part);
    case 'attr':
      return (model, node) => {
        const attrs = model.extra(node).a ?? [];
        for (let i = 0; i < attrs.length; i += 2) {
          if (contains(`${model.text(attrs[i])}=${model.text(attrs[i + 1])}`, part)) return true;
        }
        return false;
      };
    case 'shape':
      return (model, node) => {
        const types = model.extra(node).t ?? [];
        for (let i = 0; i < types.length; i += 2) {
          if (contains(`${model.text(types[i])}${model.text(types[i + 1])}`, part)) return true;
        }
        return false;
      };
    case 'is':
      return isTest(part);
    default: {
      const text = term.toLowerCase();
      return (model, node) => model.lowerName(node).includes(text);
    }
  }
}

function isTest(state: string): Test {
  const changes = ['', 'added', 'removed', 'changed'];
  if (state === 'problem') {
    return (model, node) => model.extra(node).e !== undefined || model.op(node).k === 0;
  }
  const change = changes.indexOf(state);
  if (change <= 0) throw new QueryError(`expected is:problem, added, removed or changed`);
  return (model, node) => model.extra(node).k === change;
}

// Returns the regular expression of a query; null if the query has another form. Matching may take
// exponential time, so it must happen in a worker that can be ended (worker/matcher.ts).
export function expressionOf(query: string): string | null {
  const text = query.trim();
  return text.length > 1 && text.startsWith('/') && text.endsWith('/') ? text.slice(1, -1) : null;
}

// Returns the parts of the names that are matched with expressions.
export function matchedNames(model: Model): string[] {
  return Array.from({ length: model.size }, (_, node) => model.name(node).slice(0, kMaxMatched));
}

// Returns the names that match an expression.
export function matchNames(names: readonly string[], expression: string, limit: number): Found {
  let regexp: RegExp;
  try {
    regexp = new RegExp(expression, 'u');
  } catch {
    throw new QueryError('not a regular expression');
  }
  const found: Found = { nodes: [], count: 0 };
  names.forEach((name, node) => {
    if (!regexp.test(name)) return;
    if (found.nodes.length < limit) found.nodes.push(node);
    ++found.count;
  });
  return found;
}

function parse(query: string): Test[] {
  return query.trim().split(/\s+/).filter((term) => term !== '').map(termTest);
}

export interface Found {
  // The first matching nodes, in the order of the graph.
  nodes: number[];
  // The number of matching nodes.
  count: number;
}

// Searches for terms in short steps.
export function* searchInSteps(model: Model, query: string, limit: number): Generator<void, Found> {
  const tests = parse(query);
  const found: Found = { nodes: [], count: 0 };
  if (tests.length === 0) return found;
  for (let node = 0; node < model.size; ++node) {
    if (node % 256 === 255) yield;
    if (!tests.every((test) => test(model, node))) continue;
    if (found.nodes.length < limit) found.nodes.push(node);
    ++found.count;
  }
  return found;
}
// Searches in one step.
export function search(model: Model, query: string, limit: number): Found {
  const steps = searchInSteps(model, query, limit);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
