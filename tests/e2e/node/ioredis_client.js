// Runs commands by ioredis: node ioredis_client.js PACKAGE HOST PORT PROTOCOL PASSWORD
//
// PROTOCOL is `default`, 2 or 3. Standard input has {"one_by_one": [[WORD...]...], "pipelined":
// [...]}; standard output gets the replies in the same places, an error as {"error": TEXT}.
'use strict';

const { plain, readWork } = require('./plain.js');

async function main(name, host, port, protocol, password) {
  const { Redis } = require(name);
  const settings = { host, port: Number(port) };
  if (protocol !== 'default') settings.protocol = Number(protocol);
  // By itself it shows RESP3's maps as lists.
  if (protocol === '3') settings.replyMapping = 'resp3';
  if (password) settings.password = password;
  const work = await readWork();
  const client = new Redis(settings);
  // Without a listener it would retry without end. An exception thrown here comes out a millisecond
  // later, by when the commands that failed with it have been followed by QUIT.
  client.on('error', (error) => {
    console.error(error);
    process.exit(1);
  });
  const one_by_one = [];
  for (const words of work.one_by_one) {
    one_by_one.push(plain(await client.call(...words).catch((error) => error)));
  }
  const pipeline = client.pipeline();
  for (const words of work.pipelined) pipeline.call(...words);
  const pipelined = (await pipeline.exec()).map(([error, reply]) => plain(error ?? reply));
  await client.quit();
  console.log(JSON.stringify({
    version: require(`${name}/package.json`).version, one_by_one, pipelined,
  }));
}

main(...process.argv.slice(2));
