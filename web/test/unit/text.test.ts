import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesText, duration, plural, shorten, visible, visibleLines } from '../../src/data/text.ts';
import { SvgSurface, escapeXml } from '../../src/draw/surface.ts';
import { formatBookmark, parseBookmark } from '../../src/view/bookmark.ts';
import { decode } from '../../src/data/format.ts';
import { gzipSync } from 'node:zlib';

test('hidden characters are made visible', () => {
  assert.equal(visible('a\u202eb\u0000c\n'), 'a\\u202eb\\u0000c\\u000a');
  assert.equal(visible('\u200f\u2066\ufeff'), '\\u200f\\u2066\\ufeff');
  assert.equal(visible('größe 日本 😀 </script>'), 'größe 日本 😀 </script>');
  assert.equal(visibleLines('a\n\tb'), 'a\n\\u0009b');
});

test('long text ends in an ellipsis', () => {
  assert.equal(shorten('abcdef', 6), 'abcdef');
  assert.equal(shorten('abcdefg', 6), 'abcde…');
  assert.equal(shorten('x'.repeat(10_000), 200).length, 200);
  assert.equal(shorten('abcd😀😀', 6), 'abcd…');
});

test('numbers have units', () => {
  assert.equal(duration(12), '12 ns');
  assert.equal(duration(1234), '1.23 µs');
  assert.equal(duration(2.5e6), '2.5 ms');
  assert.equal(duration(3e9), '3 s');
  assert.equal(bytesText(1023), '1023 B');
  assert.equal(bytesText(1536), '1.5 KiB');
  assert.equal(plural(1, 'op'), '1 op');
  assert.equal(plural(12345, 'op'), '12,345 ops');
});

test('SVG text is escaped', () => {
  assert.equal(escapeXml('<a href="x">&\u0001\ud800'), '&lt;a href=&quot;x&quot;&gt;&amp;\ufffd\ufffd');
  const svg = new SvgSurface();
  svg.text('</svg><script>', 1, 2, { color: 'red', size: 10 });
  svg.moveTo(0, 0);
  svg.curveTo(1, 2, 3, 4, 5, 6);
  svg.strokePath('blue', 1, true);
  const file = svg.finish(10, 20, 'white', '</title>');
  assert.ok(file.includes('&lt;/svg&gt;&lt;script&gt;'));
  assert.ok(file.includes('<title>&lt;/title&gt;</title>'));
  assert.ok(file.includes('d="M0 0C1 2 3 4 5 6"'));
  assert.ok(!file.includes('<script'));
});

test('bookmarks are read back', () => {
  for (const mark of [
    { name: '', open: [] }, { name: 'a/b&o=c#%', open: ['x y', 'ƒ f'] }, { name: '\u202e', open: [] },
  ]) {
    assert.deepEqual(parseBookmark(formatBookmark(mark)), mark);
  }
  assert.equal(formatBookmark({ name: '', open: [] }), '');
  assert.deepEqual(parseBookmark('#n=%zz&junk&o=a'), { name: '', open: ['a'] });
  const many = formatBookmark({ name: 'n', open: Array.from({ length: 5000 }, (_, i) => `s${i}`) });
  assert.ok(many.length < 6000);
  formatBookmark({ name: '\ud800', open: [] });
});

test('data are decoded', async () => {
  const encode = (json: object): string => gzipSync(JSON.stringify(json)).toString('base64');
  assert.deepEqual(await decode(encode({ format: 1 })), { format: 1 });
  await assert.rejects(decode(encode({ format: 2 })), /expected data of format 1, found 2/);
  await assert.rejects(decode('AAAA'));
});
