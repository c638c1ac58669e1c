// Matching of names with regular expressions, in a worker of its own: an expression that takes
// exponential time is stopped by the end of the worker, and nothing else waits for it.
import { matchNames } from '../model/search.ts';
import type { Found } from '../model/search.ts';

// The name of the worker, which tells the script what it is.
export const kMatcherName = 'matcher';

// The first message has the port that names come from.
type Message = { port: MessagePort } | { expression: string; limit: number };
// Work begins, ends, or fails.
type Reply = 'started' | { found: Found } | { error: string };

// Answers in a worker, one expression after the other.
export function serveMatcher(scope: {
  onmessage: ((event: MessageEvent) => void) | null;
  postMessage: (reply: Reply) => void;
}): void {
  let names: Promise<string[]> = Promise.resolve([]);
  scope.onmessage = (event) => {
    const message = event.data as Message;
    if ('port' in message) {
      names = new Promise((resolve) => {
        message.port.onmessage = (answer) => {
          message.port.close();
          resolve(answer.data as string[]);
        };
      });
      return;
    }
    void names.then((list) => {
      scope.postMessage('started');
      try {
        scope.postMessage({ found: matchNames(list, message.expression, message.limit) });
      } catch (error) {
        scope.postMessage({ error: (error as Error).message });
      }
    });
  };
}

// The page's side.
export class Matcher {
  private worker: Worker | null = null;
  private end: ((result: Found | null | Error) => void) | null = null;

  // `sendNames` lets the worker of the graph send the names to a port.
  constructor(private readonly makeWorker: () => Worker,
              private readonly sendNames: (port: MessagePort) => void,
              readonly maxMillis = 2000) {}

  get isBusy(): boolean {
    return this.end !== null;
  }

  // Returns the names that match; null if stop(), reset() or a later call ends this one. Fails if it
  // takes longer than `maxMillis`.
  find(expression: string, limit: number): Promise<Found | null> {
    this.stop();
    return new Promise((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      this.end = (result) => {
        this.end = null;
        clearTimeout(timer);
        if (result instanceof Error) reject(result);
        else resolve(result);
      };
      const worker = this.worker ?? this.start();
      worker.onmessage = (event: MessageEvent) => {
        const reply = event.data as Reply;
        if (reply === 'started') {
          timer = setTimeout(() => {
            this.kill(new Error(
              `stopped after ${this.maxMillis / 1000} s: the expression takes too long for these names`));
          }, this.maxMillis);
        } else {
          this.end?.('found' in reply ? reply.found : new Error(reply.error));
        }
      };
      worker.onerror = (event: ErrorEvent) => this.kill(new Error(event.message || 'the worker failed'));
      worker.postMessage({ expression, limit } satisfies Message);
    });
  }

  // Ends the call in progress. Returns whether there was one.
  stop(): boolean {
    const wasBusy = this.isBusy;
    if (wasBusy) this.kill(null);
    return wasBusy;
  }
  // Forgets the names.
  reset(): void {
    this.kill(null);
  }

  private start(): Worker {
    const { port1, port2 } = new MessageChannel();
    this.worker = this.makeWorker();
    this.worker.postMessage({ port: port1 } satisfies Message, [port1]);
    this.sendNames(port2);
    return this.worker;
  }
  private kill(result: null | Error): void {
    this.worker?.terminate();
    this.worker = null;
    this.end?.(result);
  }
}
