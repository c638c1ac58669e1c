// Matches names with regular expressions in a separate worker. An expression that takes exponential
// time is stopped by ending the worker, and nothing else waits for it.
import { matchNames } from '../model/search.ts';
import type { Found } from '../model/search.ts';

// The name of the worker. It tells the script which role it has.
export const kMatcherName = 'matcher';

// The first message contains the port that sends the names.
type Message = { port: MessagePort } | { expression: string; limit: number };
// Matching has started, finished, or failed.
type Reply = 'started' | { found: Found } | { error: string };

// Runs in a worker, and matches one expression at a time.
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

// The page's side of the matcher.
export class Matcher {
  private worker: Worker | null = null;
  private end: ((result: Found | null | Error) => void) | null = null;

  // `sendNames` makes the graph's worker send the names to a port.
  constructor(private readonly makeWorker: () => Worker,
              private readonly sendNames: (port: MessagePort) => void,
              readonly maxMillis = 2000) {}

  get isBusy(): boolean {
    return this.end !== null;
  }

  // Returns the names that match; null if stop(), reset() or a later call ends this call. Fails if
  // matching takes longer than `maxMillis`.
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

  // Ends the call in progress. Returns true if there was one.
  stop(): boolean {
    const wasBusy = this.isBusy;
    if (wasBusy) this.kill(null);
    return wasBusy;
  }
  // Discards the names.
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
