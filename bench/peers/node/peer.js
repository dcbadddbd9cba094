// A peer in Node: redlock with its own defaults, except that it never gives up. Its "threads" are
// concurrent loops of one process, as Node has them.
//
//   node peer.js HOST:PORT THREADS own|same mutex HOLD_MS NAME COUNT
//
// Speaks as bench/peers/java/Peer.java does, except that it counts one pair in eight: Node has no
// shared memory, and two system calls for every pair would be a cost that the others do not have.
'use strict';
const fs = require('fs');
const readline = require('readline');
const Redis = require('ioredis');
const { default: Redlock } = require('redlock');

const fine = 7; // a part in 128
const countEvery = 8;

function cellOf(span) {
  const width = span < 1 ? 0 : Math.floor(Math.log2(span)) + 1;
  const coarse = Math.max(0, width - fine - 1);
  return coarse * 2 ** fine + Math.floor(span / 2 ** coarse);
}

function topOf(cell) {
  const coarse = Math.max(Math.floor(cell / 2 ** fine), 1) - 1;
  return ((cell - coarse * 2 ** fine + 1) * 2 ** coarse - 1) / 1e3;
}

const now = () => Number(process.hrtime.bigint());

function readCount(file) {
  const bytes = Buffer.alloc(8);
  fs.readSync(file, bytes, 0, 8, 0);
  return bytes.readBigInt64LE();
}

function writeCount(file, value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(value);
  fs.writeSync(file, bytes, 0, 8, 0);
}

// `count`: a file, or null.
async function work(locks, name, times, hold, count) {
  const mine = { grants: 0, pairs: 0, counted: 0, max: 0, cells: new Map() };
  for (let asked = now(); asked < times.end; asked = now()) {
    const lock = await locks.acquire([name], 30000);
    const granted = now();
    const counting = count !== null && mine.pairs % countEvery === 0;
    const before = counting ? readCount(count) : 0n;
    if (hold > 0) await new Promise((resolve) => setTimeout(resolve, hold));
    if (counting) {
      writeCount(count, before + 1n);
      ++mine.counted;
    }
    await lock.release();
    ++mine.pairs;
    const done = now();
    if (done >= times.from && done <= times.end) ++mine.grants;
    if (asked < times.from) continue;
    const cell = cellOf(granted - asked);
    mine.cells.set(cell, (mine.cells.get(cell) || 0) + 1);
    mine.max = Math.max(mine.max, granted - asked);
  }
  return mine;
}

const sum = (all, of) => all.reduce((total, one) => total + of(one), 0);

async function oneRound(locks, names, times, hold, count) {
  const done = await Promise.all(names.map((name) => work(locks, name, times, hold, count)));
  console.log(JSON.stringify({
    grants: done.map((one) => one.grants),
    pairs: sum(done, (one) => one.pairs),
    counted: sum(done, (one) => one.counted),
    max_us: Math.max(...done.map((one) => one.max)) / 1e3,
    histogram: done.flatMap((one) => [...one.cells].map(([cell, n]) => [topOf(cell), n])),
  }));
}

async function main(words) {
  const [host, port] = words[0].split(':');
  const client = new Redis({ host, port: Number(port) });
  const locks = new Redlock([client], { retryCount: -1 });
  locks.on('error', () => {}); // busy is one too
  await client.ping();
  const names = [...Array(Number(words[1])).keys()].map(
    (i) => words[5] + (words[2] === 'own' ? '-' + i : ''));
  const count = words[6] === '-' ? null : fs.openSync(words[6], 'r+');
  console.log('ready');
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [warm, length] = line.split(' ').map(Number);
    const from = now() + warm * 1e6;
    await oneRound(locks, names, { from, end: from + length * 1e6 }, Number(words[4]), count);
  }
  client.disconnect();
}

main(process.argv.slice(2)).catch((problem) => {
  console.error(problem);
  process.exit(1);
});
