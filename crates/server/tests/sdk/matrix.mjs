// The JavaScript SDKs through the gateway. usage: node matrix.mjs '{"direct": URL, "open": URL, ...}'
// Prints a JSON line for each case, as matrix.py does. It must lie beside node_modules.
import OpenAI from 'openai';
import { generateText, streamText, tool, stepCountIs, jsonSchema } from 'ai';
import { createOpenAI } from '@ai-sdk/openai';

globalThis.AI_SDK_LOG_WARNINGS = false;
const BASE = JSON.parse(process.argv[2]);
const apiKey = 'sk-test-0000', model = 'scripted-1', description = 'run a shell command';
const schema = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] };
const client = (base, maxRetries = 0) => new OpenAI({ baseURL: BASE[base] + '/v1', apiKey, maxRetries });
const put = (name, got, ok) => console.log(JSON.stringify({ case: 'node ' + name, ok: Boolean(ok), got }));

async function chat(base, prompt, { tools, stream = true, retries } = {}) {
  const got = { text: '', calls: {}, finish: null, usage: null };
  const asked = { model, messages: [{ role: 'user', content: prompt }], ...(tools ? { tools: [{ type: 'function', function: { name: 'shell', description, parameters: schema } }] } : {}) };
  if (!stream) {
    const answer = await client(base, retries).chat.completions.create(asked), choice = answer.choices[0];
    (choice.message.tool_calls ?? []).forEach((call, n) => { got.calls[n] = [call.function.name, call.function.arguments]; });
    return { ...got, text: choice.message.content ?? '', finish: choice.finish_reason, usage: answer.usage?.total_tokens };
  }
  for await (const chunk of await client(base, retries).chat.completions.create({ ...asked, stream: true, stream_options: { include_usage: true } })) {
    got.usage = chunk.usage?.total_tokens ?? got.usage;
    for (const choice of chunk.choices) {
      got.text += choice.delta.content ?? '';
      for (const call of choice.delta.tool_calls ?? []) {
        const entry = got.calls[call.index] ??= [call.function?.name, ''];
        entry[1] += call.function?.arguments ?? '';
      }
      got.finish = choice.finish_reason ?? got.finish;
    }
  }
  return got;
}

async function responses(base, prompt, { tools, stream = true, retries } = {}) {
  const asked = { model, input: prompt, ...(tools ? { tools: [{ type: 'function', name: 'shell', description, strict: false, parameters: schema }] } : {}) };
  let answer = null, text = '';
  if (stream) {
    for await (const event of await client(base, retries).responses.create({ ...asked, stream: true })) {
      if (event.type === 'response.output_text.delta') text += event.delta;
      if (event.type === 'error') return { error: 'event', message: event.message };
      if (['response.completed', 'response.incomplete', 'response.failed'].includes(event.type)) answer = event.response;
    }
  } else answer = await client(base, retries).responses.create(asked);
  const calls = {};
  (answer?.output ?? []).filter(item => item.type === 'function_call').forEach((call, n) => { calls[n] = [call.name, call.arguments]; });
  const whole = (answer?.output ?? []).flatMap(item => item.content ?? []).map(part => part.text ?? '').join('');
  return { text: stream ? text : whole, calls, finish: answer?.incomplete_details?.reason ?? answer?.status ?? null, usage: answer?.usage?.total_tokens ?? null };
}

const ai = api => async (base, prompt, { tools, stream = true, retries = 0 } = {}) => {
  const provider = createOpenAI({ baseURL: BASE[base] + '/v1', apiKey }), ran = [];
  const shell = tool({ description, inputSchema: jsonSchema(schema), execute: async ({ command }) => { ran.push(command); return 'hi'; } });
  const asked = { model: api === 'chat' ? provider.chat(model) : provider(model), prompt, maxRetries: retries, stopWhen: stepCountIs(3), ...(tools ? { tools: { shell } } : {}) };
  if (!stream) {
    const answer = await generateText(asked);
    return { text: answer.text, ran, finish: answer.finishReason, usage: answer.totalUsage.totalTokens };
  }
  let text = '', failed = null, finish = null, usage = null;
  for await (const part of streamText({ ...asked, onError: () => {} }).fullStream) {
    if (part.type === 'text-delta') text += part.text;
    if (part.type === 'error') failed = part.error;
    if (part.type === 'finish') { finish = part.finishReason; usage = part.totalUsage.totalTokens; }
  }
  if (failed) throw failed;
  return { text, ran, finish, usage };
};

const sdks = { 'openai-chat': chat, 'openai-responses': responses, 'ai-chat': ai('chat'), 'ai-responses': ai('responses') };
const filtered = { 'openai-chat': 'content_filter', 'openai-responses': 'content_filter', 'ai-chat': 'content-filter', 'ai-responses': 'content-filter' };
const stopped = { 'openai-chat': 'stop', 'openai-responses': 'completed', 'ai-chat': 'stop', 'ai-responses': 'stop' };
const ask = async (sdk, base, prompt, more) => {
  try { return await sdks[sdk](base, prompt, more); } catch (error) {
    return { error: error.constructor?.name, status: error.status ?? error.statusCode ?? null, message: String(error.message ?? error.error?.message ?? JSON.stringify(error)) };
  }
};
const commands = got => got.ran ?? Object.values(got.calls ?? {}).map(call => JSON.parse(call[1]).command);

for (const sdk of Object.keys(sdks)) {
  const same = async (script, more = {}) => {
    const prompt = 'Say hi. @@' + script;
    const [without, through] = [await ask(sdk, 'direct', prompt, more), await ask(sdk, 'open', prompt, more)];
    put(`${sdk} same ${script} ${Object.keys(more).map(name => more[name] ? name : 'not a ' + name).join(' ')}`.trim(), [without, through], JSON.stringify(without) === JSON.stringify(through));
  };
  for (const script of ['text', 'utf8', 'crlf', 'comments', 'coalesced', 'length', 'think', 'error_mid', 'cut', 'e400', 'e429', 'e500']) await same(script);
  for (const script of ['default', 'parallel', 'interleave', 'think_tool']) await same(script, { tools: true });
  await same('text', { stream: false });
  await same('parallel', { tools: true, stream: false });
  for (const stream of [true, false]) {
    const also = stream ? '' : ' whole';
    let got = await ask(sdk, 'tell', 'Go. @@danger', { tools: true, stream });
    put(`${sdk} block told to the model${also}`, got, commands(got).length === 0 && got.finish === stopped[sdk] && got.text.includes('blocked by hook guard: too dangerous'));
    got = await ask(sdk, 'refuse', 'Go. @@danger', { tools: true, stream });
    put(`${sdk} block refused${also}`, got, commands(got).length === 0 && got.finish === filtered[sdk] && !JSON.stringify(got).includes('rm -rf'));
    got = await ask(sdk, 'tell', 'Go. @@mixed', { tools: true, stream });
    put(`${sdk} of parallel calls one is blocked${also}`, got, commands(got).join() === 'echo one,echo three');
    got = await ask(sdk, 'redact', 'Say hi. @@secret', { stream });
    put(`${sdk} redact${also}`, got, got.text === 'Sure, the api_key is <key> and the password is hunter2.');
    got = await ask(sdk, 'append', 'Say hi. @@text', { stream });
    put(`${sdk} append${also}`, got, got.text?.endsWith('streamed answer.\n[notice]') && got.usage > 0 && got.finish === stopped[sdk]);
    got = await ask(sdk, 'interrupt', `Interrupt node ${sdk}${also}. @@text`, { stream, retries: 2 });
    put(`${sdk} interrupt${also}`, got, got.text !== undefined && !got.text.includes('scripted model') && got.finish === filtered[sdk]);
    got = await ask(sdk, 'resend', 'Say hi. @@idk', { stream });
    put(`${sdk} interrupt and resend${also}`, got, got.text?.endsWith('Hello from the scripted model. This is one plain streamed answer.') && !got.text.includes('know'));
    got = await ask(sdk, 'prompt', `The secret plan, node ${sdk}${also}. @@text`, { stream, retries: 2 });
    put(`${sdk} blocked prompt${also}`, got, got.status === 400 && got.message.includes('blocked by hook prompt'));
    got = await ask(sdk, 'nowhere', 'Say hi.', { stream });
    put(`${sdk} provider is down${also}`, got, got.status === 502);
  }
}
for await (const _ of await client('open').chat.completions.create({ model, messages: [{ role: 'user', content: 'Hang up node. @@endless' }], stream: true })) break;
put('openai-chat hang-up', null, true);
put('end', null, true);
