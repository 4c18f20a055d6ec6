// Lists and calls a server's tools through `codex app-server`: no model takes part.
//
//   TOOL=… TOOL_ARGS=… EXPECT=… node codex.mjs CODEX SERVER
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const [codex, server] = process.argv.slice(2);
const { TOOL, TOOL_ARGS, EXPECT } = process.env;
const child = spawn(codex, ['app-server'], { stdio: ['pipe', 'pipe', 'ignore'] });
const waiting = new Map();
const send = message => child.stdin.write(JSON.stringify(message) + '\n');
createInterface({ input: child.stdout }).on('line', line => {
  let message;
  try { message = JSON.parse(line); } catch { return; }
  // It asks whether the tool may be called, as it would ask a person.
  if (message.method && message.id !== undefined) return send({ id: message.id, result: message.method.includes('elicitation') ? { action: 'accept', content: {} } : { decision: 'accept' } });
  waiting.get(message.id)?.(message);
});
let last = 0;
const ask = (method, params) => new Promise((done, fail) => {
  const id = ++last;
  waiting.set(id, answer => answer.error ? fail(new Error(`${method}: ${JSON.stringify(answer.error)}`)) : done(answer.result));
  send({ id, method, params });
});
let good = false;
try {
  await ask('initialize', { clientInfo: { name: 'toolgate-test', version: '1' }, capabilities: { experimentalApi: true } });
  send({ method: 'initialized' });
  const status = (await ask('mcpServerStatus/list', {})).data.find(each => each.name === server);
  const tools = Object.keys(status?.tools ?? {});
  if (!tools.includes(TOOL)) throw new Error(`not listed among ${tools}: ${JSON.stringify(status).slice(0, 300)}`);
  const { thread } = await ask('thread/start', { ephemeral: true, cwd: process.cwd() });
  const result = await ask('mcpServer/tool/call', { threadId: thread.id, server, tool: TOOL, arguments: JSON.parse(TOOL_ARGS) });
  const text = JSON.stringify(result);
  good = !result.isError && text.includes(EXPECT);
  console.log(`${status.authStatus}, ${tools.length} tools, ${TOOL} -> ${text.slice(0, 200)}`);
} catch (error) { console.log(String(error.message)); }
child.kill();
process.exit(good ? 0 : 1);
