// Two tool servers of the TypeScript SDK, at /express and /http: its application for Express, which parses bodies, and
// the plain server of Node.js, whose bodies the SDK reads. GET /executed returns which tools they executed, by the
// header x-case of the request.
//
// node servers.mjs FOLDER    the folder with the SDK (node_modules)
import { createServer } from "node:http";

const sdk = process.argv[2] + "/@modelcontextprotocol/sdk/dist/esm/";
const { createMcpExpressApp } = await import(sdk + "server/express.js");
const { Server } = await import(sdk + "server/index.js");
const { StreamableHTTPServerTransport } = await import(sdk + "server/streamableHttp.js");
const { CallToolRequestSchema } = await import(sdk + "types.js");

const executed = [];

// serve serves one request, as the SDK's examples without sessions do.
async function serve(place, request, response, body) {
  if (request.method === "GET" || request.method === "DELETE") {
    response.writeHead(405).end();
    return;
  }
  const server = new Server({ name: place, version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    executed.push({ server: place, case: request.headers["x-case"], tool: params.name });
    return { content: [] };
  });
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  response.on("close", () => server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, body);
}

const app = createMcpExpressApp();
app.all("/express", (request, response) => serve("express", request, response, request.body));
app.use((error, request, response, next) => response.status(error.status ?? 500).end());

const listener = createServer((request, response) => {
  if (request.url === "/executed") {
    response.end(JSON.stringify(executed));
  } else if (request.url === "/http") {
    serve("http", request, response).catch(() => response.destroy());
  } else {
    app(request, response);
  }
});
listener.listen(0, "127.0.0.1", () => console.log(listener.address().port));
