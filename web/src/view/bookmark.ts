// The view as a fragment of the page's address: "#n=layer1/mul&o=layer1".

export interface Bookmark {
  // The selected node or scope.
  name: string;
  // Open scopes.
  open: string[];
}

// Longer addresses omit some of the open scopes.
const kMaxLength = 4000;

export function formatBookmark(bookmark: Bookmark): string {
  const parts: string[] = [];
  if (bookmark.name !== '') parts.push('n=' + encode(bookmark.name));
  let length = 0;
  for (const path of bookmark.open) {
    const part = 'o=' + encode(path);
    length += part.length;
    if (length > kMaxLength) break;
    parts.push(part);
  }
  return parts.length === 0 ? '' : '#' + parts.join('&');
}

function encode(text: string): string {
  // Half of a surrogate pair cannot be encoded.
  return encodeURIComponent(text.replace(
    /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd'));
}

export function parseBookmark(hash: string): Bookmark {
  const bookmark: Bookmark = { name: '', open: [] };
  for (const part of hash.replace(/^#/, '').split('&')) {
    let value: string;
    try {
      value = decodeURIComponent(part.slice(2));
    } catch {
      continue;
    }
    if (part.startsWith('n=')) bookmark.name = value;
    if (part.startsWith('o=')) bookmark.open.push(value);
  }
  return bookmark;
}
