// The panel of the selected block or scope.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { OutputJson } from '../data/format.ts';
import { bytesText, duration, leaf, plural, visible, visibleLines } from '../data/text.ts';
import type { Description, Neighbour } from '../worker/api.ts';
import { kMaxListed } from '../worker/api.ts';
import type { TimelineView } from '../view/timeline.ts';
import type { App } from './app.ts';
import { commandsOf, runCommand } from './commands.ts';
import type { Page } from './commands.ts';
import { BlockFields, GraphFields } from './edit/block.tsx';

const kChanges = ['', 'Added', 'Removed', 'Changed'];

function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return <section><h3>{title}</h3>{children}</section>;
}

function Link({ app, to }: { app: App; to: Neighbour }) {
  return (
    <button type="button" class="link" title={visible(to.name)}
            onClick={() => void app.select(to.node)}>
      {visible(leaf(to.name)).slice(0, 300)}
    </button>
  );
}

function More({ n }: { n: number }) {
  return n >= kMaxListed ? <p class="soft">Only the first {kMaxListed} are listed.</p> : null;
}

function Inputs({ app, d }: { app: App; d: Description }) {
  if (d.inputs.length + d.control.length + d.missing.length === 0) return null;
  return (
    <Section title="Inputs">
      <ul>
        {d.inputs.map((input, i) => (
          <li key={i}>
            {input.pin !== '' && <b>{visible(input.pin)} </b>}
            <Link app={app} to={input} /> <code>{visible(input.type)}</code>
          </li>
        ))}
        {d.control.map((input, i) => (
          <li key={`c${i}`}>after <Link app={app} to={input} /></li>
        ))}
        {d.missing.map((name, i) => (
          <li key={`m${i}`} class="problem">not in the graph: {visible(name)}</li>
        ))}
      </ul>
      <More n={d.inputs.length} />
    </Section>
  );
}

function Outputs({ app, d }: { app: App; d: Description }) {
  if (d.outputs.length === 0) return null;
  return (
    <Section title="Outputs">
      <ul>
        {d.outputs.map((output, i) => (
          <li key={i}>
            <b>{visible(output.pin)}</b> <code>{visible(output.type)}</code>{' '}
            {output.consumers.map((to, k) => <Link key={k} app={app} to={to} />)}
            {output.doc !== '' && <p class="soft">{visibleLines(output.doc)}</p>}
          </li>
        ))}
      </ul>
      <More n={d.outputs.length} />
    </Section>
  );
}

function Attributes({ d }: { d: Description }) {
  if (d.attrs.length === 0) return null;
  return (
    <Section title="Attributes">
      <dl>
        {d.attrs.map((attr) => (
          <div key={attr.name} class={attr.isDefault ? 'soft' : ''}>
            <dt>{visible(attr.name)}</dt>
            <dd>
              <code>{visible(attr.value)}</code>{attr.isDefault && ' (default)'}
              {attr.doc !== '' && <p>{visibleLines(attr.doc)}</p>}
            </dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}

function number(value: number | null): string {
  return value === null ? 'none' : String(Number(value.toPrecision(6)));
}

function Histogram({ counts }: { counts: number[] }) {
  const most = Math.max(...counts, 1);
  return (
    <svg class="histogram" viewBox={`0 0 ${counts.length} 20`} preserveAspectRatio="none" role="img"
         aria-label={`Histogram: ${counts.join(' ')}`}>
      {counts.map((count, i) => (
        <rect key={i} x={i} width="0.9" y={20 - (20 * count) / most}
              height={(20 * count) / most} />
      ))}
    </svg>
  );
}

// A line through the elements. Elements that are not finite are gaps.
function Curve({ values, name }: { values: (number | null)[]; name: string }) {
  const finite = values.filter((value) => value !== null);
  const low = Math.min(...finite);
  // Computes with halves, because the difference may overflow.
  const range = Math.max(...finite) / 2 - low / 2;
  const lines: string[] = [];
  values.forEach((value, i) => {
    if (value === null) return;
    const y = range > 0 ? 39 - (38 * (value / 2 - low / 2)) / range : 20;
    const point = `${i},${Number(y.toFixed(2))}`;
    if (i > 0 && values[i - 1] !== null) lines[lines.length - 1] += ` ${point}`;
    else lines.push(point);
  });
  return (
    <svg class="curve" viewBox={`0 0 ${values.length - 1} 40`} preserveAspectRatio="none" role="img"
         aria-label={`Curve of ${name}, from ${number(values[0]!)} to ${number(values[values.length - 1]!)}`}>
      {lines.map((points, i) => (points.includes(' ')
        ? <polyline key={i} points={points} />
        : <polyline key={i} points={`${points} ${points}`} />))}
    </svg>
  );
}

// Draws levels of gray or colours. Pixels that are not finite are red.
function drawPicture(canvas: HTMLCanvasElement | null, picture: number[]): void {
  const context = canvas?.getContext('2d');
  if (!context) return;
  const [rows, columns, channels, ...levels] = picture as [number, number, number, ...number[]];
  const image = context.createImageData(columns, rows);
  for (let i = 0; i < rows * columns; ++i) {
    const pixel = levels.slice(i * channels, (i + 1) * channels);
    const rgb = channels === 1 ? [pixel[0]!, pixel[0]!, pixel[0]!] : pixel.slice(0, 3);
    const isBad = pixel.some((level) => level < 0);
    image.data.set(isBad ? [255, 0, 0, 255] : [...rgb, channels === 4 ? pixel[3]! : 255], 4 * i);
  }
  context.putImageData(image, 0, 0);
}

function Result({ result, d }: { result: OutputJson; d: Description }) {
  const { p } = result;
  const name = d.outputs[result.o]?.pin ?? String(result.o);
  return (
    <li>
      <b>{visible(name)}</b> <code>{result.t} [{result.s.join(',')}]</code>
      {result.nan > 0 && <b class="problem"> {plural(result.nan, 'NaN')}</b>}
      {result.pinf > 0 && <b class="problem"> {result.pinf} +Inf</b>}
      {result.ninf > 0 && <b class="problem"> {result.ninf} -Inf</b>}
      {result.min !== null && (
        <p>min {number(result.min)}, max {number(result.max)}, mean {number(result.mean)},
          stddev {number(result.sd)}</p>
      )}
      {result.hist.length > 0 && <Histogram counts={result.hist} />}
      {result.c !== undefined && <Curve values={result.c} name={name} />}
      {p !== undefined && (
        <canvas key={`${d.id}:${result.o}`} class="picture" width={p[1]} height={p[0]} role="img"
                aria-label={`Picture of ${name}`} ref={(canvas) => drawPicture(canvas, p)} />
      )}
      {result.first !== '' && <p class="values"><code>{visible(result.first)}</code></p>}
    </li>
  );
}

function Results({ d }: { d: Description }) {
  if (d.time < 0 && d.results.length === 0) return null;
  return (
    <Section title="Run">
      {d.time >= 0 && (
        <p>{duration(d.time)}, {(100 * d.share).toFixed(1)} % of the run
          {d.thread !== '' && `, thread ${visible(d.thread)}`}
          {d.allocated > 0 && `, ${bytesText(d.allocated)} allocated`}</p>
      )}
      <ul>{d.results.map((result) => <Result key={result.o} result={result} d={d} />)}</ul>
    </Section>
  );
}

function Details({ app, d }: { app: App; d: Description }) {
  const isScope = d.id < 0;
  const edited = app.edit?.nodeOf(d.id) ?? null;
  return (
    <>
      <h2>{visible(leaf(d.name))}</h2>
      <p class="name">{visible(d.name)}</p>
      {isScope
        ? <p>{plural(d.numNodes, 'op')} in this scope</p>
        : <p><b>{visible(d.op)}</b> {visible(d.summary)}</p>}
      {d.problem !== '' && <p class="problem" role="note">Cannot run: {visible(d.problem)}</p>}
      {d.change > 0 && <p class="change">{kChanges[d.change]}</p>}
      {d.changes.length > 0 && (
        <ul>{d.changes.map((change, i) => <li key={i}>{visible(change)}</li>)}</ul>
      )}
      <Results d={d} />
      {d.value !== '' && <Section title="Value"><code>{visible(d.value)}</code></Section>}
      {edited !== null && app.edit !== null
        ? <BlockFields key={edited.id} session={app.edit} node={edited} /> : <Inputs app={app} d={d} />}
      <Outputs app={app} d={d} />
      {edited === null && <Attributes d={d} />}
      {d.ops.length > 0 && (
        <Section title="Ops">
          <ul>{d.ops.map(([op, n]) => <li key={op}>{visible(op)}: {n}</li>)}</ul>
        </Section>
      )}
      {d.device !== '' && <Section title="Device"><code>{visible(d.device)}</code></Section>}
      {d.doc !== '' && (
        <Section title="Documentation"><p class="doc">{visibleLines(d.doc)}</p></Section>
      )}
    </>
  );
}

function Overview({ app, page }: { app: App; page: Page }) {
  const { summary } = app;
  if (summary === null) return <p>Reading the graph…</p>;
  const [added, removed, changed] = summary.changes;
  return (
    <>
      <h2>{visible(summary.title)}</h2>
      <p>{plural(summary.nodes, 'block')}, {plural(summary.ops, 'op')},{' '}
        {plural(summary.scopes, 'scope')}</p>
      {app.edit !== null && <GraphFields session={app.edit} page={page} />}
      {summary.runTime >= 0 && <p>Run in {duration(summary.runTime)}</p>}
      {app.timeline !== null && <Events app={app} view={app.timeline} />}
      {summary.diff && <p>{added} added, {removed} removed, {changed} changed</p>}
      {summary.notes.length > 0 && (
        <Section title="Cannot run">
          {summary.notes.map((note, i) => <p key={i} class="problem">{visible(note)}</p>)}
        </Section>
      )}
      <p class="soft">Select a block to see its inputs, outputs and attributes. Press ? for all
        keys.</p>
      <p class="soft">{summary.generator}</p>
    </>
  );
}

// The timeline as a table, ordered by start time.
function Events({ app, view }: { app: App; view: TimelineView }) {
  const [first, setFirst] = useState(0);
  const events = view.sorted();
  const last = Math.min(first + kMaxListed, events.length);
  return (
    <details>
      <summary>Timeline as a table: {plural(events.length, 'execution')}</summary>
      {/* Focusable, so that keys scroll it. */}
      <div class="events" role="region" tabIndex={0} aria-label="Executions">
        <table>
          <caption>{events.length === 0 ? 'None' : `${first + 1} to ${last}`}</caption>
          <thead><tr><th scope="col">Block</th><th scope="col">Start</th><th scope="col">Time</th>
            <th scope="col">Thread</th></tr></thead>
          <tbody>
            {events.slice(first, last).map((event, i) => (
              <tr key={first + i}>
                <td>{event.node < 0 ? visible(event.name) : (
                  <button type="button" class="link" onClick={() => void app.select(event.node)}>
                    {visible(event.name)}
                  </button>
                )}</td>
                <td>{duration(event.begin)}</td><td>{duration(event.end - event.begin)}</td>
                <td>{visible(view.data.threads[event.thread] ?? '')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {events.length > kMaxListed && (
        <p>
          <button type="button" disabled={first === 0}
                  onClick={() => setFirst(first - kMaxListed)}>Earlier executions</button>{' '}
          <button type="button" disabled={last === events.length}
                  onClick={() => setFirst(first + kMaxListed)}>Later executions</button>
        </p>
      )}
    </details>
  );
}

// The chosen blocks, and the actions for them.
function Chosen({ app, page }: { app: App; page: Page }) {
  const nodes = app.editedNodes();
  return (
    <Section title={`Selection: ${plural(nodes.length, 'block')}`}>
      <p>
        {commandsOf(app).filter((command) => kChosenCommands.includes(command.id)).map((command) => (
          <button key={command.id} type="button" onClick={() => runCommand(command, app, page)}>
            {command.title}
          </button>
        ))}
      </p>
      <ul>
        {nodes.slice(0, kMaxListed).map((node) => <li key={node.id}>{visible(node.name).slice(0, 300)}</li>)}
      </ul>
      <More n={nodes.length} />
    </Section>
  );
}
const kChosenCommands = ['remove', 'duplicate', 'copy', 'group', 'ungroup'];

export function Panel({ app, page }: { app: App; page: Page }) {
  const d = app.description;
  return (
    <aside id="panel" aria-label="Details" tabIndex={0}>
      {app.chosen.size > 0 && <Chosen app={app} page={page} />}
      {d === null ? <Overview app={app} page={page} /> : <Details app={app} d={d} />}
    </aside>
  );
}
