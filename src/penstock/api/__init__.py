"""HTTP, thin: routes over `penstock.service`, errors as problem documents, OpenAPI.

What a request meets, in this order:

- `http_protocol`: HTTP connections with limits on what a client may send, and how slowly.
- `app`: the application: routes over a service, and what every request passes before them.
- `middleware`: puts the middleware into its order.
- `security_headers`: headers that every answer has, unless its route says otherwise.
- `client_address`: the address of the client, also behind a trusted proxy.
- `auth`: API keys and scopes, and a local service that no web page can drive.
- `failed_logins`: a trace of keys that were sent and weren't good.
- `rate_limit`: a sliding window for each key, or each address where there is no key.
- `redis_rate_limit`: the windows in Redis, so that all API processes count together.
- `audit_log`: a line for every call that changes something.
- `access`: who may do what, as one table; a route that isn't in it can't be reached.
- `mounting`: the path that the app is mounted under in another app.
- `raw_path`: the path as it was sent, for names that have a slash in them.
- `routing`: finds the route of a request, and calls its function.
- `parameters`: reads path, query and headers as the function's signature says.
- `bodies`: reads bodies: size, strict JSON, then the JSON Schema that OpenAPI shows.
- `paging`: lists in pages, and the parameters that choose them.
- `problems`: RFC 9457: whatever goes wrong is answered with a problem document.
- `timing`: how long answers wait, and what a stream of events does now and then.

The routes:

- `workflows`: definitions.
- `executions`: start, search, look, send control requests.
- `items`: nodes inside of items, and items as they end.
- `execution_details`: the document and all logs of an execution.
- `value_search`: the search in inputs and outputs.
- `schedules`: schedules, their slots, and when they start next.
- `signals`: send signals, and list them.
- `hooks`: webhooks: the address that senders send to, and the hooks themselves.
- `approvals`: open approvals, and decisions.
- `approval_page`: the page behind a link to an approval.
- `bulk`: one control request, or a retry, for many executions.
- `events`: live events as Server-Sent Events.
- `dead_letters`: dead letters.
- `failures`: the search for errors.
- `statistics`: figures for charts.
- `system`: workers, orchestrators, queues, the audit log, API keys.
- `health`: health checks.
- `compat`: the routes of the public implementations of this system.
- `compat_views`: the shapes of those.
- `ui_files`: the built web UI.
- `docs_page`: the OpenAPI document, as JSON and as a page.

The OpenAPI document:

- `body_schemas`: the schemas of request bodies.
- `describing`: the document, made from the routes and their parameters; the schemas of answers are
  made from `penstock.views`.
"""
