"""The HTTP API: a thin layer of routes over `penstock.service`.

app            the ASGI application
middleware     what a request passes first: access, auth, rate_limit, audit_log
workflows, executions, dead_letters, events, system    the routes
compat         the compatible routes, those of the public implementations of this system
bodies         request bodies: size, depth, strict JSON, JSON Schema
problems       errors as problem documents (RFC 9457)
schemas        the schemas of answers, for the OpenAPI document
raw_path, client_address    the path and the client of a request
ui_files       the files of the web UI
http_protocol  limits of HTTP connections
server         a process that serves the API
"""
