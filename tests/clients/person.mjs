// A person at a browser, as far as a sign-in needs one: goes where the app sends them,
// reads, presses Approve, signs in, and ends up at the app.
//
//   PERSON=… PASSWORD=… [DECISION=deny] node person.mjs URL
//
// PERSON_LOG: a file that gets one line a page, with its heading. Exits 0 when the app
// has its code, 1 when the way ends elsewhere. Loopback alone.
import { appendFileSync } from 'node:fs';

const { PERSON, PASSWORD, PERSON_LOG, DECISION = 'approve' } = process.env;
const cookies = new Map();
const log = line => { if (PERSON_LOG) appendFileSync(PERSON_LOG, line + '\n'); };
const plain = html => html.replace(/<[^>]*>/g, ' ').replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(code))
  .replace(/&quot;/g, '"').replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&amp;/g, '&').replace(/\s+/g, ' ').trim();
const attribute = (tag, name) => { const found = tag.match(new RegExp(`\\s${name}="([^"]*)"`)); return found && plain(found[1]); };

async function visit(url, fields) {
  if (!['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname)) throw new Error(`not on this computer: ${url.origin}`);
  const headers = { accept: 'text/html', 'user-agent': 'Mozilla/5.0', cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
  if (fields) Object.assign(headers, { origin: url.origin, 'sec-fetch-site': 'same-origin' });
  const answer = await fetch(url, { headers, redirect: 'manual', method: fields ? 'POST' : 'GET', body: fields, signal: AbortSignal.timeout(20000) });
  for (const line of answer.headers.getSetCookie()) {
    const [name, ...value] = line.split(';')[0].split('=');
    cookies.set(name, value.join('='));
  }
  return answer;
}

// The form that has this button; without buttons of a name, the one there is.
function filled(page, url) {
  const form = [...page.matchAll(/<form\b[^>]*>[\s\S]*?<\/form>/g)].map(([text]) => text)
    .find(text => text.includes(`value="${DECISION}"`) || text.includes('type="password"'));
  if (!form) return;
  const fields = new URLSearchParams();
  for (const [tag] of form.matchAll(/<input\b[^>]*>/g)) {
    const name = attribute(tag, 'name'), kind = attribute(tag, 'type');
    if (!name || ((kind === 'checkbox' || kind === 'radio') && !/\schecked\b/.test(tag))) continue;
    fields.append(name, name === 'username' ? PERSON : kind === 'password' ? PASSWORD : attribute(tag, 'value') ?? '');
  }
  if (form.includes(`value="${DECISION}"`)) fields.append('decision', DECISION);
  return { fields, to: new URL(attribute(form.slice(0, form.indexOf('>') + 1), 'action') || url, url) };
}

let url = new URL(process.argv[2]), fields;
const home = url.origin;
for (let step = 0; step < 15; step++) {
  const answer = await visit(url, fields);
  const to = answer.headers.get('location');
  if (answer.status >= 300 && answer.status < 400 && to) {
    [url, fields] = [new URL(to, url), undefined];
    continue;
  }
  const page = await answer.text();
  if (url.origin !== home) {
    const returned = answer.status < 400 && url.searchParams.has('code');
    log(`${answer.status} at the app with ${[...url.searchParams.keys()]}: ${plain(page).slice(0, 80)}`);
    process.exit(returned ? 0 : 1);
  }
  log(`${answer.status} ${plain(page.match(/<h1[^>]*>([\s\S]*?)<\/h1>/)?.[1] ?? page).slice(0, 200)}`);
  const form = filled(page, url);
  if (!form || answer.status >= 400) { console.error(`${answer.status} at ${url.pathname}: ${plain(page).slice(0, 400)}`); process.exit(1); }
  ({ fields, to: url } = form);
}
console.error('no end of pages');
process.exit(1);
