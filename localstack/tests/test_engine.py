"""dynoxide behind LocalStack, on the running stack."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import time
import uuid

from conftest import Stack, eventually
from test_mappings import Received, put


def test_the_engine_is_started_again_with_what_it_held(stack: Stack) -> None:
    dynamodb, table = stack.client("dynamodb"), stack.resources["Table"]
    received, pk = Received(stack.stream_handler), uuid.uuid4().hex
    put(stack, "before", pk=pk)
    first = stack.get(stack.state["engine"])
    os.kill(first["pid"], signal.SIGKILL)

    def is_back() -> bool:
        with contextlib.suppress(Exception):  # refused, or answered by a gateway that was refused
            return "Item" in dynamodb.get_item(TableName=table, Key={"pk": {"S": pk}, "sk": {"S": "before"}})
        return False

    eventually(is_back)
    second = stack.get(stack.state["engine"])
    assert second["pid"] != first["pid"]
    assert second["url"] == first["url"]
    put(stack, "after", pk=pk)
    eventually(lambda: set(received.names) >= {"before", "after"})


def test_each_stream_index_is_there_once_and_is_used(stack: Stack) -> None:
    database = stack.settings.folder / "engine" / "tables.sqlite"
    next_number = "SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records WHERE table_name = 'x'"
    records = "SELECT * FROM _stream_records WHERE table_name = 'x' AND shard_id = 'y' AND CAST(sequence_number AS INTEGER) > 5"
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        indexes = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = '_stream_records'").fetchall()
        columns = sorted("".join(sql.split("_stream_records", 2)[2].split()) for (sql,) in indexes)
        plans = [str(connection.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()) for query in (next_number, records)]
    assert columns == [
        "(table_name,CAST(sequence_numberASINTEGER))",
        "(table_name,shard_id,CAST(sequence_numberASINTEGER))",
    ]
    assert all("USING INDEX _stream_records_by_" in plan or "USING COVERING INDEX _stream_records_by_" in plan for plan in plans), plans


def test_a_transaction_is_judged_item_by_item_and_says_which_refused(stack: Stack) -> None:
    dynamodb, table, pk = stack.client("dynamodb"), stack.resources["Table"], uuid.uuid4().hex
    put(stack, "there", pk=pk, ring=False)
    items = [
        {"Put": {"TableName": table, "Item": {"pk": {"S": pk}, "sk": {"S": "new"}}}},
        {
            "Put": {
                "TableName": table,
                "Item": {"pk": {"S": pk}, "sk": {"S": "there"}},
                "ConditionExpression": "attribute_not_exists(pk)",
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        },
    ]
    try:
        dynamodb.transact_write_items(TransactItems=items)
        raise AssertionError("it was carried out")
    except dynamodb.exceptions.TransactionCanceledException as refused:
        reasons = refused.response["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == ["None", "ConditionalCheckFailed"]
    assert reasons[1]["Item"]["sk"] == {"S": "there"}
    assert "Item" not in dynamodb.get_item(TableName=table, Key={"pk": {"S": pk}, "sk": {"S": "new"}})


def test_expired_items_are_deleted_when_a_test_asks_for_it(stack: Stack) -> None:
    dynamodb, table, pk = stack.client("dynamodb"), stack.resources["Table"], uuid.uuid4().hex
    item = {"pk": {"S": pk}, "sk": {"S": "old"}, "expiresAt": {"N": str(int(time.time()) - 10)}}
    dynamodb.put_item(TableName=table, Item=item)
    import urllib.request

    ask = urllib.request.Request(f"{stack.state['endpoint']}/_aws/dynamodb/expired", method="DELETE")
    urllib.request.urlopen(ask, timeout=10)
    assert "Item" not in dynamodb.get_item(TableName=table, Key={"pk": {"S": pk}, "sk": {"S": "old"}})
