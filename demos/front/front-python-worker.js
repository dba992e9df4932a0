/**
 * Python in a worker, for the prompt and for the documentation's cells.
 *
 * It receives { source } to run, { interrupt } to end what waits in an await, and { shared }, a SharedArrayBuffer: its first
 * byte is Pyodide's interrupt buffer, so that a 2 in it ends what computes, too. It posts { what: "progress", … }, then { what: "started" } or { what: "failed" }. For each source it posts "incomplete" if
 * the statement is not finished; otherwise "accepted", any number of "output", and one "answer", with the repr of the last
 * expression's value, or the traceback.
 */

const FOLDER = new URL("./python/", import.meta.url);

/** `complete` and `evaluate` share one dict of globals; top-level `await` works. */
const PROMPT = `
import ast, asyncio, codeop, linecache, os, sys, traceback
import numpy as np
import singe as sg
from pyodide.code import eval_code_async

compiler = codeop.CommandCompiler()
compiler.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
scope = {"__name__": "__main__", "np": np, "sg": sg}
count = 0
running = None

def complete(source):
    """Whether a source is a whole one; one that is wrong is, too."""
    try:
        return compiler(source, "<prompt>", "exec") is not None
    except (SyntaxError, ValueError, OverflowError):
        return True

async def evaluate(source):
    """The text to show, and whether it is an error's."""
    global count, running
    count += 1
    running = asyncio.current_task()
    name = f"<prompt {count}>"
    linecache.cache[name] = (len(source), None, [line + "\\n" for line in source.split("\\n")], name)
    try:
        value = await eval_code_async(source, scope, filename=name)
        if value is not None:
            scope["_"] = value
        text = "" if value is None else repr(value)
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError):
            error = KeyboardInterrupt().with_traceback(error.__traceback__)
        sys.last_exc = error
        return explain(error), True
    finally:
        running = None
        sys.stdout.flush()
        sys.stderr.flush()
    return text, False

def explain(error):
    """A traceback with the frames of what was typed and of files beside it; sys.last_exc has the others."""
    found = traceback.TracebackException.from_exception(error)
    todo = [found]
    while todo:
        part = todo.pop()
        own = [f for f in part.stack if f.filename.startswith(("<prompt", os.getcwd()))]
        part.stack = traceback.StackSummary.from_list(own)
        todo += [p for p in (part.__cause__, part.__context__, *(part.exceptions or ())) if p is not None]
    return "".join(found.format()).rstrip()

def interrupt():
    if running is not None:
        running.cancel()

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
  const [complete, evaluate, interrupt] = ["complete", "evaluate", "interrupt"].map((name) => globals.get(name));
  let flag = new Uint8Array(1);
  const requests = {
    async source(source) {
      if (!complete(source)) return postMessage({ what: "incomplete" });
      postMessage({ what: "accepted" });
      const result = await evaluate(source);
      const [text, failed] = result.toJs();
      result.destroy();
      send();
      return postMessage({ what: "answer", text, failed });
    },
    interrupt() {
      flag.fill(0); // nothing computes now, and the call below is not to be interrupted
      interrupt();
    },
    shared(buffer) {
      flag = new Uint8Array(buffer, 0, 1);
      pyodide.setInterruptBuffer(flag);
    },
  };
  onmessage = async ({ data }) => {
    const [[what, given]] = Object.entries(data);
    try {
      await requests[what](given);
    } catch (error) {
      postMessage({ what: "answer", text: lastLine(error), failed: true }); // interrupted before it began or at its end
    }
  };
  postMessage({ what: "started", version: globals.get("banner") });
}

const lastLine = (error) => String(error?.message ?? error).trim().split("\n").at(-1);

begin().catch((error) => postMessage({ what: "failed", message: error?.message ?? String(error) }));
