"""HTTP, thin: routes over `penstock.service`, errors as problem documents, an OpenAPI document that is true.

app          puts it together; the order of what a request passes
bodies       reading: size, depth, strict JSON, the JSON Schema that the OpenAPI document shows
problems     answering: RFC 9457, whatever went wrong
schemas      the shapes
workflows, executions, dead_letters, events, system    the routes
compat       the routes of the public implementations of this system
middleware   what a request passes: access, auth, rate_limit, audit_log
ui_files     the web UI; raw_path, client_address: what a request says of itself
server       a process that serves
"""
