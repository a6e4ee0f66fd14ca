// Runs commands by node-redis: node node_redis_client.js PACKAGE HOST PORT PROTOCOL PASSWORD
//
// PROTOCOL is `default`, 2 or 3. Standard input has {"one_by_one": [[WORD...]...], "pipelined":
// [...]}; standard output gets the replies in the same places, an error as {"error": TEXT}.
'use strict';

const { plain, readWork } = require('./plain.js');

async function main(name, host, port, protocol, password) {
  const { createClient } = require(name);
  const settings = { socket: { host, port: Number(port) } };
  if (protocol !== 'default') settings.RESP = Number(protocol);
  if (password) settings.password = password;
  const work = await readWork();
  const client = createClient(settings);
  client.on('error', (error) => { throw error; });
  await client.connect();
  const call = (words) => client.sendCommand(words).catch((error) => error);
  const one_by_one = [];
  for (const words of work.one_by_one) one_by_one.push(plain(await call(words)));
  // What is asked for in one turn of its loop it sends in one piece.
  const pipelined = plain(await Promise.all(work.pipelined.map(call)));
  await client.close();
  console.log(JSON.stringify({
    version: require(`${name}/package.json`).version, one_by_one, pipelined,
  }));
}

main(...process.argv.slice(2));
