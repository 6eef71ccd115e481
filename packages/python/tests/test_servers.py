"""Servers of the installed SDK, spoken to in raw JSON-RPC, in each era that it has."""

from typing import Any

import pytest
from conftest import HAS_FASTMCP

from mcp_evals import add_evals, execution

SERVERS = ["high_level.py", "low_level.py", *(["fast.py"] if HAS_FASTMCP else [])]
CHANGING = [name for name in SERVERS if name != "low_level.py"]


def ids(answer: dict[str, Any]) -> list[str]:
    return [item["id"] for item in answer["result"]["evals"]]


@pytest.mark.parametrize("name", SERVERS)
def test_the_capability_is_declared_in_all_places(connect: Any, name: str) -> None:
    capabilities = connect(name).open()
    assert capabilities["evals"] == {}
    assert capabilities["experimental"]["evals"] == {}
    assert capabilities["extensions"]["dev.mcp-proctor/evals"] == {}


def test_other_capabilities_stay(connect: Any) -> None:
    assert "tools" in connect("high_level.py").open()


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_lists_its_evals(connect: Any, name: str) -> None:
    client = connect(name)
    client.open()
    assert ids(client.request("evals/list")) == ["echoes"]


def test_pages_are_followed_to_the_end(connect: Any) -> None:
    client = connect("high_level.py")
    client.open()
    found, params = [], {}
    while True:
        answer = client.request("evals/list", params)
        found += ids(answer)
        if "nextCursor" not in answer["result"]:
            break
        params = {"cursor": answer["result"]["nextCursor"]}
    assert found == ["echoes", "is-chosen", "talks"]


def test_a_level_selects(connect: Any) -> None:
    client = connect("high_level.py")
    client.open()
    answer = client.request("evals/list", {"level": "scenario"})
    assert ids(answer) == ["talks"]
    assert "nextCursor" not in answer["result"]
    if client.era == "stateless":
        assert answer["result"]["resultType"] == "complete"
        assert answer["result"]["ttlMs"] == 0
        assert answer["result"]["cacheScope"] == "private"


@pytest.mark.parametrize(
    "params", [{"cursor": "nowhere"}, {"cursor": 1}, {"cursor": None}, {"level": "all"}, {"level": None}]
)
def test_wrong_params_are_refused(connect: Any, params: dict[str, Any]) -> None:
    client = connect("high_level.py")
    client.open()
    assert client.request("evals/list", params)["error"]["code"] == -32602


def test_tools_still_work(connect: Any) -> None:
    client = connect("high_level.py")
    client.open()
    client.request("evals/list")
    answer = client.request("tools/call", {"name": "echo", "arguments": {"text": "hello"}})
    assert answer["result"]["content"] == [{"type": "text", "text": "hello"}]


@pytest.mark.parametrize("name", CHANGING)
def test_clients_are_told_of_changed_evals(connect: Any, name: str) -> None:
    client = connect(name, "--changing")
    capabilities = client.open()
    assert capabilities["evals"] == {"listChanged": True}
    if client.era == "stateless":
        wanted = {"notifications": {"evalsListChanged": True, "toolsListChanged": True}}
        subscription = client.start("subscriptions/listen", wanted)
        ack = client.wait_for("notifications/subscriptions/acknowledged")
        assert ack["params"]["notifications"] == {"evalsListChanged": True, "toolsListChanged": True}
    client.request("tools/call", {"name": "change", "arguments": {}})
    changed = client.wait_for("notifications/evals/list_changed")
    if client.era == "stateless":
        meta = changed["params"]["_meta"]
        assert meta["io.modelcontextprotocol/subscriptionId"] == subscription
    assert ids(client.request("evals/list")) == ["changed"]


def test_a_subscription_to_other_things_gets_no_news_of_evals(connect: Any) -> None:
    client = connect("high_level.py", "--changing")
    client.open()
    if client.era == "stateless":
        client.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        ack = client.wait_for("notifications/subscriptions/acknowledged")
        assert ack["params"]["notifications"] == {"toolsListChanged": True}
        client.request("tools/call", {"name": "change", "arguments": {}})
        assert ids(client.request("evals/list")) == ["changed"]
        methods = [message["method"] for message in client.notifications]
        assert "notifications/evals/list_changed" not in methods


def test_evals_that_were_not_declared_as_changing_stay(connect: Any) -> None:
    client = connect("high_level.py")
    client.open()
    answer = client.request("tools/call", {"name": "change", "arguments": {}})
    assert answer["result"]["isError"] is True
    assert ids(client.request("evals/list")) == ["echoes"]


def test_something_else_is_not_a_server() -> None:
    with pytest.raises(TypeError, match="`dict` is not a server"):
        add_evals({}, [execution("a", "b", content="c")])


def test_evals_are_added_once() -> None:
    from mcp.server.lowlevel import Server

    server: Any = Server("twice")
    add_evals(server, [execution("a", "b", content="c")])
    with pytest.raises(ValueError, match="has evals already"):
        add_evals(server, [execution("a", "b", content="c")])
