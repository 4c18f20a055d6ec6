// Goes through the pages in a real browser: as a person with a mouse, with the
// keyboard alone, in light and dark, at 1280 and 360 pixels; axe looks at each page.
//
//   CLIENT_MODULES=…/node_modules node browser.mjs plan.json
//
// The plan: { authorize, account, onward, unknown, user, password, redirect, shots, provider }.
// `redirect` is where the app waits: what arrives there is held against the plan.
// Prints `PASS …` or `FAIL …` and exits 0 or 1.
import { createRequire } from 'node:module';
import { readFileSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

const require = createRequire(join(process.env.CLIENT_MODULES, 'x.js'));
const puppeteer = require('puppeteer-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const plan = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const problems = [];
const check = (good, what) => { if (!good) problems.push(what); };
if (plan.shots) mkdirSync(plan.shots, { recursive: true });

// The app on the person's computer.
const arrived = [];
const app = createServer((request, response) => {
  const url = new URL(request.url, plan.redirect);
  if (url.pathname === new URL(plan.redirect).pathname) arrived.push(Object.fromEntries(url.searchParams));
  response.setHeader('content-type', 'text/html');
  response.end('<!doctype html><html lang="en"><title>App</title><h1>Back at the app</h1>');
});
await new Promise(done => app.listen(new URL(plan.redirect).port, '127.0.0.1', done));

const program = process.env.CHROMIUM || execFileSync('sh', ['-c', 'command -v chromium || command -v chromium-browser || command -v google-chrome']).toString().trim();
const browser = await puppeteer.launch({
  executablePath: program, headless: true,
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--no-proxy-server', '--disable-background-networking'],
});

async function fresh(width, scheme) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  await page.setViewport({ width, height: width < 500 ? 740 : 860 });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  page.setDefaultTimeout(30000);
  // A page that says no has a status that says no, which the console notes.
  const expected = message => /^Failed to load resource.*status of 4\d\d/.test(message.text()) && message.location().url === page.url();
  page.on('console', message => { if (message.type() === 'error' && !expected(message)) problems.push(`console at ${page.url()}: ${message.text()}`); });
  page.on('pageerror', error => problems.push(`script at ${page.url()}: ${error}`));
  return { context, page };
}

// Our pages run no script; the debugger's own world is outside their policy.
async function look(page, name, state) {
  const violations = await page.evaluate(`(async () => { ${axe}; const found = await axe.run(document, { resultTypes: ['violations'] });
    return found.violations.map(v => v.id + ': ' + v.nodes.map(n => n.html.slice(0, 120) + ' ' + n.failureSummary).join(' | ')); })()`);
  for (const violation of violations) problems.push(`axe, ${name} ${state}: ${violation}`);
  const wide = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
  check(wide <= 0, `${name} ${state} is ${wide} pixels too wide`);
  const styled = await page.evaluate('getComputedStyle(document.querySelector("main")).borderTopLeftRadius');
  check(styled !== '0px', `${name} ${state} has no style`);
  if (plan.shots) await page.screenshot({ path: join(plan.shots, `${name}-${state}.png`), fullPage: true });
}

const press = async (page, selector) => { await Promise.all([page.waitForNavigation(), page.click(selector)]); };
const text = page => page.evaluate('document.body.innerText');
const has = async (page, words, where) => check((await text(page)).includes(words), `${where}: no “${words}”`);

async function everything(width, scheme) {
  const state = `${scheme}-${width}`;
  const { context, page } = await fresh(width, scheme);
  await page.goto(plan.authorize);
  await look(page, 'consent', state);
  await has(page, '127.0.0.1', 'consent');
  await press(page, 'button[value=deny]');
  check(page.url().startsWith(plan.redirect), `deny leads to ${page.url()}`);
  const denied = arrived.pop() ?? {};
  check(denied.error === 'access_denied' && denied.state && denied.iss, `deny tells ${JSON.stringify(denied)}`);

  await page.goto(plan.authorize);
  await press(page, 'button[value=approve]');
  if (plan.provider) await provider(page);
  else {
    await look(page, 'sign-in', state);
    await page.type('#username', plan.user);
    await page.type('#password', 'wrong');
    await press(page, 'main button.primary');
    await look(page, 'sign-in-wrong', state);
    await has(page, 'E-mail or password is wrong', 'wrong password');
    await page.type('#password', plan.password);
    await press(page, 'main button.primary');
  }
  if (page.url().includes('/oauth/')) {
    await look(page, 'choose', state);
    await press(page, 'button[value=approve]');
  }
  check(page.url().startsWith(plan.redirect), `approve leads to ${page.url()}`);
  const granted = arrived.pop() ?? {};
  check(granted.code && granted.state && granted.iss, `approve tells ${JSON.stringify(Object.keys(granted))}`);

  await page.goto(plan.authorize);
  await look(page, 'consent-signed-in', state);
  await page.goto(plan.account);
  await look(page, 'account', state);
  await has(page, 'Connected apps', 'account');
  await has(page, 'You are an administrator', 'account');
  await page.goto(plan.onward);
  await has(page, 'pay.example.com', 'continue');
  await look(page, 'continue', state);
  await page.goto(plan.onward.replace(/.{4}$/, '0000'));
  await look(page, 'continue-over', state);
  await page.goto(plan.unknown);
  await look(page, 'unknown-app', state);
  await page.goto(plan.account);
  await page.click('summary');
  await look(page, 'account-all', state);
  await press(page, '.apps button');
  await has(page, 'The app is disconnected.', 'revoke');
  await has(page, 'No app is connected.', 'revoke');
  await look(page, 'account-empty', state);
  await press(page, '.bar button');
  await has(page, 'You are signed out', 'sign out');
  await look(page, 'signed-out', state);
  await page.goto(new URL('/oauth/callback?code=x&state=y', plan.account).href);
  await look(page, 'stale', state);
  await context.close();
}

async function provider(page) {
  await page.waitForSelector('input[name=login]');
  await page.type('input[name=login]', plan.user);
  await page.type('input[name=password]', plan.password);
  await press(page, 'button[type=submit]');
  const allow = await page.$('form[action$="/confirm"] button');
  if (allow) await Promise.all([page.waitForNavigation(), allow.click()]);
}

// Tab to what is wanted, then Enter: nothing needs a mouse, and where one is can be seen.
async function byKeyboard() {
  const { context, page } = await fresh(800, 'light');
  const tabTo = async wanted => {
    for (let i = 0; i < 20; i++) {
      await page.keyboard.press('Tab');
      const at = await page.evaluate('({ text: (document.activeElement.innerText || document.activeElement.name || "").trim(), ring: getComputedStyle(document.activeElement).outlineStyle, width: getComputedStyle(document.activeElement).outlineWidth })');
      if (at.text.startsWith(wanted)) { check(at.ring !== 'none' && parseFloat(at.width) >= 2, `no focus ring on ${wanted}: ${JSON.stringify(at)}`); return; }
    }
    problems.push(`no way to ${wanted} by keyboard at ${page.url()}`);
  };
  const enter = () => Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
  await page.goto(plan.authorize);
  await tabTo('Approve'); await enter();
  if (plan.provider) await provider(page);
  else {
    await tabTo('username'); await page.keyboard.type(plan.user);
    await page.keyboard.press('Tab'); await page.keyboard.type(plan.password);
    await enter();
  }
  if (page.url().includes('/oauth/')) { await tabTo('Continue'); await enter(); }
  check((arrived.pop() ?? {}).code, `by keyboard no code at ${page.url()}`);
  await page.goto(plan.account);
  await tabTo('Disconnect all'); await page.keyboard.press('Enter');
  await tabTo('Disconnect '); await enter();
  await has(page, 'All apps are disconnected.', 'revoke all by keyboard');
  await tabTo('Sign out'); await enter();
  await has(page, 'You are signed out', 'sign out by keyboard');
  await context.close();
}

try {
  for (const [width, scheme] of [[1280, 'light'], [1280, 'dark'], [360, 'light'], [360, 'dark']]) await everything(width, scheme);
  await byKeyboard();
  // Nothing needs JavaScript.
  const { context, page } = await fresh(800, 'light');
  await page.setJavaScriptEnabled(false);
  await page.goto(plan.authorize);
  await press(page, 'button[value=deny]');
  check((arrived.pop() ?? {}).error === 'access_denied', 'deny without JavaScript');
  await context.close();
} catch (error) { problems.push(String(error.stack ?? error)); }
await browser.close();
app.close(); app.closeAllConnections();
if (problems.length) { console.log(`FAIL browser: ${problems.join(' ;; ')}`); process.exit(1); }
console.log('PASS browser: consent, sign-in, account; axe without violations; keyboard alone; light, dark, 360 pixels');
