/**
 * From logits to probabilities; and what the pages that read digits share: the answer, its bars, the picture that the network sees.
 *
 * Contract: `showAnswer`, `showNothing` and `showPicture` write into the elements with the ids `prediction`, `certainty`, `bars`
 * and `view`.
 */

export function softmax(logits) {
  const most = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const powers = Float64Array.from(logits, (v) => Math.exp(v - most));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((p) => p / total);
}

export const largest = (values) => values.indexOf(values.reduce((a, b) => Math.max(a, b), -Infinity));

export const percent = (part) => `${(100 * part).toFixed(1)} %`;

export function showAnswer(parts) {
  const digit = largest(parts);
  show(digit, `${percent(parts[digit])} sure`, parts);
}

export function showNothing() {
  show("", "nothing is drawn yet", new Array(10).fill(0));
}

function show(digit, certainty, parts) {
  const prediction = document.getElementById("prediction");
  prediction.textContent = prediction.dataset.value = digit;
  document.getElementById("certainty").textContent = certainty;
  [...document.getElementById("bars").children].forEach((bar, k) => {
    bar.dataset.value = parts[k];
    bar.style.setProperty("--value", parts[k]);
    bar.classList.toggle("leading", k === digit);
    bar.querySelector("output").textContent = percent(parts[k]);
  });
}

/** The picture as the network sees it, with white ink; black if there is none. */
export function showPicture(picture) {
  const view = document.getElementById("view");
  paint(view, picture ?? new Float32Array(view.width * view.height), (ink) => new Array(3).fill(255 * ink));
}

export function paint(canvas, values, colourOf) {
  const pixels = new ImageData(canvas.width, canvas.height);
  values.forEach((value, at) => pixels.data.set([...colourOf(value), 255], 4 * at));
  canvas.getContext("2d").putImageData(pixels, 0, 0);
}
