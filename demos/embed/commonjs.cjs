async function main() {
  const { load } = await import("singe");
  const model = await load("./model/");
  const { logits } = await model.run({ input: new Float32Array(28 * 28).fill(0.5) });
  console.log(logits.data.join(" "));
  await model.dispose();
}

main();
