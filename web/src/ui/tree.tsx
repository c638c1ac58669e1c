// The tree of the open scopes, for assistive technology: each block with its op, types and state.
// It has the focus of the picture and receives the keys.
import { duration, plural } from '../data/text.ts';
import { Flag } from '../scene/types.ts';
import type { Item } from '../scene/types.ts';
import type { App } from './app.ts';

// The largest number of items that the tree lists for a scope: the items around the selected item,
// in addition to open scopes. The tree states the total number. PageDown and PageUp lead to the
// other items.
export const kMaxItems = 100;

const kChanges = ['', 'added', 'removed', 'changed'];

export function itemLabel(item: Item): string {
  const parts = [`${item.title}, ${item.subtitle}`];
  parts.push(...item.outputs.slice(0, 4).map((pin) => pin.type).filter((type) => type !== ''));
  parts.push(...item.lines);
  if (item.flags & Flag.kProblem) parts.push('cannot run');
  if (item.flags & Flag.kUnknownShape) parts.push('unknown shape');
  if (item.flags & Flag.kNan) parts.push('has NaN');
  if (item.time >= 0) parts.push(duration(item.time));
  if (item.change > 0) parts.push(kChanges[item.change]!);
  return parts.join(', ');
}

export function treeItemId(id: number): string {
  return `item${id < 0 ? `s${~id}` : id}`;
}

function Level({ app, scope, level }: { app: App; scope: number; level: number }) {
  const scene = app.world.placed.get(scope)?.scene;
  if (scene === undefined) return null;
  const size = scene.items.length;
  const at = app.selected === null ? -1 : scene.items.findIndex((i) => i.id === app.selected);
  const first = Math.max(0, Math.min(at - kMaxItems / 2, size - kMaxItems));
  const items = scene.items.slice(first, first + kMaxItems)
    .map((item, i) => ({ item, position: first + i + 1 }));
  // Open scopes are always listed.
  scene.items.forEach((item, i) => {
    const isListed = i >= first && i < first + kMaxItems;
    if (!isListed && item.id < 0 && app.isOpen(~item.id)) items.push({ item, position: i + 1 });
  });
  return (
    <>
      {items.map(({ item, position }) => {
        const isOpen = item.id < 0 && app.isOpen(~item.id);
        return (
          <div key={item.id} id={treeItemId(item.id)} role="treeitem" aria-level={level}
               aria-setsize={size} aria-posinset={position} aria-label={itemLabel(item)}
               aria-selected={item.id === app.selected || app.chosen.has(item.id)}
               {...(item.id < 0 ? { 'aria-expanded': isOpen } : {})}>
            {isOpen && (
              <div role="group"><Level app={app} scope={~item.id} level={level + 1} /></div>
            )}
          </div>
        );
      })}
    </>
  );
}

export function Tree({ app }: { app: App }) {
  const isShown = app.selected !== null && app.world.findItem(app.selected) !== null;
  const count = app.summary === null ? '' : `, ${plural(app.summary.nodes, 'block')}`;
  return (
    <div id="tree" role="tree" tabIndex={0} aria-label={`Graph${count}`}
         {...(app.edit === null ? {} : { 'aria-multiselectable': true })}
         {...(isShown ? { 'aria-activedescendant': treeItemId(app.selected!) } : {})}>
      <Level app={app} scope={0} level={1} />
    </div>
  );
}
