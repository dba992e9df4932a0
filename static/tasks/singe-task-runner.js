/**
 * A task: the bundle that `singe export --task` writes, called with what its medium has.
 *
 * Contract: `openTask(url, options)` returns a function of a picture, a sound or a text; see Task in types/public.d.ts. A medium is a row of MEDIA: how
 * sources become runs, and these answers; only those that a task needs are fetched. The models run in
 * workers unless `worker` is false. `stream` asks for a frame when the answer before it is there: frames in between are dropped,
 * and none waits. A task of several models has all but the last in folders of their own, within that of the last.
 */

/** @import { LoadOptions, Progress, Model, Output, PictureSource, Task, TaskAnswer, TaskInfo, TaskSettings, TaskSource } from "../types/public.d.ts" */

import { Files, folderOf } from "../loading/singe-files.js";
import { FILE, SingeError, check } from "../program/singe-format.js";
import { load } from "../singe.js";
import { KINDS, answerOf, drawAnswer, settingsOf, whyNot } from "./singe-task-answers.js";
import { landmarks } from "./singe-task-landmarks.js";
import { ocr } from "./singe-task-ocr.js";

/** The kinds that have several models ↦ what begins to answer for one picture after the other. */
const CHAINS = { landmarks, ocr };

/** @import { FileEntry } from "../types/program.d.ts" */

/** @typedef {ReturnType<typeof settingsOf>} Chosen */
/** @typedef {(inputs: Record<string, any>, signal?: AbortSignal) => Promise<Record<string, Output>>} Run The task's Program */
/** @typedef {(sources: any[], signal?: AbortSignal) => Promise<TaskAnswer[]>} Following Answers; it may keep what it saw */
/** @typedef {ReturnType<Task["stream"]>} Follower */
/** @typedef {(run: Run, chosen: Chosen, source: any, found: (answer: any) => void) => Follower} Follow Answers for a source that comes in parts */
/** @typedef {((run: Run, chosen: Chosen) => Following) & { follow?: Follow }} Begin */
/** @typedef {{ (name: string): Promise<Uint8Array>, (name: string, as: "values"): Promise<any> }} TaskFile A file that travels with the task, or what its JSON says */
/** @typedef {{ prompt?: string, dimensions?: number, signal?: AbortSignal }} IndexOptions */
/**
 * kinds: those that it has; whyNot: what is wrong with the facts of one, "" if nothing is; open: a task; index: what a task holds, and is
 * opened with, to look through texts, too.
 * @typedef {{
 *   kinds: object,
 *   whyNot(info: TaskInfo): string,
 *   open(info: TaskInfo, file: TaskFile, held?: unknown, model?: Model): Promise<Begin>,
 *   index?(info: TaskInfo, file: TaskFile, run: Run, texts: readonly string[], options: IndexOptions, held?: unknown): Promise<unknown>,
 * }} TaskMedium
 */

/** @type {TaskMedium} */
const PICTURES = {
  kinds: KINDS,
  whyNot: () => "",
  async open(info) {
    const withPixels = await pixels();
    return (run, chosen) => async (sources, signal) => {
      const answers = [];
      for (const source of sources) {
        const answer = withPixels(source, signal, async ({ data, width, height }) =>
          answerOf(info, await run({ picture: { data, shape: [height, width, 4] } }, signal), chosen, [height, width]),
        );
        answers.push(await answer);
      }
      return answers;
    };
  },
};

/** A medium's name ↦ what opens its tasks. A manifest that names none is of pictures. A bundle has the scripts of its own medium alone. */
const MEDIA = {
  picture: async () => PICTURES,
  sound: async () => (await import("./singe-task-sounds.js")).medium,
  text: async () => (await import("./singe-task-texts.js")).medium,
  speech: async () => (await import("./singe-task-speech.js")).medium,
  hearing: async () => (await import("./saying/singe-task-hearing.js")).medium,
  moonshine: async () => (await import("./saying/singe-task-moonshine.js")).medium,
  translating: async () => (await import("./saying/singe-task-translating.js")).medium,
};

/**
 * What reads the pixels of a picture, or of its address, for an answer: they are in the memory of the last ones where nobody reads these
 * any more, since fresh memory takes longer to get than to fill.
 */
async function pixels() {
  const pictures = await import("../singe-picture.js");
  /** @type {InstanceType<typeof pictures.PixelRoom> | undefined} */
  let spare;
  /**
   * @template T
   * @param {PictureSource | string | URL} source
   * @param {AbortSignal | undefined} signal
   * @param {(pixels: Awaited<ReturnType<typeof pictures.pixelsOf>>) => Promise<T>} answer
   */
  return async (source, signal, answer) => {
    const room = spare ?? new pictures.PixelRoom();
    spare = undefined;
    const answered = await answer(await pictures.pixelsOf(await fetched(source, signal), room));
    spare = room;
    return answered;
  };
}

/**
 * @param {string | URL} url
 * @param {LoadOptions} [options]
 * @returns {Promise<Task>}
 */
export async function openTask(url, options) {
  const shared = { worker: !options?.gpuDevice, ...options };
  return taskOf({ ...(await opened(url, shared)), url, shared });
}

/**
 * @param {{ models: Map<string, Model>, info: TaskInfo, medium: TaskMedium, url: string | URL, shared: LoadOptions, held?: unknown }} parts
 * @returns {Promise<Task>}
 */
async function taskOf(parts) {
  const { models, info, medium, url, shared, held } = parts;
  const file = fileOf(url, info, shared);
  const model = /** @type {Model} */ (models.get(LAST));
  const runOf = (/** @type {string} */ name) => (/** @type {any} */ inputs, /** @type {AbortSignal | undefined} */ signal) =>
    /** @type {Promise<Record<string, Output>>} */ (/** @type {Model} */ (models.get(name) ?? model).run(inputs, { signal }));
  const chain = CHAINS[/** @type {keyof typeof CHAINS} */ (info.kind)];
  const begun = chain ? await chained(chain, info, runOf) : await medium.open(info, file, held, model);
  const begin = (/** @type {Chosen} */ chosen) => begun(runOf(LAST), chosen);

  /**
   * @param {TaskSource | readonly TaskSource[]} source
   * @param {TaskSettings & { signal?: AbortSignal }} [settings]
   */
  const ask = async (source, { signal, ...settings } = {}) => {
    const following = begin(settingsOf(info, settings));
    return Array.isArray(source) ? following(source, signal) : (await following([source], signal))[0];
  };

  return /** @type {Task} */ (
    Object.assign(ask, {
      info,
      model,
      draw: drawAnswer.bind(undefined, info),
      index: async (/** @type {readonly string[]} */ texts, /** @type {IndexOptions} */ options = {}) => {
        if (!medium.index) throw new SingeError("input", `${info.kind}: only a search has an index`);
        return taskOf({ ...parts, held: await medium.index(info, file, runOf(LAST), texts, options, held) });
      },
      stream: (/** @type {any} */ source, /** @type {(answer: any, timing?: any) => void} */ found, settings = {}) => {
        const chosen = settingsOf(info, settings);
        if (typeof found !== "function") throw new SingeError("input", `stream: got ${typeof found} as its second argument, expected a function that takes an answer`);
        return begun.follow ? begun.follow(runOf(LAST), chosen, source, found) : follow(source, begin(chosen), found);
      },
      close: async () => {
        await Promise.all(Array.from(models.values(), (one) => one.dispose()));
      },
    })
  );
}

/**
 * Begins with a chain, of which each of several pictures is the first.
 * @param {typeof landmarks | typeof ocr} chain
 * @param {TaskInfo} info
 * @param {(name: string) => Run} runOf
 * @returns {Promise<Begin>}
 */
async function chained(chain, info, runOf) {
  const withPixels = await pixels();
  return (_, chosen) => {
    const start = () => chain((/** @type {string} */ name, /** @type {any} */ inputs, /** @type {AbortSignal | undefined} */ signal) => runOf(name)(inputs, signal), info, chosen);
    const following = start();
    return async (sources, signal) => {
      const answers = [];
      for (const source of sources) {
        const answer = /** @type {(found: any) => Promise<TaskAnswer>} */ ((found) => (sources.length > 1 ? start() : following)(found, signal));
        answers.push(await withPixels(source, signal, answer));
      }
      return answers;
    };
  };
}

/**
 * What fetches a file that travels with a task, compared with its hash.
 * @param {string | URL} url
 * @param {TaskInfo} info
 * @param {LoadOptions} options
 * @returns {TaskFile}
 */
function fileOf(url, info, { cache = true, signal }) {
  return async (/** @type {string} */ name, /** @type {"values" | void} */ as) => {
    const entry = /** @type {FileEntry} */ (info.files?.[name]);
    check(entry, FILE, `task.files["${name}"]`);
    const files = new Files(/** @type {URL} */ (folderOf(url)), cache, signal);
    try {
      const found = await (as ? files.json(entry) : files.bytes(entry));
      files.stop(true);
      return found;
    } catch (error) {
      files.stop();
      throw error;
    }
  };
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
    const name = /** @type {keyof typeof MEDIA} */ (String(info?.preparation?.medium ?? "picture"));
    const medium = Object.hasOwn(MEDIA, name) ? await MEDIA[name]().catch((cause) => refuseScripts(url, cause)) : { ...PICTURES, kinds: {} };
    const problem = whyNot(info, CHAINS, medium);
    if (!info || problem) throw new SingeError("format", `${url}: no task: ${problem}: export it with singe export --task`);
    const folder = /** @type {URL} */ (folderOf(url));
    for (const name of info.parts?.slice(0, -1) ?? []) models.set(name, await loaded(Object.assign(new URL(`${name}/`, folder), { search: folder.search }), name));
    return { models, info, medium };
  } catch (error) {
    await Promise.all(Array.from(models.values(), (one) => one.dispose()));
    throw error;
  }
}

/**
 * @param {string | URL} url
 * @param {unknown} cause
 * @returns {never}
 */
function refuseScripts(url, cause) {
  const what = `${url}: its scripts are not beside this one: import task from singe-tasks.js in that folder, or from the npm package's singe/tasks`;
  throw new SingeError("network", what, cause);
}

/**
 * What an address names, and an image when it is loaded; other sources are as they are.
 * @param {PictureSource | string | URL} source
 * @param {AbortSignal} [signal]
 * @returns {Promise<PictureSource>}
 */
export async function fetched(source, signal) {
  if (globalThis.HTMLImageElement && source instanceof HTMLImageElement && !(source.complete && source.naturalWidth)) {
    await source.decode().catch((cause) => {
      throw new SingeError("input", `picture: the image ${source.src ? `${source.src} cannot be loaded` : "has no src"}`, cause);
    });
  }
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
 * @param {Following} following
 * @param {Parameters<Task["stream"]>[1]} found
 */
function follow(video, following, found) {
  if (!("videoWidth" in Object(video))) throw new SingeError("input", "stream: expected a <video>; of other sources, ask for one picture after the other");
  let /** @type {() => void} */ stop = () => {};
  const stopped = new Promise((resolve) => {
    stop = () => resolve("stopped");
  });
  const run = async () => {
    while ((await Promise.race([stopped, frameOf(video)])) === "frame") {
      const [begun, time] = [performance.now(), video.currentTime];
      const frame = await shown(video);
      try {
        const [one] = await following([frame]);
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
 * What a video shows, which goes on meanwhile. A bitmap of it would be drawn, and read back.
 * @param {HTMLVideoElement} video
 * @returns {Promise<VideoFrame | ImageBitmap>}
 */
const shown = async (video) => (globalThis.VideoFrame ? new VideoFrame(video) : createImageBitmap(video));

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
