// The bar: the search field, the command buttons, and the list of keys.
import { useLayoutEffect, useRef } from 'preact/hooks';
import { plural, visible } from '../data/text.ts';
import type { App } from './app.ts';
import { commandsOf, runCommand } from './commands.ts';
import type { Command, Page } from './commands.ts';

function Results({ app }: { app: App }) {
  const { search } = app;
  if (search.query === '') return null;
  return (
    <div id="results">
      <p role="status">{search.isBusy ? 'Searching; Escape cancels'
        : search.error !== '' ? search.error : plural(search.count, 'block')}</p>
      <ul>
        {search.hits.map((hit) => (
          <li key={hit.node}>
            <button type="button" onClick={() => void app.select(hit.node)}>
              {visible(hit.name).slice(0, 300)} <span class="soft">{visible(hit.op)}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

const kGroups = ['Edit', 'Move', 'Scopes', 'Highlight', 'Run', 'Page'] as const;

function keyName(command: Command): string {
  return command.key.replace('Arrow', '');
}

function Help({ app, page }: { app: App; page: Page }) {
  const ref = useRef<HTMLDialogElement>(null);
  // Closing returns the focus to the picture.
  useLayoutEffect(() => {
    const dialog = ref.current!;
    dialog.showModal();
    return () => {
      // Until the dialog is closed, nothing else can take the focus.
      dialog.close();
      document.getElementById('tree')?.focus();
    };
  }, []);
  const close = (): void => {
    app.isHelpOpen = false;
    app.changed();
  };
  return (
    <dialog id="help" ref={ref} aria-label="Keys" onClose={() => { if (ref.current !== null) close(); }}
            onKeyDown={(event) => { if (event.key === 'Escape') event.stopPropagation(); }}>
      <button type="button" onClick={close}>Close</button>
      {kGroups.filter((group) => group !== 'Edit' || app.edit !== null).map((group) => (
        <section key={group}>
          <h2>{group}</h2>
          <ul>
            {commandsOf(app).filter((command) => command.group === group).map((command) => (
              <li key={command.id}>
                <button type="button" data-command={command.id}
                        onClick={() => {
                          // The command finds the page in the same state as its key does.
                          close();
                          if (command.id !== 'help') runCommand(command, app, page);
                        }}>
                  <kbd>{keyName(command)}</kbd> {command.title}
                </button>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </dialog>
  );
}

export function Bar({ app, page }: { app: App; page: Page }) {
  return (
    <header>
      <h1>gradflow</h1>
      <div id="search-box" role="search">
        <input id="search" type="search" aria-label="Search" autocomplete="off" spellcheck={false}
               placeholder="name, op:, attr:, shape:, is:, /expression/"
               onInput={(event) => void app.find(event.currentTarget.value)} />
        <Results app={app} />
      </div>
      <nav aria-label="Commands">
        {commandsOf(app).filter((command) =>
          command.label !== undefined && (command.group !== 'Run' || app.timeline !== null)).map((command) => (
          <button key={command.id} type="button" title={`${command.title} (${keyName(command)})`}
                  aria-label={command.title} onClick={(event) => {
                    // After a click, the keys go to the picture. After a key press, they stay at
                    // the button.
                    if (event.detail > 0) page.focusPicture();
                    runCommand(command, app, page);
                  }}>
            {command.label}
          </button>
        ))}
      </nav>
      {app.isHelpOpen && <Help app={app} page={page} />}
    </header>
  );
}
