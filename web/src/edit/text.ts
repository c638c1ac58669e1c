// Messages in protobuf text format.

// A field: its name, and either a scalar in its written form or a message.
export type Field = [string, string | Message];
export interface Message {
  fields: Field[];
}

const kMaxDepth = 100;

// A token: punctuation, a name or number, or a string with its quotes.
const kToken = /\s+|#[^\n]*|"(?:[^"\\\n]|\\[^])*"|'(?:[^'\\\n]|\\[^])*'|[{}<>[\]:,;]|[-+\w.%$/]+/y;

class Parser {
  private readonly tokens: string[] = [];
  private at = 0;

  constructor(text: string) {
    kToken.lastIndex = 0;
    while (kToken.lastIndex < text.length) {
      const begin = kToken.lastIndex;
      const match = kToken.exec(text);
      if (match === null) {
        throw new Error(`unexpected '${text.slice(begin, begin + 10)}' at character ${begin + 1}`);
      }
      if (!/^[\s#]/.test(match[0])) this.tokens.push(match[0]);
    }
  }

  parse(): Message {
    const message = this.fields(0);
    if (this.at < this.tokens.length) throw new Error(`unexpected '${this.tokens[this.at]!}'`);
    return message;
  }

  private fields(depth: number): Message {
    if (depth > kMaxDepth) throw new Error('messages are nested too deeply');
    const fields: Field[] = [];
    for (;;) {
      const name = this.tokens[this.at];
      if (name === undefined || name === '}' || name === '>') return { fields };
      ++this.at;
      if (name === ',' || name === ';') continue;
      if (!/^[A-Za-z_]\w*$/.test(name)) throw new Error(`expected the name of a field, found '${name}'`);
      if (this.tokens[this.at] === ':') ++this.at;
      if (this.tokens[this.at] !== '[') {
        fields.push([name, this.value(depth)]);
        continue;
      }
      ++this.at;
      while (this.tokens[this.at] !== ']') {
        fields.push([name, this.value(depth)]);
        if (this.tokens[this.at] === ',') ++this.at;
        else if (this.tokens[this.at] !== ']') throw new Error(`expected ']' in '${name}'`);
      }
      ++this.at;
    }
  }

  private value(depth: number): string | Message {
    const token = this.tokens[this.at++];
    if (token === '{' || token === '<') {
      const message = this.fields(depth + 1);
      const end = this.tokens[this.at++];
      if (end !== (token === '{' ? '}' : '>')) throw new Error(`expected the end of '${token}'`);
      return message;
    }
    if (token === undefined || /^[}>\]:,;[]$/.test(token)) {
      throw new Error(`expected a value, found '${token ?? 'the end'}'`);
    }
    if (!/^["']/.test(token)) return token;
    // Adjacent strings are concatenated.
    let text = quoted(token);
    while (/^["']/.test(this.tokens[this.at] ?? '')) {
      text = text.slice(0, -1) + quoted(this.tokens[this.at++]!).slice(1);
    }
    return text;
  }
}

// Returns a string token in double quotes.
function quoted(token: string): string {
  if (token.startsWith('"')) return token;
  return `"${token.slice(1, -1).replace(/\\'|"/g, (c) => (c === '"' ? '\\"' : "'"))}"`;
}

// Parses a message. Throws an error with the expected and the actual token.
export function parseText(text: string): Message {
  return new Parser(text).parse();
}

// Returns the message on one line.
export function printText(message: Message): string {
  return message.fields.map(([name, value]) => {
    if (typeof value === 'string') return `${name}: ${value}`;
    const text = printText(value);
    return text === '' ? `${name} { }` : `${name} { ${text} }`;
  }).join(' ');
}

export function scalars(message: Message, name: string): string[] {
  return message.fields.flatMap(([n, value]) =>
    (n === name && typeof value === 'string' ? [value] : []));
}
export function messages(message: Message, name: string): Message[] {
  return message.fields.flatMap(([n, value]) =>
    (n === name && typeof value !== 'string' ? [value] : []));
}

// Returns a string literal.
export function quote(text: string): string {
  return '"' + text.replace(/[\\"]/g, '\\$&')
    // eslint-disable-next-line no-control-regex
    .replace(/[\u0000-\u001f\u007f]/g,
             (c) => (c === '\n' ? '\\n' : '\\' + c.charCodeAt(0).toString(8).padStart(3, '0'))) + '"';
}

const kEscapes: Record<string, string> = {
  n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b', f: '\f', v: '\v',
};

// Returns the bytes of a string literal.
export function unquoteBytes(literal: string): Uint8Array {
  const bytes: number[] = [];
  const encoder = new TextEncoder();
  // Avoids push(...), because a call accepts a limited number of arguments.
  const add = (part: Uint8Array): void => {
    for (const byte of part) bytes.push(byte);
  };
  const pattern = /\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|[^])|[^\\]+/g;
  for (const [whole, escape] of literal.slice(1, -1).matchAll(pattern)) {
    if (escape === undefined) add(encoder.encode(whole));
    else if (/^[0-7]/.test(escape)) bytes.push(parseInt(escape, 8) & 255);
    else if (/^x./.test(escape)) bytes.push(parseInt(escape.slice(1), 16));
    else if (/^u./.test(escape)) {
      add(encoder.encode(String.fromCharCode(parseInt(escape.slice(1), 16))));
    } else add(encoder.encode(kEscapes[escape] ?? escape));
  }
  return Uint8Array.from(bytes);
}

// Returns the text of a string literal; null if its bytes are not UTF-8.
export function unquote(literal: string): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(unquoteBytes(literal));
  } catch {
    return null;
  }
}
