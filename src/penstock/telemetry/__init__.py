"""What a running Penstock says about itself.

Made once per process and passed down; nothing here is a global switch.

- `scope`: whose attempt the current code belongs to: what marks log lines and outgoing calls.
- `logs`: one structured pipeline for our own log, the libraries' and the handlers'.
- `metrics`: counting, in plain numbers, once per commit and once per attempt.
- `exposition`: these numbers for Prometheus.
- `outcomes`: lines for attempts that failed and executions that ended, as many as can be read.
- `traces`: W3C trace context from the request to the outgoing call, and spans.

structlog, prometheus_client and opentelemetry take 40 to 150 ms each to import: `logs` and
`exposition` are imported by the commands that serve, `traces` imports opentelemetry only when the
process has it already or asks for it.
"""
