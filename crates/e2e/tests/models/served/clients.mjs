// Runs the same conversation through every package, and prints what each made of it.
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
const url = process.env.MODEL;
const apiKey = process.env.KEY ?? 'k';
const openai = new OpenAI({ apiKey, baseURL: url + '/v1', maxRetries: 0 });
const anthropic = new Anthropic({ apiKey, baseURL: url, maxRetries: 0 });
const google = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: url } });
const schema = { type: 'object', properties: {} };
const names = ['mcp__calc__add', 'mcp__calc__get-sum'];
const result = (name, args) => name.split('__')[2] + ' of ' + JSON.stringify(args);
const prompt = 'please add 1 and 2';

async function chat(stream) {
  const tools = names.map((name) => ({ type: 'function', function: { name, parameters: schema } }));
  const messages = [{ role: 'user', content: prompt }];
  return loop(async () => {
    const params = { model: 'm', messages, tools };
    const reply = stream
      ? await openai.chat.completions.stream({ ...params, stream_options: { include_usage: true } }).finalChatCompletion()
      : await openai.chat.completions.create(params);
    const { message, finish_reason } = reply.choices[0];
    messages.push(message);
    const calls = (message.tool_calls ?? []).map((call) => [call.function.name, JSON.parse(call.function.arguments), call.id]);
    for (const [name, args, id] of calls) messages.push({ role: 'tool', tool_call_id: id, content: result(name, args) });
    const used = reply.usage;
    return {
      thinking: message.reasoning_content ?? '', text: message.content, calls,
      stop: { stop: 'done', tool_calls: 'calls' }[finish_reason],
      usage: [used.prompt_tokens, used.completion_tokens, used.prompt_tokens_details.cached_tokens, used.completion_tokens_details.reasoning_tokens],
    };
  });
}

async function responses(stream) {
  const tools = names.map((name) => ({ type: 'function', name, parameters: schema, strict: false }));
  const input = [{ role: 'user', content: prompt }];
  return loop(async () => {
    const params = { model: 'm', input, tools, store: false };
    const reply = stream
      ? await openai.responses.stream(params).finalResponse()
      : await openai.responses.create(params);
    input.push(...reply.output);
    const of = (type) => reply.output.filter((item) => item.type === type);
    const calls = of('function_call').map((call) => [call.name, JSON.parse(call.arguments), call.call_id]);
    for (const [name, args, call_id] of calls) input.push({ type: 'function_call_output', call_id, output: result(name, args) });
    const used = reply.usage;
    return {
      thinking: of('reasoning').map((item) => item.summary[0].text).join(''), text: reply.output_text, calls,
      stop: reply.status !== 'completed' ? reply.status : calls.length ? 'calls' : 'done',
      usage: [used.input_tokens, used.output_tokens, used.input_tokens_details.cached_tokens, used.output_tokens_details.reasoning_tokens],
    };
  });
}

async function messages(stream) {
  const tools = names.map((name) => ({ name, input_schema: schema }));
  const messages = [{ role: 'user', content: prompt }];
  return loop(async () => {
    const params = { model: 'm', max_tokens: 999, messages, tools };
    const reply = stream ? await anthropic.messages.stream(params).finalMessage() : await anthropic.messages.create(params);
    messages.push({ role: 'assistant', content: reply.content });
    const of = (type) => reply.content.filter((block) => block.type === type);
    const calls = of('tool_use').map((call) => [call.name, call.input, call.id]);
    const content = calls.map(([name, args, id]) => ({ type: 'tool_result', tool_use_id: id, content: result(name, args) }));
    if (content.length) messages.push({ role: 'user', content });
    const used = reply.usage;
    return {
      thinking: of('thinking').map((block) => block.thinking).join(''), text: of('text').map((block) => block.text).join(''), calls,
      stop: { end_turn: 'done', tool_use: 'calls' }[reply.stop_reason],
      usage: [used.input_tokens + used.cache_read_input_tokens, used.output_tokens, used.cache_read_input_tokens, used.output_tokens_details?.thinking_tokens ?? 0],
    };
  });
}

async function gemini(stream) {
  const tools = [{ functionDeclarations: names.map((name) => ({ name, parametersJsonSchema: schema })) }];
  const contents = [{ role: 'user', parts: [{ text: prompt }] }];
  return loop(async () => {
    const params = { model: 'gemini-x', contents, config: { tools } };
    const parts = [];
    let last;
    if (stream) {
      for await (const chunk of await google.models.generateContentStream(params)) {
        parts.push(...(chunk.candidates[0].content.parts ?? []));
        last = chunk;
      }
    } else {
      last = await google.models.generateContent(params);
      parts.push(...last.candidates[0].content.parts);
    }
    contents.push({ role: 'model', parts });
    const calls = parts.filter((part) => part.functionCall).map(({ functionCall: call }) => [call.name, call.args, call.id]);
    const given = calls.map(([name, args, id]) => ({ functionResponse: { id, name, response: { output: result(name, args) } } }));
    if (given.length) contents.push({ role: 'user', parts: given });
    const texts = (thought) => parts.filter((part) => part.text && !!part.thought === thought).map((part) => part.text).join('');
    const used = last.usageMetadata;
    const thoughts = used.thoughtsTokenCount ?? 0;
    return {
      thinking: texts(true), text: texts(false), calls,
      stop: last.candidates[0].finishReason !== 'STOP' ? last.candidates[0].finishReason : calls.length ? 'calls' : 'done',
      usage: [used.promptTokenCount, used.candidatesTokenCount + thoughts, used.cachedContentTokenCount ?? 0, thoughts],
    };
  });
}

async function loop(ask) {
  const turns = [];
  do turns.push(await ask()); while (turns.at(-1).calls.length && turns.length < 5);
  return turns;
}

for (const converse of [chat, responses, messages, gemini]) {
  for (const stream of [false, true]) {
    console.log(converse.name + ' ' + stream + '\t' + JSON.stringify(await converse(stream)));
  }
}
