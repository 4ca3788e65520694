// Signs in at an MCP server as the TypeScript SDK does, with a registered client, and calls a tool.
//
// sdk.mjs FILE URL TOOL REDIRECT BROWSER prints {asked, scope, result}. FILE is one below whose folder the SDK is installed.
// BROWSER is an address that answers with the way back to the client.
import { createRequire } from 'node:module';

const [, , file, address, tool, redirect, browser] = process.argv;
const sdk = createRequire(file);
const { Client } = sdk('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = sdk('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { UnauthorizedError } = sdk('@modelcontextprotocol/sdk/client/auth.js');

const kept = {};
const report = {};
let back;
const authProvider = {
  redirectUrl: redirect,
  clientMetadata: {
    client_name: 'test', redirect_uris: [redirect], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  clientInformation: () => ({ client_id: 'editor' }),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => {
    kept.tokens = tokens;
    report.scope = tokens.scope;
  },
  redirectToAuthorization: async (url) => {
    report.asked = Object.fromEntries(url.searchParams);
    back = new URL(await (await fetch(browser, { method: 'POST', body: url.toString() })).text()).searchParams;
    if (!back.get('code')) throw new Error(`the authorization server refuses: ${back}`);
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
    if (!(err instanceof UnauthorizedError) || !back) throw err;
    await transport.finishAuth(back.get('code'));
    back = undefined;
    return connect();
  }
}

const client = await connect();
const result = await client.callTool({ name: tool, arguments: { query: 'weather' } });
report.result = result.content.map(({ text }) => text);
await client.close();
console.log(JSON.stringify(report));
