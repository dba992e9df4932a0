/**
 * Tasks that write down what is said by a Moonshine, which takes samples as they are. Long sounds are cut where they are quietest.
 *
 * Contract: that of a medium (singe-task-runner.js), with the windows and the answers of core/singe/speech/moonshine.py.
 */

/** @import { Model, TaskInfo } from "../../types/public.d.ts" */
/** @import { Chosen, TaskMedium } from "../singe-task-runner.js" */
/** @import { Session } from "./singe-task-beams.js" */
/** @import { GenerationConfig, PairFacts } from "./singe-task-pairs.js" */

import { Tokenizer } from "../../language/singe-language-tokenizer.js";
import { HeardSamples, coursesOfSounds } from "./singe-task-courses.js";
import { PairModel, generated, withBeams, wrongFacts, wrongRules } from "./singe-task-pairs.js";

const TOKENIZER = "tokenizer.json";

/** @typedef {{ live: number, seconds: number, searched: number, quiet: number }} Cut */
/** @typedef {PairFacts & { rate: number, frame: number, further: number, least: number, rules: GenerationConfig, cut: Cut }} MoonshineFacts */
/** @typedef {{ text: string, start: number, end: number, score: number }} HeardPart */

const isSize = (/** @type {unknown} */ value) => Number.isSafeInteger(value) && Number(value) > 0 && Number(value) <= 1 << 20;
/** @type {(info: TaskInfo) => MoonshineFacts} */
const factsOf = (info) => /** @type {MoonshineFacts} */ (/** @type {unknown} */ (info.preparation));

/** A transcription under way: the sound that was heard, and what has been said for good. */
class MoonshineCourse {
  #model;
  #tokenizer;
  #facts;
  #rules;
  #heard = new HeardSamples();
  #place = 0; // what comes before it has been written down
  /** @type {HeardPart[]} */
  #parts = [];

  /**
   * @param {PairModel} model
   * @param {Tokenizer} tokenizer
   * @param {MoonshineFacts} facts
   * @param {GenerationConfig} rules
   */
  constructor(model, tokenizer, facts, rules) {
    this.#model = model;
    this.#tokenizer = tokenizer;
    this.#facts = facts;
    this.#rules = rules;
  }

  /** @param {Float32Array} block */
  hear(block) {
    this.#heard.push(block);
  }

  async soFar() {
    await this.#writeWindows();
    return this.transcript(await this.#part(this.#heard.count));
  }

  /** @param {() => void} [onPart] */
  async finish(onPart) {
    await this.#writeWindows(onPart);
    this.#parts.push(...(await this.#part(this.#heard.count)));
    this.#place = this.#heard.count;
  }

  /** @param {HeardPart[]} [more] */
  transcript(more = []) {
    const chunks = [...this.#parts, ...more];
    return { text: chunks.reduce((text, part) => text + part.text, "").trim(), language: "", chunks };
  }

  /**
   * Write down windows that are as long as can be.
   * @param {() => void} [onPart]
   */
  async #writeWindows(onPart) {
    const { rate, cut } = this.#facts;
    const most = cut.seconds * rate;
    while (this.#heard.count - this.#place > most) {
      const end = this.#place + quietest(this.#heard.between(this.#place, this.#place + most), this.#facts);
      this.#parts.push(...(await this.#part(end)));
      this.#place = end;
      this.#heard.letGo(end);
      onPart?.();
    }
  }

  /**
   * What is said from the place on; nothing if nothing is.
   * @param {number} end
   * @returns {Promise<HeardPart[]>}
   */
  async #part(end) {
    const { rate, frame, further, least } = this.#facts;
    const samples = this.#heard.between(this.#place, end);
    if (samples.length < least) return [];
    const frames = Math.floor((samples.length - least) / frame) + 1 + further;
    const data = new Float32Array(frames * frame);
    data.set(samples);
    await this.#model.hear({ data, shape: [frames, frame] }, samples.length);
    const { tokens } = await generated(this.#model, this.#rules);
    const text = this.#tokenizer.decode(tokens).trim();
    return text ? [{ text: ` ${text}`, start: this.#place / rate, end: end / rate, score: 1 }] : [];
  }
}

/**
 * The place near the end of a window at which it is quietest.
 * @param {Float32Array} samples
 * @param {MoonshineFacts} facts
 */
function quietest(samples, { rate, cut: { searched, quiet } }) {
  const first = samples.length - searched * rate;
  let [least, place] = [Infinity, 0];
  for (let at = first; at + quiet <= samples.length; at += quiet) {
    let power = 0;
    for (let k = at; k < at + quiet; k++) power += samples[k] * samples[k];
    if (power < least) [least, place] = [power, at];
  }
  return place + Math.floor(quiet / 2);
}

/**
 * @param {Model} model
 * @param {Tokenizer} tokenizer
 * @param {MoonshineFacts} facts
 * @param {Chosen} chosen
 * @param {AbortSignal} [signal]
 */
function courseOf(model, tokenizer, facts, chosen, signal) {
  const rules = withBeams(facts.rules, /** @type {any} */ (chosen).beams, facts, "transcribe");
  const session = /** @type {Session} */ (/** @type {unknown} */ (model.session()));
  const pair = new PairModel(session, facts, { data: new Float32Array(), shape: [0, facts.frame] }, signal);
  return { course: new MoonshineCourse(pair, tokenizer, facts, rules), close: () => pair.close() };
}

/** @type {TaskMedium} */
export const medium = {
  kinds: { transcribe: true },
  whyNot({ preparation, files }) {
    const facts = /** @type {any} */ (Object(preparation));
    const sizes = ["rate", "frame", "further", "least"].filter((name) => !isSize(facts[name]));
    const cut = Object(facts.cut);
    const numbers = Object.entries({ live: cut.live > 0, seconds: isSize(cut.seconds), searched: isSize(cut.searched) && !(cut.searched > cut.seconds), quiet: isSize(cut.quiet) });
    const wrong = [
      ...wrongFacts(facts),
      ...sizes,
      ...wrongRules(facts.rules, facts.vocabulary).map((name) => `rules.${name}`),
      ...numbers.flatMap(([name, is]) => (is ? [] : [`cut.${name}`])),
    ];
    if (wrong.length) return `it does not say how it hears: ${wrong.join(", ")}`;
    return files?.[TOKENIZER] ? "" : `no ${TOKENIZER} travels with it`;
  },
  async open(info, file, _, given) {
    const facts = factsOf(info);
    const model = /** @type {Model} */ (given);
    const tokenizer = new Tokenizer(await file(TOKENIZER, "values"));
    return coursesOfSounds(facts.rate, facts.cut.live, (chosen, signal) => courseOf(model, tokenizer, facts, chosen, signal));
  },
};
