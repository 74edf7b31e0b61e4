// Every call that the UI makes to the API: the UI can do what any other client can. All types come
// from the OpenAPI document (schema.d.ts); none is written by hand.
import { authorization, client, data, reach } from './client';
import type { paths } from './schema';

const V1 = '/api/v1';
const at = <T extends string>(path: T) => `${V1}${path}` as const;

type QueryOf<Operation> = Operation extends { parameters: { query?: infer Query } }
  ? NonNullable<Query>
  : never;
type BodyOf<Operation> = Operation extends {
  requestBody?: { content: { 'application/json': infer Body } };
}
  ? NonNullable<Body>
  : never;

export type ExecutionFilters = Omit<
  QueryOf<paths['/api/v1/executions']['get']>,
  'cursor' | 'limit'
>;
export type DeadLetterFilters = Omit<
  QueryOf<paths['/api/v1/dead-letters']['get']>,
  'cursor' | 'limit'
>;
export type SearchFilters = Pick<
  QueryOf<paths['/api/v1/search']['get']>,
  'workflow' | 'since' | 'until'
>;
export type AuditFilters = Omit<QueryOf<paths['/api/v1/audit']['get']>, 'cursor' | 'limit'>;
export type ExecutionState = NonNullable<ExecutionFilters['state']>[number];
export type BulkAction = BodyOf<paths['/api/v1/executions/bulk']['post']>['action'];
export type ControlRequest = Exclude<BulkAction, 'retry'>;
export type RetryOptions = Omit<
  BodyOf<paths['/api/v1/executions/{execution_id}/retry']['post']>,
  'preview'
>;
export type ApprovalDecision = BodyOf<
  paths['/api/v1/executions/{execution_id}/approvals/{node_id}']['post']
>;
type StartRequest = BodyOf<paths['/api/v1/executions']['post']>;

export const getMe = () => data(client.GET(at('/me')));

/** The owner of a key that the session doesn't use yet. */
export async function getMeByKey(key: string): Promise<Me> {
  const response = await reach(at('/me'), { headers: { Authorization: `Bearer ${key}` } });
  return response.json();
}

export const getStats = (seconds: number, buckets: number) =>
  data(client.GET(at('/stats'), { params: { query: { seconds, buckets } } }));

export const listExecutions = (filters: ExecutionFilters, cursor: string | null, limit: number) =>
  data(client.GET(at('/executions'), { params: { query: { ...filters, cursor, limit } } }));

export const getExecution = (execution_id: string) =>
  data(
    client.GET(at('/executions/{execution_id}'), {
      params: { path: { execution_id }, query: { nodes: false } },
    }),
  );

/** The graph of an execution, or of what is inside of an item of it. */
export const getGraph = (execution_id: string, under?: string) =>
  data(
    client.GET(at('/executions/{execution_id}/graph'), {
      params: { path: { execution_id }, query: { under } },
    }),
  );

export const getHistory = (execution_id: string, after: number, limit: number) =>
  data(
    client.GET(at('/executions/{execution_id}/history'), {
      params: { path: { execution_id }, query: { after, limit } },
    }),
  );

export const getNode = (execution_id: string, node_id: string) =>
  data(
    client.GET(at('/executions/{execution_id}/nodes/{node_id}'), {
      params: { path: { execution_id, node_id } },
    }),
  );

/** A map or a loop with the states of its items, and without its output. */
export const getItemStates = (execution_id: string, node_id: string) =>
  data(
    client.GET(at('/executions/{execution_id}/nodes/{node_id}'), {
      params: { path: { execution_id, node_id }, query: { item_states: true } },
    }),
  );

export const explainNode = (execution_id: string, node_id: string) =>
  data(
    client.GET(at('/executions/{execution_id}/nodes/{node_id}/why'), {
      params: { path: { execution_id, node_id } },
    }),
  );

export const listSignals = (execution_id: string) =>
  data(
    client.GET(at('/executions/{execution_id}/signals'), { params: { path: { execution_id } } }),
  );

/** The payload is JSON text: its long numbers are sent as they were typed. */
export async function sendSignal(
  execution_id: string,
  name: string,
  payload: string,
  correlation: string | null,
): Promise<SentSignal> {
  const path = `/executions/${encodeURIComponent(execution_id)}/signals`;
  const head = JSON.stringify({ name, ...(correlation ? { correlation } : {}) }).slice(0, -1);
  return (await sendText(path, `${head},"payload":${payload}}`)).json();
}

export const listApprovals = (cursor: string | null, limit: number) =>
  data(client.GET(at('/approvals'), { params: { query: { cursor, limit } } }));

export const decideApproval = (execution_id: string, node_id: string, body: ApprovalDecision) =>
  data(
    client.POST(at('/executions/{execution_id}/approvals/{node_id}'), {
      params: { path: { execution_id, node_id } },
      body,
    }),
  );

export const getLogs = (execution_id: string, node_id: string) =>
  data(
    client.GET(at('/executions/{execution_id}/nodes/{node_id}/logs'), {
      params: { path: { execution_id, node_id } },
    }),
  );

export const requestControl = (execution_id: string, request: ControlRequest) =>
  data(
    client.POST(at(`/executions/{execution_id}/${request}`), {
      params: { path: { execution_id } },
    }),
  );

export const retry = (execution_id: string, options: RetryOptions, preview: boolean) =>
  data(
    client.POST(at('/executions/{execution_id}/retry'), {
      params: { path: { execution_id } },
      body: { ...options, preview },
    }),
  );

/** Only a retry has a preview. */
export const requestBulk = (action: BulkAction, execution_ids: string[], preview = false) =>
  data(
    client.POST(at('/executions/bulk'), {
      body: { action, execution_ids, ...(action === 'retry' ? { preview } : {}) },
    }),
  );

export const submit = (
  workflow: string,
  input: StartRequest['input'],
  labels: Record<string, string> = {},
) => data(client.POST(at('/executions'), { body: { workflow, input, labels } }));

/**
 * Sends a document as it is: read and written by JavaScript, its long numbers would be rounded.
 */
async function sendText(path: string, json: string): Promise<Response> {
  const headers = { 'Content-Type': 'application/json', ...authorization() };
  return reach(at(path), { method: 'POST', headers, body: json });
}

export async function validateDocument(json: string): Promise<Validation> {
  return (await sendText('/workflows/validate?graph=true', json)).json();
}

export async function putDocument(json: string): Promise<StoredWorkflow> {
  return (await sendText('/workflows', json)).json();
}

/** Starts a document without storing it under its name. */
export async function submitDocument(
  json: string,
  input: StartRequest['input'],
  labels: Record<string, string>,
): Promise<StartedExecution> {
  const rest = JSON.stringify({ input, labels }).slice(1);
  return (await sendText('/executions', `{"definition":${json},${rest}`)).json();
}

/** The answer of `getWorkflow` as text, with its numbers as they are stored. */
export async function getWorkflowText(name: string, version?: string): Promise<string> {
  const query = version ? `?version=${encodeURIComponent(version)}` : '';
  const path = at(`/workflows/${encodeURIComponent(name)}${query}`);
  return (await reach(path, { headers: authorization() })).text();
}

/**
 * What an execution runs, to be started again: by its name, or as a document if its name doesn't
 * lead to it.
 */
export async function getExecutionDefinition(execution_id: string) {
  const path = at(`/executions/${encodeURIComponent(execution_id)}/definition`);
  const text = await (await reach(path, { headers: authorization() })).text();
  const { workflow, version, definition, stored }: ExecutionDefinition = JSON.parse(text);
  if (stored) return { name: workflow, version, definition };
  return { name: workflow, definition, json: JSON.stringify(definition) };
}

export const getExecutionLogs = (execution_id: string, cursor: string | null) =>
  data(
    client.GET(at('/executions/{execution_id}/logs'), {
      params: { path: { execution_id }, query: { cursor } },
    }),
  );

export const getResults = (execution_id: string) =>
  data(
    client.GET(at('/executions/{execution_id}/results'), { params: { path: { execution_id } } }),
  );

export const searchValues = (
  place: 'input' | 'output',
  text: string,
  filters: SearchFilters,
  cursor: string | null,
) =>
  data(client.GET(at('/search'), { params: { query: { text, in: place, ...filters, cursor } } }));

export const searchErrors = (text: string, filters: SearchFilters, cursor: string | null) =>
  data(client.GET(at('/errors'), { params: { query: { text, ...filters, cursor } } }));

export const listKeys = () => data(client.GET(at('/keys')));

export const createKey = (name: string, scopes: Scope[]) =>
  data(client.POST(at('/keys'), { body: { name, scopes } }));

export const revokeKey = (key_id: string) =>
  data(client.DELETE(at('/keys/{key_id}'), { params: { path: { key_id } } }));

export const listAudit = (filters: AuditFilters, cursor: string | null, limit: number) =>
  data(client.GET(at('/audit'), { params: { query: { ...filters, cursor, limit } } }));

/** The JSON Schema of the document. */
export async function getDocumentSchema(): Promise<object> {
  return (await reach('/schema.json', { headers: authorization() })).json();
}

export const listWorkflows = (cursor: string | null, limit: number) =>
  data(client.GET(at('/workflows'), { params: { query: { cursor, limit } } }));

export const getWorkflow = (name: string, version?: string) =>
  data(client.GET(at('/workflows/{name}'), { params: { path: { name }, query: { version } } }));

export const listVersions = (name: string) =>
  data(client.GET(at('/workflows/{name}/versions'), { params: { path: { name } } }));

export const getWorkflowGraph = (name: string, version?: string) =>
  data(
    client.GET(at('/workflows/{name}/graph'), { params: { path: { name }, query: { version } } }),
  );

export const getWorkflowStats = (name: string, version?: string) =>
  data(
    client.GET(at('/workflows/{name}/stats'), { params: { path: { name }, query: { version } } }),
  );

export const setAlias = (name: string, alias: string, version: number) =>
  data(
    client.PUT(at('/workflows/{name}/aliases/{alias}'), {
      params: { path: { name, alias } },
      body: { version },
    }),
  );

export const removeAlias = (name: string, alias: string) =>
  data(
    client.DELETE(at('/workflows/{name}/aliases/{alias}'), { params: { path: { name, alias } } }),
  );

export const listDeadLetters = (filters: DeadLetterFilters, cursor: string | null, limit: number) =>
  data(client.GET(at('/dead-letters'), { params: { query: { ...filters, cursor, limit } } }));

export const getDeadLetter = (letter_id: number) =>
  data(client.GET(at('/dead-letters/{letter_id}'), { params: { path: { letter_id } } }));

export const retryDeadLetters = (ids: number[], preview: boolean) =>
  data(client.POST(at('/dead-letters/retry'), { body: { ids, preview } }));

export const dropDeadLetters = (ids: number[]) =>
  data(client.POST(at('/dead-letters/drop'), { body: { ids } }));

export const listWorkers = () => data(client.GET(at('/workers')));
export const listOrchestrators = () => data(client.GET(at('/orchestrators')));
export const listQueues = () => data(client.GET(at('/queues')));

/** The events of an execution, or of an item of it, with the items of maps as counts. */
export const eventsOf = (execution_id: string, under: string | null) =>
  `${V1}/executions/${encodeURIComponent(execution_id)}/events?depth=0` +
  (under === null ? '' : `&under=${encodeURIComponent(under)}`);
export const ALL_EVENTS = `${V1}/events?nodes=false`;

type JsonOf<Responses, Status extends keyof Responses> = Responses[Status] extends {
  content: { 'application/json': infer Body };
}
  ? Body
  : never;
export type Validation = JsonOf<paths['/api/v1/workflows/validate']['post']['responses'], 200>;
export type StoredWorkflow = JsonOf<paths['/api/v1/workflows']['post']['responses'], 201>;
type ExecutionDefinition = JsonOf<
  paths['/api/v1/executions/{execution_id}/definition']['get']['responses'],
  200
>;
type SentSignal = JsonOf<
  paths['/api/v1/executions/{execution_id}/signals']['post']['responses'],
  202
>;
type StartedExecution = JsonOf<paths['/api/v1/executions']['post']['responses'], 201>;

type Answer<F extends (...given: never[]) => Promise<unknown>> = Awaited<ReturnType<F>>;
type ItemOf<F extends (...given: never[]) => Promise<{ items: unknown[] }>> =
  Answer<F>['items'][number];

export type Me = Answer<typeof getMe>;
/** What a key may be made for, which is also what it may do. */
export type Scope = BodyOf<paths['/api/v1/keys']['post']>['scopes'][number];
export type ApiKey = ItemOf<typeof listKeys>;
export type AuditItem = ItemOf<typeof listAudit>;
export type LogItem = ItemOf<typeof getExecutionLogs>;
export type Results = Answer<typeof getResults>;
export type Stats = Answer<typeof getStats>;
export type StateCounts = Stats['totals'];
export type ExecutionPage = Answer<typeof listExecutions>;
export type ListedExecution = ItemOf<typeof listExecutions>;
export type Execution = Answer<typeof getExecution>;
export type Graph = Answer<typeof getGraph>;
export type GraphNode = Graph['nodes'][number];
export type GraphEdge = Graph['edges'][number];
export type HistoryItem = ItemOf<typeof getHistory>;
/** An event of a stream: a line of the history, and whose it is. */
export type Transition = HistoryItem & Pick<Execution, 'execution_id'>;
export type NodeDetail = Answer<typeof getNode>;
export type ItemCounts = NonNullable<GraphNode['items']>;
/** An event of a stream: how far the items of a map are. */
export type CountsEvent = Pick<Execution, 'execution_id'> & { node_id: string; items: ItemCounts };
export type Signal = ItemOf<typeof listSignals>;
export type Approval = ItemOf<typeof listApprovals>;
export type RetryPlan = Answer<typeof retry>;
export type RetryRun = RetryPlan['runs'][number];
export type BulkItem = ItemOf<typeof requestBulk>;
export type Workflow = Answer<typeof getWorkflow>;
export type Aliases = Workflow['aliases'];
export type ListedWorkflow = ItemOf<typeof listWorkflows>;
export type Version = ItemOf<typeof listVersions>;
export type WorkflowGraph = Answer<typeof getWorkflowGraph>;
export type WorkflowStats = Answer<typeof getWorkflowStats>;
export type NodeStats = WorkflowStats['nodes'][number];
export type DeadLetter = ItemOf<typeof listDeadLetters>;
export type RetriedLetters = ItemOf<typeof retryDeadLetters>;
export type Worker = ItemOf<typeof listWorkers>;
export type Orchestrator = ItemOf<typeof listOrchestrators>;
export type Queue = ItemOf<typeof listQueues>;
