import { useState } from "react";
import { useTask } from "./useTask.js";

export function Classify({ src }) {
  const { ask, error } = useTask(src);
  const [text, setText] = useState("");

  async function take({ target }) {
    try {
      const [best] = await ask(target.files[0], { top: 1 });
      setText(`${best.label}: ${Math.round(100 * best.score)}%`);
    } catch (problem) {
      setText(problem.message);
    }
  }

  return (
    <>
      <label>
        A picture: <input type="file" accept="image/*" disabled={!ask} onChange={take} />
      </label>
      <p role="status">{error?.message ?? text}</p>
    </>
  );
}
