/**
 * What happens to a text before it is encoded, and to tokens when they become text, as a `tokenizer.json` says: tables of kinds.
 *
 * Contract: `normalizerOf(value)`, `preTokenizerOf(steps)` and `decoderOf(value)` are functions; what is unknown is a SingeError
 * "format" that names it. `flat(value, inner)` are the steps of a sequence.
 */

import { SingeError } from "../program/singe-format.js";
import { GPT2, SPACE, cutter, inJavaScript, known, quoted } from "./singe-language-patterns.js";

/** @typedef {any} Json */
/** @typedef {{ change(token: string): string, bytes(text: string): Uint8Array<ArrayBuffer>, stripStart: boolean, stripEnd: boolean, addedToo: boolean }} Decoding */

const ENCODER = new TextEncoder();
const UNDERLINE = "▁";
const GROWTH = 32;
const MAX_SHORT = 64;
export const MAX_STEPS = 32;

/**
 * @param {string} what
 * @param {Json} value
 * @param {string} expected
 */
export const fault = (what, value, expected) => new SingeError("format", `tokenizer: ${what} is ${JSON.stringify(value)?.slice(0, 80)}, expected ${expected}`);

/**
 * @template T
 * @param {Record<string, T>} kinds
 * @param {Json} value
 * @returns {T}
 */
export function choose(kinds, value) {
  const kind = value?.type;
  if (typeof kind !== "string" || !Object.hasOwn(kinds, kind)) throw fault("the type of a step", kind, `one of ${Object.keys(kinds).join(", ")}`);
  return kinds[kind];
}

/**
 * @param {Json} value
 * @param {string} name
 * @param {string} [otherwise]
 * @returns {string}
 */
export function short(value, name, otherwise) {
  const text = value[name] ?? otherwise;
  if (typeof text !== "string" || text.length > MAX_SHORT) throw fault(name, text, `a text of at most ${MAX_SHORT} characters`);
  return text;
}

/**
 * @param {Json} value
 * @param {string} inner
 * @param {number} [depth]
 * @returns {Json[]}
 */
export function flat(value, inner, depth = 0) {
  if (value === null || value === undefined) return [];
  if (depth > MAX_STEPS) throw fault(inner, "nested", `at most ${MAX_STEPS} within each other`);
  if (value.type !== "Sequence") return [value];
  if (!Array.isArray(value[inner])) throw fault(inner, value[inner], "a list");
  const steps = value[inner].flatMap((/** @type {Json} */ step) => flat(step, inner, depth + 1));
  if (steps.length > MAX_STEPS) throw fault(inner, steps.length, `at most ${MAX_STEPS} steps`);
  return steps;
}

/** @param {string} text */
export const isAscii = (text) => {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) return false;
  return true;
};
/** @param {string} text */
const lower = (text) => text.replaceAll("Σ", "σ").toLowerCase();
/** @param {string} text */
const withoutAccents = (text) => text.replace(/\p{Mn}/gu, "");
/** @param {"NFC" | "NFD" | "NFKC" | "NFKD"} form */
const composed = (form) => () => (/** @type {string} */ text) => text.normalize(form);
const IDEOGRAPH = /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu;
const CONTROL = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\ufffd]/gu;
const WHITE = new RegExp(`[${SPACE}]`, "gu");
const AT_START = new RegExp(`^[${SPACE}]+`, "u");
const AT_END = new RegExp(`[${SPACE}]+$`, "u");
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken away
const NOTHING_NMT = /[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]/gu;
const SPACE_NMT = /[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]/gu;

/** @param {Json} pattern */
const textOrPattern = (pattern) => (typeof pattern?.String === "string" ? quoted(short(pattern, "String")) : inPattern(pattern));
/** @param {Json} pattern */
const inPattern = (pattern) => {
  if (typeof pattern?.Regex !== "string") throw fault("a pattern", pattern, "a String or a Regex");
  return known(pattern.Regex);
};

/** @type {Record<string, (value: Json) => (text: string) => string>} */
const NORMALIZERS = {
  BertNormalizer({ clean_text = true, handle_chinese_chars = true, lowercase = true, strip_accents = null }) {
    return (text) => {
      if (clean_text) text = text.replace(CONTROL, "").replace(WHITE, " ");
      if (handle_chinese_chars) text = text.replace(IDEOGRAPH, " $& ");
      if (strip_accents ?? lowercase) text = withoutAccents(text.normalize("NFD"));
      return lowercase ? lower(text) : text;
    };
  },
  Lowercase: () => lower,
  NFC: composed("NFC"),
  NFD: composed("NFD"),
  NFKC: composed("NFKC"),
  NFKD: composed("NFKD"),
  Nmt: () => (text) => text.replace(NOTHING_NMT, "").replace(SPACE_NMT, " "),
  Precompiled: (value) => charsmap(value.precompiled_charsmap),
  Prepend(value) {
    const start = short(value, "prepend");
    return (text) => (text ? start + text : text);
  },
  Replace(value) {
    const content = short(value, "content", "");
    const pattern = textOrPattern(value.pattern);
    if (!pattern) throw fault("a replaced text", pattern, "some characters");
    const compiled = inJavaScript(pattern);
    return (text) => text.replace(compiled, () => content);
  },
  Strip:
    ({ strip_left = true, strip_right = true }) =>
    (text) => {
      if (strip_left) text = text.replace(AT_START, "");
      if (!strip_right) return text;
      const end = text.slice(lastWord(text));
      return text.slice(0, text.length - end.length) + end.replace(AT_END, "");
    },
  StripAccents: () => withoutAccents,
};
/**
 * Where the spaces at the end of a text begin, at the latest.
 * @param {string} text
 */
function lastWord(text) {
  let at = text.length;
  while (at && WHITE_ONE.test(text[at - 1])) at--;
  return at;
}
const WHITE_ONE = new RegExp(`[${SPACE}]`, "u");

/**
 * @param {Json} value
 * @returns {(text: string) => string}
 */
export function normalizerOf(value) {
  const steps = flat(value, "normalizers").map((step) => choose(NORMALIZERS, step)(step));
  return (text) => {
    const limit = GROWTH * text.length + 1024;
    for (const step of steps) {
      text = step(text);
      if (text.length > limit) throw new SingeError("format", `a text became more than ${GROWTH} times as long by the tokenizer's normalizers`);
    }
    return text;
  };
}

/**
 * SentencePiece's compiled map of characters; core/singe/language/tokenizing/steps/charsmap.py says how it is looked up.
 * @param {Json} encoded
 */
function charsmap(encoded) {
  /** @type {Uint8Array} */
  let data;
  try {
    data = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));
  } catch {
    throw fault("a map of characters", "no base64", "base64");
  }
  const view = new DataView(data.buffer);
  const size = data.length < 4 ? -1 : view.getUint32(0, true);
  if (size < 0 || size % 4 || size > data.length - 4) throw fault("a map of characters", size, `a trie within ${data.length} bytes`);
  const count = size / 4;
  const unitAt = (/** @type {number} */ i) => view.getUint32(4 + 4 * i, true);
  const offset = (/** @type {number} */ unit) => (unit >>> 10) << ((unit & 512) >>> 6);
  const texts = data.subarray(4 + size);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  /** @param {Uint8Array} key */
  const target = (key) => {
    if (!count) return null;
    let node = offset(unitAt(0)) >>> 0;
    for (const byte of key) {
      if (!byte) return null;
      node = (node ^ byte) >>> 0;
      if (node >= count) return null;
      const unit = unitAt(node);
      if ((unit & 0x800000ff) >>> 0 !== byte) return null;
      node = (node ^ offset(unit)) >>> 0;
      if (!((unit >>> 8) & 1)) continue;
      if (node >= count) return null;
      const start = unitAt(node) & 0x7fffffff;
      const end = texts.indexOf(0, start);
      return decoder.decode(texts.subarray(start, end < 0 ? texts.length : end));
    }
    return null;
  };
  /** @type {Map<string, string>} */
  const mapped = new Map();
  /** @param {string} cluster */
  const map = (cluster) => {
    const raw = ENCODER.encode(cluster);
    const whole = raw.length < 6 ? target(raw) : null;
    return whole ?? Array.from(cluster, (c) => target(ENCODER.encode(c)) ?? c).join("");
  };
  return (/** @type {string} */ text) =>
    text.replace(/\r\n|[\s\S](?:\p{M}|[\u{1f3fb}-\u{1f3ff}]|\u200c|\u200d)*/gu, (cluster) => {
      let found = mapped.get(cluster);
      if (found === undefined) {
        found = map(cluster);
        if (mapped.size < 65536) mapped.set(cluster, found);
      }
      return found;
    });
}

// --- cuts

/** @typedef {(pieces: string[], first: boolean) => string[]} Cut */
const PUNCTUATION = String.raw`!-\/:-@\[-${"`"}\{-~\p{P}`;
const WORDS = String.raw`\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\u200c\u200dⒶ-ⓩ`;
/**
 * @param {(text: string) => string[]} cut
 * @returns {Cut}
 */
const each = (cut) => (pieces) => (pieces.length === 1 ? cut(pieces[0]) : pieces.flatMap(cut));
/**
 * @param {Json} value
 * @param {string} name
 * @param {string} [otherwise]
 */
const character = (value, name, otherwise) => {
  const text = short(value, name, otherwise);
  if ([...text].length !== 1) throw fault(name, text, "one character");
  return text;
};

/** @type {Record<string, (value: Json) => Cut>} */
const PRE_TOKENIZERS = {
  BertPreTokenizer: () => each(cutter(String.raw`[^\s${PUNCTUATION}]+|[${PUNCTUATION}]`, "Removed", true)),
  ByteLevel({ add_prefix_space = true, use_regex = true }) {
    const cut = use_regex ? each(cutter(GPT2)) : null;
    return (pieces, first) => {
      if (add_prefix_space) pieces = pieces.map((piece) => (piece.startsWith(" ") ? piece : ` ${piece}`));
      return cut ? cut(pieces, first) : pieces;
    };
  },
  CharDelimiterSplit: (value) => each(cutter(quoted(character(value, "delimiter")), "Removed")),
  Digits: ({ individual_digits = false }) => each(cutter(individual_digits ? "\\p{N}" : "\\p{N}+")),
  Metaspace(value) {
    const mark = character(value, "replacement", UNDERLINE);
    const scheme = value.prepend_scheme ?? ((value.add_prefix_space ?? true) ? "always" : "never");
    if (!["always", "first", "never"].includes(scheme)) throw fault("prepend_scheme", scheme, "always, first or never");
    const cut = (value.split ?? true) ? each(cutter(quoted(mark), "MergedWithNext")) : null;
    return (pieces, first) => {
      const marked = pieces.map((piece, at) => {
        const text = piece.replaceAll(" ", mark);
        return (scheme === "always" || (scheme === "first" && first && !at)) && !text.startsWith(mark) ? mark + text : text;
      });
      return cut ? cut(marked, first) : marked;
    };
  },
  Punctuation: ({ behavior = "Isolated" }) => each(cutter(`[${PUNCTUATION}]`, behavior)),
  Split(value) {
    const pattern = textOrPattern(value.pattern);
    if (!pattern) throw fault("a text to cut at", pattern, "some characters");
    return each(cutter(pattern, value.behavior, value.invert ?? false));
  },
  Whitespace: () => each(cutter(String.raw`[${WORDS}]+|[^\s${WORDS}]+`, "Removed", true)),
  WhitespaceSplit: () => each(cutter("\\s+", "Removed")),
};

/**
 * @param {Json[]} steps
 * @returns {(text: string, first: boolean) => string[]}
 */
export function preTokenizerOf(steps) {
  const cuts = steps.map((step) => choose(PRE_TOKENIZERS, step)(step));
  if (steps.slice(0, -1).some((step) => step.type === "ByteLevel")) throw fault("a pre-tokenizer", "after ByteLevel", "none after it: it would see bytes");
  return (text, first) => {
    let pieces = [text];
    for (const cut of cuts) pieces = cut(pieces, first);
    return pieces;
  };
}

// --- tokens as text

const PRINTABLE = [
  [0x21, 0x7f],
  [0xa1, 0xad],
  [0xae, 0x100],
].flatMap(([from, to]) => Array.from({ length: to - from }, (_, i) => from + i));
/** Bytes as the characters of GPT-2's alphabet. */
export const ALPHABET = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte));
for (let byte = 0, next = 0x100; byte < 256; byte++) if (!PRINTABLE.includes(byte)) ALPHABET[byte] = String.fromCharCode(next++);
const BYTES = new Map(ALPHABET.map((letter, byte) => [letter, byte]));

/** @param {string} token */
function bytesOfAlphabet(token) {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = BYTES.get(token[i]);
    if (byte === undefined) return ENCODER.encode(token);
    bytes[i] = byte;
  }
  return bytes;
}

const TIDIED = Object.entries({
  " .": ".",
  " ?": "?",
  " !": "!",
  " ,": ",",
  " ' ": "'",
  " n't": "n't",
  " 'm": "'m",
  " do not": " don't",
  " 's": "'s",
  " 've": "'ve",
  " 're": "'re",
});
/**
 * @param {Decoding} decoding
 * @param {(text: string) => string} change
 * @returns {Decoding}
 */
const then = (decoding, change) => ({ ...decoding, change: (token) => change(decoding.change(token)) });

/** @type {Record<string, (value: Json, decoding: Decoding) => Decoding>} */
const DECODERS = {
  BPEDecoder(value, decoding) {
    const suffix = short(value, "suffix", "</w>");
    return { ...then(decoding, (text) => (suffix ? text.replaceAll(suffix, " ") : text)), stripEnd: true };
  },
  ByteFallback: (_, decoding) => ({
    ...decoding,
    bytes: (text) => (/^<0x[0-9a-fA-F]{2}>$/u.test(text) ? Uint8Array.of(Number.parseInt(text.slice(3, 5), 16)) : ENCODER.encode(text)),
  }),
  ByteLevel: (_, decoding) => ({ ...decoding, bytes: bytesOfAlphabet, addedToo: false }),
  Fuse: (_, decoding) => decoding,
  Metaspace(value, decoding) {
    const mark = short(value, "replacement", UNDERLINE);
    const never = value.add_prefix_space === false || value.prepend_scheme === "never";
    return { ...then(decoding, (text) => text.replaceAll(mark, " ")), stripStart: !never };
  },
  Replace(value, decoding) {
    const old = short(value.pattern ?? {}, "String");
    const content = short(value, "content", "");
    return then(decoding, (text) => (old ? text.replaceAll(old, content) : text));
  },
  Strip({ content, start = 0, stop = 0 }, decoding) {
    if (content !== " " || ![0, 1].includes(start) || ![0, 1].includes(stop)) throw fault("what a decoder strips", content, "at most one space");
    return { ...decoding, stripStart: start === 1, stripEnd: stop === 1 };
  },
  WordPiece(value, decoding) {
    const prefix = short(value, "prefix", "##");
    const pairs = (value.cleanup ?? true) ? TIDIED : [];
    const change = (/** @type {string} */ token) =>
      pairs.reduce((text, [old, content]) => text.replaceAll(old, content), token.startsWith(prefix) ? token.slice(prefix.length) : ` ${token}`);
    return { ...then(decoding, change), stripStart: true };
  },
};

/**
 * @param {Json} value
 * @returns {Decoding}
 */
export function decoderOf(value) {
  /** @type {Decoding} */
  const plain = { change: (token) => token, bytes: (text) => ENCODER.encode(text), stripStart: false, stripEnd: false, addedToo: true };
  if (!value) return { ...then(plain, (token) => ` ${token}`), stripStart: true };
  return flat(value, "decoders").reduce((decoding, step) => choose(DECODERS, step)(step, decoding), plain);
}
