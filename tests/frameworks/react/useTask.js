import { useEffect, useState } from "react";
import { task } from "singe/tasks";

/** The task of a folder: { ask, error }; `ask` is there when it is loaded. */
export function useTask(src) {
  const [state, setState] = useState({});
  useEffect(() => {
    const stop = new AbortController();
    const opened = task(src, { signal: stop.signal });
    opened.then(
      (ask) => stop.signal.aborted || setState({ ask }),
      (error) => stop.signal.aborted || setState({ error }),
    );
    return () => {
      stop.abort();
      setState({});
      opened.then((ask) => ask.close(), () => {});
    };
  }, [src]);
  return state;
}
