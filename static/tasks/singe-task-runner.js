/**
 * A task: the bundle that `singe export --task` writes, called with pictures.
 *
 * Contract: `openTask(url, options)` returns a function of a picture; see Task in types/public.d.ts. The model runs in a
 * worker unless `worker` is false. `stream` asks for a frame when the answer before it is there: frames in between are dropped,
 * and none waits.
 */

/** @import { LoadOptions, PictureSource, Task, TaskAnswer, TaskInfo, TaskSettings } from "../types/public.d.ts" */

import { SingeError } from "../program/singe-format.js";
import { load } from "../singe.js";
import { answerOf, drawAnswer, settingsOf, whyNot } from "./singe-task-answers.js";

/**
 * @param {string | URL} url
 * @param {LoadOptions} [options]
 * @returns {Promise<Task>}
 */
export async function openTask(url, options) {
  const [model, pictures] = await Promise.all([load(url, { worker: !options?.gpuDevice, ...options }), import("../singe-picture.js")]);
  const info = /** @type {TaskInfo | undefined} */ (model.task);
  const problem = whyNot(info);
  if (!info || problem) {
    await model.dispose();
    throw new SingeError("format", `${url}: no task: ${problem}: export it with singe export --task`);
  }

  /**
   * @param {PictureSource | string | URL} source
   * @param {ReturnType<typeof settingsOf>} chosen
   * @param {AbortSignal} [signal]
   * @returns {Promise<TaskAnswer>}
   */
  const answer = async (source, chosen, signal) => {
    const { data, width, height } = await pictures.pixelsOf(await fetched(source, signal));
    return answerOf(info, await model.run({ picture: { data, shape: [height, width, 4] } }, { signal }), chosen);
  };

  /**
   * @param {PictureSource | string | URL | readonly (PictureSource | string | URL)[]} source
   * @param {TaskSettings & { signal?: AbortSignal }} [settings]
   */
  const ask = async (source, { signal, ...settings } = {}) => {
    const chosen = settingsOf(info, settings);
    if (!Array.isArray(source)) return answer(/** @type {PictureSource} */ (source), chosen, signal);
    const answers = [];
    for (const one of source) answers.push(await answer(one, chosen, signal));
    return answers;
  };

  return /** @type {Task} */ (
    Object.assign(ask, {
      info,
      model,
      draw: drawAnswer,
      stream: (/** @type {HTMLVideoElement} */ video, /** @type {Parameters<Task["stream"]>[1]} */ found, settings = {}) =>
        follow(video, settingsOf(info, settings), answer, found),
      close: () => model.dispose(),
    })
  );
}

/**
 * What an address names; other sources are as they are.
 * @param {PictureSource | string | URL} source
 * @param {AbortSignal} [signal]
 * @returns {Promise<PictureSource>}
 */
async function fetched(source, signal) {
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
 * @param {ReturnType<typeof settingsOf>} chosen
 * @param {(source: PictureSource, chosen: ReturnType<typeof settingsOf>) => Promise<TaskAnswer>} answer
 * @param {Parameters<Task["stream"]>[1]} found
 */
function follow(video, chosen, answer, found) {
  let /** @type {() => void} */ stop = () => {};
  const stopped = new Promise((resolve) => {
    stop = () => resolve("stopped");
  });
  const run = async () => {
    while ((await Promise.race([stopped, frameOf(video)])) === "frame") {
      const [begun, time] = [performance.now(), video.currentTime];
      const frame = await createImageBitmap(video); // the video goes on while this one is answered for
      try {
        const one = await answer(frame, chosen);
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
