// Makes untrusted text safe to display.

// Control characters, bidirectional formatting marks, line separators, and invisible characters.
const kHidden =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

// Escapes hidden characters: "\u202e".
export function visible(text: string): string {
  // The common case.
  if (/^[ -~]*$/.test(text)) return text;
  return text.replace(kHidden, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

// Like visible(), but keeps the line breaks, for text such as documentation.
export function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n');
}

// Returns at most `max` characters of visible text. Longer text ends in "…".
export function shorten(text: string, max: number): string {
  const shown = visible(text.length > max * 2 ? text.slice(0, max * 2) : text);
  if (shown.length <= max) return shown;
  // Does not cut between the halves of a surrogate pair.
  const cut = /[\ud800-\udbff]/.test(shown[max - 2] ?? '') ? max - 2 : max - 1;
  return shown.slice(0, Math.max(cut, 0)) + '…';
}

// Returns the last part of a name: "a/b/c" -> "c".
export function leaf(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

export function plural(n: number, word: string): string {
  return `${n.toLocaleString('en')} ${word}${n === 1 ? '' : 's'}`;
}

// Formats nanoseconds with a unit: "1.25 ms".
export function duration(ns: number): string {
  const units: [number, string][] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']];
  for (const [size, unit] of units) {
    if (ns >= size) return `${Number((ns / size).toPrecision(3))} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}

export function bytesText(n: number): string {
  const units: [number, string][] = [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']];
  for (const [size, unit] of units) {
    if (n >= size) return `${Number((n / size).toPrecision(3))} ${unit}`;
  }
  return `${n} B`;
}
