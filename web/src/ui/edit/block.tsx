// The fields of the selected block and of the graph.
import { useId, useState } from 'preact/hooks';
import type { AttrJson } from '../../data/format.ts';
import { plural, visible, visibleLines } from '../../data/text.ts';
import {
  fieldText, functionName, kTypes, parseField, tensorTable,
} from '../../edit/fields.ts';
import type { EditNode } from '../../edit/node.ts';
import type { FeedField } from '../../edit/feed.ts';
import type { Session } from '../../edit/session.ts';
import { parseText, printText, quote } from '../../edit/text.ts';
import { downloadGraph } from '../commands.ts';
import type { Page } from '../commands.ts';

// A field whose value takes effect when the field loses focus or Enter is pressed. Until then it
// keeps the typed text, even if the page is rendered again.
function TextField({ label, value, onDone, id, placeholder = '', list }:
                   { label: string; value: string; onDone: (text: string) => void; id?: string;
                     placeholder?: string; list?: string }) {
  const [draft, setDraft] = useState<string | null>(null);
  return (
    <input aria-label={label} value={draft ?? value} placeholder={placeholder} spellcheck={false}
           autocomplete="off" {...(id === undefined ? {} : { id })}
           {...(list === undefined ? {} : { list })}
           onInput={(event) => setDraft(event.currentTarget.value)}
           onBlur={() => setDraft(null)}
           onChange={(event) => {
             setDraft(null);
             if (event.currentTarget.value !== value) onDone(event.currentTarget.value);
           }}
           onKeyDown={(event) => {
             if (event.key === 'Escape') {
               setDraft(null);
               event.currentTarget.value = value;
               document.getElementById('tree')?.focus();
             }
           }} />
  );
}

function Choice({ label, value, values, onDone }:
                { label: string; value: string; values: readonly [string, string][];
                  onDone: (value: string) => void }) {
  return (
    <select aria-label={label} value={value}
            onChange={(event) => onDone(event.currentTarget.value)}>
      {values.map(([key, text]) => <option key={key} value={key}>{text}</option>)}
    </select>
  );
}

// The elements of a small constant.
function Table({ session, node, name }: { session: Session; node: EditNode; name: string }) {
  const table = tensorTable(node.attrs[name] ?? '');
  if (table === null) return null;
  return (
    <table class="tensor" aria-label={`Elements of ${name}`}>
      <tbody>
        {table.rows.map((row, r) => (
          <tr key={r}>
            {row.map((value, c) => (
              <td key={c}>
                <TextField label={`Element ${r}, ${c}`} value={value}
                           onDone={(text) => session.setElement(node.id, name, r, c, text)} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// The key of the choice "no value set".
const kUnset = '\u0000';

function Attribute({ session, node, attr, name }:
                   { session: Session; node: EditNode; attr: AttrJson | null; name: string }) {
  const own = node.attrs[name];
  const type = attr?.[1] ?? '';
  const set = (text: string | null): void => {
    session.do(() => session.editor.setAttr(node.id, name, text));
  };
  if (own === null) return <code>large, as in the file</code>;
  const shown = own === undefined ? null : fieldText(type, own);
  const fallback = attr?.[6] === null || attr?.[6] === undefined ? '' : (fieldText(type, attr[6]) ?? attr[6]);
  // Attributes without a simpler form are edited as message text.
  const isMessage = own !== undefined && shown === null;
  const called = type === 'func' && own !== undefined ? functionName(own) : null;
  const { functions } = session.editor;
  if (type === 'func' && functions.length > 0 && (own === undefined || called !== null)) {
    const list = called === null || functions.includes(called) ? functions : [called, ...functions];
    return (
      <Choice label={`Attribute ${name}`} value={called ?? kUnset}
              values={[[kUnset, 'not set'], ...list.map((f): [string, string] => [f, visible(f)])]}
              onDone={(value) => set(value === kUnset ? null : `func { name: ${quote(value)} }`)} />
    );
  }
  const allowed = type === 'bool' ? ['false', 'true']
    : type === 'type' || type === 'string' ? (attr?.[5] ?? []) : [];
  const values = type === 'type' && allowed.length === 0 ? kTypes : allowed;
  const label = `Attribute ${name}`;
  if (attr !== null && values.length > 0 && !isMessage) {
    const list = values.includes(shown ?? values[0]!) ? values : [shown!, ...values];
    return (
      <Choice label={label} value={shown ?? kUnset}
              values={[[kUnset, fallback === '' ? 'not set' : `${fallback} (default)`],
                       ...list.map((value): [string, string] => [value, value])]}
              onDone={(value) => set(value === kUnset ? null : parseField(attr, value))} />
    );
  }
  return (
    <TextField label={label} value={isMessage ? own : (shown ?? '')}
               placeholder={fallback === '' ? type : `${fallback} (default)`}
               onDone={(text) => {
                 session.do(() => {
                   const value = text === '' && type !== 'string' && !type.startsWith('list(') ? null
                     : isMessage || attr === null ? printText(parseText(text)) : parseField(attr, text);
                   session.editor.setAttr(node.id, name, value);
                 });
               }} />
  );
}

// Types of files that can become tensors.
const kTensorFiles = '.npy,image/png,image/jpeg,image/gif,image/bmp,image/webp';

function FeedFields({ session, node }: { session: Session; node: EditNode }) {
  const feed = session.feedOf(node);
  // Changes the current feed, which may be newer than the displayed feed.
  const set = (change: Partial<FeedField>): void =>
    session.setFeed(node, { ...session.feedOf(node), ...change });
  return (
    <section>
      <h3>Fed in runs</h3>
      <Choice label="Feed" value={feed.kind} onDone={(kind) => set({ kind: kind as FeedField['kind'] })}
              values={[['none', 'computed'], ['random', 'random numbers'], ['values', 'numbers'],
                       ['file', 'an .npy file or image']]} />
      {(feed.kind === 'random' || feed.kind === 'values') && (
        <p><label>Shape <TextField label="Shape of the feed" value={feed.shape}
                                   onDone={(shape) => set({ shape })} /></label></p>
      )}
      {feed.kind === 'values' && (
        <p><TextField label="Numbers of the feed" value={feed.values} placeholder="1, 2, 3"
                      onDone={(values) => set({ values })} /></p>
      )}
      {feed.kind === 'random' && (
        <p><label>Seed <TextField label="Seed of the feed" value={String(feed.seed)}
                                  onDone={(text) => set({ seed: Math.max(Math.floor(Number(text)) || 0, 0) })} />
        </label></p>
      )}
      {feed.kind === 'file' && (
        <p><label>{feed.file === '' ? 'File' : visible(feed.file)}{' '}
          <input type="file" accept={kTensorFiles} aria-label="File of the feed" onChange={(event) => {
            const file = event.currentTarget.files?.[0];
            if (file !== undefined) void session.feedFile(node, file);
          }} /></label></p>
      )}
    </section>
  );
}

export function BlockFields({ session, node }: { session: Session; node: EditNode }) {
  const { editor } = session;
  const { library } = editor;
  const op = library.find(node.op);
  const sources = useId();
  const pins = library.inputs(node);
  // The data inputs, for blocks of unknown ops, whose pins are not known.
  const data = node.inputs.filter((input) => !input.startsWith('^'));
  const names = [...new Set([...(op?.a.map((attr) => attr[0]) ?? []), ...Object.keys(node.attrs)])];
  // List sizes follow the connections.
  const sizes = new Set(op?.i.map((arg) => library.numberAttr(arg)));
  const others = editor.nodesOf(node.body)
    .filter((other) => other.id !== node.id && other.end !== 'result' && other.end !== 'control');
  const isList = others.length <= 500;
  return (
    <>
      <section>
        <h3>Name</h3>
        <TextField id="block-name" label="Name" value={node.name}
                   onDone={(name) => session.do(() => editor.rename(node.id, name))} />
      </section>
      {(pins.length > 0 || node.inputs.length > 0) && (
        <section>
          <h3>Inputs</h3>
          {isList && (
            <datalist id={sources}>
              {others.map((other) => <option key={other.id} value={other.name} />)}
            </datalist>
          )}
          <ul>
            {pins.map((pin) => (
              <li key={pin.name}>
                <label>{visible(pin.name)} <span class="soft">{library.typeOf(node, pin) || visible(pin.arg[1])}</span>{' '}
                  <TextField label={`Input ${pin.name}`} value={pin.isNew ? '' : (node.inputs[pin.index] ?? '')}
                             placeholder="block or block:1" {...(isList ? { list: sources } : {})}
                             onDone={(text) => session.connectByName(node, pin, text)} /></label>
              </li>
            ))}
            {op === null && data.map((input, i) => <li key={i}><code>{visible(input)}</code></li>)}
            {node.inputs.map((input, i) => (input.startsWith('^') ? (
              <li key={input}>after {visible(input.slice(1))}{' '}
                <button type="button" aria-label={`Do not run after ${visible(input.slice(1))}`}
                        onClick={() => session.do(() => editor.disconnect(node.id, i))}>×</button></li>
            ) : null))}
          </ul>
        </section>
      )}
      {names.length > 0 && (
        <section>
          <h3>Attributes</h3>
          <dl>
            {names.map((name) => {
              const attr = library.attr(op, name);
              return (
                <div key={name}>
                  <dt>{visible(name)} <span class="soft">{visible(attr?.[1] ?? '')}</span></dt>
                  <dd>
                    <Attribute session={session} node={node} attr={attr} name={name} />
                    {attr?.[1] === 'tensor' && <Table session={session} node={node} name={name} />}
                    {attr?.[1] === 'tensor' && (
                      <input type="file" accept={kTensorFiles} aria-label={`File of ${name}`}
                             onChange={(event) => {
                               const file = event.currentTarget.files?.[0];
                               if (file !== undefined) void session.setToFile(node, name, file);
                             }} />
                    )}
                    {sizes.has(name) && <p class="soft">The number of inputs</p>}
                    {attr !== null && attr[3] !== '' && <p class="soft">{visibleLines(attr[3])}</p>}
                  </dd>
                </div>
              );
            })}
          </dl>
        </section>
      )}
      {node.end === '' && (
        <section>
          <h3>Device</h3>
          <TextField label="Device" value={node.device}
                     onDone={(device) => session.do(() => editor.setDevice(node.id, device))} />
        </section>
      )}
      {session.isServed && library.outputs(node).length > 0 && <FeedFields session={session} node={node} />}
    </>
  );
}

// Facts about the whole graph: its file and its history.
export function GraphFields({ session, page }: { session: Session; page: Page }) {
  const { editor } = session;
  return (
    <section>
      <h3>File</h3>
      <TextField label="File" value={session.file}
                 onDone={(file) => { session.file = file; }} />
      <p>
        {session.isServed && <button type="button" onClick={() => void session.save()}>Save</button>}{' '}
        <button type="button" onClick={() => downloadGraph(session, page)}>Download</button>
      </p>
      <p class="soft">{plural(editor.nodes.length, 'block')}.{' '}
        {editor.undoTitle === null ? 'Nothing is changed.' : `Last change: ${visible(editor.undoTitle)}.`}</p>
      {editor.nodes.length === 0 && <p>Press b to add a block.</p>}
    </section>
  );
}
