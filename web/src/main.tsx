// The page and the worker. Both run this script.
import { render } from 'preact';
import { visible } from './data/text.ts';
import { App } from './ui/app.ts';
import { Bar } from './ui/bar.tsx';
import { Dialogs } from './ui/edit/dialogs.tsx';
import { pageText, setKey } from './edit/api.ts';
import { findCommand, runCommand } from './ui/commands.ts';
import type { Page } from './ui/commands.ts';
import { Minimap } from './ui/minimap.ts';
import { Panel } from './ui/panel.tsx';
import { listenToPointer } from './ui/pointer.ts';
import { listenToTimeline } from './ui/timeline.ts';
import { Tree } from './ui/tree.tsx';
import { Client, serve } from './worker/channel.ts';
import { kMatcherName, Matcher, serveMatcher } from './worker/matcher.ts';
import { Service } from './worker/service.ts';

// A data block with this prefix tells the page to request its data from the server. kKeyName is the
// storage entry of the page's key.
const kServer = 'server:';
const kKeyName = 'gradflow-key';

function element<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

// Returns a worker that runs the script of this page. The page's policy allows no script with
// another hash.
function makeWorker(script: string, name = ''): Worker {
  const url = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
  const worker = new Worker(url, { name });
  URL.revokeObjectURL(url);
  return worker;
}

class DomPage implements Page {
  constructor(private readonly app: App) {}

  focusSearch(): void {
    const input = element<HTMLInputElement>('search');
    input.focus();
    input.select();
  }
  focusPicture(): void {
    element('tree').focus();
  }
  focusPanel(): void {
    element('panel').focus();
  }
  focusFields(): void {
    (document.getElementById('block-name') ?? element('panel')).focus();
  }
  toggleTheme(): void {
    const root = document.documentElement;
    const isDark = root.dataset.theme === undefined
      ? matchMedia('(prefers-color-scheme: dark)').matches : root.dataset.theme === 'dark';
    root.dataset.theme = isDark ? 'light' : 'dark';
    this.app.restyle();
  }
  save(name: string, type: string, text: string): void {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = document.createElement('a');
    link.href = url;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }
  print(): void {
    window.print();
  }
}

// Copies and pastes blocks as text if no text is selected and no field has the focus.
function listenToClipboard(app: App): void {
  const isText = (event: Event): boolean => app.edit === null || app.edit.dialog !== null ||
    /^(INPUT|SELECT|TEXTAREA)$/.test((event.target as HTMLElement).tagName ?? '') ||
    (event.type !== 'paste' && String(getSelection()) !== '');
  for (const type of ['copy', 'cut'] as const) {
    document.addEventListener(type, (event) => {
      const nodes = app.editedNodes();
      if (isText(event) || nodes.length === 0) return;
      const text = app.edit!.copy(nodes);
      if (text === '') return;
      event.clipboardData?.setData('text/plain', text);
      event.preventDefault();
      if (type === 'cut') {
        app.edit!.do(() => app.edit!.editor.remove(nodes.map((node) => node.id)));
      }
    });
  }
  document.addEventListener('paste', (event) => {
    if (isText(event)) return;
    event.preventDefault();
    app.edit!.paste(app.bodyOf(app.selected), event.clipboardData?.getData('text/plain') ?? '');
  });
}

function start(script: string): void {
  const canvas = element<HTMLCanvasElement>('canvas');
  const client = new Client(makeWorker(script));
  const matcher = new Matcher(() => makeWorker(script, kMatcherName), (port) => {
    // If the names cannot be sent, the search ends with its worker.
    client.transfer([port], 'matchedNames', port).catch((error: Error) => app.say(error.message));
  });
  const app = new App(client, matcher, canvas);
  const page = new DomPage(app);
  const update = (): void => {
    render(<Bar app={app} page={page} />, element('bar'));
    render(<Tree app={app} />, element('reader'));
    render(<Panel app={app} page={page} />, element('side'));
    if (app.edit !== null) render(<Dialogs session={app.edit} page={page} />, element('dialogs'));
    element('message').textContent = visible(app.message);
  };
  app.onChange(update);
  update();
  listenToTimeline(app, element<HTMLCanvasElement>('timeline'));
  new Minimap(app, element<HTMLCanvasElement>('minimap'));

  const view = element('view');
  new ResizeObserver(() => {
    app.resize(view.clientWidth, view.clientHeight, window.devicePixelRatio);
  }).observe(view);
  app.resize(view.clientWidth, view.clientHeight, window.devicePixelRatio);
  listenToPointer(app, () => element('tree').focus());
  for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) {
    matchMedia(query).addEventListener('change', () => app.restyle());
  }
  document.addEventListener('keydown', (event) => {
    const target = event.target as HTMLElement;
    const isField = /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
    if ((event.ctrlKey || event.metaKey) && !isField && app.edit !== null) {
      const isRedo = event.key === 'y' || event.key === 'Z';
      if (isRedo || event.key === 'z') {
        event.preventDefault();
        if (isRedo) app.edit.redo();
        else app.edit.undo();
      }
      if (event.key === 'a') {
        event.preventDefault();
        app.chooseAll();
      }
    }
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (isField) {
      if (event.key === 'Escape' && target.id === 'search') {
        (target as HTMLInputElement).value = '';
        void app.find('');
        element('tree').focus();
      }
      return;
    }
    // Buttons and panels keep the keys that they use. Letters are commands only in the picture:
    // with speech input, every word would trigger commands elsewhere.
    const isElsewhere = target.id !== 'tree' && target !== document.body;
    if (isElsewhere && /^(Enter|Arrow\w+|Page\w+|Home|End)$/.test(event.key)) return;
    if (event.key.length === 1 && target.id !== 'tree') return;
    // An open dialog receives the keys.
    if (app.edit !== null && app.edit.dialog !== null) return;
    const command = findCommand(app, event.key);
    if (command === undefined) return;
    event.preventDefault();
    runCommand(command, app, page);
  });
  listenToClipboard(app);
  // Lets the browser ask before the page is left with unsaved changes.
  window.addEventListener('beforeunload', (event) => {
    if (app.edit?.isUnsaved === true) event.preventDefault();
  });
  window.addEventListener('hashchange', () => void app.restore(location.hash));

  // For tests.
  Object.assign(window, { gradflow: app });
  element('tree').focus();
  readData().then((data) => app.open(data, location.hash)).then(() => {
    document.title = `${visible(app.summary!.title)} – gradflow`;
    document.documentElement.dataset.state = 'ready';
  }, (error: Error) => {
    document.documentElement.dataset.state = 'failed';
    app.say(`The graph cannot be shown: ${error.message}`);
  });
}

// Returns the data of the page. A page from a server requests the data with its key. Other origins,
// including other ports of the host, cannot read the key from storage.
async function readData(): Promise<string> {
  const data = (element('data').textContent ?? '').trim();
  if (!data.startsWith(kServer)) return data;
  let key = data.slice(kServer.length);
  try {
    if (key !== '') localStorage.setItem(kKeyName, key);
    else key = localStorage.getItem(kKeyName) ?? '';
  } catch {
    // Without storage, the page cannot be reloaded.
  }
  setKey(key);
  // The token in the address has been used.
  if (location.search !== '') history.replaceState(null, '', `/${location.hash}`);
  return pageText();
}
if (typeof document === 'undefined') {
  if (self.name === kMatcherName) serveMatcher(self as unknown as Parameters<typeof serveMatcher>[0]);
  else serve(new Service(), self as unknown as Parameters<typeof serve>[1]);
} else {
  start(document.currentScript!.textContent!);
}
