/**
 * Python in a worker, for the prompt and for the documentation's cells; python/prompt.py is the Python of it.
 *
 * Requests: { source } to run; { interrupt } ends what waits in an await; { complete } is a source whose last name is to be
 * completed; { file } is a File to keep where Python reads it; { shared } is a SharedArrayBuffer (prompt-shared.js).
 *
 * Requests may be sent at once: they wait until Python has started.
 *
 * It posts { what: "progress", … }, then "started" or "failed". For each source it posts "incomplete" if the statement is
 * not finished; otherwise "accepted", any number of "output" and "asks" (input() waits for an answer), and one "answer":
 * the repr of the last expression's value, with HTML of its drawings, or the traceback. It answers { complete } by
 * "completions", and { file } by "kept" or "refused".
 */

import { awaitAnswer, canAnswer, clearInterrupt, interruptBuffer } from "./prompt-shared.js";

const FOLDER = new URL("./python/", import.meta.url);

/**
 * Of the output of each PAUSE milliseconds, MOST characters are sent as they come, a message counting for at least LEAST of
 * them: more would make the page hang. The rest waits for a later line, or for the end.
 */
const PAUSE = 100;
const MOST = 8000;
const LEAST = 400;

let printed = "";
let dropped = 0;
/** When the present PAUSE began, and the characters sent in it. */
let since = 0;
let sent = 0;
let shared;
let forbidden;

addEventListener("securitypolicyviolation", ({ blockedURI, effectiveDirective }) => {
  forbidden = `This site's Content-Security-Policy (${effectiveDirective}) forbids ${blockedURI}.`;
});

function send() {
  if (dropped) printed = `[${dropped} characters left out]\n${printed}`;
  if (printed) postMessage({ what: "output", text: printed });
  sent += Math.max(printed.length, LEAST);
  printed = "";
  dropped = 0;
}

function printer() {
  const decoder = new TextDecoder();
  return {
    write(bytes) {
      printed += decoder.decode(bytes, { stream: true });
      if (printed.length > 2 * MOST) {
        dropped += printed.length - MOST;
        printed = printed.slice(-MOST);
      }
      const now = performance.now();
      if (now - since > PAUSE) [since, sent] = [now, 0];
      if (sent < MOST) send();
      return bytes.length;
    },
  };
}

/** What prompt.py imports as singe_prompt_page. */
const PAGE = {
  /** What the policy has forbidden since the last call; undefined for nothing. */
  takeForbidden() {
    const found = forbidden;
    forbidden = undefined;
    return found;
  },
  canAnswer: () => canAnswer(shared),
  awaitAnswer() {
    send();
    return awaitAnswer(shared, () => postMessage({ what: "asks" }));
  },
};

/** The module that starts Python; an error if the site was built without it. */
async function findStart() {
  const script = new URL("start.js", FOLDER);
  let response;
  try {
    response = await fetch(script);
  } catch {
    return { message: "Python is not on this device yet, and there is no network to fetch it." };
  }
  if (!response.ok) return { message: `This site was built without Python (the server answers ${response.status}).`, unsupported: true };
  return import(script);
}

/** Start Python; the functions that carry out its requests. */
async function begin() {
  const { start, message, unsupported } = await findStart();
  if (!start) {
    postMessage({ what: "failed", message, unsupported });
    return {};
  }
  const source = fetch(new URL("prompt.py", FOLDER)).then((response) => response.text());
  const { pyodide } = await start({ base: FOLDER, onProgress: (progress) => postMessage({ what: "progress", ...progress }) });
  pyodide.setStdout(printer());
  pyodide.setStderr(printer());
  pyodide.registerJsModule("singe_prompt_page", PAGE);
  const globals = pyodide.globals.get("dict")();
  pyodide.runPython(await source, { globals, filename: "prompt.py" });
  const prompt = (name) => globals.get(name);
  const [isWhole, evaluate, interrupt, completions] = ["is_whole", "evaluate", "interrupt", "completions"].map(prompt);
  postMessage({ what: "started", version: globals.get("banner") });
  let number = 0; // of the last source
  return {
    async source(source) {
      try {
        if (!isWhole(source)) return postMessage({ what: "incomplete" });
        postMessage({ what: "accepted" });
        const [text, failed, html] = taken(await evaluate(source, ++number));
        send();
        return postMessage({ what: "answer", text, failed, html });
      } catch (error) {
        return postMessage({ what: "answer", text: lastLine(error), failed: true }); // such as memory that ended
      }
    },
    interrupt() {
      if (shared) clearInterrupt(shared); // nothing computes now, and the call below is not to be interrupted
      interrupt(number);
    },
    complete(source) {
      const [stem, names] = taken(completions(source));
      postMessage({ what: "completions", source, stem, names });
    },
    async file(file) {
      const name = file.name.replaceAll("/", "_");
      try {
        const bytes = new Uint8Array(await file.arrayBuffer());
        pyodide.FS.writeFile(name, bytes, { canOwn: true });
        postMessage({ what: "kept", name, bytes: bytes.length });
      } catch (error) {
        const message = `${lastLine(error)}. Files can be taken, no folders, and none larger than the memory that is left.`;
        postMessage({ what: "refused", name, message });
      }
    },
    shared(buffer) {
      shared = buffer;
      pyodide.setInterruptBuffer(interruptBuffer(shared));
    },
  };
}

/** A tuple of Python as an array. */
function taken(tuple) {
  const array = tuple.toJs();
  tuple.destroy();
  return array;
}

const lastLine = (error) => String(error?.message ?? error).trim().split("\n").at(-1);

const begun = begin();
begun.catch((error) => postMessage({ what: "failed", message: error?.message ?? String(error) }));

onmessage = async ({ data }) => {
  const [[what, given]] = Object.entries(data);
  try {
    await (await begun)[what](given);
  } catch {
    // Python did not start; only a source is owed an answer
  }
};
