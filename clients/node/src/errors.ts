// What can go wrong outside a decision. A denial is no error, and neither is a service that does not
// answer a check: then the failure mode decides.

/** Why a verb could not be done: those of the service, and `unavailable` if none could be asked. */
export type ErrorCode =
  | 'invalid_argument'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'overloaded'
  | 'deadline'
  | 'unavailable';

export class WeirError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.name = 'WeirError';
    this.code = code;
  }
}

/** An option that cannot be. Thrown where a limiter or client is made, never while requests run. */
export class OptionError extends Error {
  readonly code: 'ERR_WEIR_OPTION' | 'ERR_WEIR_UNKNOWN_OPTION';
  readonly option: string;

  constructor(option: string, message: string, code: OptionError['code'] = 'ERR_WEIR_OPTION') {
    super(`${option}: ${message}`);
    this.name = 'OptionError';
    this.code = code;
    this.option = option;
  }
}

/** What the service means by an error reply. RESP has one word for several of its codes. */
export function errorOfReply(text: string): WeirError {
  const space = text.indexOf(' ');
  const word = space < 0 ? text : text.slice(0, space);
  const message = space < 0 ? text : text.slice(space + 1);
  switch (word) {
    case 'NOAUTH':
    case 'WRONGPASS':
      return new WeirError('unauthenticated', message);
    case 'NOPERM':
      return new WeirError('forbidden', message);
    case 'BUSY':
      return new WeirError('overloaded', message);
    case 'TIMEOUT':
      return new WeirError('deadline', message);
    default:
      return new WeirError(
        message.startsWith('reservation: unknown') ? 'not_found' : 'invalid_argument',
        message,
      );
  }
}
