// Ship evals with an MCP server: `addEvals(server, 'evals.json')`.

export { execution, invocation, scenario, text } from './build.js';
export { loadEvals } from './load.js';
export { addEvals, Evals, type EvalsOptions, type SdkServer } from './server.js';
export { EvalSuite, InvalidParams, type Page } from './suite.js';
export {
  CAPABILITY,
  EXTENSION,
  InvalidEvals,
  LIST_CHANGED,
  METHOD,
  type Eval,
  type EvalSource,
  type Finding,
  type Level,
} from './types.js';
export { validate } from './validate.js';
