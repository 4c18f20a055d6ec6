// Has the company's provider of a conformance scenario make an assertion (ID-JAG) for a
// person who has signed in there (RFC 8693), and prints it:  node id_jag.mjs MCP_URL
const url = process.argv[2];
const given = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT);
const json = async at => (await fetch(at)).json();
const { resource, authorization_servers: [server] } = await json(new URL('/.well-known/oauth-protected-resource/mcp', url));
const { issuer } = await json(new URL('/.well-known/oauth-authorization-server', server));
const asked = {
  grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange', requested_token_type: 'urn:ietf:params:oauth:token-type:id-jag',
  subject_token: given.idp_id_token, subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
  client_id: given.idp_client_id, audience: issuer, resource,
};
const answer = await fetch(given.idp_token_endpoint, { method: 'POST', body: new URLSearchParams(asked) });
console.log((await answer.json()).access_token);
