#!/usr/bin/env node
// Starts the program of the platform's package, and ends as it does.
'use strict';

const { spawn } = require('node:child_process');
const { constants } = require('node:os');

function fail(reason, hint) {
  process.stderr.write(`error: ${reason}\nhint: ${hint}\n`);
  process.exit(2);
}

function program() {
  const name = `@mcp-proctor/cli-${process.platform}-${process.arch}`;
  const known = Object.keys(require('../package.json').optionalDependencies);
  if (!known.includes(name)) {
    fail(`Proctor has no npm package for ${process.platform} on ${process.arch}`,
      'build it from source: see docs/install.md');
  }
  try {
    return require.resolve(`${name}/bin/proctor`);
  } catch {
    return fail(`the package \`${name}\` is not installed`,
      'install again without `--omit=optional` and `--no-optional`');
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: 'inherit' });

// A terminal sends Ctrl-C to both, and the program decides when it is over. Other senders reach only this process.
const isAtTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    if (signal !== 'SIGINT' || !isAtTerminal) child.kill(signal);
  });
}

child.on('error', (error) => fail(`can't start ${child.spawnfile}: ${error.message}`,
  'check that your system has glibc 2.17 or later: Proctor does not run on musl'));
child.on('exit', (code, signal) => {
  process.exit(signal === null ? code : 128 + constants.signals[signal]);
});
