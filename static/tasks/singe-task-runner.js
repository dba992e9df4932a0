/**
 * A task: the bundle that `singe export --task` writes, called with pictures.
 *
 * Contract: `openTask(url, options)` returns a function of a picture; see Task in types/public.d.ts. The models run in
 * workers unless `worker` is false. `stream` asks for a frame when the answer before it is there: frames in between are dropped,
 * and none waits. A task of several models has all but the last in folders of their own, within that of the last.
 */

/** @import { LoadOptions, Progress, Model, PictureSource, Task, TaskAnswer, TaskInfo, TaskSettings } from "../types/public.d.ts" */

import { folderOf } from "../loading/singe-files.js";
import { SingeError } from "../program/singe-format.js";
import { load } from "../singe.js";
import { answerOf, drawAnswer, settingsOf, whyNot } from "./singe-task-answers.js";
import { landmarks } from "./singe-task-landmarks.js";
import { ocr } from "./singe-task-ocr.js";

/** The kinds that have several models ↦ what begins to answer for one picture after the other. */
const CHAINS = { landmarks, ocr };

/** @typedef {ReturnType<typeof settingsOf>} Chosen */
/** @typedef {(source: PictureSource | string | URL, signal?: AbortSignal) => Promise<TaskAnswer>} Answering */

/**
 * @param {string | URL} url
 * @param {LoadOptions} [options]
 * @returns {Promise<Task>}
 */
export async function openTask(url, options) {
  const shared = { worker: !options?.gpuDevice, ...options };
  const pictures = await import("../singe-picture.js");
  const { models, info } = await opened(url, shared);
  const chain = CHAINS[/** @type {keyof typeof CHAINS} */ (info.kind)];
  const model = /** @type {Model} */ (models.get(LAST));
  const pixelsOf = async (/** @type {PictureSource | string | URL} */ source, /** @type {AbortSignal | undefined} */ signal) => pictures.pixelsOf(await fetched(source, signal));

  /**
   * @param {Chosen} chosen
   * @returns {Answering}
   */
  const begin = (chosen) => {
    if (chain) {
      const run = (/** @type {string} */ name, /** @type {any} */ inputs, /** @type {AbortSignal | undefined} */ signal) =>
        /** @type {Model} */ (models.get(name) ?? model).run(inputs, { signal });
      const following = chain(run, info, chosen);
      return async (source, signal) => following(await pixelsOf(source, signal), signal);
    }
    return async (source, signal) => {
      const { data, width, height } = await pixelsOf(source, signal);
      return answerOf(info, await model.run({ picture: { data, shape: [height, width, 4] } }, { signal }), chosen);
    };
  };

  /**
   * @param {PictureSource | string | URL | readonly (PictureSource | string | URL)[]} source
   * @param {TaskSettings & { signal?: AbortSignal }} [settings]
   */
  const ask = async (source, { signal, ...settings } = {}) => {
    const chosen = settingsOf(info, settings);
    if (!Array.isArray(source)) return begin(chosen)(/** @type {PictureSource} */ (source), signal);
    const answers = [];
    for (const one of source) answers.push(await begin(chosen)(one, signal));
    return answers;
  };

  return /** @type {Task} */ (
    Object.assign(ask, {
      info,
      model,
      draw: drawAnswer.bind(undefined, info),
      stream: (/** @type {HTMLVideoElement} */ video, /** @type {Parameters<Task["stream"]>[1]} */ found, settings = {}) => follow(video, begin(settingsOf(info, settings)), found),
      close: async () => {
        await Promise.all(Array.from(models.values(), (one) => one.dispose()));
      },
    })
  );
}

/** The name of the model in the bundle's own folder. */
const LAST = "";

/**
 * The models of a bundle by their names, and its facts.
 * @param {string | URL} url
 * @param {LoadOptions} options
 */
async function opened(url, { onProgress, ...options }) {
  /** @type {Map<string, Progress>} */
  const shares = new Map();
  const loaded = (/** @type {string | URL} */ at, /** @type {string} */ name) =>
    load(at, {
      ...options,
      ...(onProgress && {
        onProgress: (/** @type {Progress} */ progress) => {
          shares.set(name, progress);
          const all = [...shares.values()];
          onProgress({ ...progress, loaded: all.reduce((sum, one) => sum + one.loaded, 0), total: all.reduce((sum, one) => sum + one.total, 0) });
        },
      }),
    });
  /** @type {Map<string, Model>} */
  const models = new Map();
  try {
    const last = await loaded(url, LAST);
    models.set(LAST, last);
    const info = /** @type {TaskInfo | undefined} */ (last.task);
    const problem = whyNot(info, CHAINS);
    if (!info || problem) throw new SingeError("format", `${url}: no task: ${problem}: export it with singe export --task`);
    const folder = /** @type {URL} */ (folderOf(url));
    for (const name of info.parts?.slice(0, -1) ?? []) models.set(name, await loaded(Object.assign(new URL(`${name}/`, folder), { search: folder.search }), name));
    return { models, info };
  } catch (error) {
    await Promise.all(Array.from(models.values(), (one) => one.dispose()));
    throw error;
  }
}

/**
 * What an address names; other sources are as they are.
 * @param {PictureSource | string | URL} source
 * @param {AbortSignal} [signal]
 * @returns {Promise<PictureSource>}
 */
export async function fetched(source, signal) {
  if (typeof source !== "string" && !(source instanceof URL)) return source;
  try {
    const response = await fetch(source, { signal });
    if (response.ok) return await response.blob();
    throw new Error(`the server answered ${response.status}`);
  } catch (cause) {
    if (signal?.aborted) throw new SingeError("aborted", "the picture was not fetched", signal.reason);
    throw new SingeError("network", `picture: ${source}: ${/** @type {Error} */ (cause).message}`, cause);
  }
}

/**
 * Answer for frames of a video until it ends, or `stop` is called.
 * @param {HTMLVideoElement} video
 * @param {Answering} answer
 * @param {Parameters<Task["stream"]>[1]} found
 */
function follow(video, answer, found) {
  let /** @type {() => void} */ stop = () => {};
  const stopped = new Promise((resolve) => {
    stop = () => resolve("stopped");
  });
  const run = async () => {
    while ((await Promise.race([stopped, frameOf(video)])) === "frame") {
      const [begun, time] = [performance.now(), video.currentTime];
      const frame = await createImageBitmap(video); // the video goes on while this one is answered for
      try {
        const one = await answer(frame);
        if ((await Promise.race([stopped, "running"])) !== "running") return;
        found(one, { milliseconds: performance.now() - begun, time, frame });
      } finally {
        frame.close();
      }
    }
  };
  return { stop, done: run() };
}

/**
 * "frame" when there is a new one, "ended" when there will be none.
 * @param {HTMLVideoElement} video
 * @returns {Promise<"frame" | "ended">}
 */
const frameOf = (video) =>
  new Promise((resolve) => {
    if (video.ended) return resolve("ended");
    video.addEventListener?.("ended", () => resolve("ended"), { once: true });
    if (video.requestVideoFrameCallback) video.requestVideoFrameCallback(() => resolve("frame"));
    else requestAnimationFrame(() => resolve("frame"));
  });
