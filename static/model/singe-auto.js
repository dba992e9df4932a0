/**
 * Chooses the faster device for a model: measured in the page, on the model's own inputs, while the page is idle.
 *
 * Contract: `decide(state)` takes the state of a Model of singe-model.js. It opens the other device as `state.rival`,
 * measures both on `state.seen`, keeps the faster as `state.now`, frees the other, and returns whether the device
 * changed. The choice is remembered for the bundle and the adapter. A caller's run waits for at most one measured run.
 * Software adapters are not measured.
 */

/** @import { BoundInputs, ModelState, OpenDevice } from "../types/program.d.ts" */

import { enough, pays } from "../program/singe-timing.js";
import { isSoftware } from "../webgpu/singe-gpu.js";

const PATIENCE_MS = 1000;

/** @param {ModelState} state */
export async function decide(state) {
  try {
    return await faster(state);
  } catch {
    return false; // keep the current device
  } finally {
    state.decided = true;
    state.seen = undefined;
  }
}

/** @param {ModelState} state */
async function faster(state) {
  const { open, inTurn, store } = state;
  await idle();
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  const name = adapter && nameOf(adapter);
  if (!adapter || /** @type {{ isFallbackAdapter?: boolean }} */ (adapter).isFallbackAdapter || isSoftware(adapter.info)) return false;
  if ((await store?.recall())?.adapter === name) return false;
  const before = state.now.name;
  state.rival = await open(before === "wasm" ? "webgpu" : "wasm");
  try {
    if ((await isFaster(state)) && !state.disposed) {
      await inTurn(() => ([state.now, state.rival] = [/** @type {OpenDevice} */ (state.rival), state.now]));
    }
    await store?.remember({ adapter: name, device: state.now.name });
    return state.now.name !== before;
  } finally {
    state.rival?.device.dispose();
    state.rival = undefined;
  }
}

/**
 * Identifies the GPU; includes the driver's version, if known, since it affects the speed.
 * @param {GPUAdapter} adapter
 */
function nameOf({ info }) {
  const { vendor, architecture, device, description } = info ?? {};
  return [vendor, architecture, device, description].join(" ");
}

/** Waits until the page is idle, or a maximum time. */
const idle = () =>
  new Promise((done) => {
    if ("requestIdleCallback" in globalThis) requestIdleCallback(done, { timeout: PATIENCE_MS });
    else setTimeout(done, 20);
  });

/**
 * Whether the rival is faster by enough; the two take turns.
 * @param {ModelState} state
 */
async function isFaster(state) {
  /** @type {{ now: number[], rival: number[] }} */
  const sides = { now: [], rival: [] };
  const once = async (/** @type {"now" | "rival"} */ side) => {
    await idle();
    await state.inTurn(async () => {
      if (state.disposed) throw new Error("disposed");
      const start = performance.now();
      await state[side]?.run(/** @type {BoundInputs} */ (state.seen), "data");
      sides[side].push(performance.now() - start);
    });
  };
  while (!Object.values(sides).every(enough)) {
    for (const side of /** @type {const} */ (["now", "rival"])) await once(side);
    // The first run of each is a warm-up: it creates buffers, plans and compiled code.
    if (sides.now.length === 1 && !state.warm) [state.warm, sides.now, sides.rival] = [true, [], []];
  }
  return pays(sides.now, sides.rival);
}
