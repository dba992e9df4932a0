/**
 * The place where libraries such as transformers.js look for a runtime: `globalThis[Symbol.for("onnxruntime")]`.
 *
 * Contract: importing this before such a library makes it run on Singe. It exports nothing.
 */

import { InferenceSession, Tensor, env } from "./singe-ort.js";

/** @type {Record<symbol, unknown>} */ (/** @type {unknown} */ (globalThis))[Symbol.for("onnxruntime")] = { InferenceSession, Tensor, env };
