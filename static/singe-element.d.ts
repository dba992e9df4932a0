/** The elements `<singe-model src="./model/">` and `<singe-task src="./detect/">`: a model, or a task, in a page, without writing JavaScript. */

import type { Input, Model, Output, Progress, SingeError } from "./singe.js";
import type { Task, TaskAnswer, TaskSource } from "./singe-tasks.js";

/** @extends {SourceElement<Model>} */
export class SingeModelElement extends SourceElement<Model> {
  #private;
  constructor();
  /** A promise of the model that `src` names. */
  get model(): Promise<Model>;
  /** Run the model; the outputs are also the detail of the event `result`. */
  run(inputs: Record<string, Input>): Promise<Record<string, Output>>;
}

export type Item = Extract<TaskAnswer, readonly any[]>[number];

/** @extends {SourceElement<Task>} */
export class SingeTaskElement extends SourceElement<Task> {
  #private;
  constructor();
  /** A promise of the task that `src` names. */
  get task(): Promise<Task>;
  /** Ask the task, and show the answer, which is also the detail of the event `result`. */
  ask(source: TaskSource): Promise<TaskAnswer>;
}

/** What both elements are. */
declare class SourceElement<Opened> extends HTMLElement {
  /** @internal */
  get opened(): Promise<Opened>;
}

/** The details of the events of <singe-model>. */
export interface SingeModelEvents {
  progress: CustomEvent<Progress>;
  load: CustomEvent<Model>;
  result: CustomEvent<Record<string, Output>>;
  error: CustomEvent<SingeError>;
}

/** The details of the events of <singe-task>. */
export interface SingeTaskEvents {
  progress: CustomEvent<Progress>;
  load: CustomEvent<Task>;
  result: CustomEvent<TaskAnswer>;
  error: CustomEvent<SingeError>;
}

declare global {
  interface HTMLElementTagNameMap {
    "singe-model": SingeModelElement;
    "singe-task": SingeTaskElement;
  }
}
