"""The Python SDK, or FastMCP's client (SDK=fastmcp), from no token to a tool call, by their
own OAuth code. Run by sign_in.sh, which sets the environment."""
import asyncio
import json
import os
import subprocess
import sys
import threading
import webbrowser
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

ENV = os.environ
OPEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "open.sh")


def browse(url, *_, **__):
    subprocess.Popen([OPEN, url])
    return True


async def use(client, version):
    tools = await client.list_tools()
    tools = getattr(tools, "tools", tools)
    if ENV["TOOL"] not in [tool.name for tool in tools]:
        sys.exit(f"not listed among {[tool.name for tool in tools]}")
    result = await client.call_tool(ENV["TOOL"], json.loads(ENV["TOOL_ARGS"]))
    text = json.dumps([getattr(block, "text", str(block)) for block in result.content])
    print(f"{version()}{len(tools)} tools, {ENV['TOOL']} -> {text[:200]}", flush=True)
    return not result.is_error and ENV["EXPECT"] in text


class Kept:
    """What the SDK stores, in memory."""

    def __init__(self, client):
        self.client, self.tokens = client, None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class App:
    """Where the browser comes back to."""

    def __init__(self):
        self.returned, self.there = {}, threading.Event()
        app = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                query = parse_qs(urlsplit(self.path).query)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"Back at the app")
                app.returned = {name: values[0] for name, values in query.items()}
                app.there.set()

            def log_message(self, *_):
                pass

        server = HTTPServer(("127.0.0.1", int(ENV.get("CALLBACK_PORT") or 0)), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.redirect = f"http://127.0.0.1:{server.server_port}/callback"


async def sdk():
    from mcp import Client
    from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
    from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

    app = App()
    identifier, secret, document = ENV.get("CLIENT_ID"), ENV.get("CLIENT_SECRET"), ENV.get("CLIENT_DOCUMENT")
    method = "client_secret_post" if secret else "none"
    known = None
    if identifier:
        known = OAuthClientInformationFull(
            client_id=identifier, client_secret=secret, redirect_uris=[app.redirect], token_endpoint_auth_method=method
        )
    metadata = OAuthClientMetadata(
        client_name="Python app",
        redirect_uris=[app.redirect],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method=method,
    )

    async def redirect(url):
        browse(url)

    async def callback():
        if not await asyncio.to_thread(app.there.wait, 30):
            raise RuntimeError("nobody came back")
        returned = app.returned
        return AuthorizationCodeResult(code=returned["code"], state=returned.get("state"), iss=returned.get("iss"))

    more = {"client_metadata_url": document} if document else {}
    auth = OAuthClientProvider(ENV["MCP_URL"], metadata, Kept(known), redirect, callback, **more)
    async with create_mcp_http_client(auth=auth) as http:
        async with Client(streamable_http_client(ENV["MCP_URL"], http_client=http)) as client:
            return await use(client, lambda: f"{client.protocol_version}, ")


async def fastmcp():
    from fastmcp import Client
    from fastmcp.client.auth import OAuth

    webbrowser.open = browse
    more = {}
    if ENV.get("CLIENT_DOCUMENT"):
        more["client_metadata_url"] = ENV["CLIENT_DOCUMENT"]
    if ENV.get("CLIENT_ID"):
        more.update(client_id=ENV["CLIENT_ID"], client_secret=ENV.get("CLIENT_SECRET"))
    if ENV.get("CALLBACK_PORT"):
        more["callback_port"] = int(ENV["CALLBACK_PORT"])
    async with Client(ENV["MCP_URL"], auth=OAuth(client_name="FastMCP app", callback_timeout=30, **more)) as client:
        return await use(client, lambda: "")


good = asyncio.run(fastmcp() if ENV.get("SDK") == "fastmcp" else sdk())
sys.stdout.flush()
os._exit(0 if good else 1)
