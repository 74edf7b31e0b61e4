import type { Format } from '../../editor/documentTree';

const JSON_TEXT = `{
  "name": "hello",
  "nodes": [
    {
      "id": "greet",
      "handler": "echo",
      "config": {"text": "Hello, {{ input.name }}!"}
    },
    {
      "id": "output",
      "handler": "output",
      "depends_on": ["greet"],
      "config": {"text": "{{ greet.text }}"}
    }
  ]
}
`;

const YAML_TEXT = `name: hello
nodes:
  - id: greet
    handler: echo
    config:
      text: Hello, {{ input.name }}!
  - id: output
    handler: output
    depends_on: [greet]
    config:
      text: "{{ greet.text }}"
`;

/** What a new workflow begins with: it runs as it is. */
export function firstDocument(format: Format): string {
  return format === 'json' ? JSON_TEXT : YAML_TEXT;
}
