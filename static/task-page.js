/**
 * What the pages of tasks share: their export puts this text into the script of each, in the place of the comment that names this file.
 *
 * Contract: `start(describe)` opens a page: `describe` says what its bundle is, and what the page takes. `ready()` makes `ask` the task of
 * the bundle and the device that are chosen. `inTurn` does one thing after the other, and says what failed.
 */

/** The bundle's version: the query of its scripts and files. */
const QUERY = new URL(/** @type {HTMLLinkElement} */ (document.querySelector("link[rel=modulepreload]")).href).search;
/** @type {Record<string, string>} */
const DEVICES = { auto: "auto", wasm: "WebAssembly", webgpu: "WebGPU" };
const BEST = "relaxed"; // the kernels of wasm that most browsers take
/** @type {any} */
let ask;
/** @type {string | undefined} */
let opened; // the bundle and the device of `ask`
/** @type {any} */
let manifest;

/** @type {(id: string) => any} */
const $ = (id) => document.getElementById(id);

/** The folder of the bundle, of which a page may have several. */
const folder = () => $("model")?.value ?? "./";

/**
 * Said once, not at every frame.
 * @param {string} text
 * @param {string} state
 */
function say(text, state) {
  if ($("status").textContent !== text) $("status").textContent = text;
  $("status").dataset.state = state;
}

/** What devices refuse with, in whose own words some browsers say little. @type {Record<string, string>} */
const REFUSALS = {
  NotAllowedError: "The browser does not allow it: its settings for this page say what may be used.",
  NotFoundError: "There is no such device here.",
  NotReadableError: "Another program uses the device.",
};
/** @param {any} e */
const tell = (e) => say(REFUSALS[e?.name] ?? e?.message ?? String(e), "error");

let last = Promise.resolve();
/** @param {() => any} work */
const inTurn = (work) => {
  last = last.then(work).catch(tell);
  return last;
};

/**
 * A button that begins what goes on until it is pressed again; what is pressed while it begins counts for nothing.
 * @param {HTMLButtonElement} button
 * @param {() => any} begin
 * @param {() => (() => void) | undefined} end gives what ends it, while it goes on
 */
function toggles(button, begin, end) {
  let isBusy = false;
  button.addEventListener("click", async () => {
    const stop = end();
    if (stop) return stop();
    if (isBusy) return;
    isBusy = true;
    await inTurn(begin);
    isBusy = false;
  });
}

async function ready() {
  const device = $("device").value;
  const wanted = `${folder()} ${device}`;
  if (ask && opened === wanted) return;
  await ask?.close();
  ask = undefined;
  say("Loading …", "loading");
  const { task } = await import("./singe-tasks.js" + QUERY).catch((cause) => {
    throw new Error("The scripts of this page cannot be fetched: load it again when its server can be reached.", { cause });
  });
  const onProgress = (/** @type {{ loaded: number, total: number, phase: string }} */ { loaded, total, phase }) => {
    $("progress").hidden = phase !== "download";
    $("progress").value = total ? loaded / total : 0;
  };
  ask = await task(folder() + QUERY, { device, onProgress });
  opened = wanted;
}

/**
 * What a bundle says of itself.
 * @param {string} at
 */
async function readManifest(at) {
  const answer = await fetch(`${at}model.json${QUERY}`);
  if (!answer.ok) throw new Error(`model.json: the server answered ${answer.status}.`);
  return answer.json();
}

/** @typedef {{ file: string, bytes: number }} PageFile */

/**
 * What a target's weights and kernels, and the task's own files, are to download.
 * @param {{ weights: PageFile[], modules: any }} target
 * @param {Record<string, PageFile>} [files]
 */
function bytesOf({ weights, modules }, files = {}) {
  const kernels = "file" in modules ? modules : (modules[BEST] ?? Object.values(modules)[0]);
  const all = [...weights, ...(kernels ? [kernels] : []), ...Object.values(files)];
  return [...new Map(all.map(({ file, bytes }) => [file, bytes])).values()].reduce((sum, bytes) => sum + bytes, 0);
}

/** @param {number} bytes */
const sized = (bytes) => (bytes < 1e6 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

/**
 * Says what the task is, what is fetched, and that nothing is sent.
 * @param {string} title
 * @param {string} taken "Pictures", say
 * @param {string} [models]
 * @param {(target: string) => number} [bytes]
 */
function introduce(title, taken, models = manifest.name, bytes = (name) => bytesOf(manifest.targets[name], manifest.task.files)) {
  $("name").textContent = title;
  document.title = `${title}: ${manifest.name}`;
  const sizes = Object.keys(manifest.targets).map((name) => `${sized(bytes(name))} for ${DEVICES[name]}`);
  const { licence } = manifest.task;
  $("size").textContent = `${models}${licence ? `, ${licence}` : ""}. Fetched once: ${sizes.join(", ")}. ${taken} stay on this machine.`;
}

/** @param {() => Promise<string>} describe gives what the page takes: "picture", say */
async function start(describe) {
  if (location.protocol === "file:") {
    throw new Error("This page was opened as a file. Serve its folder and open the address: singe serve FOLDER, or python3 -m http.server in it.");
  }
  const taken = await describe();
  for (const name of ["auto", ...Object.keys(manifest.targets)]) {
    const missing = name === "webgpu" && !navigator.gpu;
    $("device").add(Object.assign(new Option(missing ? "WebGPU: not in this browser" : DEVICES[name], name), { disabled: missing }));
  }
  say(`Ready: nothing is loaded before the first ${taken}.`, "ready");
}

/**
 * Sounds that are chosen, or dropped on the page.
 * @param {(file: File | undefined) => void} take
 */
function givenFiles(take) {
  $("file").addEventListener("change", () => take($("file").files[0]));
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    $("drop").classList.add("over");
  });
  for (const end of ["dragleave", "drop"]) document.addEventListener(end, () => $("drop").classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer?.files[0]);
  });
}

/**
 * The form's button, and Ctrl and Enter, end what is under way and begin anew; its stop button and Escape end it.
 * @param {() => any} work
 * @param {() => void} stop
 */
function onForm(work, stop = () => {}) {
  const begin = (/** @type {Event} */ event) => {
    event.preventDefault();
    stop();
    inTurn(work);
  };
  $("form").addEventListener("submit", begin);
  $("form").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") stop();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) begin(event);
  });
  $("stop")?.addEventListener("click", stop);
}
