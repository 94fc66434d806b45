// Node's handlers of signals before, while and after there are contexts with handlers of their own.
// node node_signals.js ADDON [share]: with "share" contexts have the process's handlers, and take node's.
'use strict';

const [addon, share] = process.argv.slice(2);
const signals = ['SIGHUP', 'SIGUSR2', 'SIGWINCH', 'SIGTERM', 'SIGINT'];
const seen = new Set();

function step(name) {
  process.env.HOST_STEP = name;
  process.dlopen({ exports: {} }, addon);
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function expectAll(when) {
  seen.clear();
  for (const name of signals) process.kill(process.pid, name);
  for (let i = 0; i < (share ? 50 : 500) && seen.size < signals.length; i++) await pause(10);
  if (seen.size < signals.length) throw new Error(`${when} node's handlers have run for: ${[...seen]}`);
}

async function useContext() {
  step(share ? "open with the host's signals" : 'open');
  await expectAll('with a context');
  step('expect all');
  seen.clear();
  step('send own');
  await pause(100);
  if (seen.size) throw new Error(`node's handlers have run for the context's own: ${[...seen]}`);
}

async function main() {
  for (const name of signals) process.on(name, () => seen.add(name));
  await expectAll('before contexts');
  for (let i = 0; i < 3; i++) {
    await useContext();
    step('close');
    await expectAll('after a context');
  }
  await useContext();
  await expectAll('with a context that is kept');
  console.log('node has had its signals');
  process.exit(0);
}

main().catch((e) => {
  console.error(e.message);
  process.exit(1);
});
