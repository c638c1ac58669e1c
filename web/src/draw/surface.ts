// The target of a drawing, in pixels: a canvas, or the text of an SVG file.

export interface Surface {
  rect(x: number, y: number, w: number, h: number, style: RectStyle): void;
  // A rectangle without a border. A picture may have tens of thousands of them.
  bar(x: number, y: number, w: number, h: number, fill: string): void;
  circle(x: number, y: number, radius: number, fill: string): void;
  text(text: string, x: number, y: number, style: TextStyle): void;
  // Starts a layer: later shapes are above earlier shapes. A canvas draws all text on top.
  layer(): void;
  // A path of lines and curves. strokePath draws it.
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
  curveTo(x1: number, y1: number, x2: number, y2: number, x: number, y: number): void;
  strokePath(color: string, width: number, dashed: boolean): void;
}

export interface RectStyle {
  fill?: string;
  stroke?: string;
  width?: number;
  radius?: number;
  dashed?: boolean;
}

export interface TextStyle {
  color: string;
  size: number;
  bold?: boolean;
  // The position of x in the text; left by default.
  align?: 'left' | 'right' | 'center';
}

export const kFont = 'system-ui, sans-serif';

// Changing the style of a canvas takes longer than drawing most shapes. Shapes of the same style
// are therefore drawn together: rectangles and circles before the next path, text at the end.
export class CanvasSurface implements Surface {
  private readonly rects = new Map<string, { style: RectStyle; list: number[] }>();
  private readonly bars = new Map<string, number[]>();
  private readonly circles = new Map<string, number[]>();
  private readonly texts = new Map<string, { style: TextStyle; list: (string | number)[] }>();
  private isPath = false;

  constructor(private readonly context: CanvasRenderingContext2D) {
    context.textBaseline = 'middle';
  }

  rect(x: number, y: number, w: number, h: number, style: RectStyle): void {
    const key = `${style.fill} ${style.stroke} ${style.width} ${style.radius} ${style.dashed}`;
    let bucket = this.rects.get(key);
    if (bucket === undefined) {
      bucket = { style, list: [] };
      this.rects.set(key, bucket);
    }
    bucket.list.push(x, y, w, h);
  }

  bar(x: number, y: number, w: number, h: number, fill: string): void {
    let list = this.bars.get(fill);
    if (list === undefined) {
      list = [];
      this.bars.set(fill, list);
    }
    list.push(x, y, w, h);
  }

  circle(x: number, y: number, radius: number, fill: string): void {
    let list = this.circles.get(fill);
    if (list === undefined) {
      list = [];
      this.circles.set(fill, list);
    }
    list.push(x, y, radius);
  }

  text(text: string, x: number, y: number, style: TextStyle): void {
    if (text === '') return;
    const key = `${style.size} ${style.bold} ${style.align} ${style.color}`;
    let bucket = this.texts.get(key);
    if (bucket === undefined) {
      bucket = { style, list: [] };
      this.texts.set(key, bucket);
    }
    bucket.list.push(text, x, y);
  }

  layer(): void {
    const c = this.context;
    for (const [fill, list] of this.bars) {
      c.fillStyle = fill;
      for (let i = 0; i < list.length; i += 4) {
        c.fillRect(list[i]!, list[i + 1]!, list[i + 2]!, list[i + 3]!);
      }
    }
    this.bars.clear();
    for (const { style, list } of this.rects.values()) {
      const radius = style.radius ?? 0;
      const isRound = radius > 0.5;
      if (style.fill !== undefined) c.fillStyle = style.fill;
      if (isRound || style.stroke !== undefined) {
        c.beginPath();
        for (let i = 0; i < list.length; i += 4) {
          if (isRound) c.roundRect(list[i]!, list[i + 1]!, list[i + 2]!, list[i + 3]!, radius);
          else c.rect(list[i]!, list[i + 1]!, list[i + 2]!, list[i + 3]!);
        }
        if (style.fill !== undefined) c.fill();
      } else {
        for (let i = 0; i < list.length; i += 4) {
          c.fillRect(list[i]!, list[i + 1]!, list[i + 2]!, list[i + 3]!);
        }
      }
      if (style.stroke === undefined) continue;
      c.strokeStyle = style.stroke;
      c.lineWidth = style.width ?? 1;
      if (style.dashed) c.setLineDash([5, 4]);
      c.stroke();
      if (style.dashed) c.setLineDash([]);
    }
    this.rects.clear();
    for (const [fill, list] of this.circles) {
      c.fillStyle = fill;
      c.beginPath();
      for (let i = 0; i < list.length; i += 3) {
        c.moveTo(list[i]! + list[i + 2]!, list[i + 1]!);
        c.arc(list[i]!, list[i + 1]!, list[i + 2]!, 0, 2 * Math.PI);
      }
      c.fill();
    }
    this.circles.clear();
  }

  // Draws all pending shapes.
  finish(): void {
    this.layer();
    const c = this.context;
    for (const { style, list } of this.texts.values()) {
      c.font = `${style.bold ? 'bold ' : ''}${style.size.toFixed(1)}px ${kFont}`;
      c.textAlign = style.align ?? 'left';
      c.fillStyle = style.color;
      for (let i = 0; i < list.length; i += 3) {
        c.fillText(list[i] as string, list[i + 1] as number, list[i + 2] as number);
      }
    }
    this.texts.clear();
  }

  moveTo(x: number, y: number): void {
    if (!this.isPath) {
      this.layer();
      this.context.beginPath();
      this.isPath = true;
    }
    this.context.moveTo(x, y);
  }
  lineTo(x: number, y: number): void {
    this.context.lineTo(x, y);
  }
  curveTo(x1: number, y1: number, x2: number, y2: number, x: number, y: number): void {
    this.context.bezierCurveTo(x1, y1, x2, y2, x, y);
  }
  strokePath(color: string, width: number, dashed: boolean): void {
    if (!this.isPath) return;
    this.isPath = false;
    const c = this.context;
    c.strokeStyle = color;
    c.lineWidth = width;
    if (dashed) c.setLineDash([5, 4]);
    c.stroke();
    if (dashed) c.setLineDash([]);
  }
}

// Escapes text for an XML element or attribute.
export function escapeXml(text: string): string {
  const named: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  // XML does not allow these characters.
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd')
    .replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd')
    .replace(/[&<>"]/g, (c) => named[c]!);
}

export class SvgSurface implements Surface {
  private readonly parts: string[] = [];
  private d: string[] = [];

  // Returns the text of the SVG file.
  finish(width: number, height: number, background: string, title: string): string {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
      `viewBox="0 0 ${width} ${height}" font-family="${kFont}" dominant-baseline="central">` +
      `<title>${escapeXml(title)}</title>` +
      `<rect width="100%" height="100%" fill="${escapeXml(background)}"/>\n` +
      `${this.parts.join('\n')}\n</svg>\n`;
  }

  private static n(value: number): string {
    return String(Math.round(value * 100) / 100);
  }
  private static attrs(style: RectStyle): string {
    let text = ` fill="${escapeXml(style.fill ?? 'none')}"`;
    if (style.stroke !== undefined) {
      text += ` stroke="${escapeXml(style.stroke)}" stroke-width="${style.width ?? 1}"`;
      if (style.dashed) text += ' stroke-dasharray="5 4"';
    }
    return text;
  }

  rect(x: number, y: number, w: number, h: number, style: RectStyle): void {
    const { n } = SvgSurface;
    const radius = style.radius === undefined ? '' : ` rx="${n(style.radius)}"`;
    this.parts.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}"${radius}` +
      `${SvgSurface.attrs(style)}/>`);
  }
  bar(x: number, y: number, w: number, h: number, fill: string): void {
    this.rect(x, y, w, h, { fill });
  }
  circle(x: number, y: number, radius: number, fill: string): void {
    const { n } = SvgSurface;
    this.parts.push(
      `<circle cx="${n(x)}" cy="${n(y)}" r="${n(radius)}" fill="${escapeXml(fill)}"/>`);
  }
  text(text: string, x: number, y: number, style: TextStyle): void {
    const { n } = SvgSurface;
    const anchor = { left: '', right: ' text-anchor="end"', center: ' text-anchor="middle"' };
    this.parts.push(`<text x="${n(x)}" y="${n(y)}" font-size="${n(style.size)}"` +
      `${style.bold ? ' font-weight="bold"' : ''}${anchor[style.align ?? 'left']}` +
      ` fill="${escapeXml(style.color)}">${escapeXml(text)}</text>`);
  }
  layer(): void {}
  moveTo(x: number, y: number): void {
    this.d.push(`M${SvgSurface.n(x)} ${SvgSurface.n(y)}`);
  }
  lineTo(x: number, y: number): void {
    this.d.push(`L${SvgSurface.n(x)} ${SvgSurface.n(y)}`);
  }
  curveTo(x1: number, y1: number, x2: number, y2: number, x: number, y: number): void {
    this.d.push('C' + [x1, y1, x2, y2, x, y].map(SvgSurface.n).join(' '));
  }
  strokePath(color: string, width: number, dashed: boolean): void {
    if (this.d.length === 0) return;
    this.parts.push(`<path d="${this.d.join('')}" fill="none" stroke="${escapeXml(color)}" ` +
      `stroke-width="${width}"${dashed ? ' stroke-dasharray="5 4"' : ''}/>`);
    this.d = [];
  }
}
