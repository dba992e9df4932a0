import resolve from "@rollup/plugin-node-resolve";

export default {
  input: { app: "app.js", "singe-worker": "singe/worker", "singe-thread": "singe/thread" },
  output: { dir: "public", format: "es" },
  plugins: [resolve()],
};
