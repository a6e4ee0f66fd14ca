// RESP2, as much of it as the service speaks. Bytes are held in strings of one character a byte
// (latin1): they are cut without copying, written without encoding, and their length is known.

/** What one reply may be long, and how many elements it may have; more is no answer. */
const MAX_REPLY = 64 * 1024;
const MAX_ELEMENTS = 1024;

const CR = 13;
const ZERO = 48;
const NINE = 57;
const MINUS = 45;

/** Text as a string of its UTF-8 bytes. */
export function bytesOf(text: string): string {
  // Equal lengths mean ASCII, which nearly everything is.
  return Buffer.byteLength(text) === text.length
    ? text
    : Buffer.from(text, 'utf8').toString('latin1');
}

/** The text that a string of bytes is UTF-8 for. */
export function textOf(bytes: string): string {
  return Buffer.byteLength(bytes) === bytes.length
    ? bytes
    : Buffer.from(bytes, 'latin1').toString('utf8');
}

/** One argument of a command, already as bytes. */
export function bulk(bytes: string): string {
  return `$${bytes.length}\r\n${bytes}\r\n`;
}

/** A command of these arguments, already as bytes. */
export function encodeCommand(args: readonly string[]): string {
  let text = `*${args.length}\r\n`;
  for (const arg of args) text += bulk(arg);
  return text;
}

export type Element = string | number | null;

/** An error reply. It is an answer, so it is no exception. */
export class ErrorReply {
  constructor(readonly text: string) {}
}

export type Reply = string | number | null | ErrorReply | readonly Element[];

/** What came is not RESP, or more than an answer can be. */
export class NonsenseError extends Error {}

/** Cuts a stream into replies. After a NonsenseError it must not be used again. */
export class ReplyReader {
  private text = '';
  private position = 0;
  /** Below so many characters there is no use in looking again. */
  private needed = 0;
  /** The array that is being read. */
  private elements: Element[] | null = null;
  private missing = 0;
  /** What the current reply has taken in earlier chunks. */
  private taken = 0;
  private begin = 0;

  constructor(private readonly receive: (reply: Reply) => void) {}

  push(chunk: Buffer): void {
    this.text =
      this.text.length === 0 ? chunk.toString('latin1') : this.text + chunk.toString('latin1');
    if (this.text.length < this.needed) return;
    this.needed = 0;
    while (this.position < this.text.length) {
      if (!this.readElement()) break;
    }
    this.taken += this.position - this.begin;
    this.text = this.position === this.text.length ? '' : this.text.slice(this.position);
    this.needed = Math.max(0, this.needed - this.position);
    this.position = 0;
    this.begin = 0;
    if (this.taken + this.text.length > MAX_REPLY) throw new NonsenseError('a reply is too large');
  }

  /** False if it is not all there yet. */
  private readElement(): boolean {
    const { text, position } = this;
    const end = text.indexOf('\r\n', position);
    if (end < 0) {
      if (text.length - position > MAX_REPLY) throw new NonsenseError('a line does not end');
      return false;
    }
    switch (text[position]) {
      case '$':
        return this.readBulk(this.readLength(end, MAX_REPLY), end + 2);
      case ':':
        this.position = end + 2;
        this.take(integerIn(text, position + 1, end));
        return true;
      case '*': {
        const length = this.readLength(end, MAX_ELEMENTS);
        this.position = end + 2;
        this.beginArray(length);
        return true;
      }
      case '+':
      case '-':
        this.position = end + 2;
        this.takeLine(text.slice(position + 1, end), text[position] === '-');
        return true;
      default:
        throw new NonsenseError('what it sends is not RESP');
    }
  }

  /** -1 stands for null. */
  private readLength(end: number, bound: number): number {
    const length = integerIn(this.text, this.position + 1, end);
    if (length < -1 || length > bound) throw new NonsenseError('a reply is too large');
    return length;
  }

  private readBulk(length: number, begin: number): boolean {
    if (length < 0) {
      this.position = begin;
      this.take(null);
      return true;
    }
    const end = begin + length;
    if (end + 2 > this.text.length) {
      this.needed = end + 2;
      return false;
    }
    if (this.text.charCodeAt(end) !== CR || this.text.charCodeAt(end + 1) !== 10) {
      throw new NonsenseError('a text does not end where it should');
    }
    this.position = end + 2;
    this.take(this.text.slice(begin, end));
    return true;
  }

  private beginArray(length: number): void {
    if (this.elements !== null) throw new NonsenseError('an array within an array');
    if (length <= 0) {
      this.finish(length < 0 ? null : []);
      return;
    }
    this.elements = [];
    this.missing = length;
  }

  private takeLine(line: string, isError: boolean): void {
    if (!isError) this.take(line);
    else if (this.elements === null) this.finish(new ErrorReply(line));
    else throw new NonsenseError('an error within an array');
  }

  private take(element: Element): void {
    if (this.elements === null) {
      this.finish(element);
      return;
    }
    this.elements.push(element);
    this.missing -= 1;
    if (this.missing > 0) return;
    const { elements } = this;
    this.elements = null;
    this.finish(elements);
  }

  private finish(reply: Reply): void {
    if (this.taken + this.position - this.begin > MAX_REPLY) {
      throw new NonsenseError('a reply is too large');
    }
    this.taken = 0;
    this.begin = this.position;
    this.receive(reply);
  }
}

function integerIn(text: string, begin: number, end: number): number {
  const negative = text.charCodeAt(begin) === MINUS;
  let at = negative ? begin + 1 : begin;
  // Sixteen digits could be more than a number holds exactly.
  if (at === end || end - at > 16) throw new NonsenseError('a number is not one');
  let value = 0;
  for (; at < end; at += 1) {
    const digit = text.charCodeAt(at);
    if (digit < ZERO || digit > NINE) throw new NonsenseError('a number is not one');
    value = value * 10 + (digit - ZERO);
  }
  return negative ? -value : value;
}
