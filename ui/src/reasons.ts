// What a state's reason means, in words for somebody who hasn't read the manual.
const REASONS: Record<string, string> = {
  condition_false: 'Its condition is false',
  branch_not_taken: 'Its branch was not taken',
  upstream_failed: 'Something before it failed',
  execution_failed: 'The execution failed before it could start',
  execution_timeout: 'The execution ran out of time',
  cancelled: 'Cancelled',
  no_worker: 'No live worker serves its queue',
  no_handler: 'No live worker of its queue has its handler',
  internal_error: 'Penstock itself failed',
};

const HINTS: Record<string, string> = {
  http: "Check the node's url, headers and body. A service that recovers by itself needs more retry.max_attempts.",
  config: 'Mend the node\'s config; {{ node.key ?? "text" }} stands in for a value that may be missing.',
  condition: "Mend the node's condition: CEL that gives true or false.",
  expression: "Mend the node's expression, which is CEL.",
  timeout: 'Give it more timeout_seconds, or find out what it waits for.',
  queue_timeout: 'Start more workers, or give it more queue_timeout_seconds.',
  lost: "The worker's process ended while it ran: look for a crash, or for too little memory.",
  llm: "Check the provider's settings (PENSTOCK_LLM_…).",
  unknown_handler: 'Start a worker that has the handler: penstock worker --handlers MODULE.',
  no_handler: 'Start a worker that has the handler: penstock worker --handlers MODULE.',
  not_json: 'Return dicts, lists, text, numbers, true, false or None from the handler.',
  too_large: 'Write large results to a file or a bucket, and return the place.',
  dependency: 'Mend the node that it depends on first.',
};

export function reasonText(reason: string | null | undefined): string {
  return reason ? (REASONS[reason] ?? reason) : '';
}

/** What to do about an error of this category, where that can be said. */
export function hintText(category: string | null | undefined): string {
  return (category && HINTS[category]) || '';
}
