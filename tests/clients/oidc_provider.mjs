// A certified OpenID provider (npm oidc-provider) as a company's identity provider.
//
//   PORT=… REDIRECT_URI=… PEOPLE='{"alice":{…claims}}' STRICT=1 node oidc_provider.mjs
//
// Everybody's password is their name and "-password". STRICT refuses requests with a
// parameter that it does not know. DELETE /people/NAME: that person has left.
// Prints `listening on URL`.
import { createRequire } from 'node:module';
import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(join(process.env.CLIENT_MODULES, 'x.js'));
const { Provider } = await import(pathToFileURL(require.resolve('oidc-provider')).href);
const port = Number(process.env.PORT), issuer = `http://127.0.0.1:${port}`;
const people = JSON.parse(process.env.PEOPLE);
const key = (type, options, alg) => ({ ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }), alg, use: 'sig', kid: alg });

const provider = new Provider(issuer, {
  clients: [{
    client_id: 'toolgate-at-idp', client_secret: 'secret/at:idp', redirect_uris: [process.env.REDIRECT_URI],
    grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], token_endpoint_auth_method: 'client_secret_basic',
  }],
  jwks: { keys: [key('rsa', { modulusLength: 2048 }, 'RS256'), key('ec', { namedCurve: 'P-256' }, 'ES256')] },
  claims: { openid: ['sub'], profile: ['name', 'tenant', 'roles'], email: ['email'] },
  scopes: ['openid', 'offline_access', 'profile', 'email'],
  // Claims come by userinfo alone, as the specification has it by default.
  conformIdTokenClaims: process.env.IN_ID_TOKEN !== '1',
  findAccount: async (_, sub) => people[sub] && { accountId: sub, claims: async () => ({ sub, ...people[sub] }) },
  issueRefreshToken: async (_, client, code) => client.grantTypeAllowed('refresh_token') && code.scopes.has('openid'),
  rotateRefreshToken: true,
  pkce: { required: () => true },
  cookies: { keys: ['tests alone'], names: { session: `s${port}`, interaction: `i${port}`, resume: `r${port}` } },
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
});

const known = new Set(['response_type', 'client_id', 'redirect_uri', 'scope', 'state', 'nonce', 'code_challenge', 'code_challenge_method', 'prompt']);
const form = request => new Promise(done => { let text = ''; request.on('data', part => { text += part; }); request.on('end', () => done(new URLSearchParams(text))); });
const page = (context, body) => { context.type = 'html'; context.body = `<!doctype html><html lang="en"><title>Company</title><h1>Company sign-in</h1>${body}`; };
provider.use(async (context, next) => {
  const gone = /^\/people\/(\w+)$/.exec(context.path);
  if (gone && context.method === 'DELETE') { delete people[gone[1]]; context.status = 204; return; }
  if (context.path === '/auth' && process.env.STRICT === '1') {
    const strange = Object.keys(context.query).filter(name => !known.has(name));
    if (strange.length) { context.status = 400; context.body = { error: 'invalid_request', strange }; return; }
  }
  const at = /^\/interaction\/([^/]+)(\/login|\/confirm)?$/.exec(context.path);
  if (!at) return next();
  const interaction = await provider.interactionDetails(context.req, context.res);
  if (context.method === 'GET') {
    if (interaction.prompt.name === 'login') return page(context, `<form method="post" action="/interaction/${interaction.uid}/login"><label>Login <input name="login"></label><label>Password <input type="password" name="password"></label><button type="submit" name="decision" value="sign-in">Sign in</button></form>`);
    return page(context, `<form method="post" action="/interaction/${interaction.uid}/confirm"><button type="submit" name="decision" value="allow">Allow</button></form>`);
  }
  if (at[2] === '/login') {
    const fields = await form(context.req), name = (fields.get('login') ?? '').split('@')[0];
    if (!people[name] || fields.get('password') !== `${name}-password`) { context.status = 403; return page(context, 'Wrong'); }
    return provider.interactionFinished(context.req, context.res, { login: { accountId: name } }, { mergeWithLastSubmission: false });
  }
  const { params, session, prompt: { details } } = interaction;
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  if (details.missingOIDCClaims) grant.addOIDCClaims(details.missingOIDCClaims);
  return provider.interactionFinished(context.req, context.res, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true });
});
provider.on('server_error', (_, error) => console.error('server_error', error));
for (const event of ['authorization.error', 'grant.error']) provider.on(event, (_, error) => console.error(event, error.error, error.error_description, error.error_detail ?? ''));
provider.listen(port, '127.0.0.1', () => console.log(`listening on ${issuer}`));
