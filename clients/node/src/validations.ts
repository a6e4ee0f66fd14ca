// The classic mistakes, each found at run time, with a code that is stable and has its place in the
// README. They are told once, as warnings: requests go on.
import { OptionError } from './errors.js';
import type { Logger } from './watch.js';

const CODES = [
  'ERR_WEIR_PERMISSIVE_TRUST_PROXY',
  'ERR_WEIR_UNEXPECTED_X_FORWARDED_FOR',
  'ERR_WEIR_FORWARDED_HEADER_IGNORED',
  'ERR_WEIR_UNDEFINED_IP',
  'ERR_WEIR_INVALID_IP',
  'ERR_WEIR_CREATED_IN_REQUEST_HANDLER',
  'ERR_WEIR_DOUBLE_COUNT',
  'ERR_WEIR_SHARED_PREFIX',
  'ERR_WEIR_KEY_GEN_IPV6',
] as const;

export type ValidationCode = (typeof CODES)[number];

/** All of them, none, or those that are not `false`. */
export type Validate = boolean | Partial<Record<ValidationCode, boolean>>;

/** Requests are looked at until so many have passed: what is wrong shows among the first. */
const LOOKED_AT = 100;

export class Validations {
  private readonly wanted: Set<ValidationCode>;
  private left = LOOKED_AT;

  constructor(
    validate: Validate,
    private readonly logger: Logger,
  ) {
    this.wanted = new Set(CODES.filter((code) => isWanted(validate, code)));
    if (typeof validate === 'object') {
      const unknown = Object.keys(validate).find((code) => !CODES.some((known) => known === code));
      if (unknown !== undefined) {
        throw new OptionError(
          'validate',
          `there is no "${unknown}"; there are ${CODES.join(', ')}`,
        );
      }
    }
  }

  /** Whether this request is one to look at. */
  begin(): boolean {
    if (this.left === 0) return false;
    this.left -= 1;
    return this.wanted.size > 0;
  }

  warn(code: ValidationCode, message: string): void {
    if (!this.wanted.delete(code)) return;
    const anchor = code.toLowerCase();
    try {
      this.logger.warn(`weir: ${code}: ${message} (README.md#${anchor})`);
    } catch {
      // A logger that fails must not take requests with it.
    }
  }
}

function isWanted(validate: Validate, code: ValidationCode): boolean {
  return typeof validate === 'boolean' ? validate : validate[code] !== false;
}

/** Whether this runs within a request: then a limiter is made for each of them. */
export function isWithinRequest(): boolean {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 50;
  const { stack = '' } = new Error();
  Error.stackTraceLimit = stackTraceLimit;
  return /at (?:Layer\.handle|parserOnIncoming)/.test(stack);
}

/** Whether a function makes a key of an address as it is, of which a client with IPv6 has 2⁶⁴. */
export function usesRawAddress(key: unknown): boolean {
  if (typeof key !== 'function') return false;
  const source = Function.prototype.toString.call(key);
  return /\b(?:req|request)\s*\.\s*ip\b/.test(source) && !source.includes('ipKey');
}
