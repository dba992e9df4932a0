/**
 * Files for the prompt: dropped on the terminal, or chosen with a button. The worker keeps them in Python's folder.
 *
 * Contract: nothing leaves this machine. For each kind of file there is a line of Python to begin with.
 */

const [terminal, chooser, button] = ["terminal", "python-file", "python-add"].map((id) => document.getElementById(id));

const MODEL = (name) => `model = await sg.load_async(${name})`;
const WEIGHTS = (name) => `weights = sg.read_weights(${name})`;
/** The end of a file's name ↦ a line to try. */
const LINES = {
  onnx: MODEL,
  singe: MODEL,
  safetensors: WEIGHTS,
  gguf: WEIGHTS,
  pt: WEIGHTS,
  pth: WEIGHTS,
  npz: (name) => `arrays = np.load(${name})`,
  npy: (name) => `x = np.load(${name})`,
  csv: (name) => `x = np.genfromtxt(${name}, delimiter=",")`,
  py: (name) => `exec(open(${name}).read())`,
  whl: (name) => `import micropip; await micropip.install(${JSON.stringify(`emfs:./${JSON.parse(name)}`)})`,
};
const BYTES = (name) => `data = open(${name}, "rb").read()`;

/** A line of Python that uses the file. */
export function lineFor(name) {
  const make = LINES[name.split(".").at(-1).toLowerCase()] ?? BYTES;
  return make(JSON.stringify(name));
}

/** Call `take` with each File that is given. */
export function onFiles(take) {
  button.addEventListener("click", () => chooser.click());
  chooser.addEventListener("change", () => {
    [...chooser.files].forEach(take);
    chooser.value = ""; // so that the same file may be chosen again
  });
  terminal.addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    terminal.classList.add("over");
  });
  terminal.addEventListener("dragleave", (event) => {
    if (!terminal.contains(event.relatedTarget)) terminal.classList.remove("over");
  });
  terminal.addEventListener("drop", (event) => {
    terminal.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    [...event.dataTransfer.files].forEach(take);
  });
}
