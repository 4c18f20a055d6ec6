// The command that the conformance suite starts as the client under test. It tells
// the test at CONTROL which server to use, and ends when the test has used it:
//   node conformance_client.mjs CONTROL SERVER_URL
const [control, url] = process.argv.slice(2);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const answer = await fetch(control, { method: 'POST', body: JSON.stringify({ url, scenario }) });
console.log(await answer.text());
process.exit(answer.ok ? 0 : 1);
