// The TypeScript SDK v2 as a client of everything: resources, prompts, completion,
// elicitation, sampling, roots, progress. Run by run.sh, which sets the environment.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const env = process.env;
const require = createRequire(`${env.CLIENT_MODULES}/x.js`);
const { Client, StreamableHTTPClientTransport } = await import(pathToFileURL(require.resolve('@modelcontextprotocol/client')).href);

const mode = env.MODE || 'auto';
const client = new Client({ name: 'toolgate-test', version: '1' }, {
  capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
  versionNegotiation: { mode: mode === 'auto' || mode === 'legacy' ? mode : { pin: mode } },
});
client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { username: 'ada', email: 'a@example.com', name: 'Ada', confirm: true } }));
client.setRequestHandler('sampling/createMessage', async () => ({ role: 'assistant', model: 'm', content: { type: 'text', text: 'Paris' } }));
client.setRequestHandler('roots/list', async () => ({ roots: [{ uri: 'file:///home', name: 'home' }] }));
const headers = env.BEARER ? { Authorization: `Bearer ${env.BEARER}` } : {};
await client.connect(new StreamableHTTPClientTransport(new URL(env.MCP_URL), { requestInit: { headers } }));

const wrong = [];
const expect = (what, told, word) => {
  if (!JSON.stringify(told).includes(word)) wrong.push(`${what}: ${JSON.stringify(told).slice(0, 200)}`);
};
const call = (name, args = {}, options) => client.callTool({ name, arguments: args }, options);
expect('resources', await client.listResources(), 'test://static-text');
expect('templates', await client.listResourceTemplates(), 'test://template/{id}/data');
expect('read', await client.readResource({ uri: 'test://static-text' }), 'text');
expect('template', await client.readResource({ uri: 'test://template/7/data' }), '7');
expect('prompts', await client.listPrompts(), 'test_simple_prompt');
expect('prompt', await client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'one', arg2: 'two' } }), 'one');
expect('completion', await client.complete({ ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' }, argument: { name: 'arg1', value: 'a' } }), 'values');
expect('elicitation', await call('test_elicitation', { message: 'Who?' }), 'ada');
expect('sampling', await call('test_sampling', { prompt: 'Capital?' }), 'Paris');
expect('roots', await call('test_input_required_result_list_roots'), 'file:///home');
let heard = 0;
await call('test_tool_with_progress', {}, { onprogress: () => { heard += 1; } });
if (heard < 2) wrong.push(`progress: ${heard}`);
console.log(`${client.getNegotiatedProtocolVersion?.() ?? 'unnamed'} ${wrong.join('; ')}`);
await client.close();
process.exit(wrong.length === 0 ? 0 : 1);
