// Rate limiting for Express and plain Node.js, by a Weir service.
import type { RateLimitInfo } from './middleware.js';

export { ipKey } from './address.js';
export { Client, type Attributes, type CheckOptions, type LimitOptions } from './client.js';
export type { ClientOptions, TlsOptions } from './client-options.js';
export type { Decision, Reason, Source } from './decision.js';
export type { HttpForm } from './denial.js';
export { OptionError, WeirError, type ErrorCode } from './errors.js';
export type { FailureMode } from './failure.js';
export type { StandardHeaders } from './headers.js';
export { weir, weir as default, type Limiter, type RateLimitInfo } from './middleware.js';
export type { AnyRequest, Denial, Next, Option, WeirOptions } from './options.js';
export { pacedFetch, type PacedFetchOptions } from './paced-fetch.js';
export type { Validate, ValidationCode } from './validations.js';
export type { Logger } from './watch.js';

declare module 'http' {
  interface IncomingMessage {
    /** What a limiter has decided about this request. */
    rateLimit?: RateLimitInfo;
  }
}
