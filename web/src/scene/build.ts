// Builds the scene of a scope.
import { layOutInSteps, runSteps } from '../layout/layered.ts';
import type { Steps } from '../layout/layered.ts';
import { leaf, shorten } from '../data/text.ts';
import type { Model } from '../model/model.ts';
import { portsOf, tensorKey } from '../model/ports.ts';
import type { Ports } from '../model/ports.ts';
import { nodeBlock, pinY, scopeBlock } from './blocks.ts';
import type { Block } from './blocks.ts';
import { kHeader, kMaxPins, kPinHeight } from './types.ts';
import type { Scene, SceneOptions } from './types.ts';

const kMargin = 12;

export class SceneBuilder {
  private readonly ports = new Map<number, Ports>();

  constructor(private readonly model: Model) {}

  portsOf(scope: number): Ports {
    let ports = this.ports.get(scope);
    if (ports === undefined) {
      ports = portsOf(this.model, scope);
      this.ports.set(scope, ports);
    }
    return ports;
  }

  build(scope: number, options: SceneOptions): Scene {
    return runSteps(this.buildInSteps(scope, options));
  }
  buildInSteps(scope: number, options: SceneOptions): Steps<Scene> {
    return new Builder(this, this.model, scope, options).build();
  }
}

// Edges between items. The ports of the scope are items after the blocks.
interface Edges {
  from: number[];
  to: number[];
  fromY: number[];
  toY: number[];
  source: number[];
  output: number[];
}

class Builder {
  private readonly blocks: Block[] = [];
  private readonly itemOf = new Map<number, number>();
  private readonly folded = new Set<number>();
  private readonly edges: Edges = { from: [], to: [], fromY: [], toY: [], source: [], output: [] };
  // The pins of tensors at the border of scopes, by 2 * scope for inputs and 2 * scope + 1 for
  // outputs.
  private readonly pinOf = new Map<number, Map<number, number>>();
  private readonly seen = new Set<string>();
  private readonly border: Ports;

  constructor(private readonly builder: SceneBuilder, private readonly model: Model,
              private readonly scope: number, private readonly options: SceneOptions) {
    this.border = scope === 0 ? { inputs: [], outputs: [] } : builder.portsOf(scope);
  }

  *build(): Steps<Scene> {
    const { model, scope } = this;
    const { scopes, nodes } = model.scopes[scope]!;
    if (this.options.fold) this.findFolded(nodes);
    for (const child of scopes) {
      const ports = this.builder.portsOf(child);
      this.addPins(ports.inputs, 2 * child);
      this.addPins(ports.outputs, 2 * child + 1);
      this.itemOf.set(~child, this.blocks.length);
      this.blocks.push(scopeBlock(model, child, ports));
    }
    for (const node of nodes) {
      if (this.folded.has(node)) continue;
      this.itemOf.set(node, this.blocks.length);
      this.blocks.push(nodeBlock(model, node, this.foldedInto(node)));
    }
    this.addPins(this.border.inputs, 2 * scope);
    this.addPins(this.border.outputs, 2 * scope + 1);
    yield;
    this.addEdges();
    yield;
    return yield* this.place();
  }

  // Folds constants whose consumers are all in this scope, and nodes that only pass such constants
  // on.
  private findFolded(nodes: number[]): void {
    const { model } = this;
    const { start, node } = model.consumers;
    const foldAll = (isHelper: (v: number) => boolean): void => {
      for (const v of nodes) {
        if (start[v] === start[v + 1] || !isHelper(v)) continue;
        let isHere = true;
        for (let e = start[v]!; e < start[v + 1]!; ++e) {
          isHere &&= model.scopeOf[node[e]!] === this.scope && model.op(node[e]!).n !== 'Const';
        }
        if (isHere) this.folded.add(v);
      }
    };
    foldAll((v) => model.op(v).n === 'Const');
    foldAll((v) => model.op(v).n === 'Identity' && this.constantOf(v) !== v);
  }
  // Returns the folded constant that an identity passes on, otherwise the node itself.
  private constantOf(v: number): number {
    const { start, node, pin } = this.model.inputs;
    const isOne = start[v + 1]! - start[v]! === 1 && pin[start[v]!] === 0;
    const source = isOne ? node[start[v]!]! : -1;
    return source >= 0 && this.model.op(v).n === 'Identity' && this.folded.has(source) ? source : v;
  }

  private foldedInto(v: number): string[] {
    const { model } = this;
    const { start, node, pin } = model.inputs;
    const lines: string[] = [];
    const names = this.folded.size > 0 ? model.pinNames(v, false, 64) : [];
    for (let e = start[v]!; e < start[v + 1]!; ++e) {
      if (!this.folded.has(node[e]!) || pin[e]! < 0) continue;
      const name = names[e - start[v]!] ?? leaf(model.name(node[e]!));
      lines.push(shorten(`${name} = ${model.text(model.extra(this.constantOf(node[e]!)).v)}`, 40));
    }
    return lines;
  }

  private addPins(tensors: { node: number; output: number }[], key: number): void {
    const pins = new Map<number, number>();
    tensors.forEach((t, i) => pins.set(tensorKey(t.node, t.output), Math.min(i, kMaxPins - 1)));
    this.pinOf.set(key, pins);
  }

  // Returns the item of this scope that shows a node; -1 if there is none.
  private itemFor(node: number): number {
    const { model } = this;
    const direct = this.itemOf.get(node);
    if (direct !== undefined) return direct;
    let scope = model.scopeOf[node]!;
    const depth = model.scopes[this.scope]!.depth + 1;
    while (scope >= 0 && model.scopes[scope]!.depth > depth) scope = model.scopes[scope]!.parent;
    return this.itemOf.get(~scope) ?? -1;
  }

  private isInside(node: number): boolean {
    const { begin, end } = this.model.scopes[this.scope]!;
    const position = this.model.positionOf[node]!;
    return position >= begin && position < end;
  }

  private addEdges(): void {
    const { model, scope } = this;
    const { begin, end } = model.scopes[scope]!;
    const { start, node, pin } = model.inputs;
    const firstIn = this.blocks.length;
    const firstOut = firstIn + Math.min(this.border.inputs.length, kMaxPins);
    for (let i = begin; i < end; ++i) {
      const v = model.order[i]!;
      const to = this.itemFor(v);
      for (let e = start[v]!; e < start[v + 1]!; ++e) {
        const u = node[e]!;
        const output = pin[e]!;
        if (u < 0 || to < 0 || this.folded.has(u)) continue;
        if (this.isInside(u)) {
          const from = this.itemFor(u);
          if (from >= 0 && from !== to) this.add(from, to, u, output, v, e - start[v]!);
        } else if (output >= 0) {
          const port = this.pinOf.get(2 * scope)!.get(tensorKey(u, output));
          if (port !== undefined) this.add(firstIn + port, to, u, output, v, e - start[v]!);
        }
      }
    }
    this.border.outputs.forEach((tensor, i) => {
      const from = this.itemFor(tensor.node);
      if (from < 0) return;
      const port = firstOut + Math.min(i, kMaxPins - 1);
      this.add(from, port, tensor.node, tensor.output, -1, 0);
    });
  }

  private add(from: number, to: number, u: number, output: number, v: number, input: number):
      void {
    const key = output < 0 ? -1 : tensorKey(u, output);
    const fromPin = this.pinAt(from, output, key, true);
    const toPin = this.pinAt(to, output < 0 ? -1 : input, key, false);
    if (!this.isNodeItem(from) || !this.isNodeItem(to) || v < 0 || output < 0) {
      const name = `${from} ${fromPin} ${to} ${toPin}`;
      if (this.seen.has(name)) return;
      this.seen.add(name);
    }
    const { edges } = this;
    edges.from.push(from);
    edges.to.push(to);
    edges.fromY.push(fromPin);
    edges.toY.push(toPin);
    edges.source.push(u);
    edges.output.push(output);
  }

  private isNodeItem(item: number): boolean {
    return item < this.blocks.length && this.blocks[item]!.item.id >= 0;
  }

  // Returns the y coordinate at which an edge meets an item, from the top of the item.
  private pinAt(item: number, pin: number, key: number, isSource: boolean): number {
    if (item >= this.blocks.length) return kPinHeight / 2;
    const block = this.blocks[item]!;
    if (pin < 0) return kHeader / 3;
    if (block.item.id >= 0) return pinY(pin, block.isSmall);
    return pinY(this.pinOf.get(2 * ~block.item.id + (isSource ? 1 : 0))!.get(key) ?? 0, false);
  }

  private *place(): Steps<Scene> {
    const { blocks, edges, border } = this;
    const numIn = Math.min(border.inputs.length, kMaxPins);
    const numOut = Math.min(border.outputs.length, kMaxPins);
    const count = blocks.length + numIn + numOut;
    const width = new Float64Array(count);
    const height = new Float64Array(count).fill(kPinHeight);
    const port = new Uint8Array(count);
    blocks.forEach((block, i) => {
      width[i] = block.width;
      height[i] = block.height;
    });
    port.fill(1, blocks.length, blocks.length + numIn);
    port.fill(2, blocks.length + numIn);
    const layout = yield* layOutInSteps({
      width,
      height,
      port,
      from: Int32Array.from(edges.from),
      to: Int32Array.from(edges.to),
      fromY: Float64Array.from(edges.fromY),
      toY: Float64Array.from(edges.toY),
    });
    const n = blocks.length;
    const scene: Scene = {
      scope: this.scope,
      width: layout.width,
      height: layout.height,
      items: blocks.map((block) => block.item),
      x: layout.x.slice(0, n),
      y: layout.y.slice(0, n),
      w: width.slice(0, n),
      h: height.slice(0, n),
      from: Int32Array.from(edges.from, (item) => (item < n ? item : -1)),
      to: Int32Array.from(edges.to, (item) => (item < n ? item : -1)),
      source: Int32Array.from(edges.source),
      output: Int32Array.from(edges.output),
      start: layout.start,
      points: layout.points,
      type: new Int32Array(edges.from.length),
      types: [],
      scale: 1,
      left: 0,
      top: 0,
    };
    this.addTypes(scene);
    if (this.scope !== 0) this.fit(scene, n, numIn);
    return scene;
  }

  private addTypes(scene: Scene): void {
    const ids = new Map<string, number>();
    for (let e = 0; e < scene.type.length; ++e) {
      const text = shorten(this.model.typeOf(scene.source[e]!, scene.output[e]!), 80);
      let id = ids.get(text);
      if (id === undefined) {
        id = scene.types.length;
        ids.set(text, id);
        scene.types.push(text);
      }
      scene.type[e] = id;
    }
  }

  // Scales the scene to the box of the scope, and connects edges at the border to the box's pins.
  private fit(scene: Scene, numItems: number, numIn: number): void {
    const box = scopeBlock(this.model, this.scope, this.border);
    const width = box.width - 2 * kMargin;
    const height = box.height - kHeader - kMargin;
    scene.scale = Math.min(width / Math.max(scene.width, 1), height / Math.max(scene.height, 1), 1);
    scene.left = kMargin + (width - scene.scale * scene.width) / 2;
    scene.top = kHeader + (height - scene.scale * scene.height) / 2;
    const { edges } = this;
    for (let e = 0; e < edges.from.length; ++e) {
      if (edges.from[e]! >= numItems) {
        const at = 2 * scene.start[e]!;
        scene.points[at] = -scene.left / scene.scale;
        scene.points[at + 1] =
          (pinY(edges.from[e]! - numItems, false) - scene.top) / scene.scale;
      }
      if (edges.to[e]! >= numItems) {
        const at = 2 * scene.start[e + 1]! - 2;
        scene.points[at] = (box.width - scene.left) / scene.scale;
        scene.points[at + 1] =
          (pinY(edges.to[e]! - numItems - numIn, false) - scene.top) / scene.scale;
      }
    }
  }
}
