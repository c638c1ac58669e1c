// All commands of the page. Each has a key and an entry in the list of keys.
import type { EditNode } from '../edit/node.ts';
import type { Session } from '../edit/session.ts';
import type { App } from './app.ts';

export interface Command {
  id: string;
  title: string;
  // The text of the button in the bar. Commands without a label have no button.
  label?: string;
  // A value of KeyboardEvent.key.
  key: string;
  group: 'Move' | 'Scopes' | 'Highlight' | 'Run' | 'Page' | 'Edit';
  run(app: App, page: Page): void | Promise<void>;
}

// The DOM operations that commands need.
export interface Page {
  focusSearch(): void;
  focusPicture(): void;
  focusPanel(): void;
  // Focuses the first field of the panel.
  focusFields(): void;
  toggleTheme(): void;
  save(name: string, type: string, text: string): void;
  print(): void;
}

const kPan = 80;

export const kCommands: Command[] = [
  { id: 'producer', title: 'Go to the producer', key: 'ArrowLeft', group: 'Move',
    run: (app) => app.follow(true) },
  { id: 'consumer', title: 'Go to the consumer', key: 'ArrowRight', group: 'Move',
    run: (app) => app.follow(false) },
  { id: 'next', title: 'Next block', key: 'ArrowDown', group: 'Move',
    run: (app) => app.selectBeside(1) },
  { id: 'previous', title: 'Previous block', key: 'ArrowUp', group: 'Move',
    run: (app) => app.selectBeside(-1) },
  { id: 'page-next', title: 'The block 100 further in the scope', key: 'PageDown', group: 'Move',
    run: (app) => app.selectPage(100) },
  { id: 'page-previous', title: 'The block 100 before in the scope', key: 'PageUp', group: 'Move',
    run: (app) => app.selectPage(-100) },
  { id: 'first', title: 'First block of the scope', key: 'Home', group: 'Move',
    run: (app) => app.selectPage(-Infinity) },
  { id: 'last', title: 'Last block of the scope', key: 'End', group: 'Move',
    run: (app) => app.selectPage(Infinity) },
  { id: 'function', title: 'Go to the function of the call, or back', key: 'B', group: 'Move',
    run: (app) => app.followCall() },
  { id: 'notable', title: 'Next problem or change', key: 'n', group: 'Move',
    run: (app) => app.selectNotable() },
  { id: 'center', title: 'Show the selected block', key: '.', group: 'Move',
    run: (app) => (app.selected === null ? undefined : app.select(app.selected)) },
  { id: 'fit', label: 'All', title: 'Show all', key: '0', group: 'Move', run: (app) => app.fitAll(true) },
  { id: 'zoom-in', label: '+', title: 'Zoom in', key: '+', group: 'Move',
    run: (app) => app.camera.zoom(1.4, app.width / 2, app.height / 2) },
  { id: 'zoom-out', label: '−', title: 'Zoom out', key: '-', group: 'Move',
    run: (app) => app.camera.zoom(1 / 1.4, app.width / 2, app.height / 2) },
  { id: 'pan-left', title: 'Pan left', key: 'h', group: 'Move',
    run: (app) => app.camera.pan(kPan, 0) },
  { id: 'pan-down', title: 'Pan down', key: 'j', group: 'Move',
    run: (app) => app.camera.pan(0, -kPan) },
  { id: 'pan-up', title: 'Pan up', key: 'k', group: 'Move',
    run: (app) => app.camera.pan(0, kPan) },
  { id: 'pan-right', title: 'Pan right', key: 'l', group: 'Move',
    run: (app) => app.camera.pan(-kPan, 0) },

  { id: 'toggle', label: 'Open', title: 'Open or close the scope', key: 'Enter', group: 'Scopes',
    run: (app) => {
      if (app.selected === null || app.selected >= 0) return undefined;
      const scope = ~app.selected;
      return app.isOpen(scope) ? app.closeScope(scope) : app.openScope(scope);
    } },
  { id: 'parent', title: 'Go to the enclosing scope', key: 'u', group: 'Scopes',
    run: (app) => app.selectParent() },
  { id: 'close-all', title: 'Close all scopes', key: 'E', group: 'Scopes',
    run: (app) => app.closeAll() },
  { id: 'fold', label: 'Constants', title: 'Fold constants into their consumers', key: 'c', group: 'Scopes',
    run: (app) => app.setFolded(!app.isFolded) },

  { id: 'fan-in', label: 'Fan-in', title: 'Highlight the fan-in', key: 'i', group: 'Highlight',
    run: (app) => app.mark('in') },
  { id: 'fan-out', label: 'Fan-out', title: 'Highlight the fan-out', key: 'o', group: 'Highlight',
    run: (app) => app.mark('out') },
  { id: 'path-start', title: 'Start a path here', key: 'm', group: 'Highlight',
    run: (app) => app.startPath() },
  { id: 'path-end', title: 'Highlight the paths to here', key: 'p', group: 'Highlight',
    run: (app) => app.endPath() },
  { id: 'clear', title: 'Remove highlights', key: 'x', group: 'Highlight',
    run: (app) => app.clearMarks() },

  { id: 'critical', label: 'Critical path', title: 'Highlight the critical path', key: 'r', group: 'Run',
    run: (app) => app.markCriticalPath() },
  { id: 'nan', label: 'First NaN', title: 'Go to the first NaN', key: 'N', group: 'Run',
    run: (app) => app.selectFirstNan() },
  { id: 'time-in', title: 'Zoom into the timeline', key: 'w', group: 'Run',
    run: (app) => app.moveTimeline(1.5, 0) },
  { id: 'time-out', title: 'Zoom out of the timeline', key: 's', group: 'Run',
    run: (app) => app.moveTimeline(1 / 1.5, 0) },
  { id: 'time-left', title: 'Earlier in the timeline', key: 'a', group: 'Run',
    run: (app) => app.moveTimeline(1, -0.2) },
  { id: 'time-right', title: 'Later in the timeline', key: 'd', group: 'Run',
    run: (app) => app.moveTimeline(1, 0.2) },
  { id: 'time-mark', title: 'Mark the time of the block in the timeline', key: 'M', group: 'Run',
    run: (app) => app.markTime() },
  { id: 'time-pin', title: 'Pin the thread of the block to the top of the timeline', key: 'T', group: 'Run',
    run: (app) => app.pinThread() },

  { id: 'search', title: 'Search', key: '/', group: 'Page',
    run: (_, page) => page.focusSearch() },
  { id: 'panel', title: 'Go to the panel', key: 'v', group: 'Page',
    run: (_, page) => page.focusPanel() },
  { id: 'deselect', title: 'Deselect, or cancel what is in progress', key: 'Escape', group: 'Page',
    run: (app) => {
      if (!app.cancel()) app.clearSelection();
    } },
  { id: 'theme', label: 'Theme', title: 'Light or dark', key: 't', group: 'Page',
    run: (_, page) => page.toggleTheme() },
  { id: 'svg', label: 'SVG', title: 'Save as SVG', key: 'S', group: 'Page',
    run: (app, page) => page.save('graph.svg', 'image/svg+xml', app.svg()) },
  { id: 'print', title: 'Print', key: 'P', group: 'Page', run: (_, page) => page.print() },
  { id: 'help', label: 'Keys', title: 'Keys', key: '?', group: 'Page',
    run: (app) => {
      app.isHelpOpen = !app.isHelpOpen;
      app.changed();
    } },
];

// Returns a command that calls `edit` with the session and the selected node.
function withNode(edit: (session: Session, node: EditNode) => void): Command['run'] {
  return (app) => {
    const node = app.edit?.nodeOf(app.selected) ?? null;
    if (app.edit === null) return;
    if (node === null) app.say('Select a block first');
    else edit(app.edit, node);
  };
}

// Returns a command that calls `edit` with the session, the selected nodes, and the selected scope
// or "".
function withNodes(edit: (session: Session, nodes: EditNode[], scope: string) => void):
    Command['run'] {
  return (app) => {
    const nodes = app.editedNodes();
    if (app.edit === null) return;
    if (nodes.length === 0) app.say('Select a block first');
    else edit(app.edit, nodes, app.editedScope());
  };
}

// The commands of an editing page.
export const kEditCommands: Command[] = [
  { id: 'add', label: 'Add', title: 'Add a block', key: 'b', group: 'Edit',
    run: (app) => app.edit?.openPalette(null, app.bodyOf(app.selected)) },
  { id: 'fields', title: 'Go to the fields of the block', key: 'e', group: 'Edit',
    run: (_, page) => page.focusFields() },
  { id: 'from', title: 'Connect from here: the next output', key: 'f', group: 'Edit',
    run: withNode((session, node) => session.startConnection(node)) },
  { id: 'to', title: 'Connect to here', key: 'g', group: 'Edit',
    run: withNode((session, node) => session.openConnection(node)) },
  { id: 'choose', title: 'Add the block to the selection, or take it out', key: 'X', group: 'Edit',
    run: (app) => app.choose(app.selected) },
  { id: 'choose-all', title: 'Select all blocks of the scope', key: 'A', group: 'Edit',
    run: (app) => app.chooseAll() },
  { id: 'remove', title: 'Remove the selection', key: 'Delete', group: 'Edit',
    run: withNodes((session, nodes) =>
      void session.do(() => session.editor.remove(nodes.map((node) => node.id)))) },
  { id: 'duplicate', title: 'Duplicate the selection', key: 'D', group: 'Edit',
    run: withNodes((session, nodes) => session.duplicate(nodes)) },
  { id: 'group', title: 'Put the selection into a scope', key: 'K', group: 'Edit',
    run: withNodes((session, nodes, scope) => session.openScope(nodes, scope)) },
  { id: 'ungroup', title: 'Take the selection out of its scope', key: 'U', group: 'Edit',
    run: withNodes((session, nodes, scope) => session.dissolve(nodes, scope)) },
  { id: 'extract', title: 'Make a function of the selection', key: 'O', group: 'Edit',
    run: withNodes((session, nodes) => session.openExtraction(nodes)) },
  { id: 'functions', label: 'Functions', title: 'Add, rename and remove functions', key: 'L', group: 'Edit',
    run: (app) => app.edit?.open({ kind: 'functions' }) },
  { id: 'undo', label: 'Undo', title: 'Undo', key: 'z', group: 'Edit', run: (app) => app.edit?.undo() },
  { id: 'redo', label: 'Redo', title: 'Redo', key: 'Z', group: 'Edit', run: (app) => app.edit?.redo() },
  { id: 'copy', title: 'Copy as text', key: 'y', group: 'Edit',
    run: withNodes((session, nodes) => void session.copy(nodes)) },
  { id: 'paste', title: 'Paste', key: 'Y', group: 'Edit', run: (app) => app.edit?.paste(app.bodyOf(app.selected)) },
  { id: 'run', label: 'Run', title: 'Run the graph', key: 'R', group: 'Edit',
    run: (app) => app.edit?.runGraph(null) },
  { id: 'run-to', label: 'Run to', title: 'Run up to the block', key: 'F', group: 'Edit',
    run: withNode((session, node) => void session.runGraph(node)) },
  { id: 'cancel', label: 'Cancel', title: 'Cancel the run, or another call of the server', key: 'W', group: 'Edit', run: (app) => app.edit?.cancel() },
  { id: 'differentiate', label: 'Differentiate', title: 'Differentiate', key: 'G', group: 'Edit',
    run: (app) => app.edit?.openGradients(app.edit.nodeOf(app.selected)) },
  { id: 'cpp', label: 'C++', title: 'Show as C++', key: 'C', group: 'Edit',
    run: (app) => app.edit?.cpp() },
  { id: 'save', label: 'Save', title: 'Save', key: 'q', group: 'Edit',
    run: (app, page) => {
      if (app.edit === null) return undefined;
      return app.edit.isServed ? app.edit.save() : downloadGraph(app.edit, page);
    } },
  { id: 'download', title: 'Download as text', key: 'Q', group: 'Edit',
    run: (app, page) => (app.edit === null ? undefined : downloadGraph(app.edit, page)) },
];

export function downloadGraph(session: Session, page: Page): void {
  const text = session.textFile();
  if (text !== null) page.save(session.file.replace(/\.pb(txt)?$/, '') + '.pbtxt', 'text/plain', text);
}

export function commandsOf(app: App): readonly Command[] {
  return app.edit === null ? kCommands : [...kCommands, ...kEditCommands];
}

// Runs a command, and shows the error if it fails.
export function runCommand(command: Command, app: App, page: Page): void {
  Promise.resolve(command.run(app, page)).catch((error: Error) => app.say(error.message));
}

export function findCommand(app: App, key: string): Command | undefined {
  return commandsOf(app).find((command) => command.key === key);
}
