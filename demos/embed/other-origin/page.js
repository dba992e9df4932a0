import { load } from "https://models.example/digits/singe.js";

const model = await load("https://models.example/digits/", { worker: true });
const { logits } = await model.run({ input: new Float32Array(28 * 28).fill(0.5) });
document.querySelector("output").value = logits.data.join(" ");
document.querySelector("p").textContent = `${model.worker ? "In a worker" : "In the page"}, threads: ${model.threads}.`;
