// The colours of the picture, from the style sheet: light, dark, or those of the system.

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

export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const theme = {} as Theme;
  for (const name of kNames) {
    const property = '--' + name.replace(/[A-Z]/g, (c) => '-' + c.toLowerCase());
    theme[name] = style.getPropertyValue(property).trim();
  }
  return theme;
}

// The colour of a share of the time, from 0 to 1: towards the colour of problems, as far as text can
// be read on it.
export function heatColor(theme: Theme, heat: number): string {
  return `color-mix(in srgb, ${theme.problem} ${Math.round(8 + 37 * heat)}%, ${theme.block})`;
}
