import { load } from "singe";

const model = await load("/model/", { worker: true });
const { logits } = await model.run({ input: new Float32Array(28 * 28).fill(0.5) });
document.querySelector("output").value = logits.data.join(" ");
