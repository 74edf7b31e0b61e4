const FIRST = {
  name: 'hello',
  input: { name: 'world' },
  nodes: [
    { id: 'greet', handler: 'echo', config: { text: 'Hello, {{ input.name }}!' } },
    { id: 'rest', handler: 'sleep', dependencies: ['greet'], config: { seconds: 2 } },
    {
      id: 'output',
      handler: 'output',
      dependencies: ['rest'],
      config: { text: '{{ greet.text }}' },
    },
  ],
};

/** One line for a shell that stores a first workflow and starts it. */
export function firstCommand(service: string, needsKey: boolean): string {
  const key = needsKey ? ' -H "Authorization: Bearer $PENSTOCK_KEY"' : '';
  const body = JSON.stringify({ definition: FIRST, input: { name: 'Ada' } });
  return `curl -X POST ${service}/api/v1/executions -H 'Content-Type: application/json'${key} -d '${body}'`;
}
