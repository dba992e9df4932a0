import { load, SingeError, type Model, type Progress } from "singe";
import { resample, soundToTensor } from "singe/sound";
import { classes, type Found } from "singe/tasks";

/** The model in a folder, or undefined where this engine cannot run it. */
export async function open(url: string, onProgress: (progress: Progress) => void): Promise<Model | undefined> {
  try {
    return await load(url, { device: "auto", onProgress });
  } catch (error) {
    if (error instanceof SingeError && error.code === "device") return undefined;
    throw error;
  }
}

/** The class of a picture of 28 by 28 pixels. */
export async function classOf(model: Model, pixels: Float32Array): Promise<number> {
  const { logits } = await model.run({ input: { data: pixels, shape: [1, 1, 28, 28] } });
  if (!(logits?.data instanceof Float32Array)) throw new TypeError("the model answers no float32 logits");
  return logits.data.indexOf(Math.max(...logits.data));
}

/** The likeliest words for a sound, which a model takes at 16,000 samples a second. */
export async function heard(model: Model, sound: AudioBuffer | Float32Array, labels: readonly string[]): Promise<Found[]> {
  const samples = sound instanceof Float32Array ? resample(sound, 48000, 16000) : soundToTensor(sound, 16000);
  const { words } = await model.run({ samples });
  return words ? classes(words, { labels }) : [];
}
