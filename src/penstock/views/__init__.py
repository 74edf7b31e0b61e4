"""What users SEE: the shapes of all answers, each made from records in one place. Pure.

A view is a msgspec struct. Over HTTP it is encoded as JSON, and its schema in the OpenAPI document
is made from the struct; the command line decodes answers into the same struct. Next to a struct
stands the function that makes it from records. So a new field of an execution is a field of its
record and a field here.

A field that an answer may lack is UNSET by default: it is left out. A field with another default
is always sent, but an older server may not have it. Times are text (`time_text`).

- `executions`: an execution, in a list or whole; its history, its logs, its outputs.
- `starts`: an execution that was just started, and one of a batch.
- `nodes`: a node of an execution: among others, and alone with everything about it.
- `attempts`: the attempts of a node.
- `tokens`: the tokens of language models that an execution has used.
- `graphs`: a workflow or an execution as nodes and edges.
- `trees`: an execution with its children, and theirs.
- `errors`: errors, and the failed attempts that they come from.
- `signals`: signals, and what became of them.
- `approvals`: open approvals, and decisions.
- `approval_links`: the tokens of links that decide an approval.
- `why`: why a node isn't running.
- `retries`: what a retry runs again, and what it reuses.
- `dead_letters`: dead letters, and the failures that they record.
- `workflows`: workflows, versions, aliases, and what is wrong with a document.
- `statistics`: figures for charts.
- `fleet`: workers, orchestrators, queues.
- `access`: callers, API keys, the audit log.
- `health`: health checks.
- `problems`: problem documents.
- `pages`: a page of a list.
- `times`: times as text.
- `values`: inputs and outputs of any size.
- `result`: `penstock.Result`, an execution as Python code reads it.
"""
