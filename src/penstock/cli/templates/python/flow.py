"""A workflow in Python: a reference to the output of a node makes the dependency.

Run it with `python flow.py`.
"""

import penstock

import handlers

flow = penstock.Workflow("greeting")
name = flow.node(
    "name", handlers.tidy_name, name="{{ input.name }}", retry=penstock.Retry(max_attempts=3)
)
greeting = flow.node("greeting", "echo", text=penstock.text("Hello, {}!", name["full"]))
initials = flow.node("initials", handlers.find_initials, name=name["full"])
flow.node("output", "output", config={"text": greeting["text"], "initials": initials["initials"]})

if __name__ == "__main__":
    result = penstock.run(flow, input={"name": "ada  lovelace"})
    print(result.state, result.output)
