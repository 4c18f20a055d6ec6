"""The Python SDK as a client. Run by run.sh, which sets the environment."""
import asyncio
import json
import os
import sys

from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

ENV = os.environ


async def main():
    headers = {"Authorization": f"Bearer {ENV['BEARER']}"} if ENV.get("BEARER") else {}
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(ENV["MCP_URL"], http_client=http)
        async with Client(transport, mode=ENV.get("MODE") or "auto") as client:
            tools = (await client.list_tools()).tools
            if ENV["TOOL"] not in [tool.name for tool in tools]:
                sys.exit(f"not listed among {[tool.name for tool in tools]}")
            result = await client.call_tool(ENV["TOOL"], json.loads(ENV["TOOL_ARGS"]))
            text = json.dumps([getattr(block, "text", str(block)) for block in result.content])
            print(f"{client.protocol_version}, {len(tools)} tools, {ENV['TOOL']} -> {text[:200]}", flush=True)
            return not result.is_error and ENV["EXPECT"] in text


sys.exit(0 if asyncio.run(main()) else 1)
