/**
 * A grammar as an automaton over bytes: its states are made when they are first met, as rows of a table.
 *
 * Contract: `new Automaton(rules)` has states by number, of which DEAD matches nothing and `start` is the first, of the rule "".
 * `accepts[state]` says whether a text may end there, `row(state)` is the state after each byte. A place in a text is a set of
 * configurations: a node, and the nodes to which the rules that contain it return. A state is such a set.
 */

import { SingeError } from "../../program/singe-format.js";

/** @import { Expression } from "./singe-language-grammar.js" */

const MAX_NODES = 100_000;
const MAX_STATES = 20_000;
/** How many rules may be within each other in a text. */
const MAX_DEPTH = 64;
/** Of a state. */
const MAX_CONFIGURATIONS = 5000;
export const DEAD = 0;
/** The stack of what is in no rule. */
const EMPTY = 0;

/** The nodes of a grammar's rules: without a byte one comes to those of `after`, with a byte of `on` to its `to`, through a rule to where `into` returns. */
class GrammarNodes {
  #rules;
  /** @type {number[][]} */
  after = [];
  /** @type {({ first: number, last: number, to: number } | undefined)[]} */
  on = [];
  /** @type {({ rule: string, to: number } | undefined)[]} */
  into = [];
  /** @type {Map<string, number>} */
  starts = new Map();
  /** @type {Set<number>} */
  ends = new Set();

  /** @param {ReadonlyMap<string, Expression>} rules */
  constructor(rules) {
    this.#rules = rules;
    for (const [name, expression] of rules) {
      const end = this.#node();
      this.ends.add(end);
      this.starts.set(name, this.#of(expression, end));
    }
  }

  /** @param {number[]} after */
  #node(...after) {
    if (this.after.length >= MAX_NODES) throw new SingeError("input", `the schema or regex has more than ${MAX_NODES} places; give a smaller one, or smaller counts`);
    return this.after.push(after) - 1;
  }

  /**
   * The first node of an expression, after which comes `end`.
   * @param {Expression} e
   * @param {number} end
   * @returns {number}
   */
  #of(e, end) {
    if ("all" in e) return e.all.reduceRight((to, part) => this.#of(part, to), end);
    if ("any" in e) return this.#node(...e.any.map((part) => this.#of(part, end)));
    if ("part" in e) return this.#repeated(e, end);
    const start = this.#node();
    if ("rule" in e) {
      if (!this.#rules.has(e.rule)) throw new SingeError("input", `the rule ${JSON.stringify(e.rule).slice(0, 80)} is missing; name one that is there`);
      this.into[start] = { rule: e.rule, to: end };
    } else this.on[start] = { ...e, to: end };
    return start;
  }

  /**
   * @param {{ part: Expression, least: number, most: number }} e
   * @param {number} end
   */
  #repeated({ part, least, most }, end) {
    let at = end;
    if (most === Infinity) {
      at = this.#node(end);
      this.after[at].push(this.#of(part, at));
    } else for (let count = least; count < most; count++) at = this.#node(end, this.#of(part, at));
    for (let count = 0; count < least; count++) at = this.#of(part, at);
    return at;
  }
}

export class Automaton {
  #nodes;
  /** Configurations of a state, as a text ↦ its number. @type {Map<string, number>} */
  #numbers = new Map();
  /** @type {number[][]} */
  #sets = [];
  /** @type {(Uint16Array | undefined)[]} */
  #rows = [];
  /** @type {boolean[]} */
  accepts = [];
  /** Where a rule returns to, the stack under it, and how many there are; by number. */
  #stacks = [{ to: 0, under: EMPTY, depth: 0 }];
  /** @type {Map<number, number>} */
  #stackNumbers = new Map();

  /** @param {ReadonlyMap<string, Expression>} rules */
  constructor(rules) {
    this.#nodes = new GrammarNodes(rules);
    this.#state([]);
    this.start = this.#state(this.#closed([configuration(/** @type {number} */ (this.#nodes.starts.get("")), EMPTY)]));
  }

  /**
   * The state after each byte.
   * @param {number} state
   */
  row(state) {
    return (this.#rows[state] ??= this.#made(state));
  }

  /** @param {number[]} configurations */
  #state(configurations) {
    const key = configurations.join();
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const number = this.#sets.length;
    if (number >= MAX_STATES) throw new SingeError("input", `the schema or regex has more than ${MAX_STATES} states; give a simpler one`);
    this.#numbers.set(key, number);
    this.#sets.push(configurations);
    this.accepts.push(configurations.some((c) => stackOf(c) === EMPTY && this.#nodes.ends.has(nodeOf(c))));
    return number;
  }

  /** @param {number} state */
  #made(state) {
    const edges = this.#sets[state].flatMap((c) => {
      const on = this.#nodes.on[nodeOf(c)];
      return on ? [{ ...on, stack: stackOf(c) }] : [];
    });
    const row = new Uint16Array(256);
    const cuts = [...new Set(edges.flatMap(({ first, last }) => [first, last + 1]))].sort((a, b) => a - b);
    for (const [at, low] of cuts.entries()) {
      const targets = edges.filter(({ first, last }) => first <= low && low <= last).map(({ to, stack }) => configuration(to, stack));
      if (targets.length) row.fill(this.#state(this.#closed(targets)), low, cuts[at + 1]);
    }
    return row;
  }

  /**
   * What can be reached without a byte; of it, what takes a byte, or ends the text, in order.
   * @param {number[]} first
   */
  #closed(first) {
    const seen = new Set(first);
    const todo = [...first];
    for (let c = todo.pop(); c !== undefined; c = todo.pop()) {
      for (const next of this.#reached(nodeOf(c), stackOf(c))) {
        if (seen.has(next)) continue;
        seen.add(next);
        todo.push(next);
      }
      if (seen.size > MAX_CONFIGURATIONS) throw new SingeError("input", "the schema or regex can be read in too many ways at once; give a simpler one");
    }
    const { on, ends } = this.#nodes;
    return [...seen].filter((c) => on[nodeOf(c)] || (stackOf(c) === EMPTY && ends.has(nodeOf(c)))).sort((a, b) => a - b);
  }

  /**
   * @param {number} node
   * @param {number} stack
   */
  *#reached(node, stack) {
    const { after, into, starts, ends } = this.#nodes;
    for (const next of after[node]) yield configuration(next, stack);
    const through = into[node];
    const { to, under, depth } = this.#stacks[stack];
    if (through && depth < MAX_DEPTH) yield configuration(/** @type {number} */ (starts.get(through.rule)), this.#stack(through.to, stack, depth + 1));
    if (stack !== EMPTY && ends.has(node)) yield configuration(to, under);
  }

  /**
   * @param {number} to
   * @param {number} under
   * @param {number} depth
   */
  #stack(to, under, depth) {
    const key = configuration(to, under);
    let number = this.#stackNumbers.get(key);
    if (number === undefined) {
      number = this.#stacks.push({ to, under, depth }) - 1;
      this.#stackNumbers.set(key, number);
    }
    return number;
  }
}

/**
 * A node and a stack, as one number.
 * @param {number} node
 * @param {number} stack
 */
const configuration = (node, stack) => stack * MAX_NODES + node;
/** @param {number} c */
const nodeOf = (c) => c % MAX_NODES;
/** @param {number} c */
const stackOf = (c) => Math.floor(c / MAX_NODES);
