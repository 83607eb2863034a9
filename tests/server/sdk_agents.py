"""Agents on the real SDKs, that keep a whole history and hand it over at each turn, as agents do."""

import json

TOOL = {
    "name": "read",
    "description": "Read a file.",
    "input_schema": {"type": "object", "properties": {"number": {"type": "integer"}}},
}
CHAT_TOOL = {
    "type": "function",
    "function": {"name": "read", "description": "Read.", "parameters": TOOL["input_schema"]},
}
FLAT_TOOL = {"type": "function", "name": "read", "description": "Read.", "parameters": TOOL["input_schema"]}


def result_of(number, size):
    """The result of a call: ``size`` characters with a name of its own."""
    line = f"file_{number}.py: def handler_{number}(request): return lookup_{number * 7}(request)\n"
    return (line + "x = compute(1, 2, 3)  # nothing to see\n" * (size // 38))[:size]


def run_messages(client, *, stream, size=800, task="Read all files.", history=None, model="claude-opus-4-8"):
    """An agent on Anthropic's messages, to its end; returns its history."""
    history = history if history is not None else [{"role": "user", "content": task}]
    while True:
        ask = {"model": model, "max_tokens": 500, "system": "You read files.", "tools": [TOOL], "messages": history}
        if stream:
            with client.messages.stream(**ask) as answer:
                message = answer.get_final_message()
        else:
            message = client.messages.create(**ask)
        history.append(
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]}
        )
        uses = [block for block in message.content if block.type == "tool_use"]
        if not uses:
            return history
        results = [
            {"type": "tool_result", "tool_use_id": use.id, "content": result_of(use.input["number"], size)}
            for use in uses
        ]
        history.append({"role": "user", "content": results})


def run_chat(client, *, stream, size=800, task="Read all files.", model="gpt-4o"):
    """An agent on chat completions, to its end; returns its history."""
    history = [{"role": "system", "content": "You read files."}, {"role": "user", "content": task}]
    while True:
        ask = {"model": model, "tools": [CHAT_TOOL], "messages": history}
        if stream:
            with client.chat.completions.stream(**ask) as answer:
                message = answer.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(**ask).choices[0].message
        history.append(message.model_dump(exclude_none=True, exclude={"parsed", "annotations"}))
        for call in history[-1].get("tool_calls") or ():
            call["function"].pop("parsed_arguments", None)
            number = json.loads(call["function"]["arguments"])["number"]
            history.append({"role": "tool", "tool_call_id": call["id"], "content": result_of(number, size)})
        if not message.tool_calls:
            return history


def run_responses(client, *, stream, size=800, task="Read all files.", model="gpt-4o", stateful=False):
    """An agent on the Responses API, to its end; with ``stateful`` it hands over only what is new."""
    history = [{"role": "user", "content": task}]
    new, previous = history, None
    while True:
        ask = {
            "model": model,
            "instructions": "You read files.",
            "tools": [FLAT_TOOL],
            "input": new if stateful else history,
        }
        if stateful and previous:
            ask["previous_response_id"] = previous
        if stream:
            with client.responses.stream(**ask) as answer:
                response = answer.get_final_response()
        else:
            response = client.responses.create(**ask)
        previous = response.id
        items = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]
        history += items
        calls = [item for item in items if item["type"] == "function_call"]
        new = [
            {
                "type": "function_call_output",
                "call_id": call["call_id"],
                "output": result_of(json.loads(call["arguments"])["number"], size),
            }
            for call in calls
        ]
        if not calls:
            return history
        history += new


GEMINI_TOOL = {"function_declarations": [{"name": "read", "description": "Read.", "parameters": TOOL["input_schema"]}]}
GEMINI_CONFIG = {
    "system_instruction": "You read files.",
    "tools": [GEMINI_TOOL],
    "max_output_tokens": 500,
    "automatic_function_calling": {"disable": True},
}


def run_gemini(client, *, stream, size=800, task="Read all files.", model="gemini-2.5-flash", drops_thoughts=True):
    """An agent on Gemini's contents, to its end; returns its history. It joins the pieces of a stream, as Gemini CLI does."""
    history = [{"role": "user", "parts": [{"text": task}]}]
    while True:
        ask = {"model": model, "contents": history, "config": GEMINI_CONFIG}
        chunks = client.models.generate_content_stream(**ask) if stream else [client.models.generate_content(**ask)]
        parts = pieces(chunks)
        said = "".join(part.text or "" for part in parts if not (part.thought and drops_thoughts))
        calls = [part.model_dump(mode="json", exclude_none=True) for part in parts if part.function_call]
        history.append({"role": "model", "parts": [*([{"text": said}] if said else []), *calls]})
        if not calls:
            return history
        history.append({"role": "user", "parts": gemini_results(parts, size)})


def run_gemini_chat(client, *, stream, size=800, task="Read all files.", model="gemini-2.5-flash"):
    """A chat of Google's SDK, which keeps each piece of a stream as a content, to its end; returns its history."""
    from google.genai import types

    chat, message = client.chats.create(model=model, config=GEMINI_CONFIG), task
    while message:
        chunks = chat.send_message_stream(message) if stream else [chat.send_message(message)]
        message = [types.Part(**row) for row in gemini_results(pieces(chunks), size)]
    history = [content.model_dump(exclude_none=True) for content in chat.get_history()]
    return [content for content in history if content["parts"] != [{"text": ""}]]


def pieces(chunks):
    """The parts of an answer."""
    return [part for chunk in chunks for part in chunk.candidates[0].content.parts or ()]


def gemini_results(parts, size):
    """The results of the calls in an answer."""
    calls = [part.function_call for part in parts if part.function_call]
    return [
        {
            "function_response": {
                "id": call.id,
                "name": call.name,
                "response": {"output": result_of(call.args["number"], size)},
            }
        }
        for call in calls
    ]
