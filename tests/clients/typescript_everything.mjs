// The TypeScript SDKs as clients of everything: v1 is @modelcontextprotocol/sdk, v2 is
// @modelcontextprotocol/client. Run by run.sh, which sets the environment. Each feature
// has a line below that fails without it.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const env = process.env;
const require = createRequire(`${env.CLIENT_MODULES}/x.js`);
const load = name => import(pathToFileURL(require.resolve(name)).href);

const v1 = env.SDK === 'v1';
const { Client, StreamableHTTPClientTransport, ...schemas } = v1
  ? { ...await load('@modelcontextprotocol/sdk/types.js'), ...await load('@modelcontextprotocol/sdk/client/index.js'), ...await load('@modelcontextprotocol/sdk/client/streamableHttp.js') }
  : await load('@modelcontextprotocol/client');
// v1 names methods by their schemas.
const named = { 'elicitation/create': 'ElicitRequestSchema', 'sampling/createMessage': 'CreateMessageRequestSchema', 'roots/list': 'ListRootsRequestSchema', 'notifications/message': 'LoggingMessageNotificationSchema', 'notifications/resources/updated': 'ResourceUpdatedNotificationSchema', 'notifications/tools/list_changed': 'ToolListChangedNotificationSchema' };
const known = method => v1 ? schemas[named[method]] : method;

const mode = v1 ? 'legacy' : env.MODE || 'auto';
const options = { capabilities: { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: { listChanged: true } } };
if (!v1) options.versionNegotiation = { mode: mode === 'auto' || mode === 'legacy' ? mode : { pin: mode } };
const client = new Client({ name: 'toolgate-test', version: '1' }, options);

const wrong = [];
const expect = (what, told, ...words) => {
  const text = JSON.stringify(told) ?? 'nothing';
  for (const word of words) if (!text.includes(word)) wrong.push(`${what} without ${word}: ${text.slice(0, 200)}`);
};

const asked = [];
client.setRequestHandler(known('elicitation/create'), async ({ params }) => {
  asked.push(params);
  if (params.mode === 'url') return { action: 'accept' };
  const content = {};
  for (const [name, field] of Object.entries(params.requestedSchema.properties)) {
    const many = field.items && (field.items.enum?.[0] ?? field.items.anyOf?.[0].const);
    content[name] = field.default ?? (many ? [many] : undefined) ?? field.enum?.[0] ?? field.oneOf?.[0].const ?? (field.type === 'boolean' ? true : 'ada');
  }
  return { action: 'accept', content };
});
client.setRequestHandler(known('sampling/createMessage'), async ({ params }) => {
  const tool = params.tools?.[0];
  const content = tool ? { type: 'tool_use', id: 'u1', name: tool.name, input: { city: 'Paris' } } : { type: 'text', text: 'Paris' };
  return { role: 'assistant', model: 'm', content, ...tool && { stopReason: 'toolUse' } };
});
client.setRequestHandler(known('roots/list'), async () => ({ roots: [{ uri: 'file:///home', name: 'home' }] }));
const heard = { logs: [], updates: [], lists: 0 };
client.setNotificationHandler(known('notifications/message'), ({ params }) => { heard.logs.push(params); });
client.setNotificationHandler(known('notifications/resources/updated'), ({ params }) => { heard.updates.push(params.uri); });
client.setNotificationHandler(known('notifications/tools/list_changed'), () => { heard.lists += 1; });
const until = async (what, check) => {
  for (let left = 200; left > 0 && !check(); left -= 1) await new Promise(done => setTimeout(done, 50));
  if (!check()) wrong.push(`${what} never came`);
};

const headers = env.BEARER ? { Authorization: `Bearer ${env.BEARER}` } : {};
await client.connect(new StreamableHTTPClientTransport(new URL(env.MCP_URL), { requestInit: { headers } }));
const call = (name, args = {}, options = {}) => {
  const { meta, ...rest } = options;
  const params = { name, arguments: args, ...meta && { _meta: meta } };
  return v1 ? client.callTool(params, undefined, rest) : client.callTool(params, rest);
};
const all = async (list, member) => {
  const items = [];
  let cursor;
  do {
    const page = await list(cursor ? { cursor } : undefined);
    items.push(...page[member]);
    cursor = page.nextCursor;
  } while (cursor);
  return items;
};

// Tools, in pages.
const tools = await all(params => client.listTools(params), 'tools');
expect('tools', tools, 'test_simple_text', 'test_x_mcp_header', 'ui://test/widget.html');
expect('text', await call('test_simple_text'), 'simple text response');
expect('image', await call('test_image_content'), '"image"', 'image/png');
expect('audio', await call('test_audio_content'), '"audio"', 'audio/wav');
expect('embedded resource', await call('test_embedded_resource'), 'test://embedded-resource');
expect('mixed content', await call('test_multiple_content_types'), '"image"', '"resource"', '"text"');
expect('resource link', await call('test_resource_link'), 'resource_link', 'test://linked');
expect('tool error', await call('test_error_handling'), '"isError":true');
expect('mirrored argument', await call('test_x_mcp_header', { region: 'eu' }), 'eu');

// Resources, templates, prompts, completion.
expect('resources', await all(params => client.listResources(params), 'resources'), 'test://static-text', 'test://static-binary');
expect('templates', await all(params => client.listResourceTemplates(params), 'resourceTemplates'), 'test://template/{id}/data');
expect('read', await client.readResource({ uri: 'test://static-text' }), 'text/plain');
expect('binary', await client.readResource({ uri: 'test://static-binary' }), '"blob"');
expect('template', await client.readResource({ uri: 'test://template/7/data' }), '7');
// v2 puts the code of either era in the modern one's place.
expect('unknown resource', await client.readResource({ uri: 'test://nowhere' }).catch(error => ({ code: error.code, message: error.message })), v1 ? '-32002' : '-32602');
expect('prompts', await all(params => client.listPrompts(params), 'prompts'), 'test_simple_prompt');
expect('prompt', await client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'one', arg2: 'two' } }), 'one', 'two');
expect('prompt with resource', await client.getPrompt({ name: 'test_prompt_with_embedded_resource', arguments: { resourceUri: 'test://example' } }), '"resource"');
expect('prompt with image', await client.getPrompt({ name: 'test_prompt_with_image' }), '"image"');
expect('completion', await client.complete({ ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' }, argument: { name: 'arg1', value: 'par' } }), 'paris', 'park');
expect('completion of a template', await client.complete({ ref: { type: 'ref/resource', uri: 'test://template/{id}/data' }, argument: { name: 'id', value: 'part' } }), 'party');

// What the server asks.
expect('elicitation', await call('test_elicitation', { message: 'Who?' }), 'ada');
expect('defaults', await call('test_elicitation_sep1034_defaults'), 'John Doe', '95.5');
expect('enums', await call('test_elicitation_sep1330_enums'), 'option1', 'value1', 'opt1');
expect('url', await call('test_elicitation_url'), 'accept');
expect('url asked', asked.filter(params => params.mode === 'url'), 'http');
expect('sampling', await call('test_sampling', { prompt: 'Capital?' }), 'Paris');
expect('sampling with tools', await call('test_sampling_with_tools'), 'tool_use', 'get_weather');
expect('roots', await call('test_input_required_result_list_roots'), 'file:///home');
expect('several at once', await call('test_input_required_result_multiple_inputs'), 'All inputs');
expect('several rounds', await call('test_input_required_result_multi_round'), 'rounds are over');

// What comes meanwhile.
let steps = 0;
await call('test_tool_with_progress', {}, { onprogress: () => { steps += 1; } });
if (steps < 2) wrong.push(`progress: ${steps}`);
if (mode === 'legacy') await client.setLoggingLevel('debug');
await call('test_tool_with_logging', {}, { meta: mode === 'legacy' ? undefined : { 'io.modelcontextprotocol/logLevel': 'info' } });
await until('three log messages', () => heard.logs.length >= 3);
expect('logging', heard.logs, 'Tool processing data');
const stop = new AbortController();
setTimeout(() => stop.abort('enough'), 300);
const begun = Date.now();
const stopped = await call('slow_compute', { seconds: 8 }, { signal: stop.signal }).then(() => 'not', () => 'cancelled');
if (stopped !== 'cancelled' || Date.now() - begun > 5000) wrong.push(`cancellation: ${stopped}`);

// Subscriptions.
const uri = 'test://watched-resource';
const subscription = mode === 'legacy'
  ? await client.subscribeResource({ uri })
  : await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
for (let left = 20; left > 0 && heard.updates.length === 0; left -= 1) {
  await call('test_trigger_resource_update');
  await new Promise(done => setTimeout(done, 250));
}
expect('update', heard.updates, uri);
await call('test_trigger_tool_change');
await until('a change of the tools', () => heard.lists > 0);
if (mode === 'legacy') {
  await client.unsubscribeResource({ uri });
  await client.ping();
  await client.sendRootsListChanged();
} else {
  await subscription.close();
}

console.log(`${client.getNegotiatedProtocolVersion?.() ?? 'unnamed'} ${wrong.join('; ')}`);
await client.close();
process.exit(wrong.length === 0 ? 0 : 1);
