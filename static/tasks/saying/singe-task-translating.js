/**
 * Tasks that translate: a text becomes tokens, which an encoder reads, and these a text in another language.
 *
 * Contract: that of a medium (singe-task-runner.js), with the languages, the windows and the answers of core/singe/tasks/saying/translate.py. A
 * call is given a text; a stream a text or an async iterable of texts, and tells what is said so far: token by token, where one text is followed.
 */

/** @import { Model, TaskInfo } from "../../types/public.d.ts" */
/** @import { Begin, Chosen, TaskMedium } from "../singe-task-runner.js" */
/** @import { Session } from "./singe-task-beams.js" */
/** @import { GenerationConfig, PairFacts } from "./singe-task-pairs.js" */

import { Tokenizer } from "../../language/singe-language-tokenizer.js";
import { SingeError } from "../../program/singe-format.js";
import { PairModel, generated, isCount, isToken, isTokenOrNull, withBeams, wrongFacts, wrongRules } from "./singe-task-pairs.js";

const TOKENIZER = "tokenizer.json";
const NOTHING = { data: new Int32Array(), shape: [0] };
/** Where a text that is too long is cut: between sentences, else between words, else anywhere; as in core/singe/tasks/saying/translate.py. */
const UNITS = [/(?:[^.!?…。！？\n]|[.!?…](?!\s))*(?:[.!?…。！？]+["'”’)」』]*|\n|(?![\s\S]))\s*/gu, /\S+\s*|\s+/gu, /[\s\S]/gu];

/** @typedef {{ source: string, target: string, phrase: string, rules: GenerationConfig }} LanguageTask */
/**
 * See TextFacts in core/singe/language/encoder_decoders/texts.py.
 * @typedef {PairFacts & { count: number, end: number | null, unknown: number | null, languages: Record<string, number>, both: boolean, tasks: LanguageTask[], rules: GenerationConfig }} TranslatingFacts
 */
/** @typedef {{ src_lang: string | null, tgt_lang: string | null, beams: number | null }} Translating */
/** @typedef {{ before: number[], phrase: string, rules: GenerationConfig }} AskedLanguage */

/** @type {(info: TaskInfo) => TranslatingFacts} */
const factsOf = (info) => /** @type {TranslatingFacts} */ (/** @type {unknown} */ (info.preparation));
/** @param {string} what */
const refuse = (what) => new SingeError("input", `translate: ${what}`);

/**
 * How a text is asked for in another language.
 * @param {TranslatingFacts} facts
 * @param {Translating} wishes
 * @returns {AskedLanguage}
 */
function asked(facts, { src_lang: from, tgt_lang: to }) {
  const { languages, tasks, rules } = facts;
  const known = Object.keys(languages).sort();
  const tokenOf = (/** @type {string} */ which, /** @type {string | null} */ code) => {
    if (code !== null && Object.hasOwn(languages, code)) return languages[code];
    throw refuse(`${which} is ${JSON.stringify(code)}, expected the code of a language that the model knows: ${known.join(", ") || "none: its files list no languages"}`);
  };
  if (tasks.length) {
    const found = tasks.filter(({ source, target }) => (from ?? source) === source && (to ?? target) === target);
    if (found.length !== 1)
      throw refuse(
        `src_lang is ${JSON.stringify(from)} and tgt_lang ${JSON.stringify(to)}, expected one of: ${tasks.map(({ source, target }) => `${source} to ${target}`).join(", ")}`,
      );
    return { before: [], phrase: found[0].phrase, rules: found[0].rules };
  }
  if (facts.both) return { before: [tokenOf("src_lang", from)], phrase: "", rules: { ...rules, forced_bos_token_id: tokenOf("tgt_lang", to) } };
  if (from !== null || (to !== null && !known.length)) {
    const given = from === null ? `tgt_lang ${JSON.stringify(to)}` : `src_lang ${JSON.stringify(from)}`;
    throw refuse(`got ${given}, and the model translates from and to what its name says; leave it out`);
  }
  return { before: to === null && known.length < 2 ? [] : [tokenOf("tgt_lang", to)], phrase: "", rules };
}

/** What translates texts, one after the other. */
class Translator {
  #model;
  #tokenizer;
  #facts;
  #asked;

  /**
   * @param {PairModel} model
   * @param {Tokenizer} tokenizer
   * @param {TranslatingFacts} facts
   * @param {AskedLanguage} asked
   */
  constructor(model, tokenizer, facts, asked) {
    this.#model = model;
    this.#tokenizer = tokenizer;
    this.#facts = facts;
    this.#asked = asked;
  }

  /**
   * @param {unknown} text
   * @param {(answer: unknown) => void} [tell] is called with what is said so far
   */
  async translate(text, tell) {
    if (typeof text !== "string") throw refuse(`got ${typeof text}, expected a text`);
    const { rules } = this.#asked;
    const windows = this.#windows(text);
    let [said, isCut] = ["", false];
    const answer = () => {
      const hidden = { windows: { value: windows.length }, cut: { value: isCut } }; // not enumerable, so that JSON has none
      return Object.defineProperties({ translation_text: said.trim() }, hidden);
    };
    for (const window of windows) {
      const ids = this.#encode(window.trim());
      await this.#model.hear({ data: Int32Array.from(ids), shape: [ids.length] }, ids.length);
      const before = said;
      const onToken = (/** @type {readonly number[]} */ tokens) => {
        said = before + this.#decode(tokens);
        tell?.(answer());
      };
      const { tokens, isWhole } = await generated(this.#model, rules, tell && onToken);
      said = before + this.#decode(tokens) + (window.slice(window.trimEnd().length) || " ");
      isCut ||= !isWhole;
    }
    return answer();
  }

  /** @param {string} text */
  #encode(text) {
    const { count, unknown, end } = this.#facts;
    const ids = this.#tokenizer.encode(this.#asked.phrase + text, { addSpecial: false, parseSpecial: false });
    const known = unknown === null ? ids : ids.map((id) => (id >= count ? unknown : id));
    return [...this.#asked.before, ...known, ...(end === null ? [] : [end])];
  }

  /** @param {readonly number[]} ids */
  #decode(ids) {
    return this.#tokenizer.decode(ids.filter((id) => id < this.#facts.count)).trim();
  }

  /**
   * The text, or the parts of it that the model can read.
   * @param {string} text
   */
  #windows(text) {
    const [room] = this.#facts.room;
    const fits = (/** @type {string} */ part) => this.#encode(part.trim()).length <= room;
    if (!text.trim()) return [];
    if (!fits("")) throw refuse(`of ${room} tokens that the model reads at once, none is left for the text`);
    return fits(text) ? [text] : parts(text, fits, UNITS);
  }
}

/**
 * Parts that fit, each of as many units as can be.
 * @param {string} text
 * @param {(part: string) => boolean} fits
 * @param {readonly RegExp[]} units
 * @returns {string[]}
 */
function parts(text, fits, [first, ...finer]) {
  /** @type {string[]} */
  const found = [];
  let held = "";
  for (const [unit] of text.matchAll(first)) {
    if (fits(held + unit)) {
      held += unit;
      continue;
    }
    if (held.trim()) found.push(held);
    held = "";
    if (fits(unit)) held = unit;
    else if (finer.length) found.push(...parts(unit, fits, finer));
    else throw refuse(`${JSON.stringify(unit)} has more tokens than the model reads at once`);
  }
  return held.trim() ? [...found, held] : found;
}

/** @type {TaskMedium} */
export const medium = {
  kinds: { translate: true },
  whyNot({ preparation, files }) {
    const facts = /** @type {any} */ (Object(preparation));
    const { languages, tasks, vocabulary } = facts;
    const areTasks =
      Array.isArray(tasks) &&
      tasks.every((task) => ["source", "target", "phrase"].every((name) => typeof Object(task)[name] === "string") && !wrongRules(task.rules, vocabulary).length);
    const own = {
      count: isCount(facts.count),
      end: isTokenOrNull(facts.end, vocabulary),
      unknown: isTokenOrNull(facts.unknown, vocabulary),
      languages: Object(languages) === languages && Object.values(languages).every((token) => isToken(token, vocabulary)),
      both: typeof facts.both === "boolean",
      tasks: areTasks,
    };
    const wrong = [...wrongFacts(facts), ...wrongRules(facts.rules, vocabulary).map((name) => `rules.${name}`), ...Object.entries(own).flatMap(([name, is]) => (is ? [] : [name]))];
    if (wrong.length) return `it does not say how it translates: ${wrong.join(", ")}`;
    return files?.[TOKENIZER] ? "" : `no ${TOKENIZER} travels with it`;
  },
  async open(info, file, _, given) {
    const facts = factsOf(info);
    const model = /** @type {Model} */ (given);
    const tokenizer = new Tokenizer(await file(TOKENIZER, "values"));
    const opened = (/** @type {Chosen} */ chosen, /** @type {AbortSignal | undefined} */ signal) => {
      const wishes = /** @type {Translating} */ (/** @type {unknown} */ (chosen));
      const language = asked(facts, wishes);
      const rules = withBeams(language.rules, wishes.beams, facts, "translate");
      const session = /** @type {Session} */ (/** @type {unknown} */ (model.session()));
      const pair = new PairModel(session, facts, NOTHING, signal);
      return { translator: new Translator(pair, tokenizer, facts, { ...language, rules }), close: () => pair.close() };
    };
    /** @type {Begin} */
    const begin = (_run, chosen) => async (sources, signal) => {
      const { translator, close } = opened(chosen, signal);
      const answers = [];
      try {
        for (const source of sources) answers.push(/** @type {any} */ (await translator.translate(source)));
      } finally {
        await close();
      }
      return answers;
    };
    /** @type {Begin["follow"]} */
    const follow = (_run, chosen, source, found) => {
      if (typeof source !== "string" && typeof source?.[Symbol.asyncIterator] !== "function") throw refuse("a stream is a text, or an async iterable of texts");
      const aborting = new AbortController();
      const { signal } = aborting;
      const { translator, close } = opened(chosen, signal);
      const tell = (/** @type {unknown} */ answer) => {
        if (!signal.aborted) found(answer);
      };
      const follows = async () => {
        try {
          for await (const text of typeof source === "string" ? [source] : source) {
            if (signal.aborted) return;
            tell(await translator.translate(text, tell));
          }
        } catch (error) {
          if (!signal.aborted) throw error;
        } finally {
          await close();
        }
      };
      return { stop: () => aborting.abort(), done: follows() };
    };
    return Object.assign(begin, { follow });
  },
};
