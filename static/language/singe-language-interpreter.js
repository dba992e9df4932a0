/**
 * Runs the tree of a template over values: each step is counted, and no step reaches beyond the tables.
 *
 * Contract: `new Interpreter(names).run(nodes)` is the text that the statements print. It ends after MAX_STEPS steps, and prints
 * MAX_OUTPUT characters at most.
 */

import { SingeError } from "../program/singe-format.js";
import { FILTERS, TESTS, compared, contains, isNumber, listed } from "./singe-language-filters.js";
import { CHANGING_METHODS, DICT_METHODS, LIST_METHODS, TEXT_METHODS, isPlain, lengthOf, slice } from "./singe-language-methods.js";
import { Callable, Loop, Space, Undefined, isEqual, isTrue, kindOf, refuse, refuseLong, shown } from "./singe-language-values.js";

/** @import { Node } from "./singe-language-parser.js" */
/** @import { Named, Value } from "./singe-language-values.js" */
/** @typedef {{ names: Map<string, Value>, outer: Scope | null }} Scope */

const MAX_STEPS = 1 << 20;
const MAX_OUTPUT = 1 << 22;
const MAX_CALLS = 32;
const CHARACTERS = 64;
const ITEM = 8;

class LoopEnd extends Error {}
class Break extends LoopEnd {}
class Continue extends LoopEnd {}

/** One rendering of a template. */
export class Interpreter {
  /** @param {Map<string, Value>} names */
  constructor(names) {
    /** @type {Scope} */
    this.scope = { names, outer: null };
    this.steps = 0;
    this.calls = 0;
    this.printed = 0;
    /** @type {string[]} */
    this.output = [];
  }

  /** @param {Node[]} nodes */
  run(nodes) {
    try {
      this.body(nodes);
    } catch (error) {
      if (error instanceof LoopEnd) throw refuse("leaves a loop where there is none");
      throw error;
    }
    return this.output.join("");
  }

  /** @param {number} items */
  charge(items) {
    this.steps += 1 + Math.floor(items / CHARACTERS);
    if (this.steps > MAX_STEPS) throw refuse(`takes more than ${MAX_STEPS} steps`);
  }

  /** @param {Value} value */
  chargeFor(value) {
    if (typeof value === "string") this.charge(value.length);
    else if (Array.isArray(value) || value instanceof Map) this.charge(ITEM * lengthOf(value));
  }

  /** @param {string} name */
  named(name) {
    for (let scope = /** @type {Scope | null} */ (this.scope); scope; scope = scope.outer) if (scope.names.has(name)) return scope.names.get(name);
    return new Undefined(name);
  }

  /** @param {Node[]} nodes */
  body(nodes) {
    for (const node of nodes) {
      this.charge(0);
      STATEMENTS[node[0]](this, node);
    }
  }

  /** @param {string} text */
  print(text) {
    this.printed += text.length;
    if (this.printed > MAX_OUTPUT) throw refuse(`prints more than ${MAX_OUTPUT} characters`);
    this.output.push(text);
  }

  /**
   * @param {Node} target
   * @param {Value} value
   */
  assign(target, value) {
    if (target[0] === "one") this.scope.names.set(target[1], value);
    else if (target[0] === "field") {
      const space = this.named(target[1]);
      if (!(space instanceof Space)) throw refuse(`sets ${JSON.stringify(target[2])} of ${kindOf(space)}, expected a namespace`);
      space.fields.set(target[2], value);
    } else {
      const values = listed(value);
      if (values.length !== target[1].length) throw refuse(`takes ${values.length} values apart into ${target[1].join(", ")}`);
      target[1].forEach((/** @type {string} */ name, /** @type {number} */ at) => {
        this.scope.names.set(name, values[at]);
      });
    }
  }

  /**
   * What a function does in a scope of its own.
   * @template T
   * @param {Scope} scope
   * @param {() => T} act
   */
  within(scope, act) {
    const before = this.scope;
    this.scope = scope;
    try {
      return act();
    } finally {
      this.scope = before;
    }
  }

  /** @param {Node[]} body what statements print, as a text */
  captured(body) {
    const before = this.output;
    this.output = [];
    try {
      this.body(body);
      return this.output.join("");
    } finally {
      this.output = before;
    }
  }

  /**
   * @param {string} name
   * @param {string[]} names
   * @param {(Node | null)[]} defaults
   * @param {Node[]} body
   */
  macro(name, names, defaults, body) {
    const outer = this.scope;
    return new Callable((plain, { caller, ...named }) => {
      if (plain.length > names.length || Object.keys(named).some((key) => !names.slice(plain.length).includes(key))) {
        throw refuse(`calls ${name} with other arguments than ${names.join(", ") || "none"}`);
      }
      /** @type {Map<string, Value>} */
      const given = new Map(caller ? [["caller", caller]] : []);
      return this.within({ names: given, outer }, () => {
        for (const [key, value] of [...plain.map((/** @type {Value} */ value, /** @type {number} */ at) => [names[at], value]), ...Object.entries(named)]) given.set(key, value);
        names.forEach((key, at) => {
          const node = defaults[at];
          if (!given.has(key)) given.set(key, node ? this.value(node) : new Undefined(key));
        });
        try {
          return this.captured(body);
        } catch (error) {
          throw error instanceof LoopEnd ? refuse(`leaves a loop in the macro ${name} where there is none`) : error;
        }
      });
    });
  }

  /**
   * @param {Node} node
   * @returns {Value}
   */
  value(node) {
    this.charge(0);
    return EXPRESSIONS[node[0]](this, node);
  }

  /**
   * @param {Value} value
   * @param {string} name
   * @returns {Value}
   */
  attribute(value, name) {
    const methods = value instanceof Map ? DICT_METHODS : typeof value === "string" ? TEXT_METHODS : Array.isArray(value) ? LIST_METHODS : {};
    if (Object.hasOwn(methods, name)) {
      return new Callable((plain, named) => {
        this.charge(lengthOf(value));
        return methods[name](value, plain, named);
      });
    }
    if (value instanceof Map && !CHANGING_METHODS.includes(name) && value.has(name)) return value.get(name);
    if (value instanceof Space && value.fields.has(name)) return value.fields.get(name);
    if (value instanceof Loop && Object.hasOwn(value.fields, name)) return value.fields[name]();
    if (value instanceof Undefined) throw refuse(`asks for ${JSON.stringify(name)} of ${kindOf(value)}`);
    return new Undefined(name);
  }

  /**
   * @param {Value} value
   * @param {Value} index
   * @returns {Value}
   */
  item(value, index) {
    if ((Array.isArray(value) || typeof value === "string") && (Number.isInteger(index) || typeof index === "boolean")) {
      const items = typeof value === "string" && !isPlain(value) ? Array.from(value) : value;
      const at = Number(index) < 0 ? Number(index) + items.length : Number(index);
      return at >= 0 && at < items.length ? items[at] : new Undefined(`item ${index}`);
    }
    if (value instanceof Map && value.has(index)) return value.get(index);
    if (typeof index === "string") return this.attribute(value, index);
    if (value instanceof Undefined) throw refuse(`asks for an item of ${kindOf(value)}`);
    return new Undefined("item");
  }

  /**
   * @param {Value} value
   * @param {Value} path
   * @param {Value} [otherwise]
   */
  deepItem(value, path, otherwise = null) {
    for (const part of typeof path === "string" ? path.split(".") : [path]) {
      value = this.item(value, typeof part === "string" && /^\d{1,9}$/.test(part) ? Number(part) : part);
      if (otherwise !== null && value instanceof Undefined) value = otherwise;
    }
    return value;
  }

  /**
   * @param {Node} node
   * @param {Named} [more]
   */
  call([, callee, plain, named, line], more = {}) {
    const target = this.value(callee);
    if (!(target instanceof Callable)) throw new SingeError("format", `template, line ${line}: ${kindOf(target)} is called, expected a function`);
    const given = plain.map((/** @type {Node} */ node) => this.value(node));
    /** @type {Named} */
    const options = Object.assign(Object.create(null), ...named.map((/** @type {[string, Node]} */ [name, node]) => ({ [name]: this.value(node) })), more);
    if (this.calls === MAX_CALLS) throw new SingeError("format", `template, line ${line}: macros call each other more than ${MAX_CALLS} deep`);
    this.calls++;
    try {
      const result = target.call(given, options);
      this.chargeFor(result);
      return result;
    } finally {
      this.calls--;
    }
  }

  /**
   * @param {Node} node
   * @param {Value} [subject]
   */
  filter([, source, name, plain, named], subject) {
    const value = source ? this.value(source) : subject;
    /** @type {Named} */
    const options = Object.assign(Object.create(null), ...named.map((/** @type {[string, Node]} */ [key, node]) => ({ [key]: this.value(node) })));
    return this.filtered(
      value,
      name,
      plain.map((/** @type {Node} */ node) => this.value(node)),
      options,
    );
  }

  /**
   * @param {Value} value
   * @param {string} name
   * @param {Value[]} plain
   * @param {Named} named
   * @returns {Value}
   */
  filtered(value, name, plain, named) {
    if (!Object.hasOwn(FILTERS, name)) throw refuse(`asks for the filter ${JSON.stringify(name)}, expected one of ${Object.keys(FILTERS).join(", ")}`);
    this.chargeFor(value);
    const result = FILTERS[name](this, value, plain, named);
    this.chargeFor(result);
    return small(result);
  }

  /**
   * @param {Value} value
   * @param {string} name
   * @param {Value[]} given
   */
  tested(value, name, given) {
    const test = { "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge" }[name] ?? name;
    if (!Object.hasOwn(TESTS, test)) throw refuse(`asks for the test ${JSON.stringify(name)}, expected one of ${Object.keys(TESTS).join(", ")}`);
    if (given.length !== TESTS[test].length - 1) throw refuse(`asks for the test ${name} with ${given.length} arguments`);
    this.charge(0);
    return TESTS[test](value, given[0]);
  }
}

/** @param {Value} value */
function small(value) {
  if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e19) {
    throw refuse("computes a number beyond 2 to the power of 53");
  }
  return value;
}

/** @type {Record<string, (a: number, b: number) => number>} */
const ARITHMETIC = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "//": (a, b) => Math.floor(a / b),
  "%": (a, b) => a - b * Math.floor(a / b),
  "**": (a, b) => {
    if (Math.abs(a) > 1 << 20 || b < 0 || b > 64) throw refuse(`computes ${a} ** ${b}, expected smaller numbers`);
    return a ** b;
  },
};

/**
 * @param {Interpreter} run
 * @param {Node} node
 */
function binary(run, [, operator, leftNode, rightNode]) {
  const [left, right] = [run.value(leftNode), run.value(rightNode)];
  if (operator === "~" || (operator === "+" && typeof left === "string" && typeof right === "string")) {
    const [a, b] = [shown(left), shown(right)];
    refuseLong(a.length + b.length);
    run.charge(a.length + b.length);
    return a + b;
  }
  if (operator === "+" && Array.isArray(left) && Array.isArray(right)) {
    refuseLong(left.length + right.length);
    run.charge(ITEM * (left.length + right.length));
    return [...left, ...right];
  }
  if (operator === "*" && (typeof left === "string" || Array.isArray(left)) && Number.isInteger(right)) {
    const count = Math.max(right, 0);
    refuseLong(left.length * count);
    run.charge((typeof left === "string" ? 1 : ITEM) * left.length * count);
    return typeof left === "string" ? left.repeat(count) : Array.from({ length: left.length * count }, (_, at) => left[at % left.length]);
  }
  if (!isNumber(left) || !isNumber(right)) throw refuse(`computes ${kindOf(left)} ${operator} ${kindOf(right)}`);
  if (["/", "//", "%"].includes(operator) && !Number(right)) throw refuse("divides by zero");
  return small(ARITHMETIC[operator](Number(left), Number(right)));
}

/**
 * @param {Value[]} items
 * @param {number} at
 * @param {Value[][]} changes
 */
const loopOf = (items, at, changes) =>
  new Loop({
    index: () => at + 1,
    index0: () => at,
    revindex: () => items.length - at,
    revindex0: () => items.length - at - 1,
    first: () => at === 0,
    last: () => at === items.length - 1,
    length: () => items.length,
    previtem: () => (at ? items[at - 1] : new Undefined("previtem")),
    nextitem: () => (at + 1 < items.length ? items[at + 1] : new Undefined("nextitem")),
    changed: () =>
      new Callable((plain) => {
        if (changes.length && isEqual(changes[0], plain)) return false;
        changes[0] = plain;
        return true;
      }),
    cycle: () => new Callable((plain) => (plain.length ? plain[at % plain.length] : new Undefined("cycle"))),
  });

/** @type {Record<string, (run: Interpreter, node: Node) => void>} */
const STATEMENTS = {
  text: (run, node) => run.print(node[1]),
  print: (run, node) => run.print(shown(run.value(node[1]))),
  if(run, [, branches, otherwise]) {
    for (const [condition, body] of branches) if (isTrue(run.value(condition))) return run.body(body);
    return run.body(otherwise);
  },
  for(run, [, target, source, condition, body, otherwise]) {
    const outer = run.scope;
    /** @param {Map<string, Value>} names */
    const inner = (names) => ({ names, outer });
    const items = listed(run.value(source)).filter(
      (item) =>
        condition === null ||
        run.within(inner(new Map()), () => {
          run.assign(target, item);
          return isTrue(run.value(condition));
        }),
    );
    /** @type {Value[][]} */
    const changes = [];
    for (let at = 0; at < items.length; at++) {
      run.charge(0);
      try {
        run.within(inner(new Map([["loop", loopOf(items, at, changes)]])), () => {
          run.assign(target, items[at]);
          run.body(body);
        });
      } catch (error) {
        if (error instanceof Break) break;
        if (!(error instanceof Continue)) throw error;
      }
    }
    if (!items.length) run.body(otherwise);
  },
  set: (run, node) => run.assign(node[1], run.value(node[2])),
  macro: (run, [, name, names, defaults, body]) => run.assign(["one", name], run.macro(name, names, defaults, body)),
  "call block"(run, [, call, names, defaults, body]) {
    run.print(shown(run.call(call, { caller: run.macro("caller", names, defaults, body) })));
  },
  with(run, [, assigned, body]) {
    const values = assigned.map((/** @type {[Node, Node]} */ [target, node]) => [target, run.value(node)]);
    run.within({ names: new Map(), outer: run.scope }, () => {
      for (const [target, value] of values) run.assign(target, value);
      run.body(body);
    });
  },
  break() {
    throw new Break();
  },
  continue() {
    throw new Continue();
  },
};

/** @type {Record<string, (run: Interpreter, node: Node) => Value>} */
const EXPRESSIONS = {
  constant: (_, node) => node[1],
  name: (run, node) => run.named(node[1]),
  list: (run, node) => node[1].map((/** @type {Node} */ item) => run.value(item)),
  dict: (run, node) =>
    new Map(
      node[1].map((/** @type {[Node, Node]} */ [keyNode, valueNode]) => {
        const key = run.value(keyNode);
        if (key !== null && !["string", "number", "boolean"].includes(typeof key)) throw refuse(`makes a dict with ${kindOf(key)} as a key`);
        return [key, run.value(valueNode)];
      }),
    ),
  attribute: (run, node) => run.attribute(run.value(node[1]), node[2]),
  item: (run, node) => run.item(run.value(node[1]), run.value(node[2])),
  slice(run, [, source, ...boundNodes]) {
    const value = run.value(source);
    const bounds = boundNodes.map((node) => (node === null ? null : run.value(node)));
    if ((typeof value !== "string" && !Array.isArray(value)) || !bounds.every((b) => b === null || Number.isInteger(b)) || bounds[2] === 0) {
      throw refuse(`takes a slice of ${kindOf(value)}, or one whose bounds are no numbers`);
    }
    run.charge(value.length);
    return slice(value, bounds[0], bounds[1], bounds[2]);
  },
  call: (run, node) => run.call(node),
  filter: (run, node) => run.filter(node),
  test: (run, [, source, name, given]) => {
    const value = run.value(source);
    return run.tested(
      value,
      name,
      given.map((/** @type {Node} */ node) => run.value(node)),
    );
  },
  not: (run, node) => !isTrue(run.value(node[1])),
  and(run, node) {
    const left = run.value(node[1]);
    return isTrue(left) ? run.value(node[2]) : left;
  },
  or(run, node) {
    const left = run.value(node[1]);
    return isTrue(left) ? left : run.value(node[2]);
  },
  choice: (run, [, condition, then, otherwise]) => (isTrue(run.value(condition)) ? run.value(then) : otherwise ? run.value(otherwise) : new Undefined("else")),
  compare(run, [, first, others]) {
    let left = run.value(first);
    for (const [operator, node] of others) {
      const right = run.value(node);
      run.chargeFor(right);
      const holds = operator === "in" || operator === "not in" ? contains(right, left) === (operator === "in") : compared(operator, left, right);
      if (!holds) return false;
      left = right;
    }
    return true;
  },
  binary,
  sign(run, [, sign, node]) {
    const value = run.value(node);
    if (!isNumber(value)) throw refuse(`computes ${sign} of ${kindOf(value)}`);
    return sign === "-" ? 0 - Number(value) : Number(value);
  },
  captured(run, [, body, filters]) {
    const text = run.within({ names: new Map(), outer: run.scope }, () => run.captured(body));
    return filters.reduce((/** @type {Value} */ value, /** @type {Node} */ step) => run.filter(step, value), text);
  },
};
