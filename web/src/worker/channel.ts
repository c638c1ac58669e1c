// Calls the worker's API through messages. A call can be cancelled before it starts and at its
// pauses.
import type { Api } from './api.ts';

type Name = keyof Api;

interface Request {
  id: number;
  name: Name;
  args: unknown[];
}
type Message = Request | { cancel: number };

export interface Reply {
  id: number;
  result?: unknown;
  error?: string;
}

// Answers the calls of `port` one at a time.
export function serve(api: Api & { pause?: () => Promise<void> }, port: { onmessage: ((event: MessageEvent) => void) | null;
                                        postMessage: (reply: Reply) => void }): void {
  const queue: Request[] = [];
  let isBusy = false;
  // The running call, and whether it is cancelled.
  let current = -1;
  let isCancelled = false;
  api.pause = async () => {
    await new Promise((resolve) => setTimeout(resolve, 0));
    if (isCancelled) throw new Error('cancelled');
  };
  const run = async (): Promise<void> => {
    isBusy = true;
    while (queue.length > 0) {
      // Lets messages in, which may cancel queued calls.
      await new Promise((resolve) => setTimeout(resolve, 0));
      const request = queue.shift();
      if (request === undefined) break;
      current = request.id;
      isCancelled = false;
      try {
        const method = api[request.name] as (...args: unknown[]) => Promise<unknown>;
        port.postMessage({ id: request.id, result: await method.apply(api, request.args) });
      } catch (error) {
        port.postMessage(
          { id: request.id, error: error instanceof Error ? error.message : String(error) });
      }
    }
    current = -1;
    isBusy = false;
  };
  port.onmessage = (event) => {
    const message = event.data as Message;
    if ('cancel' in message) {
      const at = queue.findIndex((request) => request.id === message.cancel);
      if (at >= 0) {
        queue.splice(at, 1);
        port.postMessage({ id: message.cancel, error: 'cancelled' });
      } else if (message.cancel === current) {
        isCancelled = true;
      }
      return;
    }
    queue.push(message);
    if (!isBusy) void run();
  };
}

export class Client {
  private next = 0;
  private readonly waiting =
    new Map<number, { name: Name; resolve: (value: never) => void; reject: (error: Error) => void }>();
  // The last call of each method that was made through latest().
  private readonly last = new Map<Name, number>();

  constructor(private readonly worker: Worker) {
    worker.onmessage = (event: MessageEvent) => {
      const reply = event.data as Reply;
      const call = this.waiting.get(reply.id);
      if (call === undefined) return;
      this.waiting.delete(reply.id);
      if (reply.error !== undefined) call.reject(new Error(reply.error));
      else call.resolve(reply.result as never);
    };
    // The script did not start, or failed outside of a call.
    worker.onerror = (event: ErrorEvent) => {
      const calls = [...this.waiting.values()];
      this.waiting.clear();
      for (const call of calls) call.reject(new Error(event.message || 'the worker failed'));
    };
  }

  call<N extends Name>(name: N, ...args: Parameters<Api[N]>): ReturnType<Api[N]> {
    return this.transfer([], name, ...args);
  }
  // Makes a call whose arguments include `ports`, which are transferred.
  transfer<N extends Name>(ports: MessagePort[], name: N, ...args: Parameters<Api[N]>):
      ReturnType<Api[N]> {
    const id = this.next++;
    this.worker.postMessage({ id, name, args }, ports);
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { name, resolve, reject });
    }) as ReturnType<Api[N]>;
  }

  // Cancels the pending calls of a method. They fail.
  cancel(name: Name): void {
    for (const [id, call] of this.waiting) {
      if (call.name === name) this.worker.postMessage({ cancel: id });
    }
  }

  // True if all calls have been answered.
  get isIdle(): boolean {
    return this.waiting.size === 0;
  }

  // Calls a method, and cancels the previous call that was made through latest(). Returns null if a
  // later call cancels this call.
  async latest<N extends Name>(name: N, ...args: Parameters<Api[N]>):
      Promise<Awaited<ReturnType<Api[N]>> | null> {
    const before = this.last.get(name);
    if (before !== undefined && this.waiting.has(before)) {
      this.worker.postMessage({ cancel: before });
    }
    const id = this.next;
    const result = this.call(name, ...args);
    this.last.set(name, id);
    try {
      const value = await result;
      return this.last.get(name) === id ? (value as Awaited<ReturnType<Api[N]>>) : null;
    } catch (error) {
      if (this.last.get(name) !== id) return null;
      throw error;
    }
  }
}
