/** The element `<singe-model src="./model/">`: a model in a page, without writing JavaScript. */

import type { Input, Model, Output, Progress, SingeError } from "./singe.js";

export class SingeModelElement extends HTMLElement {
  #private;
  constructor();
  /** A promise of the model that `src` names. */
  get model(): Promise<Model>;
  /** Run the model; the outputs are also the detail of the event `result`. */
  run(inputs: Record<string, Input>): Promise<Record<string, Output>>;
}

/** The details of its events. */
export interface SingeModelEvents {
  progress: CustomEvent<Progress>;
  load: CustomEvent<Model>;
  result: CustomEvent<Record<string, Output>>;
  error: CustomEvent<SingeError>;
}

declare global {
  interface HTMLElementTagNameMap {
    "singe-model": SingeModelElement;
  }
}
