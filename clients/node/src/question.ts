// A command on its way to a service, and what becomes of it.
import type { Decision } from './decision.js';
import type { WeirError } from './errors.js';

export class Question {
  /** When the attempt that is under way is given up; set by whoever sends it. */
  due = 0;
  /** How long that attempt may take. */
  budget = 0;
  /** Whether its time was extended once, because this process stood still. */
  extended = false;
  /** The services that were tried, a bit for each place in the list. */
  tried = 0;

  constructor(
    readonly command: string,
    /** Whether it may be asked of another service; what settles something is never sent twice. */
    readonly movable: boolean,
    /** When there must be an answer, on the clock of `performance.now()`. */
    readonly deadline: number,
    /** Called once. */
    readonly settle: (outcome: Decision | WeirError) => void,
  ) {}
}
