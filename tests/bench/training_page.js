/**
 * Steps of training in one page, in turns: Singe, TensorFlow.js and jax-js, with the same first weights, batches and Adam.
 * training_page.py serves it; the query says what is raced, and the figures are sent by POST.
 *
 * A contestant is { step(batch), burst(batches) }: both make steps; `step` gives the loss, `burst` the loss of the last of
 * several steps, between which nothing is read. Each batch is uploaded from typed arrays.
 */

import { load } from "./mnist/singe.js";

const job = JSON.parse(decodeURIComponent(location.search.slice(1)));
const [BATCH, SIDE, CLASSES] = [64, 28, 10];
const [MEAN, STD] = [0.1307, 0.3081];
const ADAM = { rate: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8 };
const NORM = { eps: 1e-5, momentum: 0.1 };
/** What the peers' networks are made of; Singe's are those of training_page.py, whose weights all of them start with. */
const NETWORKS = {
  mnist: [
    ...[[2, 2], [1, 1], [2, 1], [1, 0]].flatMap(([stride, pad], k) => [
      { kind: "conv", weight: `blocks.${k}.conv.weight`, stride, pad },
      { kind: "norm", name: `blocks.${k}.norm` },
      { kind: "relu" },
    ]),
    { kind: "mean" },
    { kind: "linear", name: "head" },
  ],
  layers: [{ kind: "flatten" }, { kind: "linear", name: "first" }, { kind: "relu" }, { kind: "linear", name: "second" }],
};

/** A few batches of numbers in the range of pixels; the same ones each time. */
function makeBatches(count) {
  let state = 1;
  const random = () => ((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32);
  return Array.from({ length: count }, () => ({
    x: Float32Array.from({ length: BATCH * SIDE * SIDE }, random),
    y: Int32Array.from({ length: BATCH }, () => Math.floor(random() * CLASSES)),
  }));
}

// --- Singe -----------------------------------------------------------------------------------------------------------

async function singe() {
  const model = await load(`./${job.network}/`, { device: job.device, threads: 1 });
  const session = model.session();
  const given = ({ x, y }) => ({ x: { data: x, shape: [BATCH, 1, SIDE, SIDE] }, y: { data: y, shape: [BATCH] } });
  const step = async (batch) => (await session.step(given(batch))).loss.data[0];
  const gpu = model.gpuDevice;
  const usage = gpu && GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST;
  const kept = gpu && { outputs: { loss: gpu.createBuffer({ size: 16, usage }) } };
  return {
    weights: async () => {
      const weights = {};
      for (const { name, shape, dtype } of model.states) {
        if (name.startsWith("model.") && dtype === "float32") weights[name.slice("model.".length)] = { shape, data: await session.read(name) };
      }
      return weights;
    },
    step,
    burst: async (batches) => {
      for (const batch of batches.slice(0, -1)) await session.step(given(batch), kept);
      return step(batches.at(-1));
    },
  };
}

// --- TensorFlow.js ---------------------------------------------------------------------------------------------------

/** NHWC, as TensorFlow has it; `backend` is "wasm", "webgpu" or "cpu". */
async function tensorflow(weights, backend) {
  const { tf } = globalThis;
  tf.wasm.setWasmPaths("./tfjs/");
  const start = async () => {
    if (tf.getBackend() !== backend && !(await tf.setBackend(backend))) throw new Error(`TensorFlow.js does not start ${backend}`);
    await tf.ready();
  };
  await start();
  const variables = {};
  for (const [name, { shape, data }] of Object.entries(weights)) {
    const order = { 4: [2, 3, 1, 0], 2: [1, 0] }[shape.length];
    variables[name] = tf.tidy(() => {
      const value = tf.tensor(data, shape);
      return tf.variable(order ? value.transpose(order) : value, !name.includes("running"));
    });
  }
  const optimizer = tf.train.adam(ADAM.rate, ADAM.beta1, ADAM.beta2, ADAM.eps);
  const run = (running, part, count) => running.assign(running.mul(1 - NORM.momentum).add(part.mul((NORM.momentum * count) / Math.max(1, count - 1))));
  const layers = {
    conv: (x, { weight, stride, pad }) => tf.conv2d(x, variables[weight], stride, pad),
    norm: (x, { name }) => {
      const { mean, variance } = tf.moments(x, [0, 1, 2]);
      const [running, deviation] = [variables[`${name}.running_mean`], variables[`${name}.running_var`]];
      running.assign(running.mul(1 - NORM.momentum).add(mean.mul(NORM.momentum)));
      run(deviation, variance, x.size / x.shape[3]);
      return tf.batchNorm(x, mean, variance, variables[`${name}.bias`], variables[`${name}.weight`], NORM.eps);
    },
    relu: (x) => tf.relu(x),
    mean: (x) => tf.mean(x, [1, 2]),
    flatten: (x) => x.reshape([BATCH, -1]),
    linear: (x, { name }) => tf.matMul(x, variables[`${name}.weight`]).add(variables[`${name}.bias`]),
  };
  const minimise = ({ x, y }) =>
    tf.tidy(() => {
      const images = tf.tensor4d(x, [BATCH, SIDE, SIDE, 1]);
      const labels = tf.oneHot(tf.tensor1d(y, "int32"), CLASSES);
      return optimizer.minimize(() => {
        const logits = NETWORKS[job.network].reduce((a, layer) => layers[layer.kind](a, layer), images.sub(MEAN).div(STD));
        return tf.losses.softmaxCrossEntropy(labels, logits);
      }, true);
    });
  const valueOf = async (loss) => {
    const [value] = await loss.data();
    loss.dispose();
    return value;
  };
  return {
    step: async (batch) => {
      await start();
      return valueOf(minimise(batch));
    },
    burst: async (batches) => {
      await start();
      for (const batch of batches.slice(0, -1)) minimise(batch).dispose();
      return valueOf(minimise(batches.at(-1)));
    },
  };
}

/**
 * TensorFlow.js's wasm backend has no gradient of a convolution by its filter: this makes one of its own kernels. Channels
 * of the input stand for its images, the gradient for a filter, the stride for a dilation.
 */
function completeTensorFlow() {
  const { tf } = globalThis;
  tf.registerKernel({
    kernelName: "Conv2DBackpropFilter",
    backendName: "wasm",
    kernelFunc: ({ inputs: { x, dy }, attrs: { strides, pad, filterShape } }) =>
      tf.tidy(() => {
        const [height, width] = filterShape;
        const stride = Array.isArray(strides) ? strides[0] : strides;
        const found = tf.conv2d(x.transpose([3, 1, 2, 0]), dy.transpose([1, 2, 0, 3]), 1, pad, "NHWC", stride);
        return found.slice([0, 0, 0, 0], [-1, height, width, -1]).transpose([1, 2, 0, 3]);
      }),
  });
}

// --- jax-js ----------------------------------------------------------------------------------------------------------

async function jax(weights) {
  const { defaultDevice, init, jit, lax, nn, numpy: np, tree, valueAndGrad } = await import("./jax/index.js");
  await init(job.device);
  defaultDevice(job.device);
  const made = ([name, { shape, data }]) => [name, np.array(Float32Array.from(data)).reshape(shape)];
  const some = (running) => Object.fromEntries(Object.entries(weights).filter(([name]) => name.includes("running") === running).map(made));
  const zeros = (values) => tree.map((value) => np.zerosLike(value.ref), values);
  const layers = {
    conv: (p, x, { weight, stride, pad }) => lax.convGeneralDilated(x, p[weight].ref, [stride, stride], [[pad, pad], [pad, pad]]),
    norm: (p, x, { name }, running, next) => {
      const count = x.size / x.shape[1];
      const mean = np.mean(x.ref, [0, 2, 3]);
      const centred = x.sub(mean.ref.reshape([1, -1, 1, 1]));
      const variance = np.mean(np.square(centred.ref), [0, 2, 3]);
      const followed = (was, now) => was.ref.mul(1 - NORM.momentum).add(lax.stopGradient(now.mul(NORM.momentum)));
      next[`${name}.running_mean`] = followed(running[`${name}.running_mean`], mean);
      next[`${name}.running_var`] = followed(running[`${name}.running_var`], variance.ref.mul(count / (count - 1)));
      const factor = p[`${name}.weight`].ref.div(np.sqrt(variance.add(NORM.eps)));
      return centred.mul(factor.reshape([1, -1, 1, 1])).add(p[`${name}.bias`].ref.reshape([1, -1, 1, 1]));
    },
    relu: (p, x) => nn.relu(x),
    mean: (p, x) => np.mean(x, [2, 3]),
    flatten: (p, x) => x.reshape([BATCH, -1]),
    linear: (p, x, { name }) => np.matmul(x, np.transpose(p[`${name}.weight`].ref)).add(p[`${name}.bias`].ref),
  };
  const objective = (p, running, x, y) => {
    const next = {};
    const logits = NETWORKS[job.network].reduce((a, layer) => layers[layer.kind](p, a, layer, running, next), x.sub(MEAN).div(STD));
    tree.dispose(p);
    tree.dispose(running);
    const loss = nn.logSoftmax(logits, -1).mul(nn.oneHot(y, CLASSES)).sum().mul(-1 / BATCH);
    return [loss, next];
  };
  const update = jit((p, running, first, second, power1, power2, x, y) => {
    const [[loss, next], grads] = valueAndGrad(objective, { hasAux: true })(tree.ref(p), running, x, y);
    [power1, power2] = [power1.mul(ADAM.beta1), power2.mul(ADAM.beta2)];
    const [weights, one, two] = [{}, {}, {}];
    for (const name of Object.keys(p)) {
      one[name] = first[name].mul(ADAM.beta1).add(grads[name].ref.mul(1 - ADAM.beta1));
      two[name] = second[name].mul(ADAM.beta2).add(np.square(grads[name]).mul(1 - ADAM.beta2));
      const size = one[name].ref.div(np.subtract(1, power1.ref));
      const root = np.sqrt(two[name].ref.div(np.subtract(1, power2.ref)));
      weights[name] = p[name].sub(size.div(root.add(ADAM.eps)).mul(ADAM.rate));
    }
    return [loss, weights, next, one, two, power1, power2];
  });
  const begun = some(false);
  let state = [begun, some(true), zeros(begun), zeros(begun), np.array(1), np.array(1)];
  const advance = ({ x, y }) => {
    const [loss, ...next] = update(...state, np.array(x).reshape([BATCH, 1, SIDE, SIDE]), np.array(y));
    state = next;
    return loss;
  };
  return {
    step: async (batch) => (await advance(batch).data())[0],
    burst: async (batches) => {
      for (const batch of batches.slice(0, -1)) advance(batch).dispose();
      return (await advance(batches.at(-1)).data())[0];
    },
  };
}

// --- the race --------------------------------------------------------------------------------------------------------

async function race() {
  const found = { isolated: crossOriginIsolated, losses: {}, times: {}, errors: {} };
  const batches = makeBatches(4);
  const running = {};
  const open = async (who, make) => {
    try {
      const contestant = await make();
      const losses = [];
      for (const batch of batches) losses.push(await contestant.step(batch));
      Object.assign(found.losses, { [who]: losses });
      Object.assign(running, { [who]: contestant });
    } catch (error) {
      found.errors[who] = String(error.stack ?? error).slice(0, 400);
    }
  };
  let weights;
  await open("Singe", async () => {
    const made = await singe();
    weights = await made.weights();
    return made;
  });
  await open("TensorFlow.js", () => tensorflow(weights, job.device));
  if (found.errors["TensorFlow.js"]?.includes("Conv2DBackpropFilter")) {
    completeTensorFlow();
    await open("TensorFlow.js, completed", () => tensorflow(weights, job.device));
    if (job.plain) await open("TensorFlow.js, cpu", () => tensorflow(weights, "cpu"));
  }
  await open("jax-js", () => jax(weights));
  for (const way of ["step", "burst"]) {
    const times = (found.times[way] = Object.fromEntries(Object.keys(running).map((who) => [who, []])));
    for (let round = 0; job.rounds && round <= job.rounds; round++) {
      for (const [who, contestant] of Object.entries(running)) {
        await new Promise((done) => setTimeout(done, 50));
        const many = Array.from({ length: 20 }, (_, k) => batches[k % batches.length]);
        const begun = performance.now();
        let [count, end] = [0, begun];
        while (end - begun < job.lasting) {
          if (way === "step") await contestant.step(batches[count++ % batches.length]);
          else {
            await contestant.burst(many);
            count += many.length;
          }
          end = performance.now();
        }
        if (round) times[who].push((end - begun) / count); // the first round warms up
      }
    }
    if (job.device === "wasm") break; // nothing is waited for there
  }
  if (job.device === "webgpu") {
    const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
    found.adapter = adapter ? `${adapter.info.vendor} ${adapter.info.architecture} ${adapter.info.description}` : "none";
  }
  return found;
}

race()
  .catch((error) => ({ errors: { page: String(error.stack ?? error) } }))
  .then((found) => fetch("/told", { method: "POST", body: JSON.stringify(found) }));
