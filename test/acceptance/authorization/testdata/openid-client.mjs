// Goes through the code flow as openid-client does, and renews the tokens.
//
// openid-client.mjs FILE ISSUER RESOURCE REDIRECT BROWSER [SECRET] prints {metadata, tokens, renewed}. FILE is one below whose
// folder openid-client is installed. BROWSER is an address that answers with the way back to the client.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [, , file, issuer, resource, redirect, browser, secret] = process.argv;
const client = await import(pathToFileURL(createRequire(file).resolve('openid-client')).href);

const config = await client.discovery(new URL(issuer), secret ? 'server' : 'editor', {}, secret ? client.ClientSecretBasic(secret) : client.None(), {
  algorithm: 'oauth2', execute: [client.allowInsecureRequests],
});
const verifier = client.randomPKCECodeVerifier();
const state = client.randomState();
const url = client.buildAuthorizationUrl(config, {
  redirect_uri: redirect, resource, state, code_challenge: await client.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
});
const back = await (await fetch(browser, { method: 'POST', body: url.toString() })).text();
const tokens = await client.authorizationCodeGrant(config, new URL(back), { pkceCodeVerifier: verifier, expectedState: state }, { resource });
const renewed = await client.refreshTokenGrant(config, tokens.refresh_token, { resource });
await client.tokenRevocation(config, renewed.refresh_token);
let afterwards = 'good';
try {
  await client.refreshTokenGrant(config, renewed.refresh_token);
} catch (err) {
  afterwards = err.error;
}
console.log(JSON.stringify({ metadata: config.serverMetadata(), tokens, renewed, afterwards }));
