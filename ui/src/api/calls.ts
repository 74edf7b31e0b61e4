// Everything that the page asks of the API, and nothing else: the page can do what any other client can.
import { client, data, reach } from './client';
import type { Me, Scope } from './session';

const V1 = '/api/v1';

export type Filters = {
  state?: string[];
  workflow?: string;
  version?: number;
  label?: string[];
  since?: string;
  until?: string;
  text?: string;
};

const at = <T extends string>(path: T) => `${V1}${path}` as const;

export async function whoAmI(): Promise<Me> {
  const me = await data(client.GET(at('/me')));
  return { ...me, scopes: me.scopes as Scope[] };
}

/** Whose a key is that hasn't been accepted yet. */
export async function whoHas(key: string): Promise<Me> {
  return (await reach(at('/me'), { headers: { Authorization: `Bearer ${key}` } })).json();
}

export const getStats = (seconds: number, buckets: number) =>
  data(client.GET(at('/stats'), { params: { query: { seconds, buckets } } }));

export const listExecutions = (filters: Filters, cursor: string | null, limit: number) =>
  data(client.GET(at('/executions'), { params: { query: { ...filters, cursor, limit } as never } }));

export const getExecution = (execution_id: string) =>
  data(client.GET(at('/executions/{execution_id}'), { params: { path: { execution_id }, query: { nodes: false } } }));

export const getGraph = (execution_id: string) =>
  data(client.GET(at('/executions/{execution_id}/graph'), { params: { path: { execution_id } } }));

export const getHistory = (execution_id: string, after: number, limit: number) =>
  data(
    client.GET(at('/executions/{execution_id}/history'), {
      params: { path: { execution_id }, query: { after, limit } },
    }),
  );

export const getNode = (execution_id: string, node_id: string) =>
  data(client.GET(at('/executions/{execution_id}/nodes/{node_id}'), { params: { path: { execution_id, node_id } } }));

export const getLogs = (execution_id: string, node_id: string) =>
  data(
    client.GET(at('/executions/{execution_id}/nodes/{node_id}/logs'), { params: { path: { execution_id, node_id } } }),
  );

export type Wish = 'cancel' | 'pause' | 'resume';

export const steer = (execution_id: string, wish: Wish) =>
  data(client.POST(at(`/executions/{execution_id}/${wish}`), { params: { path: { execution_id } } }));

export type RetryChoice = { from?: string; version?: string };

export const retry = (execution_id: string, choice: RetryChoice, preview: boolean) =>
  data(
    client.POST(at('/executions/{execution_id}/retry'), {
      params: { path: { execution_id } },
      body: { ...choice, preview } as never,
    }),
  );

export const steerMany = (action: Wish | 'retry', execution_ids: string[], preview = false) =>
  data(
    client.POST(at('/executions/bulk'), {
      body: { action, execution_ids, ...(action === 'retry' ? { preview } : {}) } as never,
    }),
  );

export const start = (workflow: string, input: unknown, labels: Record<string, string> = {}) =>
  data(client.POST(at('/executions'), { body: { workflow, input, labels } as never }));

export const listWorkflows = (cursor: string | null, limit: number) =>
  data(client.GET(at('/workflows'), { params: { query: { cursor, limit } } }));

export const getWorkflow = (name: string, version?: string) =>
  data(client.GET(at('/workflows/{name}'), { params: { path: { name }, query: { version } } }));

export const listVersions = (name: string) =>
  data(client.GET(at('/workflows/{name}/versions'), { params: { path: { name } } }));

export const getWorkflowGraph = (name: string, version?: string) =>
  data(client.GET(at('/workflows/{name}/graph'), { params: { path: { name }, query: { version } } }));

export const getWorkflowStats = (name: string, version?: string) =>
  data(client.GET(at('/workflows/{name}/stats'), { params: { path: { name }, query: { version } } }));

export const setAlias = (name: string, alias: string, version: number) =>
  data(
    client.PUT(at('/workflows/{name}/aliases/{alias}'), {
      params: { path: { name, alias } },
      body: { version } as never,
    }),
  );

export const removeAlias = (name: string, alias: string) =>
  data(client.DELETE(at('/workflows/{name}/aliases/{alias}'), { params: { path: { name, alias } } }));

export const listLetters = (
  filters: { workflow?: string; handler?: string; closed?: boolean },
  cursor: string | null,
  limit: number,
) => data(client.GET(at('/dead-letters'), { params: { query: { ...filters, cursor, limit } } }));

export const getLetter = (letter_id: number) =>
  data(client.GET(at('/dead-letters/{letter_id}'), { params: { path: { letter_id } } }));

export const retryLetters = (ids: number[], preview: boolean) =>
  data(client.POST(at('/dead-letters/retry'), { body: { ids, preview } as never }));

export const dropLetters = (ids: number[]) => data(client.POST(at('/dead-letters/drop'), { body: { ids } as never }));

export const listWorkers = () => data(client.GET(at('/workers')));
export const listOrchestrators = () => data(client.GET(at('/orchestrators')));
export const listQueues = () => data(client.GET(at('/queues')));

export const eventsOf = (execution_id: string) => `${V1}/executions/${encodeURIComponent(execution_id)}/events`;
export const ALL_EVENTS = `${V1}/events?nodes=false`;

type Answer<F extends (...given: never[]) => Promise<unknown>> = Awaited<ReturnType<F>>;
export type Stats = Answer<typeof getStats>;
export type ListedExecution = Answer<typeof listExecutions>['items'][number];
export type Execution = Answer<typeof getExecution>;
export type Graph = Answer<typeof getGraph>;
export type GraphNode = Graph['nodes'][number];
export type HistoryItem = Answer<typeof getHistory>['items'][number];
export type NodeDetail = Answer<typeof getNode>;
export type RetryPlan = Answer<typeof retry>;
export type Workflow = Answer<typeof getWorkflow>;
export type Version = Answer<typeof listVersions>['items'][number];
export type WorkflowGraph = Answer<typeof getWorkflowGraph>;
export type WorkflowStats = Answer<typeof getWorkflowStats>;
export type DeadLetter = Answer<typeof listLetters>['items'][number];
export type RetriedLetters = Answer<typeof retryLetters>['items'][number];
export type Worker = Answer<typeof listWorkers>['items'][number];
export type Orchestrator = Answer<typeof listOrchestrators>['items'][number];
export type Queue = Answer<typeof listQueues>['items'][number];
