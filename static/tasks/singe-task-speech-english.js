/**
 * How English is read aloud: figures become words, words phonemes, by the tables that travel with a voice.
 *
 * Contract: that of core/singe/speech/english, which wrote the tables: `new English(tables, dictionary).phonemes(text)` gives the signs of a
 * text, with spaces between words, and its punctuation. dictionary: the text of a file of the form of CMU's. Tables may hold anything: the
 * patterns are those of this file, but for what stands beside letters, which has a form that is run in little time.
 */

import { SingeError } from "../program/singe-format.js";

/** What white space is, as a pattern; it and those below are core/singe/speech/english's. */
export const SPACE = "[\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
/** What ends in a full stop that ends no sentence, in large and small letters. */
export const ABBREVIATION = "\\b(mr|mrs|ms|dr|st|prof|etc|vs|e\\.g|i\\.e|jr|sr|no|approx|inc)\\.";
const SPACES = new RegExp(`${SPACE}+`, "g");
/**
 * What stands in a text, in the order in which it becomes words.
 * @type {readonly (readonly [string, RegExp])[]}
 */
const RULES = [
  ["short", new RegExp(`${ABBREVIATION}(?= |,|$)`, "gi")],
  ["money", /([$£€])(\d[\d,]*)(?:\.(\d{1,2}))?(?: (thousand|million|billion|trillion))?/g],
  ["time", /\b(\d{1,2}):(\d\d)\b/g],
  ["ordinal", /\b(\d[\d,]*)(?:st|nd|rd|th)\b/g],
  ["decimal", /\b(\d[\d,]*)\.(\d+)/g],
  ["year", /\b(1[1-9]\d\d|20\d\d)s?\b/g],
  ["minus", /(?<![\w.])-(?=\d)/g],
  ["whole", /\d{1,3}(?:,\d{3})+|\d+/g],
  ["sign", /[%&+=@°#]/g],
];
const PARTS = /[A-Za-z]+(?:['’][A-Za-z]+)*'?|[.,;:!?]|[—–()]/g;
const SET = "(?:[a-z]|\\[\\^?[a-z]+\\])";
/** What may stand beside letters: letters and sets of them, with at most one `.*`, then one choice, and one that may be missing. */
const BESIDE = new RegExp(`^\\^?(?:${SET}*\\.\\*)?${SET}*(?:\\(${SET}+(?:\\|${SET}+)*\\))?(?:${SET}\\?)?\\$?$`);

/** @typedef {Record<string, any>} Tables What speech.json has under "english" */
/** @typedef {(found: string[]) => string} Words What is read for a match */

const isVowel = (/** @type {string} */ sound) => /^[AEIOU]/.test(sound);

/** A page's reader of English. */
export class English {
  #tables;
  /** @type {Map<string, string>} */
  #dictionary = new Map();
  /** @type {Record<string, Words>} */
  #read;
  /** @type {{ before: RegExp | null, letters: string, behind: RegExp, sounds: string[] }[]} */
  #letters;
  /** @type {[RegExp, number][]} */
  #stress;

  /**
   * @param {Tables} tables
   * @param {string} dictionary
   */
  constructor(tables, dictionary) {
    this.#tables = tables;
    this.#read = wordsOf(tables.numbers);
    this.#letters = tables.letters.rules.map((/** @type {string[]} */ [before, letters, behind, sounds]) => {
      if (typeof letters !== "string" || !/^[a-z]+$/.test(letters) || typeof sounds !== "string")
        throw wrong(`the letters ${told(letters)} with the sounds ${told(sounds)}, expected texts`);
      return { before: before ? beside("(?:", before, ")$") : null, letters, behind: beside("^(?:", behind, ")"), sounds: split(sounds) };
    });
    this.#stress = tables.letters.stress.map((/** @type {[string, number]} */ [ending, place]) => [beside("", ending, ""), place]);
    for (const whole of dictionary.split(/\r?\n/)) {
      const line = whole.split("#", 1)[0].trim();
      if (!line || line.startsWith(";;;")) continue;
      const parts = /^([^\s(]+)(?:\(\d\))? +(\S.*)$/.exec(line);
      if (!parts) throw wrong(`the line ${told(line)}, expected a word and its phonemes`);
      const word = parts[1].toLowerCase();
      if (!this.#dictionary.has(word)) this.#dictionary.set(word, parts[2]);
    }
  }

  /**
   * The text with words in place of figures and signs.
   * @param {string} text
   */
  inWords(text) {
    let words = text.replace(SPACES, " ");
    for (const [name, pattern] of RULES) words = words.replace(pattern, (...found) => this.#read[name](found));
    return words.replace(/ +/g, " ").replace(/^ | $/g, "");
  }

  /**
   * A text without accents, and with the letters of English alone; what has others is left out, and said to be.
   * @param {string} text
   */
  #inLetters(text) {
    const { latin } = this.#tables;
    const plain = Array.from(text, (sign) => (Object.hasOwn(latin, sign) ? latin[sign] : sign))
      .join("")
      .normalize("NFD")
      .replace(/\p{Mn}/gu, "");
    return plain.replace(/(?:(?![A-Za-z])[\p{L}\p{Nl}\p{No}])+/gu, (word) => {
      console.warn(`speak: ${word} is left out: it has no letters of English; phonemes: true takes signs of IPA`);
      return " ";
    });
  }

  /** @param {string} text */
  phonemes(text) {
    const parts = this.inWords(this.#inLetters(text)).replaceAll("’", "'").match(PARTS) ?? [];
    const isWord = (/** @type {string | undefined} */ part) => /^[A-Za-z]/.test(part ?? "");
    /** @type {string[]} */
    const made = [];
    parts.forEach((part, k) => {
      if (isWord(part)) made.push(this.#signs(part, isWord(parts[k + 1]) ? parts[k + 1] : ""));
      else if (made.length && !/[.,;:!?]$/.test(made[made.length - 1])) made[made.length - 1] += /[.,;:!?]/.test(part) ? part : ",";
    });
    return made.join(" ");
  }

  /**
   * @param {string} word
   * @param {string} following
   */
  #signs(word, following) {
    const small = word.toLowerCase();
    if (small === "the" && /^[aeiou]/i.test(following)) return "ðɪ";
    if (following && Object.hasOwn(this.#tables.weak, small)) return this.#tables.weak[small];
    const sounds = this.sounds(word);
    const isLight = this.#tables.light.includes(small);
    return sounds.map((sound, k) => this.#sign(sound, sounds[k - 1] ?? "", sounds[k + 1] ?? "", isLight)).join("");
  }

  /**
   * The phonemes of a word.
   * @param {string} word
   * @returns {string[]}
   */
  sounds(word) {
    const { called, endings, after } = this.#tables;
    const small = word.toLowerCase();
    const found = this.#dictionary.get(small);
    if (found !== undefined) return split(found);
    if (/^[A-Z]{1,5}$/.test(word)) return Array.from(small).flatMap((letter) => called[letter].split("-"));
    for (const [ending, instead, name] of endings) {
      const stem = small.endsWith(ending) ? this.#dictionary.get(small.slice(0, -ending.length) + instead) : undefined;
      if (stem === undefined) continue;
      const sounds = split(stem);
      const [, own] = after[name].find((/** @type {[string, string]} */ [before]) => !before || before.split(" ").includes(sounds[sounds.length - 1]));
      return [...sounds, ...split(own)];
    }
    return this.byLetters(small.replaceAll("'", ""));
  }

  /**
   * The phonemes of a word that no dictionary has; one of its vowels bears the stress.
   * @param {string} word
   */
  byLetters(word) {
    /** @type {string[]} */
    const sounds = [];
    for (let at = 0; at < word.length; ) {
      const rest = word.slice(at);
      const row = this.#letters.find(
        ({ before, letters, behind }) => rest.startsWith(letters) && (!before || before.test(word.slice(0, at))) && behind.test(rest.slice(letters.length)),
      );
      sounds.push(...(row?.sounds ?? []));
      at += row?.letters.length ?? 1;
    }
    const vowels = Array.from(sounds.keys()).filter((k) => isVowel(sounds[k]));
    const [, place] = this.#stress.find(([ending]) => ending.test(word)) ?? ["", vowels.length];
    const stressed = vowels[vowels.length - Math.min(place, vowels.length)];
    return sounds.map((sound, k) => (isVowel(sound) ? `${sound}${k === stressed ? 1 : 0}` : sound));
  }

  /**
   * @param {string} sound
   * @param {string} before
   * @param {string} after
   * @param {boolean} isLight
   */
  #sign(sound, before, after, isLight) {
    const { ipa, unstressed, stress } = this.#tables;
    const [name, degree] = [sound.replace(/[012]+$/, ""), /[012]*$/.exec(sound)?.[0] ?? ""];
    if (!Object.hasOwn(ipa, name)) throw wrong(`the phoneme ${told(name)}, expected those of CMU`);
    if (name === "T" && /^[AEIOUR]/.test(before) && after.endsWith("0") && isVowel(after)) return "ɾ";
    if (degree === "0" && Object.hasOwn(unstressed, name)) return unstressed[name];
    return (isLight ? "" : (stress[degree] ?? "")) + ipa[name];
  }
}

const told = (/** @type {unknown} */ value) => (JSON.stringify(value) ?? "undefined").slice(0, 60);
const wrong = (/** @type {string} */ what) => new SingeError("format", `speak: what travels with the voice has ${what}; export the voice once more`);

/**
 * A pattern of what stands beside letters.
 * @param {string} head
 * @param {string} pattern
 * @param {string} tail
 */
function beside(head, pattern, tail) {
  if (typeof pattern !== "string" || !BESIDE.test(pattern)) throw wrong(`the pattern ${told(pattern)} beside letters, expected letters, sets of them and one choice`);
  return new RegExp(head + pattern + tail);
}

/** @param {string} text */
const split = (text) => text.split(/\s+/).filter(Boolean);

/**
 * What is read for a match of each rule.
 * @param {Tables} tables
 * @returns {Record<string, Words>}
 */
function wordsOf({ small, tens, groups, ordinals, most_digits: most, units, signs, short }) {
  /** @type {(value: number) => string} */
  const below = (value) => {
    if (value < 20) return small[value];
    if (value < 100) return tens[Math.floor(value / 10)] + (value % 10 ? ` ${small[value % 10]}` : "");
    return `${small[Math.floor(value / 100)]} hundred${value % 100 ? ` ${below(value % 100)}` : ""}`;
  };
  /** Of figures, which may be more than a number holds. @type {(figures: string) => string} */
  const number = (figures) => {
    const plain = figures.replace(/^0+(?=\d)/, "");
    if (plain.length <= 3) return below(Number(plain));
    const count = Math.ceil(plain.length / 3);
    const parts = Array.from({ length: count }, (_, k) => Number(plain.padStart(3 * count, "0").slice(3 * k, 3 * k + 3)));
    return parts.flatMap((part, k) => (part ? [`${below(part)} ${groups[count - 1 - k]}`.trim()] : [])).join(" ");
  };
  const digits = (/** @type {string} */ figures) => Array.from(figures, (figure) => small[Number(figure)]).join(" ");
  const plainOf = (/** @type {string} */ figures) => figures.replaceAll(",", "");
  const whole = (/** @type {string} */ figures) => (plainOf(figures).length <= most ? number(plainOf(figures)) : digits(plainOf(figures)));
  const ordinal = (/** @type {string} */ figures) => {
    const words = number(figures).split(" ");
    const last = words[words.length - 1];
    words[words.length - 1] = ordinals[last] ?? (last.endsWith("y") ? `${last.slice(0, -1)}ieth` : `${last}th`);
    return words.join(" ");
  };
  const late = (/** @type {number} */ value) => (value < 10 ? `oh ${below(value)}` : below(value));
  const year = (/** @type {number} */ value) => {
    const [first, rest] = [Math.floor(value / 100), value % 100];
    if (value % 1000 < 10) return number(`${value}`);
    return `${below(first)} ${rest ? late(rest) : "hundred"}`;
  };
  return {
    short: ([, name]) => short[name.toLowerCase()],
    money([, sign, amount, part, group]) {
      const [one, several, cent, cents] = units[sign];
      if (group) return `${whole(amount)}${part ? ` point ${digits(part)}` : ""} ${group} ${several}`;
      const count = Number((part ?? "0").padEnd(2, "0"));
      return `${whole(amount)} ${plainOf(amount) === "1" ? one : several}${count ? ` and ${below(count)} ${count === 1 ? cent : cents}` : ""}`;
    },
    time: ([, hours, minutes]) => `${below(Number(hours))} ${Number(minutes) ? late(Number(minutes)) : "o'clock"}`,
    ordinal: ([, figures]) => ordinal(plainOf(figures).slice(0, most)),
    decimal: ([, figures, part]) => `${whole(figures)} point ${digits(part)}`,
    year: ([found, figures]) => year(Number(figures)) + (found.endsWith("s") ? "s" : ""),
    minus: () => "minus ",
    whole: ([found]) => ` ${whole(found)} `,
    sign: ([found]) => ` ${signs[found]} `,
  };
}
