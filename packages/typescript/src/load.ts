// Reads evals from a JSON or YAML file: a list, or an object with a list `evals`.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { InvalidEvals } from './types.js';

/** The evals of a file, not yet validated. */
export function loadEvals(file: string | URL): unknown[] {
  const path = typeof file === 'string' ? file : fileURLToPath(file);
  const value = parse(path, read(path));
  const list = isObject(value) ? value['evals'] : value;
  if (!Array.isArray(list))
    throw new InvalidEvals(`\`${path}\`: expected a list of evals, or an object with a list \`evals\``);
  return list;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new InvalidEvals(`can't read \`${path}\`: ${messageOf(error)}`);
  }
}

function parse(path: string, text: string): unknown {
  const isYaml = /\.ya?ml$/i.test(path);
  const yaml = isYaml ? yamlParser(path) : undefined;
  try {
    return yaml ? yaml(text) : JSON.parse(text);
  } catch (error) {
    throw new InvalidEvals(`\`${path}\` is not ${isYaml ? 'YAML' : 'JSON'}: ${messageOf(error)}`);
  }
}

function yamlParser(path: string): (text: string) => unknown {
  try {
    const yaml = createRequire(import.meta.url)('yaml') as typeof import('yaml');
    return text => yaml.parse(text, { version: '1.2', uniqueKeys: true });
  } catch {
    throw new InvalidEvals(`\`${path}\` needs the package yaml; install it with \`npm install yaml\``);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
