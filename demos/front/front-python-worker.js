/**
 * Python in a worker, for the prompt: receives { source } and posts the results.
 *
 * It posts { what: "progress", … }, then { what: "started" } or { what: "failed" }. For each source it posts "incomplete" if
 * the statement is not finished; otherwise "accepted", any number of "output", and one "answer", with the repr of the last
 * expression's value, or the traceback.
 */

const FOLDER = new URL("./python/", import.meta.url);

/** `complete` and `evaluate` share one dict of globals; top-level `await` works. */
const PROMPT = `
import ast, codeop, linecache, sys, traceback
import numpy as np
import singe as sg
from pyodide.code import eval_code_async

compiler = codeop.CommandCompiler()
compiler.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
scope = {"__name__": "__main__", "np": np, "sg": sg}
count = 0

def complete(source):
    """Whether a source is a whole one; one that is wrong is, too."""
    try:
        return compiler(source, "<prompt>", "exec") is not None
    except (SyntaxError, ValueError, OverflowError):
        return True

async def evaluate(source):
    """The text to show, and whether it is an error's."""
    global count
    count += 1
    name = f"<prompt {count}>"
    linecache.cache[name] = (len(source), None, [line + "\\n" for line in source.split("\\n")], name)
    try:
        value = await eval_code_async(source, scope, filename=name)
        if value is not None:
            scope["_"] = value
        text = "" if value is None else repr(value)
    except BaseException as error:
        frame = error.__traceback__
        while frame is not None and not frame.tb_frame.f_code.co_filename.startswith("<prompt"):
            frame = frame.tb_next
        return "".join(traceback.format_exception(type(error), error, frame)).rstrip(), True
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return text, False

banner = f"Python {sys.version.split()[0]}, NumPy {np.__version__}, Singe {sg.__version__}"
`;

/** Milliseconds between two messages of output, and characters in one: more would make the page hang. */
const PAUSE = 100;
const MOST = 8000;

let printed = "";
let dropped = 0;
let sent = 0;

function send() {
  if (dropped) printed = `[${dropped} characters left out]\n${printed}`;
  if (printed) postMessage({ what: "output", text: printed });
  printed = "";
  dropped = 0;
  sent = performance.now();
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
      if (performance.now() - sent > PAUSE) send();
      return bytes.length;
    },
  };
}

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

async function begin() {
  const { start, message, unsupported } = await findStart();
  if (!start) return postMessage({ what: "failed", message, unsupported });
  const { pyodide } = await start({ base: FOLDER, onProgress: (progress) => postMessage({ what: "progress", ...progress }) });
  pyodide.setStdout(printer());
  pyodide.setStderr(printer());
  const globals = pyodide.globals.get("dict")();
  await pyodide.runPythonAsync(PROMPT, { globals });
  const [complete, evaluate] = ["complete", "evaluate"].map((name) => globals.get(name));
  onmessage = async ({ data: { source } }) => {
    if (!complete(source)) return postMessage({ what: "incomplete" });
    postMessage({ what: "accepted" });
    const result = await evaluate(source);
    const [text, failed] = result.toJs();
    result.destroy();
    send();
    return postMessage({ what: "answer", text, failed });
  };
  postMessage({ what: "started", version: globals.get("banner") });
}

begin().catch((error) => postMessage({ what: "failed", message: error?.message ?? String(error) }));
