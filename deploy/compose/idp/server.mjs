// A sample company identity provider (npm oidc-provider, which is certified) with three
// people. For trying Toolgate out; people and state are gone when it stops.
//
//   ISSUER=http://127.0.0.1:9080 PORT=9080 SECRETS=/run/secrets/idp \
//   REDIRECT_URI=http://127.0.0.1:8080/oauth/callback node server.mjs
import { createHash, generateKeyPairSync, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Provider } from 'oidc-provider';

const { ISSUER, PORT, SECRETS, REDIRECT_URI } = process.env;
const secret = name => readFileSync(`${SECRETS}/${name}`, 'utf8').trim();
const people = {
  alice: { name: 'Alice Lindqvist', email: 'alice@acme.test', tenant: 'acme', roles: ['support'] },
  admin: { name: 'Adam Berg', email: 'admin@acme.test', tenant: 'acme', roles: ['manager', 'mcp-admin'] },
  bob: { name: 'Bob Okafor', email: 'bob@globex.test', tenant: 'globex', roles: ['analyst'] },
};
const password = secret('password');
const digest = text => createHash('sha256').update(text).digest();
const fits = given => timingSafeEqual(digest(given), digest(password));
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });

const provider = new Provider(ISSUER, {
  clients: [{
    client_id: 'toolgate', client_secret: secret('client-secret'), redirect_uris: [REDIRECT_URI],
    grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], token_endpoint_auth_method: 'client_secret_basic',
    id_token_signed_response_alg: 'ES256',
  }],
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig', kid: 'sample' }] },
  claims: { openid: ['sub'], profile: ['name', 'tenant', 'roles'], email: ['email'] },
  scopes: ['openid', 'offline_access', 'profile', 'email'],
  conformIdTokenClaims: false,
  findAccount: async (_, sub) => people[sub] && { accountId: sub, claims: async () => ({ sub, ...people[sub] }) },
  issueRefreshToken: async (_, client, code) => client.grantTypeAllowed('refresh_token') && code.scopes.has('openid'),
  rotateRefreshToken: true,
  pkce: { required: () => true },
  cookies: { keys: [secret('cookies')] },
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
});

const escape = text => text.replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
const page = (context, body) => {
  context.type = 'html';
  context.set('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
  context.body = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">
<title>Sample company</title><style>body{font:1rem system-ui;max-width:22rem;margin:4rem auto;padding:0 1rem}
label{display:block;margin:1rem 0}input{width:100%;font:inherit;padding:.4rem;box-sizing:border-box}button{font:inherit;padding:.5rem 1rem}</style>
<h1>Sample company</h1>${body}`;
};
const form = request => new Promise((done, fail) => {
  let text = '';
  request.on('data', part => { text += part; if (text.length > 65536) request.destroy(); });
  request.on('end', () => done(new URLSearchParams(text)));
  request.on('error', fail);
});
const signIn = (uid, notice = '') => `${notice}<form method="post" action="/interaction/${escape(uid)}">
<label>Name <input name="login" autocomplete="username" required autofocus></label>
<label>Password <input type="password" name="password" autocomplete="current-password" required></label>
<button>Sign in</button></form><p>alice, admin or bob; <code>docker compose logs init</code> has the password.</p>`;

provider.use(async (context, next) => {
  if (context.path === '/healthz') { context.body = 'ok'; return undefined; }
  const at = /^\/interaction\/([^/]+)$/.exec(context.path);
  if (!at) return next();
  const { uid, prompt, params, session } = await provider.interactionDetails(context.req, context.res);
  if (prompt.name === 'consent') {
    // The company trusts its own gateway.
    const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope(params.scope);
    return provider.interactionFinished(context.req, context.res, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true });
  }
  if (context.method !== 'POST') return page(context, signIn(uid));
  const fields = await form(context.req);
  const name = (fields.get('login') ?? '').split('@')[0];
  if (!Object.hasOwn(people, name) || !fits(fields.get('password') ?? '')) {
    context.status = 403;
    return page(context, signIn(uid, '<p role="alert">That name or password is wrong.</p>'));
  }
  return provider.interactionFinished(context.req, context.res, { login: { accountId: name } }, { mergeWithLastSubmission: false });
});
provider.on('server_error', (_, error) => console.error('server error:', error.message));
provider.listen(Number(PORT), '0.0.0.0', () => console.log(`listening on ${ISSUER}`));
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(0));
