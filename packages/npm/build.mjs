// Packs the npm packages from built binaries: build.mjs VERSION OUT [PLATFORM=FOLDER]...
//
// Without a platform, packs only the main package, which names the platform packages. With platforms, packs also theirs:
// FOLDER has `proctor`.
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const SCOPE = '@mcp-proctor/cli';
const PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'];
const here = dirname(fileURLToPath(import.meta.url));
const [version, out, ...given] = process.argv.slice(2);
if (!version || !out) throw new Error('usage: build.mjs VERSION OUT [PLATFORM=FOLDER]...');
mkdirSync(out, { recursive: true });

const common = {
  version,
  license: 'Apache-2.0 OR MIT',
  engines: { node: '>=18' },
};

function pack(manifest, fill) {
  const folder = mkdtempSync(join(tmpdir(), 'proctor-npm-'));
  try {
    fill(folder);
    writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    const words = ['pack', '--silent', '--pack-destination', resolve(out)];
    const file = execFileSync('npm', words, { cwd: folder, encoding: 'utf8' }).trim();
    console.log(join(out, file));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

for (const word of given) {
  const [platform, binaries] = word.split('=');
  if (!PLATFORMS.includes(platform) || !binaries) throw new Error(`unknown platform in \`${word}\``);
  const [os, cpu] = platform.split('-');
  const manifest = {
    name: `${SCOPE}-${platform}`,
    description: `The program of ${SCOPE} for ${platform}`,
    ...common,
    os: [os],
    cpu: [cpu],
    ...(os === 'linux' ? { libc: ['glibc'] } : {}),
    // Yarn would start it from within an archive.
    preferUnplugged: true,
    files: ['bin'],
  };
  pack(manifest, (folder) => {
    mkdirSync(join(folder, 'bin'));
    const file = join(folder, 'bin', 'proctor');
    copyFileSync(join(binaries, 'proctor'), file);
    chmodSync(file, 0o755);
  });
}

const main = {
  name: SCOPE,
  description: 'A test runner for MCP servers',
  keywords: ['mcp', 'testing', 'evals', 'agents'],
  ...common,
  bin: { proctor: 'bin/proctor.js' },
  files: ['bin'],
  optionalDependencies: Object.fromEntries(PLATFORMS.map((it) => [`${SCOPE}-${it}`, version])),
};
pack(main, (folder) => {
  cpSync(join(here, 'bin'), join(folder, 'bin'), { recursive: true });
  copyFileSync(join(here, 'README.md'), join(folder, 'README.md'));
});
