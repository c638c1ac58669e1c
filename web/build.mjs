// Builds dist/shell.html: one file with the style, the script and the hashes of both.
//
//   node build.mjs           writes dist/shell.html
//   node build.mjs --check   fails unless dist/shell.html matches the sources
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync, mkdirSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

// The licences of the code in the script. The page contains them as a comment.
const kNotices = 'THIRD_PARTY_NOTICES';
const root = new URL('.', import.meta.url).pathname;
const kMaxGzipBytes = 150 * 1024;

async function bundle(entry, loader) {
  const result = await build({
    entryPoints: [root + entry],
    bundle: true,
    minify: true,
    write: false,
    charset: 'ascii',
    format: 'iife',
    target: ['es2022'],
    legalComments: 'none',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    loader,
    logLevel: 'warning',
    // File names must not affect the result.
    absWorkingDir: root,
  });
  return result.outputFiles[0].text.trim();
}

function hash(text) {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

export async function shell() {
  const script = await bundle('src/main.tsx', {});
  const style = await bundle('src/style.css', {});
  if (/<\/script|<!--/i.test(script)) throw new Error('the script has a tag in it');
  const notices = readFileSync(root + kNotices, 'utf8').trim();
  const words = (text) => text.replace(/\s+/g, ' ').trim();
  if (!words(notices).includes(words(readFileSync(root + 'node_modules/preact/LICENSE', 'utf8')))) {
    throw new Error(`${kNotices} does not have the licence of Preact`);
  }
  if (notices.includes('--')) throw new Error(`${kNotices} would end the comment`);
  const policy = [
    `default-src 'none'`, `script-src ${hash(script)}`, `style-src ${hash(style)}`,
    'worker-src blob:', `base-uri 'none'`, `form-action 'none'`,
  ].join('; ');
  const parts = { '@NOTICES@': notices, '@POLICY@': policy, '@STYLE@': style, '@SCRIPT@': script };
  return readFileSync(root + 'src/shell.html', 'utf8')
    .replace(/@(NOTICES|POLICY|STYLE|SCRIPT)@/g, (name) => parts[name]);
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const text = await shell();
  const path = root + 'dist/shell.html';
  const size = gzipSync(text, { level: 9 }).length;
  if (size > kMaxGzipBytes) throw new Error(`the shell has ${size} bytes, gzipped`);
  if (process.argv.includes('--check')) {
    if (readFileSync(path, 'utf8') !== text) {
      console.error('web/dist/shell.html is not what the sources give: run ./dev web');
      process.exit(1);
    }
  } else {
    mkdirSync(root + 'dist', { recursive: true });
    writeFileSync(path, text);
  }
  console.log(`dist/shell.html: ${text.length} bytes, ${size} gzipped`);
}
