/**
 * Templates as trees: Jinja's statements and expressions, as far as templates of conversations use them.
 *
 * Contract: `parseTemplate(source)` gives the statements, arrays of a kind and its parts; what is unknown is a SingeError
 * "format" that names it. core/singe/language/templating has
 * the same in Python.
 */

import { SingeError } from "../program/singe-format.js";
import { MAX_SOURCE, fault, partsOf } from "./singe-language-lexer.js";

/** @import { Part } from "./singe-language-lexer.js" */

/** @typedef {any[]} Node */

const MAX_DEPTH = 40;
/** @type {Record<string, any>} */
const CONSTANTS = { true: true, True: true, false: false, False: false, none: null, None: null };
const LEVELS = [["+", "-"], ["~"], ["*", "/", "//", "%"], ["**"]];
const COMPARISONS = ["==", "!=", "<", "<=", ">", ">="];

/** Reads an expression from the tokens of a part. */
class Expression {
  /** @param {Part} part */
  constructor(part) {
    this.tokens = part.tokens;
    this.at = 0;
    this.depth = 0;
    this.from = part.line;
  }

  get line() {
    return this.tokens[this.at]?.line ?? this.from;
  }

  get ended() {
    return this.at >= this.tokens.length;
  }

  /** @param {string} expected */
  fault(expected) {
    return fault(this.line, `${this.ended ? "the end" : JSON.stringify(this.tokens[this.at].value.slice(0, 60))}, expected ${expected}`);
  }

  end() {
    if (!this.ended) throw this.fault("the end of the statement");
  }

  /**
   * @param {string} kind
   * @param {...string} values
   */
  peek(kind, ...values) {
    const token = this.tokens[this.at];
    return token !== undefined && token.kind === kind && (!values.length || values.includes(token.value));
  }

  /**
   * @param {string} kind
   * @param {...string} values
   */
  take(kind, ...values) {
    return this.peek(kind, ...values) ? this.tokens[this.at++] : null;
  }

  /**
   * @param {string} kind
   * @param {...string} values
   */
  need(kind, ...values) {
    const token = this.take(kind, ...values);
    if (!token) throw this.fault(values.join(" or ") || `a ${kind}`);
    return token.value;
  }

  /** @returns {Node} */
  tuple(condition = true) {
    const read = () => (condition ? this.expression() : this.either());
    const items = [read()];
    let comma = false;
    while (this.take("operator", ",")) {
      comma = true;
      if (this.ended || this.peek("operator", ")", "=") || this.peek("name", "in", "if")) break;
      items.push(read());
    }
    return comma ? ["list", items] : items[0];
  }

  deeper() {
    if (++this.depth > MAX_DEPTH) throw this.fault(`at most ${MAX_DEPTH} expressions within each other`);
  }

  /** @returns {Node} */
  expression() {
    this.deeper();
    let node = this.either();
    while (this.take("name", "if")) {
      const condition = this.either();
      node = ["choice", condition, node, this.take("name", "else") ? this.expression() : null];
    }
    this.depth--;
    return node;
  }

  /** @returns {Node} */
  either() {
    let node = this.both();
    while (this.take("name", "or")) node = ["or", node, this.both()];
    return node;
  }

  both() {
    let node = this.negation();
    while (this.take("name", "and")) node = ["and", node, this.negation()];
    return node;
  }

  negation() {
    let count = 0;
    while (this.take("name", "not")) count++;
    let node = this.comparison();
    for (let i = 0; count && i < 2 - (count % 2); i++) node = ["not", node];
    return node;
  }

  comparison() {
    const first = this.binary(0);
    /** @type {[string, Node][]} */
    const others = [];
    while (true) {
      const operator = this.take("operator", ...COMPARISONS);
      const after = this.tokens[this.at + 1];
      if (operator) others.push([operator.value, this.binary(0)]);
      else if (this.take("name", "in")) others.push(["in", this.binary(0)]);
      else if (this.peek("name", "not") && after?.kind === "name" && after.value === "in") {
        this.at += 2;
        others.push(["not in", this.binary(0)]);
      } else return others.length ? ["compare", first, others] : first;
    }
  }

  /**
   * @param {number} level
   * @returns {Node}
   */
  binary(level) {
    if (level === LEVELS.length) return this.unary(true);
    let node = this.binary(level + 1);
    for (let operator = this.take("operator", ...LEVELS[level]); operator; operator = this.take("operator", ...LEVELS[level])) {
      node = ["binary", operator.value, node, this.binary(level + 1)];
    }
    return node;
  }

  /**
   * @param {boolean} filters
   * @returns {Node}
   */
  unary(filters) {
    const sign = this.take("operator", "-", "+");
    /** @type {Node} */
    let node;
    if (sign) {
      this.deeper();
      node = ["sign", sign.value, this.unary(false)];
      this.depth--;
    } else node = this.primary();
    node = this.postfix(node);
    return filters ? this.filters(node) : node;
  }

  /** @returns {Node} */
  primary() {
    const name = this.take("name");
    if (name) return Object.hasOwn(CONSTANTS, name.value) ? ["constant", CONSTANTS[name.value]] : ["name", name.value];
    if (this.peek("text")) {
      let text = "";
      for (let token = this.take("text"); token; token = this.take("text")) text += token.value;
      return ["constant", text];
    }
    const number = this.take("integer") ?? this.take("float");
    if (number) {
      if (number.kind === "integer" && number.value.length > 15) throw this.fault("a number of at most 15 digits");
      return ["constant", Number(number.value.replaceAll("_", ""))];
    }
    if (this.take("operator", "(")) {
      if (this.take("operator", ")")) return ["list", []];
      const node = this.tuple();
      this.need("operator", ")");
      return node;
    }
    if (this.take("operator", "[")) return ["list", this.items("]", () => this.expression())];
    if (this.take("operator", "{")) {
      return [
        "dict",
        this.items("}", () => {
          const key = this.expression();
          this.need("operator", ":");
          return [key, this.expression()];
        }),
      ];
    }
    throw this.fault("a value");
  }

  /**
   * @param {string} end
   * @param {() => Node} read
   */
  items(end, read) {
    /** @type {Node[]} */
    const items = [];
    while (!this.take("operator", end)) {
      if (items.length) {
        this.need("operator", ",");
        if (this.take("operator", end)) break;
      }
      items.push(read());
    }
    return items;
  }

  /** @param {Node} node */
  postfix(node) {
    while (true) {
      if (this.take("operator", ".")) {
        const index = this.take("integer");
        node = index ? ["item", node, ["constant", Number(index.value.slice(0, 9))]] : ["attribute", node, this.need("name")];
      } else if (this.take("operator", "[")) node = this.subscript(node);
      else if (this.peek("operator", "(")) node = ["call", node, ...this.arguments(), this.line];
      else return node;
    }
  }

  /**
   * @param {Node} node
   * @returns {Node}
   */
  subscript(node) {
    /** @type {(Node | null)[]} */
    const bounds = [null];
    while (!this.take("operator", "]")) {
      if (this.take("operator", ":")) bounds.push(null);
      else if (bounds.at(-1)) throw this.fault("]");
      else bounds[bounds.length - 1] = this.expression();
    }
    if (bounds.length > 3 || (bounds.length === 1 && !bounds[0])) throw this.fault("an index, or a slice of at most three numbers");
    return bounds.length === 1 ? ["item", node, bounds[0]] : ["slice", node, bounds[0], bounds[1], bounds[2] ?? null];
  }

  /** @returns {[Node[], [string, Node][]]} */
  arguments() {
    this.need("operator", "(");
    /** @type {Node[]} */
    const plain = [];
    /** @type {[string, Node][]} */
    const named = [];
    for (let first = true; !this.take("operator", ")"); first = false) {
      if (!first) {
        this.need("operator", ",");
        if (this.take("operator", ")")) break;
      }
      const after = this.tokens[this.at + 1];
      if (this.peek("name") && after?.kind === "operator" && after.value === "=") {
        const name = this.need("name");
        this.at++;
        named.push([name, this.expression()]);
      } else if (named.length) throw this.fault("an argument with a name");
      else plain.push(this.expression());
    }
    return [plain, named];
  }

  /** @param {Node} node */
  filters(node) {
    while (true) {
      if (this.take("operator", "|")) node = this.filter(node);
      else if (this.take("name", "is")) node = this.test(node);
      else if (this.peek("operator", "(")) node = ["call", node, ...this.arguments(), this.line];
      else return node;
    }
  }

  /**
   * @param {Node | null} node
   * @returns {Node}
   */
  filter(node) {
    const { line } = this;
    const name = this.need("name");
    return ["filter", node, name, ...(this.peek("operator", "(") ? this.arguments() : [[], []]), line];
  }

  /**
   * @param {Node} node
   * @returns {Node}
   */
  test(node) {
    const negated = this.take("name", "not") !== null;
    const { line } = this;
    const name = this.need("name");
    /** @type {Node[]} */
    let given = [];
    if (this.peek("operator", "(")) {
      const [plain, named] = this.arguments();
      if (named.length) throw this.fault("arguments without names");
      given = plain;
    } else if (
      this.peek("text") ||
      this.peek("integer") ||
      this.peek("float") ||
      this.peek("operator", "[", "{") ||
      (this.peek("name") && !this.peek("name", "else", "or", "and", "is", "if", "not", "in"))
    ) {
      given = [this.postfix(this.primary())];
    }
    const tested = ["test", node, name, given, line];
    return negated ? ["not", tested] : tested;
  }

  /** @returns {Node} */
  target() {
    const name = this.need("name");
    return this.take("operator", ".") ? ["field", name, this.need("name")] : this.names([name]);
  }

  loopTarget() {
    const bracket = this.take("operator", "(");
    const target = this.names([this.need("name")]);
    if (bracket) this.need("operator", ")");
    return target;
  }

  /**
   * @param {string[]} names
   * @returns {Node}
   */
  names(names) {
    let comma = false;
    while (this.take("operator", ",")) {
      comma = true;
      if (!this.peek("name")) break;
      names.push(this.need("name"));
    }
    return comma ? ["names", names] : ["one", names[0]];
  }

  /** @returns {[string[], (Node | null)[]]} */
  parameters() {
    /** @type {string[]} */
    const names = [];
    /** @type {(Node | null)[]} */
    const defaults = [];
    this.need("operator", "(");
    while (!this.take("operator", ")")) {
      if (names.length) {
        this.need("operator", ",");
        if (this.take("operator", ")")) break;
      }
      names.push(this.need("name"));
      defaults.push(this.take("operator", "=") ? this.expression() : null);
    }
    return [names, defaults];
  }
}

/** Reads statements from the parts of a template. */
class Statements {
  /** @param {Part[]} parts */
  constructor(parts) {
    this.parts = parts;
    this.at = 0;
    this.depth = 0;
  }

  /**
   * The statements up to one of these ends, its name, and what follows the name.
   * @param {string[]} ends
   */
  body(...ends) {
    this.depth++;
    /** @type {Node[]} */
    const nodes = [];
    while (this.at < this.parts.length) {
      const part = this.parts[this.at++];
      if (this.depth > MAX_DEPTH) throw fault(part.line, `statements stand ${MAX_DEPTH} deep in each other, expected less`);
      const reader = new Expression(part);
      if (part.kind === "text") nodes.push(["text", part.text]);
      else if (part.kind === "expression") {
        nodes.push(["print", reader.tuple()]);
        reader.end();
      } else {
        const name = reader.need("name");
        if (ends.includes(name)) {
          this.depth--;
          return { nodes, end: name, reader };
        }
        if (!Object.hasOwn(STATEMENTS, name)) {
          throw fault(part.line, `the statement ${JSON.stringify(name)}, expected one of ${[...Object.keys(STATEMENTS), ...ends].join(", ")}`);
        }
        nodes.push(STATEMENTS[name](this, reader));
      }
    }
    if (ends.length) throw new SingeError("format", `the template ends where ${ends.join(" or ")} is expected`);
    this.depth--;
    return { nodes, end: "", reader: new Expression({ kind: "", text: "", tokens: [], line: 0 }) };
  }

  /** @param {string} end */
  inner(end) {
    const { nodes, reader } = this.body(end);
    reader.take("name");
    reader.end();
    return nodes;
  }

  /** @param {Expression} reader */
  filters(reader) {
    const filters = [];
    while (reader.take("operator", "|")) filters.push(reader.filter(null));
    reader.end();
    return filters;
  }
}

/** @type {Record<string, (template: Statements, reader: Expression) => Node>} */
const STATEMENTS = {
  if(template, reader) {
    /** @type {[Node, Node[]][]} */
    const branches = [];
    let end = "elif";
    while (end === "elif") {
      const condition = reader.tuple();
      reader.end();
      const found = template.body("elif", "else", "endif");
      branches.push([condition, found.nodes]);
      ({ end, reader } = found);
    }
    reader.end();
    return ["if", branches, end === "else" ? template.inner("endif") : []];
  },
  for(template, reader) {
    const target = reader.loopTarget();
    reader.need("name", "in");
    const items = reader.tuple(false);
    const condition = reader.take("name", "if") ? reader.expression() : null;
    if (reader.peek("name", "recursive")) throw reader.fault("no recursive loop: Singe runs none");
    reader.end();
    const { nodes, end, reader: rest } = template.body("else", "endfor");
    rest.end();
    return ["for", target, items, condition, nodes, end === "else" ? template.inner("endfor") : []];
  },
  set(template, reader) {
    const target = reader.target();
    if (reader.take("operator", "=")) {
      const value = reader.tuple();
      reader.end();
      return ["set", target, value];
    }
    const filters = template.filters(reader);
    return ["set", target, ["captured", template.inner("endset"), filters]];
  },
  macro(template, reader) {
    const name = reader.need("name");
    const parameters = reader.parameters();
    reader.end();
    return ["macro", name, ...parameters, template.inner("endmacro")];
  },
  call(template, reader) {
    const parameters = reader.peek("operator", "(") ? reader.parameters() : [[], []];
    const call = reader.expression();
    reader.end();
    if (call[0] !== "call") throw reader.fault("a call of a macro");
    return ["call block", call, ...parameters, template.inner("endcall")];
  },
  filter(template, reader) {
    const filters = [reader.filter(null), ...template.filters(reader)];
    return ["print", ["captured", template.inner("endfilter"), filters]];
  },
  with(template, reader) {
    /** @type {[Node, Node][]} */
    const assigned = [];
    while (!reader.ended) {
      if (assigned.length) reader.need("operator", ",");
      const name = reader.need("name");
      reader.need("operator", "=");
      assigned.push([["one", name], reader.expression()]);
    }
    return ["with", assigned, template.inner("endwith")];
  },
  generation(template, reader) {
    reader.end();
    return ["with", [], template.inner("endgeneration")];
  },
  break(_, reader) {
    reader.end();
    return ["break"];
  },
  continue(_, reader) {
    reader.end();
    return ["continue"];
  },
};

/**
 * @param {string} source
 * @returns {Node[]}
 */
export function parseTemplate(source) {
  if (typeof source !== "string" || source.length > MAX_SOURCE) throw new SingeError("format", `a template is no text of at most ${MAX_SOURCE} characters`);
  const text = source.replace(/\r\n?/g, "\n");
  return new Statements(partsOf(text.endsWith("\n") ? text.slice(0, -1) : text)).body().nodes;
}
