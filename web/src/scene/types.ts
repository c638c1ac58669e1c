// Scene: the picture of one open scope. Built in the worker, drawn by the main thread.
//
// Each scene has separate coordinates. The box of an open scope keeps its size and place, and shows
// the scene scaled down. Opening a scope therefore moves nothing outside.

export interface Pin {
  name: string;
  // The y coordinate of the pin, from the top of its block.
  y: number;
  // The type and shape, or "".
  type: string;
}

// Properties of an item that are visible at a glance.
export enum Flag {
  kProblem = 1,
  kUnknownShape = 2,
  kConst = 4,
  kNan = 8,
}

export interface Item {
  // A node number, or the complement of a scope number.
  id: number;
  title: string;
  // The path of a scope, such as "tower/layer1"; "" for a node.
  path: string;
  // The op of a node, or the number of ops of a scope.
  subtitle: string;
  // Attributes that differ from their defaults, or the value of a constant.
  lines: string[];
  inputs: Pin[];
  outputs: Pin[];
  flags: number;
  // For a node, NodeExtra.k. For a scope, 3 if anything in it differs.
  change: number;
  // The nanoseconds of the run; for a scope, of the union of its nodes. -1 if it did not run.
  time: number;
  // The ratio of `time` to the time of the longest node, from 0 to 1.
  heat: number;
}

export interface Scene {
  scope: number;
  width: number;
  height: number;
  items: Item[];
  x: Float64Array;
  y: Float64Array;
  w: Float64Array;
  h: Float64Array;
  // Edges. Each end is an item, or -1 for the border of the scope.
  from: Int32Array;
  to: Int32Array;
  // The producer of each edge and its output. The output is -1 for control edges.
  source: Int32Array;
  output: Int32Array;
  // The points of the edges, as in LayoutResult.
  start: Int32Array;
  points: Float32Array;
  // Types and shapes, as indices into `types`.
  type: Int32Array;
  types: string[];
  // The transform from the scene to the box of the scope: scaled, then moved.
  scale: number;
  left: number;
  top: number;
}

export interface SceneOptions {
  // Shows constants as lines of their consumers.
  fold: boolean;
}

export const kHeader = 34;
export const kPinHeight = 15;
export const kLineHeight = 13;
// The largest numbers of pins and lines of a block. The last line states how many more there are.
export const kMaxPins = 12;
export const kMaxLines = 4;
