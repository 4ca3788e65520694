// Runs oidc-provider, a provider of company sign-in that others have written, for the tests.
//
// provider.mjs PORT serves one issuer for each test, http://127.0.0.1:PORT/NAME:
//
//   PUT /NAME        makes an issuer or changes its people: {agents, clients, pages, people, who}. The
//                    people are {subject: {acr, amr, claims}}. With pages, those of oidc-provider let
//                    anyone sign in; without them, the person who is signed in at once. With agents,
//                    clients register themselves and get access tokens for the resources that they name.
//   POST /NAME/keys  replaces the key that signs.
//   POST /NAME/access  gives {token}, an access token in the form of RFC 9068 for {audience, scope,
//                    subject}: of a person, or without a subject of the first client.

import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import Provider from 'oidc-provider';

import { createMemoryAdapter } from './node_modules/oidc-provider/lib/adapters/memory_adapter.js';

const port = Number(process.argv[2]);
const issuers = new Map();
const scopes = 'openid profile email groups offline_access';
const resourceScope = 'mcp-registry:read';

function newKeys() {
  return [['rsa', { modulusLength: 2048 }, 'RS256'], ['ec', { namedCurve: 'P-256' }, 'ES256']].map(([type, options, alg]) => ({
    ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg,
  }));
}

// findAccount returns a person, or nothing for one who is not or no longer there.
function findAccount(issuer, subject) {
  const person = issuer.people[subject];
  return person && { accountId: subject, claims: () => ({ sub: subject, ...person.claims }) };
}

// agentFeatures let MCP clients sign in, which the service has never heard of.
const agentFeatures = {
  registration: { enabled: true },
  resourceIndicators: {
    enabled: true,
    defaultResource: () => undefined,
    getResourceServerInfo: (ctx, resource) => ({
      accessTokenFormat: 'jwt', audience: resource, jwt: { sign: { alg: 'RS256' } }, scope: resourceScope,
    }),
    useGrantedResource: () => true,
  },
};

// newProvider makes the provider of an issuer with new keys. What it has issued stays valid.
function newProvider(name, issuer) {
  const provider = new Provider(`http://127.0.0.1:${port}/${name}`, {
    adapter: issuer.adapter ??= createMemoryAdapter(),
    acrValues: ['urn:example:mfa'],
    claims: {
      openid: ['sub', 'acr', 'amr', 'auth_time'],
      email: ['email', 'email_verified'],
      profile: ['name'],
      groups: ['groups'],
    },
    clients: issuer.clients,
    cookies: { keys: [name], names: { session: `${name}_session`, interaction: `${name}_interaction`, resume: `${name}_resume` } },
    features: {
      backchannelLogout: { enabled: true },
      devInteractions: { enabled: issuer.pages },
      rpInitiatedLogout: { enabled: true },
      ...(issuer.agents && agentFeatures),
    },
    extraTokenClaims: (ctx, token) => ({ groups: issuer.people[token.accountId]?.claims.groups }),
    fetch: (url, options) => fetch(url, { method: options.method, headers: options.headers, body: options.body }), // also on this machine
    findAccount: (ctx, subject) => findAccount(issuer, subject),
    interactions: { url: (ctx, interaction) => `/${name}/answer/${interaction.uid}` },
    issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'), // as Keycloak: also without offline_access
    jwks: { keys: newKeys() },
    ...(issuer.agents && { scopes: ['openid', 'offline_access', resourceScope] }),
    ttl: { AccessToken: 300, ClientCredentials: 300, Grant: 3600, IdToken: 300, Interaction: 600, RefreshToken: 3600, Session: 3600 },
  });
  provider.on('server_error', (ctx, err) => console.error(name, err));
  provider.on('backchannel.error', (ctx, err) => console.error(name, err));
  return provider;
}

// giveAccess makes an access token for a resource.
async function giveAccess({ clients, provider }, { audience, scope, subject }) {
  const client = await provider.Client.find(clients[0].client_id);
  const { AccessToken, ClientCredentials, ResourceServer } = provider;
  const token = subject ? new AccessToken({ accountId: subject, client, scope }) : new ClientCredentials({ client, scope });
  token.resourceServer = new ResourceServer(audience, {
    accessTokenFormat: 'jwt', audience, jwt: { sign: { alg: 'RS256' } }, scope: resourceScope,
  });
  return token.save();
}

// answer answers what the provider would ask the person.
async function answer(issuer, request, response) {
  const { provider } = issuer;
  const { grantId, params, prompt, session } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    const { acr, amr } = issuer.people[issuer.who] ?? {};
    return provider.interactionFinished(request, response, { login: { accountId: issuer.who, acr, amr, remember: true } });
  }
  const grant = (grantId && await provider.Grant.find(grantId))
    || new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(`${scopes} ${resourceScope}`);
  for (const resource of [params.resource ?? []].flat()) grant.addResourceScope(resource, resourceScope);
  return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
}

async function body(request) {
  let text = '';
  for await (const part of request) text += part;
  return JSON.parse(text);
}

async function serve(request, response) {
  const [, name, first] = request.url.split(/[/?]/);
  let issuer = issuers.get(name);
  if (request.method === 'PUT') {
    const given = await body(request);
    issuers.set(name, issuer ??= { ...given });
    Object.assign(issuer, given);
    issuer.provider ??= newProvider(name, issuer);
    return response.end();
  }
  if (!issuer) {
    response.statusCode = name ? 404 : 200;
    return response.end();
  }
  if (request.method === 'POST' && first === 'keys') {
    issuer.provider = newProvider(name, issuer);
    return response.end();
  }
  if (request.method === 'POST' && first === 'access') {
    return response.end(JSON.stringify({ token: await giveAccess(issuer, await body(request)) }));
  }
  request.originalUrl = request.url; // by which the provider finds the path of its issuer
  if (first === 'answer') return answer(issuer, request, response);
  request.url = request.url.slice(name.length + 1);
  return issuer.provider.callback()(request, response);
}

createServer((request, response) => {
  serve(request, response).catch((err) => {
    console.error(err);
    response.statusCode = 500;
    response.end();
  });
}).listen(port, '127.0.0.1');
