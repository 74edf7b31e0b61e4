"""Maps and loops, built in Python."""

from __future__ import annotations

import pytest

from penstock.definition.builder import ItemRef, Ref, Workflow
from penstock.definition.plan import compile_document


def test_the_nodes_inside_of_each_are_the_body_of_a_map():
    flow = Workflow("crawl")
    found = flow.node("list", "noop")
    with flow.each(
        "each", found["items"], as_="page", key="{{ page.id }}", max_parallel=20
    ) as page:
        fetched = flow.node("fetch", "http_request", url=page["url"])
        flow.collect(flow.node("parse", "noop", text=fetched["data"], whose=found["name"]))
    flow.node("all", "noop", pages=Ref("each"))
    document = flow.document()
    nodes = document["dag"]["nodes"]
    assert nodes[1] == {
        "id": "each", "for_each": '{{ nodes["list"]["items"] }}', "as": "page",
        "key": "{{ page.id }}", "max_parallel": 20, "dependencies": ["list"],
        "collect": '{{ nodes["parse"] }}',
        "nodes": [
            {"id": "fetch", "handler": "http_request", "dependencies": [],
             "config": {"url": '{{ page["url"] }}'}},
            {"id": "parse", "handler": "noop", "dependencies": ["fetch"],
             "config": {"text": '{{ nodes["fetch"]["data"] }}',
                        "whose": '{{ nodes["list"]["name"] }}'}},
        ],
    }  # fmt: skip
    plan = compile_document(document).plan
    assert plan.nodes[2].dependencies == (1,)


def test_for_each_as_a_key_of_a_config_is_refused_with_the_way_to_write_a_map():
    with pytest.raises(TypeError, match="a map in Python"):
        Workflow("crawl").node("each", "noop", for_each=[1])


def test_the_nodes_inside_of_repeat_are_the_body_of_a_loop():
    flow = Workflow("agent")
    with flow.repeat("agent", until="think.stop", max_rounds=3, initial={"n": 0}) as previous:
        flow.collect(flow.node("think", "noop", n=previous["n"]))
    node = flow.document()["dag"]["nodes"][0]
    assert node["repeat"] == {
        "until": "think.stop",
        "max_rounds": 3,
        "initial": {"n": 0},
        "carry": '{{ nodes["think"] }}',
    }
    assert node["nodes"][0]["config"] == {"n": '{{ previous["n"] }}'}
    compile_document(flow.document())


def test_mistakes_in_building_a_map_are_refused():
    flow = Workflow("w")
    with pytest.raises(ValueError, match=r"collect\(\) belongs inside"):
        flow.collect(1)
    with pytest.raises(TypeError, match="has no field 'retry'"), flow.each("e", [1], retry={}):
        pass
    flow.node("a", "noop")
    with pytest.raises(ValueError, match="already has a node 'a'"), flow.each("a", [1]):
        pass
    assert str(ItemRef("page")["x"][0]) == '{{ page["x"][0] }}'
