// Speaks MCP over standard input and output to a bridge: lists tools and calls one.
//
//   TOOL=… TOOL_ARGS=… EXPECT=… node stdio.mjs COMMAND ARGS…
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const [command, ...args] = process.argv.slice(2);
const { TOOL, TOOL_ARGS, EXPECT } = process.env;
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const end = (good, words) => { console.log(words); child.removeAllListeners('exit'); child.kill(); process.exit(good ? 0 : 1); };
child.on('exit', code => end(false, `the bridge ended with ${code}`));
const waiting = new Map();
createInterface({ input: child.stdout }).on('line', line => {
  try { const message = JSON.parse(line); waiting.get(message.id)?.(message); } catch { /* not ours */ }
});
let last = 0;
const send = message => child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
const ask = (method, params) => new Promise((done, fail) => {
  const id = ++last;
  waiting.set(id, answer => answer.error ? fail(new Error(`${method}: ${JSON.stringify(answer.error)}`)) : done(answer.result));
  send({ id, method, params });
});
try {
  const { protocolVersion } = await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'toolgate-test', version: '1' } });
  send({ method: 'notifications/initialized' });
  const { tools } = await ask('tools/list', {});
  if (!tools.some(tool => tool.name === TOOL)) throw new Error(`not listed among ${tools.map(tool => tool.name)}`);
  const result = await ask('tools/call', { name: TOOL, arguments: JSON.parse(TOOL_ARGS) });
  const text = JSON.stringify(result.content);
  end(!result.isError && text.includes(EXPECT), `${protocolVersion}, ${tools.length} tools, ${TOOL} -> ${text.slice(0, 200)}`);
} catch (error) { end(false, String(error.message)); }
