// Texts for the reasons of states and the categories of errors, for users who haven't read the
// manual.

export const REASON_TEXTS: Readonly<Record<string, string>> = {
  branch_not_taken: 'Its branch was not taken',
  cancelled: 'Cancelled',
  condition_false: 'Its condition is false',
  execution_failed: 'The execution failed before it could start',
  execution_timeout: 'The execution ran out of time',
  internal_error: 'Penstock itself failed',
  no_handler: 'No live worker of its queue has its handler',
  no_worker: 'No live worker serves its queue',
  upstream_failed: 'A node before it failed',
};

/**
 * What to do about an error, by its category. Errors of other categories say it in their message.
 */
export const HINT_TEXTS: Readonly<Record<string, string>> = {
  condition: "Fix the node's condition: a CEL expression that gives true or false.",
  config:
    'Fix the node\'s config. For a value that may be missing, give a default: {{ node.key ?? "text" }}.',
  dependency: 'Fix the node that it depends on first.',
  expression: "Fix the node's expression, which is CEL.",
  http: "Check the node's url, headers and body. If the service recovers by itself, increase retry.max_attempts.",
  llm: "Check the provider's settings (PENSTOCK_LLM_…).",
  lost: "The worker's process ended while it ran the task. Look for a crash, or for too little memory.",
  no_handler: 'Start a worker that has the handler: penstock worker --handlers MODULE.',
  not_json: 'Return dicts, lists, text, numbers, true, false or None from the handler.',
  queue_timeout: 'Start more workers, or increase queue_timeout_seconds.',
  timeout: 'Increase timeout_seconds, or find out what the task waits for.',
  too_large: 'Write large results to a file or a bucket, and return its path.',
  unknown_handler: 'Start a worker that has the handler: penstock worker --handlers MODULE.',
};
