"""The Python SDKs through the gateway. usage: matrix.py '{"direct": URL, "open": URL, ...}'

Prints a JSON line for each case: {"case", "ok", "got"}. The gateways, by name: `direct` is the provider itself, `open` has
hooks that look at everything and want nothing; the others do what their names say.
"""
import json
import re
import sys
import traceback

import anthropic
import openai
from google import genai
from google.genai import types

BASE = json.loads(sys.argv[1])
KEY = "sk-test-0000"
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
WHAT = "run a shell command"


def outcome(error):
    """What an agent would see of an exception."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return {"error": type(error).__name__, "status": status if isinstance(status, int) else None, "message": re.sub("req_[0-9]+", "req_N", str(error))}


def openai_client(base, retries):
    return openai.OpenAI(base_url=BASE[base] + "/v1", api_key=KEY, max_retries=retries)


def chat(base, prompt, tools=False, stream=True, retries=0):
    got = {"text": "", "calls": {}, "finish": None, "usage": None}
    more = {"tools": [{"type": "function", "function": {"name": "shell", "description": WHAT, "parameters": SCHEMA}}]} if tools else {}
    messages = [{"role": "system", "content": "You are terse."}, {"role": "user", "content": prompt}]
    client = openai_client(base, retries)
    if not stream:
        answer = client.chat.completions.create(model="scripted-1", messages=messages, **more)
        choice = answer.choices[0]
        calls = {n: [call.function.name, call.function.arguments] for n, call in enumerate(choice.message.tool_calls or [])}
        return {"text": choice.message.content or "", "calls": calls, "finish": choice.finish_reason, "usage": answer.usage.total_tokens}
    for chunk in client.chat.completions.create(model="scripted-1", messages=messages, stream=True, stream_options={"include_usage": True}, **more):
        if chunk.usage:
            got["usage"] = chunk.usage.total_tokens
        for choice in chunk.choices:
            got["text"] += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                entry = got["calls"].setdefault(call.index, [call.function.name, ""])
                entry[1] += call.function.arguments or ""
            got["finish"] = choice.finish_reason or got["finish"]
    return got


def responses(base, prompt, tools=False, stream=True, retries=0):
    more = {"tools": [{"type": "function", "name": "shell", "description": WHAT, "strict": False, "parameters": SCHEMA}]} if tools else {}
    client, answer, text = openai_client(base, retries), None, ""
    if stream:
        for event in client.responses.create(model="scripted-1", input=prompt, stream=True, **more):
            if event.type == "response.output_text.delta":
                text += event.delta
            if event.type in ("response.completed", "response.incomplete", "response.failed"):
                answer = event.response
            if event.type == "error":
                return {"error": "event", "status": None, "message": event.message}
        if answer is None:
            return {"text": text, "calls": {}, "finish": None, "usage": None}
        assert answer.status == "failed" or answer.output_text == text, (answer.output_text, text)
    else:
        answer = client.responses.create(model="scripted-1", input=prompt, **more)
    calls = {n: [call.name, call.arguments] for n, call in enumerate(item for item in answer.output if item.type == "function_call")}
    finish = answer.incomplete_details.reason if answer.incomplete_details else answer.status
    return {"text": answer.output_text, "calls": calls, "finish": finish, "usage": answer.usage and answer.usage.total_tokens}


def messages(base, prompt, tools=False, stream=True, retries=0, bearer=False):
    key = {"auth_token": KEY} if bearer else {"api_key": KEY}
    client = anthropic.Anthropic(base_url=BASE[base], max_retries=retries, **key)
    more = {"tools": [{"name": "shell", "description": WHAT, "input_schema": SCHEMA}]} if tools else {}
    asked = {"model": "scripted-1", "max_tokens": 500, "messages": [{"role": "user", "content": prompt}], **more}
    if stream:
        text = ""
        with client.messages.stream(**asked) as events:
            for event in events:
                if event.type == "text":
                    text += event.text
            answer = events.get_final_message()
    else:
        answer = client.messages.create(**asked)
        text = None
    said = "".join(block.text for block in answer.content if block.type == "text")
    assert text is None or said == text, (said, text)
    calls = {n: [call.name, json.dumps(call.input)] for n, call in enumerate(block for block in answer.content if block.type == "tool_use")}
    return {"text": said, "calls": calls, "finish": answer.stop_reason, "usage": answer.usage.output_tokens}


def gemini(base, prompt, tools=False, stream=True, retries=0):
    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=BASE[base]))
    config = None
    if tools:
        declared = types.FunctionDeclaration(name="shell", description=WHAT, parameters_json_schema=SCHEMA)
        off = types.AutomaticFunctionCallingConfig(disable=True)
        config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])], automatic_function_calling=off)
    asked = {"model": "gemini-scripted", "contents": prompt, "config": config}
    chunks = client.models.generate_content_stream(**asked) if stream else [client.models.generate_content(**asked)]
    got = {"text": "", "calls": {}, "finish": None, "usage": None}
    for chunk in chunks:
        for candidate in chunk.candidates or []:
            for part in (candidate.content.parts if candidate.content else None) or []:
                if part.function_call:
                    got["calls"][len(got["calls"])] = [part.function_call.name, json.dumps(part.function_call.args)]
                elif part.text and not part.thought:
                    got["text"] += part.text
            if candidate.finish_reason:
                got["finish"] = candidate.finish_reason.name
        if chunk.usage_metadata:
            got["usage"] = chunk.usage_metadata.total_token_count
    return got


WIRES = {"openai-chat": chat, "openai-responses": responses, "anthropic": messages, "google-genai": gemini}
FILTERED = {"openai-chat": "content_filter", "openai-responses": "content_filter", "anthropic": "refusal", "google-genai": "SAFETY"}
STOPPED = {"openai-chat": "stop", "openai-responses": "completed", "anthropic": "end_turn", "google-genai": "STOP"}


def ask(wire, base, prompt, **more):
    try:
        return WIRES[wire](base, prompt, **more)
    except Exception as error:
        return outcome(error)


def case(name, got, ok):
    print(json.dumps({"case": "python " + name, "ok": bool(ok), "got": got}, default=str), flush=True)


def same(wire, script, **more):
    """The gateway is not seen: results and exceptions are those without it."""
    without = ask(wire, "direct", "Say hi. @@" + script, **more)
    through = ask(wire, "open", "Say hi. @@" + script, **more)
    kind = " ".join(name if on else "not a " + name for name, on in more.items())
    case(f"{wire} same {script} {kind}".strip(), [without, through], without == through)


def commands(got):
    return [json.loads(call[1])["command"] for call in got["calls"].values()]


def run(wire):
    for script in ("text", "utf8", "crlf", "comments", "coalesced", "length", "think", "error_mid", "cut", "e400", "e401", "e429", "e500", "e529"):
        if (script, wire) != ("comments", "google-genai"):
            same(wire, script)
    if wire in ("openai-chat", "anthropic"):
        same(wire, "cr")
    if wire == "openai-chat":
        for script in ("no_done", "q_empty_choices_first", "q_no_space", "q_id_retry_bom", "q_multi_data", "q_no_last_blank"):
            same(wire, script)
        for script in ("q_whole_tool_call", "q_no_tool_index"):
            same(wire, script, tools=True)
    for script in ("default", "parallel", "interleave", "think_tool"):
        same(wire, script, tools=True)
    for script in ("text", "e429", "e500"):
        same(wire, script, stream=False)
    same(wire, "parallel", tools=True, stream=False)
    for stream in (True, False):
        also = "" if stream else " whole"
        got = ask(wire, "tell", "Go. @@danger", tools=True, stream=stream)
        ok = got.get("calls") == {} and got["finish"] == STOPPED[wire] and "blocked by hook guard: too dangerous" in got["text"]
        case(f"{wire} block told to the model{also}", got, ok)
        got = ask(wire, "refuse", "Go. @@danger", tools=True, stream=stream)
        ok = got.get("calls") == {} and got["finish"] == FILTERED[wire] and "rm -rf" not in json.dumps(got)
        case(f"{wire} block refused{also}", got, ok)
        got = ask(wire, "tell", "Go. @@mixed", tools=True, stream=stream)
        ok = "calls" in got and commands(got) == ["echo one", "echo three"] and "was not run" in got["text"]
        case(f"{wire} of parallel calls one is blocked{also}", got, ok)
        got = ask(wire, "redact", "Say hi. @@secret", stream=stream)
        ok = got.get("text") == "Sure, the api_key is <key> and the password is hunter2." and got["finish"] == STOPPED[wire]
        case(f"{wire} redact{also}", got, ok)
        got = ask(wire, "append", "Say hi. @@text", stream=stream)
        ok = got.get("text", "").endswith("streamed answer.\n[notice]") and got["usage"] and got["finish"] == STOPPED[wire]
        case(f"{wire} append{also}", got, ok)
        got = ask(wire, "interrupt", f"Interrupt {wire}{also}. @@text", stream=stream, retries=2)
        ok = "scripted model" not in got.get("text", "scripted model") and got["finish"] == FILTERED[wire]
        case(f"{wire} interrupt{also}", got, ok)
        got = ask(wire, "resend", "Say hi. @@idk", stream=stream)
        ok = got.get("text", "").endswith("Hello from the scripted model. This is one plain streamed answer.") and "know" not in got["text"]
        case(f"{wire} interrupt and resend{also}", got, ok and got["finish"] == STOPPED[wire])
        got = ask(wire, "prompt", f"The secret plan, {wire}{also}. @@text", stream=stream, retries=2)
        ok = got.get("status") == 400 and "blocked by hook prompt" in got["message"]
        case(f"{wire} blocked prompt{also}", got, ok)
        got = ask(wire, "cap", "Say hi. @@idk", stream=stream)
        case(f"{wire} resends end in an error{also}", got, "error" in got and "resends" in got["message"])
        got = ask(wire, "nowhere", "Say hi.", stream=stream)
        case(f"{wire} provider is down{also}", got, got.get("status") == 502)
    hang_up(wire)
    for base, ok in (("tenants", 200), ("strangers", 401)):
        got = ask(wire, base, "Say hi. @@text")
        case(f"{wire} key of {base}", got, got.get("status") == ok or (ok == 200 and got.get("finish") == STOPPED[wire]))


def hang_up(wire):
    prompt = f"Hang up {wire}. @@endless"
    if wire == "openai-chat":
        stream = openai_client("open", 0).chat.completions.create(model="scripted-1", messages=[{"role": "user", "content": prompt}], stream=True)
        next(iter(stream))
        stream.close()
    elif wire == "openai-responses":
        stream = openai_client("open", 0).responses.create(model="scripted-1", input=prompt, stream=True)
        next(iter(stream))
        stream.close()
    elif wire == "anthropic":
        client = anthropic.Anthropic(base_url=BASE["open"], api_key=KEY, max_retries=0)
        with client.messages.stream(model="scripted-1", max_tokens=500, messages=[{"role": "user", "content": prompt}]) as stream:
            next(iter(stream))
    else:
        client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=BASE["open"]))
        stream = client.models.generate_content_stream(model="gemini-scripted", contents=prompt)
        next(stream)
        stream.close()
        client.close()
    case(f"{wire} hang-up", None, True)


def raised():
    """What SDKs raise of their own for a filtered answer, and the other header for a key."""
    try:
        asked = [{"role": "user", "content": "Go. @@danger"}]
        tool = {"type": "function", "function": {"name": "shell", "strict": True, "description": WHAT, "parameters": {**SCHEMA, "additionalProperties": False}}}
        openai_client("refuse", 0).chat.completions.parse(model="scripted-1", messages=asked, tools=[tool])
        case("openai-chat parse raises for a filter", None, False)
    except openai.ContentFilterFinishReasonError as error:
        case("openai-chat parse raises for a filter", str(error), True)
    except Exception as error:
        case("openai-chat parse raises for a filter", outcome(error), False)
    got = ask("anthropic", "tenants", "Say hi. @@text", bearer=True)
    case("anthropic key as a bearer", got, got.get("finish") == "end_turn")
    openai_models = [model.id for model in openai_client("open", 0).models.list()]
    case("openai models", openai_models, openai_models == ["scripted-1"])
    client = anthropic.Anthropic(base_url=BASE["open"], api_key=KEY, max_retries=0)
    count = client.messages.count_tokens(model="scripted-1", messages=[{"role": "user", "content": "hi"}]).input_tokens
    case("anthropic count_tokens", count, count > 0)


def main():
    for wire in WIRES:
        try:
            run(wire)
        except Exception:
            case(f"{wire} runs", traceback.format_exc(), False)
    raised()
    case("end", None, True)


main()
