/** What engines have and TypeScript's libraries lack: of node, of workers, of drafts. */

/** Node's, where there is no page. */
declare var process: {
  cwd(): string;
  getBuiltinModule(name: "fs"): { createReadStream(url: URL, options: { signal: AbortSignal }): AsyncIterable<Uint8Array<ArrayBuffer>> };
  getBuiltinModule(name: "os"): { availableParallelism(): number };
  getBuiltinModule(name: "worker_threads"): { Worker: new (url: URL, options: { execArgv: string[] }) => NodeWorker; parentPort: Worker };
};

interface NodeWorker extends Worker {
  on(event: "message", listen: (data: unknown) => void): void;
  on(event: "error", listen: (error: Error) => void): void;
}

/** Node's: the process ends though the worker is there. */
interface Worker {
  ref?(): void;
  unref?(): void;
}

declare var WorkerGlobalScope: (new () => object) | undefined;
declare var ServiceWorkerGlobalScope: (new () => object) | undefined;
declare var trustedTypes: { createPolicy(name: string, rules: { createScriptURL(text: string): string }): TrustedPolicy } | undefined;

interface TrustedPolicy {
  createScriptURL(text: string): URL;
}

/** A draft: https://github.com/gpuweb/gpuweb, subgroup matrices. */
interface GPUAdapterInfo {
  subgroupMatrixConfigs?: Iterable<{ componentType: string; resultComponentType: string; M: number; N: number; K: number }>;
}

declare var GPUShaderStage: { COMPUTE: number };
declare var GPUMapMode: { READ: number };
declare var GPUBufferUsage: Record<"MAP_READ" | "COPY_SRC" | "COPY_DST" | "STORAGE", number>;
