// An OAuth server (oidc-provider), and in front of an MCP server one that wants its tokens.
//
// node oauth.mjs UPSTREAM prints {"url", "issuer", "control"} as a line of JSON. A POST to `control` sets what goes
// wrong; a GET returns all tokens so far, and how often they were asked for.
//
//   expireOn: METHOD     the first token that comes with this method expires at that moment
//   refuseAfter: N       the token endpoint refuses every request after the first N
//   delayGrants: MS      the token endpoint waits before it answers
//   audience: URL        the MCP server wants tokens for this resource
//   resource: URL        what its metadata says it is
//   issuer: URL          what the authorization server's metadata says it is
//   lifetime: SECONDS    of new tokens
import http from 'node:http';
import { once } from 'node:events';
import Provider from 'oidc-provider';

const upstream = new URL(process.argv[2]);
const faults = { lifetime: 3600 };
const tokens = new Set();
const expired = new Set();
const accepted = [];
let grants = 0;
let waiting = 0;
let most = 0;

const listen = async (handler) => {
  const server = http.createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
};
const origin = (server) => `http://127.0.0.1:${server.address().port}`;
const body = async (request) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
};
const json = (response, status, value) => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
};

let authorize;
const authorization = await listen((request, response) => authorize(request, response));
const issuer = origin(authorization);
const provider = new Provider(issuer, {
  clients: [{
    client_id: 'suite',
    client_secret: process.env.CLIENT_SECRET ?? 'a-secret-of-the-suite',
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
  }],
  scopes: ['openid', 'offline_access', 'mcp'],
  findAccount: (_, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  issueRefreshToken: async (_, client) => client.grantTypeAllowed('refresh_token'),
  rotateRefreshToken: true,
  cookies: { keys: ['key'] },
  features: {
    clientCredentials: { enabled: true },
    registration: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: async () => true,
      getResourceServerInfo: (_, resource) => ({
        audience: resource,
        scope: 'mcp',
        accessTokenFormat: 'opaque',
        accessTokenTTL: faults.lifetime,
      }),
    },
  },
});
provider.on('server_error', (_, error) => console.error(error));
provider.use(async (context, next) => {
  if (context.path === '/token') {
    grants += 1;
    waiting += 1;
    most = Math.max(most, waiting);
    if (faults.delayGrants) await new Promise((done) => setTimeout(done, faults.delayGrants));
    waiting -= 1;
    if (grants > (faults.refuseAfter ?? Infinity)) {
      context.status = 400;
      context.body = { error: 'invalid_grant', error_description: 'the grant was revoked' };
      return;
    }
  }
  await next();
  if (context.path === '/token') {
    for (const name of ['access_token', 'refresh_token', 'id_token']) {
      if (context.body?.[name]) tokens.add(context.body[name]);
    }
  }
  if (faults.issuer && context.path.includes('.well-known')) context.body.issuer = faults.issuer;
});
authorize = provider.callback();

const why = async (token, url) => {
  if (!token) return undefined;
  if (expired.has(token)) return 'the token has expired';
  const found = (await provider.ClientCredentials.find(token)) ?? (await provider.AccessToken.find(token));
  if (!found?.isValid) return 'the token is unknown or has expired';
  const audience = faults.audience ?? url;
  return found.aud === audience ? null : `the token is for another audience than ${audience}`;
};

let own;
const resource = await listen(async (request, response) => {
  const metadata = `${own}/.well-known/oauth-protected-resource/mcp`;
  if (request.url === '/.well-known/oauth-protected-resource/mcp') {
    return json(response, 200, {
      resource: faults.resource ?? `${own}/mcp`,
      authorization_servers: [issuer],
      scopes_supported: ['mcp'],
    });
  }
  const message = await body(request);
  const token = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1];
  if (faults.expireOn && message.includes(`"${faults.expireOn}"`) && token) {
    delete faults.expireOn;
    expired.add(token);
  }
  const problem = await why(token, `${own}/mcp`);
  if (problem !== null) {
    // It says more than it should: the token is in the header and in the body.
    const said = problem === undefined ? '' : `, error="invalid_token", error_description="${problem}", token="${token}"`;
    response.writeHead(401, {
      'content-type': 'application/json',
      'www-authenticate': `Bearer resource_metadata="${metadata}", scope="mcp"${said}`,
    });
    return response.end(JSON.stringify({ refused: token ?? null }));
  }
  accepted.push(token);
  const { host, authorization: _, ...headers } = request.headers;
  const forward = http.request(upstream, { method: request.method, headers }, (answer) => {
    // In a header whose name says nothing.
    response.writeHead(answer.statusCode, { ...answer.headers, 'x-request-id': token });
    answer.pipe(response);
  });
  forward.on('error', () => response.destroy());
  response.on('close', () => forward.destroy());
  forward.end(message);
});
own = origin(resource);

const control = await listen(async (request, response) => {
  if (request.method === 'POST') Object.assign(faults, JSON.parse(await body(request)));
  json(response, 200, { tokens: [...tokens], accepted, grants, most });
});
console.log(JSON.stringify({ url: `${own}/mcp`, issuer, control: origin(control) }));
process.stdin.resume().on('end', () => process.exit(0));
