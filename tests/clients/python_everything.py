"""The Python SDK as a client of everything. Run by run.sh, which sets the environment.
Each feature has a line below that fails without it."""
import asyncio
import os
import sys
import time

import anyio
from mcp import Client, types
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

ENV = os.environ
WRONG = []
ASKED = []


def expect(what, told, *words):
    text = told if isinstance(told, str) else told.model_dump_json(by_alias=True)
    WRONG.extend(f"{what} without {word}: {text[:200]}" for word in words if word not in text)


def filled(field):
    """What a form's field gets: its default, else the first that it allows."""
    items = field.get("items", {})
    many = items.get("enum") or [one["const"] for one in items.get("anyOf", [])]
    one = field.get("enum") or [one["const"] for one in field.get("oneOf", [])]
    fallback = True if field.get("type") == "boolean" else "ada"
    return field.get("default", many[:1] or (one[0] if one else fallback))


async def elicited(context, params):
    ASKED.append(params)
    if getattr(params, "mode", None) == "url":
        return types.ElicitResult(action="accept")
    schema = params.requested_schema
    content = {name: filled(field) for name, field in schema["properties"].items()}
    return types.ElicitResult(action="accept", content=content)


async def sampled(context, params):
    if params.tools:
        use = types.ToolUseContent(type="tool_use", id="u1", name=params.tools[0].name, input={"city": "Paris"})
        return types.CreateMessageResultWithTools(role="assistant", model="m", content=[use], stop_reason="toolUse")
    text = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", model="m", content=text)


async def roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///home", name="home")])


async def every(listed, member):
    """All pages as one text."""
    text, cursor = "", None
    while True:
        page = await listed(cursor=cursor)
        text += "".join(item.model_dump_json(by_alias=True) for item in getattr(page, member))
        cursor = page.next_cursor
        if cursor is None:
            return text


async def until(what, check):
    for _ in range(200):
        if check():
            return
        await asyncio.sleep(0.05)
    WRONG.append(f"{what} never came")


async def main():
    headers = {"Authorization": f"Bearer {ENV['BEARER']}"} if ENV.get("BEARER") else {}
    steps, logs, news = [], [], []

    async def progress(done, total, message):
        steps.append(done)

    async def logged(params):
        logs.append(str(params.data))

    async def heard(message):
        news.append(repr(message))

    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(ENV["MCP_URL"], http_client=http)
        async with Client(
            transport,
            mode=ENV.get("MODE") or "auto",
            elicitation_callback=elicited,
            sampling_callback=sampled,
            sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
            list_roots_callback=roots,
            logging_callback=logged,
            log_level="info",
            message_handler=heard,
            cache=None,
        ) as client:
            legacy = client.protocol_version < "2026"
            call = client.call_tool
            # Tools, in pages.
            tools = await every(client.list_tools, "tools")
            expect("tools", tools, "test_simple_text", "test_x_mcp_header", "ui://test/widget.html")
            expect("text", await call("test_simple_text", {}), "simple text response")
            expect("image", await call("test_image_content", {}), "image/png")
            expect("audio", await call("test_audio_content", {}), "audio/wav")
            expect("embedded resource", await call("test_embedded_resource", {}), "test://embedded-resource")
            expect("resource link", await call("test_resource_link", {}), "test://linked")
            expect("tool error", await call("test_error_handling", {}), '"isError":true')
            expect("mirrored argument", await call("test_x_mcp_header", {"region": "eu"}), "eu")
            # Resources, templates, prompts, completion.
            expect("resources", await every(client.list_resources, "resources"), "test://static-text")
            templates = await every(client.list_resource_templates, "resource_templates")
            expect("templates", templates, "test://template/{id}/data")
            expect("read", await client.read_resource("test://static-text"), "text/plain")
            expect("binary", await client.read_resource("test://static-binary"), "blob")
            expect("template", await client.read_resource("test://template/7/data"), "7")
            expect("prompts", await every(client.list_prompts, "prompts"), "test_simple_prompt")
            arguments = {"arg1": "one", "arg2": "two"}
            expect("prompt", await client.get_prompt("test_prompt_with_arguments", arguments), "one", "two")
            expect("prompt with image", await client.get_prompt("test_prompt_with_image"), "image/png")
            reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
            completed = await client.complete(reference, {"name": "arg1", "value": "par"})
            expect("completion", completed, "paris", "park")
            # What the server asks.
            expect("elicitation", await call("test_elicitation", {"message": "Who?"}), "ada")
            expect("defaults", await call("test_elicitation_sep1034_defaults", {}), "John Doe", "95.5")
            expect("enums", await call("test_elicitation_sep1330_enums", {}), "option1", "value1", "opt1")
            expect("url", await call("test_elicitation_url", {}), "accept")
            if not any(getattr(params, "mode", None) == "url" for params in ASKED):
                WRONG.append("no URL was asked for")
            expect("sampling", await call("test_sampling", {"prompt": "Capital?"}), "Paris")
            expect("sampling with tools", await call("test_sampling_with_tools", {}), "tool_use", "get_weather")
            expect("roots", await call("test_input_required_result_list_roots", {}), "file:///home")
            expect("several at once", await call("test_input_required_result_multiple_inputs", {}), "All inputs")
            expect("several rounds", await call("test_input_required_result_multi_round", {}), "rounds are over")
            # What comes meanwhile.
            await call("test_tool_with_progress", {}, progress_callback=progress)
            await until("progress", lambda: len(steps) >= 2)
            if legacy:
                await client.set_logging_level("debug")
            await call("test_tool_with_logging", {})
            await until("three log messages", lambda: len(logs) >= 3)
            begun = time.monotonic()
            with anyio.move_on_after(0.3) as stopped:
                await call("slow_compute", {"seconds": 8})
            if not stopped.cancelled_caught or time.monotonic() - begun > 5:
                WRONG.append("a call could not be cancelled")
            # Subscriptions.
            uri = "test://watched-resource"
            if legacy:
                await client.subscribe_resource(uri)
                for _ in range(20):
                    await call("test_trigger_resource_update", {})
                    await asyncio.sleep(0.25)
                    if any(uri in message for message in news):
                        break
                else:
                    WRONG.append(f"no update: {news[-3:]}")
                await client.unsubscribe_resource(uri)
                await client.send_ping()
                await client.send_roots_list_changed()
            else:
                async with client.listen(tools_list_changed=True, resource_subscriptions=[uri]) as events:
                    await call("test_trigger_resource_update", {})
                    with anyio.move_on_after(10) as late:
                        async for event in events:
                            if uri in repr(event):
                                break
                    if late.cancelled_caught:
                        WRONG.append("no update")
            print(f"{client.protocol_version} {'; '.join(WRONG)}", flush=True)


asyncio.run(main())
sys.exit(1 if WRONG else 0)
