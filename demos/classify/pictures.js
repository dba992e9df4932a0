/**
 * Sources of pictures: samples, a file, a drop anywhere, the clipboard, or the camera.
 *
 * Contract: `onPicture(blob, name)` gets whatever the user provided, or a promise of it. `onFrame(video)` is called for
 * frames of the camera, never twice at once. `onProblem(text)` says why there is no picture.
 */

const CLIPBOARD = "Clipboard";
const EMPTY = "it holds no picture";
const REASONS = {
  NotAllowedError: "The camera was refused: allow it for this page in the browser’s settings, then try again.",
  NotFoundError: "There is no camera here.",
  OverconstrainedError: "There is no camera here.",
  NotReadableError: "The camera cannot be read: another program may be using it.",
};

export function takePictures({ samples, file, paste, camera, video, onPicture, onFrame, onProblem }) {
  const take = (blob, name) => {
    shots.stop();
    onPicture(blob, name);
  };
  const shots = new Camera({ button: camera, video, onFrame, onProblem, onLast: onPicture });

  for (const sample of samples) {
    const { src } = sample.dataset;
    sample.addEventListener("click", () => take(fetchSample(src), src.split("/").at(-1)));
  }
  file.addEventListener("change", () => {
    if (file.files.length) take(file.files[0], file.files[0].name);
    file.value = ""; // so that the same file can be chosen again
  });
  takeDrops(take, onProblem);
  takePastes(paste, take, onProblem);
}

async function fetchSample(src) {
  const answer = await fetch(src);
  if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
  return answer.blob();
}

// --- drops and the clipboard -----------------------------------------------------------------------------------------

function takeDrops(take, onProblem) {
  const mark = (over) => document.body.classList.toggle("dropping", over);
  let depth = 0; // of the elements that the pointer is over
  addEventListener("dragenter", () => mark(++depth > 0));
  addEventListener("dragleave", () => mark(--depth > 0));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    mark((depth = 0) > 0);
    const [dropped] = event.dataTransfer.files;
    if (dropped) take(dropped, dropped.name);
    else onProblem("What was dropped is no file: save the picture first, then drop its file.");
  });
}

function takePastes(button, take, onProblem) {
  addEventListener("paste", (event) => {
    const [pasted] = event.clipboardData.files;
    if (pasted) take(pasted, CLIPBOARD);
    else onProblem(`${CLIPBOARD}: ${EMPTY}`);
  });
  button.hidden = !navigator.clipboard?.read;
  button.addEventListener("click", () => take(readClipboard(), CLIPBOARD));
}

async function readClipboard() {
  for (const item of await navigator.clipboard.read()) {
    const type = item.types.find((name) => name.startsWith("image/"));
    if (type) return item.getType(type);
  }
  throw new Error(EMPTY);
}

// --- the camera ------------------------------------------------------------------------------------------------------

class Camera {
  #given;
  #stream;

  constructor(given) {
    this.#given = given;
    given.button.addEventListener("click", () => (this.#stream ? this.stop(true) : this.#start()));
    document.addEventListener("visibilitychange", () => document.hidden && this.stop(true));
  }

  async #start() {
    const { button, video, onProblem } = this.#given;
    if (!navigator.mediaDevices) return onProblem("No camera can be asked for: the page must come from https.");
    button.disabled = true;
    try {
      const wanted = { facingMode: "environment", width: { ideal: 640 }, height: { ideal: 480 } };
      this.#stream = await navigator.mediaDevices.getUserMedia({ video: wanted });
      this.#stream.getVideoTracks()[0].addEventListener("ended", () => this.stop());
      video.srcObject = this.#stream;
      video.hidden = false;
      this.#show("Stop the camera", true);
      await video.play();
      this.#follow(this.#stream);
    } catch (error) {
      this.stop();
      onProblem(REASONS[error.name] ?? `The camera does not start: ${error.message}`);
    } finally {
      button.disabled = false;
    }
  }

  /** keep: the last frame stays as a picture. */
  stop(keep = false) {
    if (!this.#stream) return;
    const { video, onLast } = this.#given;
    const last = document.createElement("canvas");
    [last.width, last.height] = [video.videoWidth, video.videoHeight];
    if (keep && last.width) {
      last.getContext("2d").drawImage(video, 0, 0);
      last.toBlob((blob) => blob && onLast(blob, "The camera"), "image/jpeg", 0.92);
    }
    for (const track of this.#stream.getTracks()) track.stop();
    this.#stream = undefined;
    video.srcObject = null;
    video.hidden = true;
    this.#show("Camera", false);
  }

  async #follow(stream) {
    const { video, onFrame } = this.#given;
    while (this.#stream === stream) {
      await new Promise((next) => {
        if (video.requestVideoFrameCallback) video.requestVideoFrameCallback(next);
        else requestAnimationFrame(next);
      });
      if (this.#stream === stream) await onFrame(video);
    }
  }

  #show(text, pressed) {
    this.#given.button.textContent = text;
    this.#given.button.setAttribute("aria-pressed", pressed);
  }
}
