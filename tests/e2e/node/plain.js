// Replies as something that JSON can say.
'use strict';

function plain(reply) {
  if (reply instanceof Error) return { error: reply.message };
  if (Buffer.isBuffer(reply)) return reply.toString();
  if (reply instanceof Map) {
    return Object.fromEntries([...reply].map(([name, value]) => [plain(name), plain(value)]));
  }
  if (Array.isArray(reply)) return reply.map(plain);
  if (reply !== null && typeof reply === 'object') return plain(new Map(Object.entries(reply)));
  return reply;
}

// What standard input has.
async function readWork() {
  let text = '';
  for await (const piece of process.stdin) text += piece;
  return JSON.parse(text);
}

module.exports = { plain, readWork };
