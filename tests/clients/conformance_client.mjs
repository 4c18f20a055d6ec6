// The command that the conformance suite starts as the client under test. It tells
// the test at CONTROL which server to use, and ends when the test has used it:
//   node conformance_client.mjs CONTROL SERVER_URL
const [control, url] = process.argv.slice(2);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? 'null');
const order = JSON.stringify({ url, scenario, context });
const answer = await fetch(control, { method: 'POST', body: order });
console.log(await answer.text());
process.exit(answer.ok ? 0 : 1);
