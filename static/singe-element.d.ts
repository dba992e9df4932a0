/** The element `<singe-model src="./model/">`; importing the module defines it. */

import type { Input, Model, Output, Progress, SingeError } from "./singe.js";

export class SingeModelElement extends HTMLElement {
  /** A promise of the model that `src` names. */
  readonly model: Promise<Model>;
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
