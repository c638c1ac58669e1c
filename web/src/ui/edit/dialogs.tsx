// The dialogs of the editor.
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { plural, shorten, visible, visibleLines } from '../../data/text.ts';
import { searchOps } from '../../edit/palette.ts';
import type { Dialog, Session } from '../../edit/session.ts';
import type { Page } from '../commands.ts';

const kMaxOps = 60;
const kMaxFunctions = 60;

function Frame({ session, title, children }:
               { session: Session; title: string; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  // The first field or choice gets the focus. Closing returns the focus to the picture.
  useLayoutEffect(() => {
    const dialog = ref.current!;
    dialog.showModal();
    dialog.querySelector<HTMLElement>('[data-first]')?.focus();
    return () => {
      // Until the dialog is closed, nothing else can take the focus.
      dialog.close();
      document.getElementById('tree')?.focus();
    };
  }, []);
  const move = (event: KeyboardEvent): void => {
    // Escape closes the dialog, even from a field that Escape would clear. It must not reach the
    // picture.
    if (event.key === 'Escape') {
      event.stopPropagation();
      event.preventDefault();
      session.close();
      return;
    }
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step === 0 || (event.target as HTMLElement).tagName === 'TEXTAREA') return;
    const items = [...ref.current!.querySelectorAll<HTMLElement>('input, .choice')];
    const at = items.indexOf(document.activeElement as HTMLElement);
    items[at + step]?.focus();
    event.preventDefault();
  };
  return (
    <dialog class="edit-dialog" ref={ref} aria-label={title} onKeyDown={move}
            onClose={() => {
              // Skipped if another dialog has replaced this one.
              if (ref.current !== null) session.close();
            }}>
      <h2>{title}</h2>
      {children}
      <p><button type="button" onClick={() => session.close()}>Close</button></p>
    </dialog>
  );
}

function Palette({ session, dialog }:
                 { session: Session; dialog: Dialog & { kind: 'palette' } }) {
  const [query, setQuery] = useState('');
  const [shown, setShown] = useState('');
  const { library } = session.editor;
  const { end } = dialog;
  const ops = searchOps(library, query, kMaxOps,
                        end === null ? null : { isInput: end.isOutput, type: end.type }, dialog.body > 0);
  const title = end === null ? 'Add a block'
    : `Add a block that ${end.isOutput ? 'takes' : 'makes'} ${end.type === '' ? 'this' : end.type}`;
  const doc = library.find(shown === '' ? (ops[0]?.n ?? '') : shown);
  return (
    <Frame session={session} title={title}>
      <input data-first type="search" aria-label="Op" autocomplete="off" spellcheck={false}
             value={query} onInput={(event) => {
               setQuery(event.currentTarget.value);
               setShown('');
             }}
             onKeyDown={(event) => {
               if (event.key === 'Enter' && ops[0] !== undefined) {
                 event.preventDefault();
                 session.add(ops[0].n);
               }
             }} />
      <div class="palette">
        <ul aria-label="Ops">
          {ops.map((op) => (
            <li key={op.n}>
              <button type="button" class="choice" onClick={() => session.add(op.n)}
                      onFocus={() => setShown(op.n)} onPointerEnter={() => setShown(op.n)}>
                <b>{visible(op.n)}</b> <span class="soft">{visible(shorten(op.s, 100))}</span>
              </button>
            </li>
          ))}
          {ops.length === 0 && <li>No op fits</li>}
        </ul>
        {doc !== null && (
          // Focusable, so that keys scroll it.
          <div class="doc" tabIndex={0} role="region" aria-label="Documentation">
            <h3>{visible(doc.n)}</h3>
            <p>{visible(doc.s)}</p>
            <p>{doc.i.map((arg) => `${visible(arg[0])}: ${visible(arg[1])}`).join(', ')} →{' '}
              {doc.o.map((arg) => `${visible(arg[0])}: ${visible(arg[1])}`).join(', ')}</p>
            <p>{visibleLines(doc.d)}</p>
          </div>
        )}
      </div>
    </Frame>
  );
}

function Connect({ session, to }: { session: Session; to: number }) {
  const node = session.editor.get(to);
  const choices = session.choices(to);
  // Prefers the first input that fits and is free.
  const first = Math.max(choices.findIndex((c) => c.reason === '' && c.source === ''),
                         choices.findIndex((c) => c.reason === '') < 0 ? -1 : 0);
  const best = choices[first]?.reason === '' ? first : choices.findIndex((c) => c.reason === '');
  const from = session.from;
  if (node === null || from === null) return null;
  return (
    <Frame session={session} title={visible(`Connect ${session.fromName()} to ${node.name}`)}>
      <ul>
        {choices.map(({ pin, source, reason }, i) => (
          <li key={pin.name}>
            <button type="button" class="choice" aria-disabled={reason !== ''}
                    {...(i === best ? { 'data-first': '' } : {})}
                    onClick={() => {
                      if (reason !== '') return;
                      session.close();
                      session.connect(from, { id: to, index: pin.index }, pin.isNew);
                    }}>
              <b>{visible(pin.name)}</b>{' '}
              {source !== '' && <span class="soft">instead of {visible(source)} </span>}
              {reason !== '' && <span class="problem">{visible(reason)}</span>}
            </button>
          </li>
        ))}
        <li>
          <button type="button" class="choice" {...(best < 0 ? { 'data-first': '' } : {})}
                  onClick={() => {
                    session.close();
                    session.connectControl(node, session.editor.get(from.id)?.name ?? '');
                  }}>
            Run after it, without its value
          </button>
        </li>
      </ul>
    </Frame>
  );
}

function Gradients({ session, dialog }:
                   { session: Session; dialog: Dialog & { kind: 'gradients' } }) {
  const [of, setOf] = useState(dialog.of);
  const [wrt, setWrt] = useState(dialog.wrt);
  const names = wrt.split(/[\s,]+/).filter((name) => name !== '');
  return (
    <Frame session={session} title="Differentiate">
      <form onSubmit={(event) => {
        event.preventDefault();
        void session.differentiate(of, names, dialog.body);
      }}>
        <label>The sum of the elements of <input data-first value={of} spellcheck={false}
          onInput={(event) => setOf(event.currentTarget.value)} /></label>
        <label>by <input value={wrt} spellcheck={false}
          onInput={(event) => setWrt(event.currentTarget.value)} /></label>
        <button type="submit">Differentiate</button>
      </form>
    </Frame>
  );
}

function ScopeOf({ session, dialog }: { session: Session; dialog: Dialog & { kind: 'scope' } }) {
  const [scope, setScope] = useState(dialog.from);
  return (
    <Frame session={session} title={`Put ${plural(dialog.ids.length, 'block')} into a scope`}>
      <form onSubmit={(event) => {
        event.preventDefault();
        session.moveTo(dialog.ids, dialog.from, scope.trim());
      }}>
        <label>Scope, such as layer1 or tower/layer1 <input data-first value={scope}
          spellcheck={false} onInput={(event) => setScope(event.currentTarget.value)} /></label>
        <button type="submit">Put</button>
      </form>
    </Frame>
  );
}

function FunctionOf({ session, dialog }: { session: Session; dialog: Dialog & { kind: 'function' } }) {
  const [name, setName] = useState(dialog.name);
  return (
    <Frame session={session} title={`Make a function of ${plural(dialog.ids.length, 'block')}`}>
      <form onSubmit={(event) => {
        event.preventDefault();
        if (session.extractFunction(dialog.ids, name.trim())) session.close();
      }}>
        <label>Name <input data-first value={name} spellcheck={false}
          onInput={(event) => setName(event.currentTarget.value)} /></label>
        <button type="submit">Make</button>
      </form>
    </Frame>
  );
}

// The functions of the graph, and fields for a new one.
function Functions({ session }: { session: Session }) {
  const { editor } = session;
  const [name, setName] = useState(editor.freeFunction('function'));
  const [part, setPart] = useState('');
  const problems = editor.removalProblems();
  const found = editor.bodies.filter((body) => editor.functionOf(body).includes(part));
  return (
    <Frame session={session} title="Functions">
      {editor.bodies.length === 0 && <p>The graph has no functions.</p>}
      {editor.bodies.length > kMaxFunctions && (
        <p><label>{plural(editor.bodies.length, 'function')}; those with names that contain{' '}
          <input value={part} spellcheck={false} onInput={(event) => setPart(event.currentTarget.value)} />
        </label></p>
      )}
      <ul>
        {found.slice(0, kMaxFunctions).map((body) => {
          const of = editor.functionOf(body);
          const problem = problems.get(body) ?? '';
          return (
            <li key={body}>
              <form onSubmit={(event) => {
                event.preventDefault();
                session.renameFunction(body, new FormData(event.currentTarget).get('name') as string);
              }}>
                <input name="name" aria-label={`Name of ${visible(of)}`} defaultValue={of} spellcheck={false} />{' '}
                <button type="submit" aria-label={`Rename ${visible(of)}`}>Rename</button>{' '}
                <button type="button" aria-label={`Remove ${visible(of)}`} disabled={problem !== ''}
                        onClick={(event) => {
                          // Removing the function also removes this button.
                          event.currentTarget.closest('dialog')!.querySelector<HTMLElement>('[data-first]')!.focus();
                          session.removeFunction(body);
                        }}>Remove</button>
                {problem !== '' && <span class="soft"> {visible(problem)}</span>}
              </form>
            </li>
          );
        })}
      </ul>
      <form onSubmit={(event) => {
        event.preventDefault();
        if (session.addFunction(name)) session.close();
      }}>
        <label>New function <input data-first value={name} spellcheck={false}
          onInput={(event) => setName(event.currentTarget.value)} /></label>{' '}
        <button type="submit">Add</button>
      </form>
    </Frame>
  );
}

export function Dialogs({ session, page }: { session: Session; page: Page }) {
  const { dialog } = session;
  switch (dialog?.kind) {
    case 'palette': return <Palette session={session} dialog={dialog} />;
    case 'connect': return <Connect session={session} to={dialog.to} />;
    case 'gradients': return <Gradients session={session} dialog={dialog} />;
    case 'scope': return <ScopeOf session={session} dialog={dialog} />;
    case 'function': return <FunctionOf session={session} dialog={dialog} />;
    case 'functions': return <Functions session={session} />;
    case 'text': return (
      <Frame session={session} title={dialog.title}>
        <textarea data-first readOnly rows={24} aria-label={dialog.title} value={dialog.text} />
        <p><button type="button" onClick={() => page.save(dialog.file, 'text/plain', dialog.text)}>
          Download {visible(dialog.file)}</button></p>
      </Frame>
    );
    default: return null;
  }
}
