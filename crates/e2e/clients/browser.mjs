// A user at the login page of oidc-provider: node browser.mjs PAGE [cancel]. Prints the last page.
const [page, cancels] = process.argv.slice(2);
const jar = new Map();
const visit = async (url, form) => {
  const response = await fetch(url, {
    method: form ? 'POST' : 'GET',
    body: form && new URLSearchParams(form),
    redirect: 'manual',
    headers: { cookie: [...jar].map((pair) => pair.join('=')).join('; ') },
  });
  for (const cookie of response.headers.getSetCookie()) {
    const [name, value] = cookie.split(';')[0].split('=');
    jar.set(name, value);
  }
  const next = response.headers.get('location');
  if (next) return visit(new URL(next, url));
  return { url: new URL(url), text: await response.text() };
};

let at = await visit(page);
for (let forms = 0; forms < 5; forms += 1) {
  const form = /action="([^"]*)" method="post">\s*<input type="hidden" name="prompt" value="(\w+)"/.exec(at.text);
  if (!form) break;
  const [, action, prompt] = form;
  const target = new URL(action, at.url);
  if (cancels) at = await visit(new URL(`${target.pathname}/abort`, target));
  else at = await visit(target, { prompt, login: 'ada', password: 'any' });
}
console.log(at.url.pathname, at.text);
