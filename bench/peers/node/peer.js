// A peer in Node: redlock with its own defaults, but that it never gives up. Its "threads" are
// concurrent loops of one process, as Node has them.
//
//   node peer.js HOST:PORT THREADS own|same mutex HOLD_MS WARM_MS RUN_MS PREFIX
//
// Speaks as bench/peers/java/Peer.java does.
'use strict';
const Redis = require('ioredis');
const { default: Redlock } = require('redlock');

const fine = 7; // a part in 128

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

async function work(locks, name, times, hold) {
  const mine = { grants: 0, max: 0, cells: new Map() };
  for (let asked = now(); asked < times.end; asked = now()) {
    const lock = await locks.acquire([name], 30000);
    const granted = now();
    if (hold > 0) await new Promise((resolve) => setTimeout(resolve, hold));
    await lock.release();
    const done = now();
    if (done >= times.from && done <= times.end) ++mine.grants;
    if (asked < times.from) continue;
    const cell = cellOf(granted - asked);
    mine.cells.set(cell, (mine.cells.get(cell) || 0) + 1);
    mine.max = Math.max(mine.max, granted - asked);
  }
  return mine;
}

async function main(words) {
  const [host, port] = words[0].split(':');
  const client = new Redis({ host, port: Number(port) });
  const locks = new Redlock([client], { retryCount: -1 });
  locks.on('error', () => {}); // busy is one too
  await client.ping();
  console.log('ready');
  await new Promise((resolve) => process.stdin.once('data', resolve));
  const from = now() + Number(words[5]) * 1e6;
  const times = { from, end: from + Number(words[6]) * 1e6 };
  const all = [];
  for (let i = 0; i < Number(words[1]); ++i) {
    all.push(work(locks, words[7] + (words[2] === 'own' ? '-' + i : ''), times, Number(words[4])));
  }
  const done = await Promise.all(all);
  const histogram = done.flatMap((one) => [...one.cells].map(([cell, n]) => [topOf(cell), n]));
  const text = JSON.stringify({
    grants: done.map((one) => one.grants),
    max_us: Math.max(...done.map((one) => one.max)) / 1e3,
    histogram,
  });
  // Not before it is all written: a pipe takes less than that at once.
  process.stdout.write(text + '\n', () => process.exit(0));
}

main(process.argv.slice(2)).catch((problem) => {
  console.error(problem);
  process.exit(1);
});
