// The TypeScript SDKs as clients: v1 is @modelcontextprotocol/sdk, v2 is
// @modelcontextprotocol/client. Run by run.sh, which sets the environment.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const env = process.env;
const require = createRequire(`${env.CLIENT_MODULES}/x.js`);
const load = name => import(pathToFileURL(require.resolve(name)).href);

const v1 = env.SDK === 'v1';
const { Client, StreamableHTTPClientTransport } = v1
  ? { ...await load('@modelcontextprotocol/sdk/client/index.js'), ...await load('@modelcontextprotocol/sdk/client/streamableHttp.js') }
  : await load('@modelcontextprotocol/client');

const options = { capabilities: {} };
if (!v1) {
  const mode = env.MODE || 'auto';
  options.versionNegotiation = { mode: mode === 'auto' || mode === 'legacy' ? mode : { pin: mode } };
}
const client = new Client({ name: 'toolgate-test', version: '1' }, options);
const headers = env.BEARER ? { Authorization: `Bearer ${env.BEARER}` } : {};
await client.connect(new StreamableHTTPClientTransport(new URL(env.MCP_URL), { requestInit: { headers } }));

const { tools } = await client.listTools();
const tool = tools.find(tool => tool.name === env.TOOL);
if (!tool) throw new Error(`not listed among ${tools.map(tool => tool.name)}`);
const result = await client.callTool({ name: tool.name, arguments: JSON.parse(env.TOOL_ARGS) });
const text = JSON.stringify(result.content);
const version = client.getNegotiatedProtocolVersion?.() ?? 'unnamed';
console.log(`${version}, ${tools.length} tools, ${tool.name} -> ${text.slice(0, 200)}`);
await client.close();
process.exit(!result.isError && text.includes(env.EXPECT) ? 0 : 1);
