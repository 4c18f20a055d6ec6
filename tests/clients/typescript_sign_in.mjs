// The TypeScript SDKs (SDK=v1|v2) from no token to a tool call, by their own OAuth code.
// Run by sign_in.sh, which sets the environment.
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const env = process.env, here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(`${env.CLIENT_MODULES}/x.js`);
const load = name => import(pathToFileURL(require.resolve(name)).href);
const v1 = env.SDK === 'v1';
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = v1
  ? { ...await load('@modelcontextprotocol/sdk/client/index.js'), ...await load('@modelcontextprotocol/sdk/client/streamableHttp.js'), ...await load('@modelcontextprotocol/sdk/client/auth.js') }
  : await load('@modelcontextprotocol/client');

let arrive;
const arrived = new Promise((done, fail) => { arrive = done; setTimeout(() => fail(new Error('nobody came back')), 30000).unref(); });
const app = createServer((request, response) => {
  const url = new URL(request.url, 'http://127.0.0.1');
  if (url.pathname === '/callback') arrive(url.searchParams);
  response.end('Back at the app');
});
await new Promise(done => app.listen(Number(env.CALLBACK_PORT || 0), '127.0.0.1', done));
const redirect = `http://127.0.0.1:${app.address().port}/callback`;

const kept = {};
if (env.CLIENT_ID) kept.client = { client_id: env.CLIENT_ID, ...env.CLIENT_SECRET && { client_secret: env.CLIENT_SECRET } };
const authProvider = {
  redirectUrl: redirect,
  clientMetadata: {
    client_name: 'TypeScript app', redirect_uris: [redirect], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
    token_endpoint_auth_method: env.CLIENT_SECRET ? 'client_secret_post' : 'none',
  },
  ...env.CLIENT_DOCUMENT && { clientMetadataUrl: env.CLIENT_DOCUMENT },
  state: () => crypto.randomUUID(),
  clientInformation: () => kept.client,
  saveClientInformation: client => { kept.client = client; },
  tokens: () => kept.tokens, saveTokens: tokens => { kept.tokens = tokens; },
  codeVerifier: () => kept.verifier, saveCodeVerifier: verifier => { kept.verifier = verifier; },
  discoveryState: () => kept.discovery, saveDiscoveryState: discovery => { kept.discovery = discovery; },
  redirectToAuthorization: url => { spawn(join(here, 'open.sh'), [url.href], { stdio: 'inherit' }); },
};
const connect = async () => {
  const client = new Client({ name: 'toolgate-test', version: '1' }, v1 ? { capabilities: {} } : { capabilities: {}, versionNegotiation: { mode: 'auto' } });
  const transport = new StreamableHTTPClientTransport(new URL(env.MCP_URL), { authProvider });
  try { await client.connect(transport); } catch (error) { throw Object.assign(error, { transport }); }
  return client;
};
let client;
try { client = await connect(); throw new Error('no sign-in was asked for'); } catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
  const returned = await arrived;
  await error.transport.finishAuth(v1 ? returned.get('code') : returned);
  client = await connect();
}
const { tools } = await client.listTools();
const result = await client.callTool({ name: env.TOOL, arguments: JSON.parse(env.TOOL_ARGS) });
const text = JSON.stringify(result.content);
console.log(`client ${kept.client.client_id.slice(0, 60)}, ${tools.length} tools, ${env.TOOL} -> ${text.slice(0, 200)}`);
process.exit(!result.isError && text.includes(env.EXPECT) ? 0 : 1);
