// Signs in at an MCP server as the TypeScript SDK does, and calls a tool.
//
// client.mjs SDK URL TOOL prints {asked, got, result}: the parameters with which it went to the authorization
// server, the metadata of the resource and the scope that it was given, and the texts of the tool. SDK is a
// file below whose folder the SDK is installed. The browser is a loop that follows redirects with cookies.
import { createRequire } from 'node:module';

const [, , file, address, tool] = process.argv;
const sdk = createRequire(file);
const { Client } = sdk('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = sdk('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { UnauthorizedError } = sdk('@modelcontextprotocol/sdk/client/auth.js');

const redirect = 'http://localhost:9999/callback'; // no one listens: the browser stops there
const kept = {};
const report = { asked: {}, got: {} };
let code;

async function browse(url) {
  const cookies = {};
  for (let hops = 0; hops < 15; hops++) {
    if (url.toString().startsWith(redirect)) {
      code = new URL(url).searchParams.get('code');
      if (!code) throw new Error(`the authorization server refuses: ${url}`);
      return;
    }
    const cookie = Object.entries(cookies).map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [name, value] = line.split(';')[0].split('=');
      cookies[name] = value;
    }
    if (!response.headers.has('location')) throw new Error(`${url}: ${response.status} ${await response.text()}`);
    url = new URL(response.headers.get('location'), url);
  }
  throw new Error(`the sign-in does not end: ${url}`);
}

const authProvider = {
  redirectUrl: redirect,
  clientMetadata: {
    client_name: 'test', redirect_uris: [redirect], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => {
    kept.tokens = tokens;
    report.got.scope = tokens.scope;
  },
  saveDiscoveryState: (state) => { report.got.metadata = state.resourceMetadata; },
  redirectToAuthorization: async (url) => {
    report.asked = Object.fromEntries(url.searchParams);
    await browse(url);
  },
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
};

async function connect() {
  const transport = new StreamableHTTPClientTransport(new URL(address), { authProvider });
  const client = new Client({ name: 'test', version: '1' });
  try {
    await client.connect(transport);
    return client;
  } catch (err) {
    if (!(err instanceof UnauthorizedError) || !code) throw err;
    await transport.finishAuth(code);
    code = undefined;
    return connect();
  }
}

const client = await connect();
const result = await client.callTool({ name: tool, arguments: { query: 'weather' } });
report.result = result.content.map(({ text }) => text);
await client.close();
console.log(JSON.stringify(report));
