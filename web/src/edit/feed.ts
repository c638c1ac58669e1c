// FeedField: the value of a node's output in runs, as a person enters it.
export interface FeedField {
  kind: 'none' | 'random' | 'values' | 'file';
  shape: string;
  values: string;
  seed: number;
  // The name of a file and its bytes in base64.
  file: string;
  bytes: string;
  isImage: boolean;
}
export const kNoFeed: FeedField =
  { kind: 'none', shape: '', values: '', seed: 1, file: '', bytes: '', isImage: false };

export function isSameFeed(a: FeedField, b: FeedField): boolean {
  return a.kind === b.kind && a.shape === b.shape && a.values === b.values && a.seed === b.seed &&
    a.file === b.file && a.isImage === b.isImage && a.bytes === b.bytes;
}
