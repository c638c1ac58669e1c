// Scene: what one scope looks like when it is open. Made in the worker, drawn by the main thread.
//
// The coordinates of a scene are its own. The box of an open scope keeps its size and place, and
// shows the scene within it, smaller: opening a scope moves nothing outside.

export interface Pin {
  name: string;
  // The height of the pin within the block.
  y: number;
  // The type and shape, or "".
  type: string;
}

// What is to be known of an item at a glance.
export enum Flag {
  kProblem = 1,
  kUnknownShape = 2,
  kConst = 4,
  kNan = 8,
}

export interface Item {
  // A node, or the complement of a scope.
  id: number;
  title: string;
  // Of a scope, its path: "tower/layer1"; "" of a node.
  path: string;
  // The op, or the number of ops of a scope.
  subtitle: string;
  // Attributes that differ from their defaults, or the value of a constant.
  lines: string[];
  inputs: Pin[];
  outputs: Pin[];
  flags: number;
  // As NodeExtra.k; of a scope, 3 if anything in it differs.
  change: number;
  // Nanoseconds of the run, of a scope the union of its blocks; -1 if it did not run.
  time: number;
  // The same as a share of the time of the longest node, from 0 to 1.
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
  // Edges. An end is an item, or -1 for the border of the scope.
  from: Int32Array;
  to: Int32Array;
  // The producer of the edge and its output; the output is -1 for a control edge.
  source: Int32Array;
  output: Int32Array;
  start: Int32Array;
  points: Float32Array;
  // Types and shapes, as indices of `types`.
  type: Int32Array;
  types: string[];
  // How the scene lies in the box of the scope: scaled, then moved.
  scale: number;
  left: number;
  top: number;
}

export interface SceneOptions {
  // Constants are lines of their consumers.
  fold: boolean;
}

export const kHeader = 34;
export const kPinHeight = 15;
export const kLineHeight = 13;
// Pins and lines of a block; the last says how many more there are.
export const kMaxPins = 12;
export const kMaxLines = 4;
