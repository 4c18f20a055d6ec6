"""The Python SDK as a client of everything: resources, prompts, completion,
elicitation, sampling, roots, progress. Run by run.sh, which sets the environment."""
import asyncio
import os
import sys

from mcp import Client, types
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

ENV = os.environ
WRONG = []


def expect(what, told, word):
    text = told.model_dump_json()
    if word not in text:
        WRONG.append(f"{what}: {text[:200]}")


async def elicited(context, params):
    content = {"username": "ada", "email": "a@example.com", "name": "Ada", "confirm": True}
    return types.ElicitResult(action="accept", content=content)


async def sampled(context, params):
    text = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", model="m", content=text)


async def roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///home", name="home")])


async def main():
    headers = {"Authorization": f"Bearer {ENV['BEARER']}"} if ENV.get("BEARER") else {}
    heard = []

    async def progress(done, total, message):
        heard.append(done)

    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(ENV["MCP_URL"], http_client=http)
        async with Client(
            transport,
            mode=ENV.get("MODE") or "auto",
            elicitation_callback=elicited,
            sampling_callback=sampled,
            list_roots_callback=roots,
        ) as client:
            expect("resources", await client.list_resources(), "test://static-text")
            expect("templates", await client.list_resource_templates(), "test://template/{id}/data")
            expect("read", await client.read_resource("test://static-text"), "text")
            expect("template", await client.read_resource("test://template/7/data"), "7")
            expect("prompts", await client.list_prompts(), "test_simple_prompt")
            arguments = {"arg1": "one", "arg2": "two"}
            expect("prompt", await client.get_prompt("test_prompt_with_arguments", arguments), "one")
            reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
            completed = await client.complete(reference, {"name": "arg1", "value": "a"})
            expect("completion", completed, "values")
            expect("elicitation", await client.call_tool("test_elicitation", {"message": "Who?"}), "ada")
            expect("sampling", await client.call_tool("test_sampling", {"prompt": "Capital?"}), "Paris")
            expect("roots", await client.call_tool("test_input_required_result_list_roots", {}), "file:///home")
            await client.call_tool("test_tool_with_progress", {}, progress_callback=progress)
            if len(heard) < 2:
                WRONG.append(f"progress: {heard}")
            print(f"{client.protocol_version} {'; '.join(WRONG)}", flush=True)


asyncio.run(main())
sys.exit(1 if WRONG else 0)
