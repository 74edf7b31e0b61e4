// Generated from src/penstock/engine/reasons.py by `make ui`. Don't edit it here.

/** The reasons of states in words. */
export const REASON_TEXTS: Readonly<Record<string, string>> = {
  branch_not_taken: 'branch not taken',
  cancelled: 'cancelled',
  cleanup_timeout: 'the clean-up ran out of time',
  condition_false: 'condition is false',
  execution_failed: 'the execution failed',
  execution_timeout: 'the execution ran out of time',
  internal_error: 'Penstock itself failed',
  item_timeout: 'the item ran out of time',
  kept: 'output reused from an earlier execution',
  no_handler: 'no live worker of its queue has its handler',
  no_worker: 'no live worker serves its queue',
  parent_ended: 'the execution that started it waits for it no more',
  parent_timeout: 'the node that started it ran out of time',
  rebuilt: 'queued again after a loss of data',
  returned: 'handed back by its worker, and queued again',
  terminated: 'a terminate node ended the execution',
  upstream_failed: 'a node before it failed',
};

/** What to do about an error, by its category. Other errors say it in their message. */
export const HINT_TEXTS: Readonly<Record<string, string>> = {
  child: 'Look at the child: its error says why. penstock show CHILD.',
  condition:
    "Fix the node's condition: a CEL expression (https://cel.dev) that gives true or false.",
  config:
    'Fix the node\'s config. For a value that may be missing, give a default: {{ node.key ?? "text" }}.',
  dependency: 'Fix the node that it depends on first.',
  expression: "Fix the node's expression, which is CEL (https://cel.dev).",
  handler: 'The handler raised this error. Its traceback says where.',
  http: "Check the node's url, headers and body. If the service recovers by itself, increase retry.max_attempts.",
  internal_error: 'This is a bug in Penstock. Please report it, with the traceback from the log.',
  interrupted:
    'The worker was stopped before the handler was done. Increase PENSTOCK_SHUTDOWN_GRACE_SECONDS.',
  items: 'Look at the items: penstock show ID --under NODE. A retry runs only those that failed.',
  llm: "Check the provider's settings (PENSTOCK_LLM_…). --mock runs the workflow without one.",
  lost: "The worker's process ended while it ran the task. Look for a crash, or for too little memory.",
  no_handler: 'Start a worker that has the handler: --handlers MODULE or --handlers FILE.py.',
  not_json: 'Return dicts, lists, text, numbers, true, false or None from the handler.',
  queue_timeout: 'Start more workers, or increase queue_timeout_seconds.',
  timeout: 'Increase timeout_seconds, or find out what the task waits for.',
  too_large: 'Write large results to a file or a bucket, and return where they are.',
  unknown_handler: 'Start a worker that has the handler: --handlers MODULE or --handlers FILE.py.',
};
