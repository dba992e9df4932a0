/** What every project runs: a bundle in the page and in a worker, on one thread and on two. */

import { load } from "singe";

const WAYS = [
  { worker: false, threads: 1 },
  { worker: true, threads: 1 },
  { worker: false, threads: 2 },
  { worker: true, threads: 2 },
];

globalThis.answers = async (url, count, ways = WAYS) => {
  const x = Float32Array.from({ length: count * 5 * 7 * 6 }, (_, k) => ((k * 7919) % 1000) / 1000 - 0.5);
  const found = [];
  for (const way of ways) {
    const model = await load(url, { device: "wasm", ...way });
    const { y } = await model.run({ x });
    found.push({ worker: model.worker, threads: model.threads, y: [...y.data] });
    await model.dispose();
  }
  return found;
};
