// The colours of the picture, from the style sheet: light, dark, or system colours.

export interface Theme {
  background: string;
  scope: string;
  scopeLine: string;
  block: string;
  line: string;
  text: string;
  soft: string;
  edge: string;
  accent: string;
  mark: string;
  constant: string;
  added: string;
  removed: string;
  changed: string;
  problem: string;
}

const kNames: (keyof Theme)[] = [
  'background', 'scope', 'scopeLine', 'block', 'line', 'text', 'soft', 'edge', 'accent', 'mark',
  'constant', 'added', 'removed', 'changed', 'problem',
];

// Reads the theme. All colours have the form "rgb(0, 0, 0)", even named system colours.
export function readTheme(): Theme {
  const probe = document.createElement('span');
  probe.style.forcedColorAdjust = 'none';
  document.body.append(probe);
  const style = getComputedStyle(probe);
  const theme = {} as Theme;
  for (const name of kNames) {
    probe.style.color = `var(--${name.replace(/[A-Z]/g, (c) => '-' + c.toLowerCase())})`;
    theme[name] = style.color;
  }
  probe.remove();
  return theme;
}

// Mixes two colours: `share` is the share of the first. SVG 1.1 also supports the resulting form.
export function mixColors(a: string, b: string, share: number): string {
  const numbers = (color: string): number[] => (color.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  const [from, to] = [numbers(a), numbers(b)];
  if (from.length < 3 || to.length < 3) return b;
  return `rgb(${from.map((x, i) => Math.round(x * share + to[i]! * (1 - share))).join(', ')})`;
}

// The colour of a share of the time, from 0 to 1. It approaches the colour of problems, but text on
// it stays readable.
export function heatColor(theme: Theme, heat: number): string {
  return mixColors(theme.problem, theme.block, Math.round(8 + 37 * heat) / 100);
}
