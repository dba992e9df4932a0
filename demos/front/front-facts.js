/**
 * `findFacts` finds what this browser can do: rows of { name, has, why } with a feature, whether the browser has it, and
 * what that means. If a fact is a quantity, `short` replaces yes and no.
 */

/** A feature ↦ the body of a function that is valid if the browser has it; no parameters, no result. */
const BODIES = {
  // i32.const 0, i8x16.splat, drop
  simd: [0x41, 0, 0xfd, 0x0f, 0x1a],
  // three zeros as vectors, f32x4.relaxed_madd, drop
  relaxed: [...[1, 2, 3].flatMap(() => [0x41, 0, 0xfd, 0x0f]), 0xfd, 0x85, 2, 0x1a],
};
const WANTED = { "shader-f16": "float16", subgroups: "subgroups", "timestamp-query": "timestamps" };

export function validates(name) {
  if (typeof WebAssembly !== "object") return false;
  const body = [0, ...BODIES[name], 0x0b];
  const head = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0];
  return WebAssembly.validate(Uint8Array.from([...head, 10, body.length + 2, 1, body.length, ...body]));
}

export async function findFacts() {
  return [findSimd(), findRelaxed(), findThreads(), ...(await findGpu()), ...(await findMemory()), findPython()];
}

function findSimd() {
  const has = validates("simd");
  const without = typeof WebAssembly === "object" ? "Its WebAssembly is too old" : "It has no WebAssembly";
  return { name: "WebAssembly SIMD", has, why: has ? "Four numbers at a time on the CPU." : `${without}: models need WebGPU here.` };
}

function findRelaxed() {
  const has = validates("relaxed");
  const why = has
    ? "Multiply and add in one instruction: Singe’s faster kernels for the CPU."
    : "Not switched on in this browser: Singe takes its kernels of plain SIMD.";
  return { name: "Relaxed SIMD", has, why };
}

function findThreads() {
  const cores = navigator.hardwareConcurrency ?? 1;
  const has = globalThis.crossOriginIsolated && typeof SharedArrayBuffer === "function";
  const counted = cores === 1 ? "one core" : `${cores} cores`;
  const why = has ? `The page is isolated and may share memory; ${counted}.` : `${whyNoThreads()}: the CPU works on one thread.`;
  return { name: "Threads", has, why };
}

function whyNoThreads() {
  if (!isSecureContext) return "The address is neither https nor this machine’s own";
  if (globalThis.crossOriginIsolated) return "This browser lets no page share memory";
  if (globalThis.top !== globalThis) return "The page is in a frame of another page, which is not isolated";
  return "The page is not isolated (no COOP and COEP headers, and no service worker to add them yet)";
}

async function findGpu() {
  const none = (why) => [{ name: "WebGPU", has: false, why: `${why}: models run on the CPU.` }];
  if (!navigator.gpu) return none(isSecureContext ? "This browser has none" : "It needs https, or this machine’s own address");
  const adapter = await findAdapter();
  if (!adapter) return none("The browser knows WebGPU, but offers no adapter");
  const { limits, features } = adapter;
  const most = bytes(Math.min(limits.maxBufferSize, limits.maxStorageBufferBindingSize));
  const rows = [
    { name: "WebGPU", has: true, why: `${describeAdapter(adapter)}.` },
    {
      name: "GPU limits",
      short: most,
      why: `For a tensor; ${bytes(limits.maxComputeWorkgroupStorageSize)} and ${limits.maxComputeInvocationsPerWorkgroup} invocations for a workgroup.`,
    },
  ];
  const here = Object.keys(WANTED).filter((f) => features.has(f));
  const missing = Object.keys(WANTED).filter((f) => !features.has(f));
  const list = (names) => names.map((f) => WANTED[f]).join(", ");
  const why = [here.length && `It has ${list(here)}${missing.length ? "; " : ""}`, missing.length && `${here.length ? "" : "It has "}no ${list(missing)}`];
  rows.push({ name: "GPU features", short: `${here.length} of ${here.length + missing.length}`, why: `${why.filter(Boolean).join("")}.` });
  return rows;
}

export async function findAdapter() {
  try {
    return await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
  } catch {
    return null;
  }
}

export function describeAdapter({ info }) {
  const { vendor, architecture, description, isFallbackAdapter } = info ?? {};
  const name = description || [vendor, architecture].filter(Boolean).join(" ") || "an adapter without a name";
  const software = isFallbackAdapter || /swiftshader|llvmpipe|software/i.test(`${name} ${architecture}`);
  return software ? `${name}, in software: right, and slow` : name;
}

async function findMemory() {
  const rows = [];
  const gigabytes = navigator.deviceMemory;
  const heap = performance.memory?.jsHeapSizeLimit;
  const parts = [heap && `scripts may take ${bytes(heap)}`, "a WebAssembly module takes up to 4 GiB"];
  rows.push({
    name: "Memory",
    short: gigabytes ? `${gigabytes >= 8 ? "≥ " : ""}${gigabytes} GiB` : "not told",
    why: `${parts.filter(Boolean).join("; ")}.`.replace(/^./, (c) => c.toUpperCase()),
  });
  try {
    const { usage, quota } = await navigator.storage.estimate();
    rows.push({ name: "Storage", short: bytes(quota), why: `For models that are kept; ${bytes(usage)} are in use here.` });
  } catch {
    rows.push({ name: "Storage", has: false, why: "Not offered here: models are fetched at each visit." });
  }
  return rows;
}

function findPython() {
  const has = typeof WebAssembly === "object" && "Suspending" in WebAssembly;
  const why = has
    ? "WebAssembly can wait for a promise (JSPI): Python’s plain calls work beside the awaited ones."
    : "WebAssembly cannot wait for a promise (no JSPI): in Python, calls to a GPU are awaited.";
  return { name: "Waiting in Python", has, why };
}

function bytes(count) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) [count, unit] = [count / 1024, unit + 1];
  return `${Number(count.toPrecision(count >= 100 ? 3 : 2))} ${units[unit]}`;
}
