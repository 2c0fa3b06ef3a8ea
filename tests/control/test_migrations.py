"""The migrations of the run database make the tables of the code; they update older databases and do not touch newer ones."""

import asyncio
import shutil
import sqlite3

import pytest
from databases import begin, opened
from rodeo.control.database import schema as schema_module
from rodeo.control.database.schema import Schema, limits, refuse_other, version
from rodeo.control.database.tables import HEAD, METADATA
from rodeo.control.refused import Refused


def made(path):
    schema = Schema(f"sqlite:///{path}")
    engine = schema.engine(create=True)
    with engine.connect() as connection:
        schema.bring_up(connection)
    engine.dispose()
    return schema


def test_migrations_make_the_tables_of_the_code(tmp_path):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    schema = made(tmp_path / "runs.db")
    engine = schema.engine()
    with engine.connect() as connection, connection.begin():
        assert version(connection) == HEAD
        assert compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), METADATA) == []
    engine.dispose()
    direct = sqlite3.connect(":memory:")
    from rodeo.control.database.tables import sa

    other = sa.create_engine("sqlite://", creator=lambda: direct, poolclass=sa.pool.StaticPool)
    METADATA.create_all(other)
    with sqlite3.connect(tmp_path / "runs.db") as migrated:
        assert columns(migrated) == columns(direct)
    migrated.close()
    other.dispose()


def columns(connection):
    """Returns {table: [(column, type, not null, place in the key)]} and the columns of indices, from SQLite."""
    tables = [
        name
        for (name,) in connection.execute(
            "select name from sqlite_master where type = 'table' and name not like 'sqlite%' and name != 'alembic_version'"
        )
    ]
    found = {
        name: [tuple(row[index] for index in (1, 2, 3, 5)) for row in connection.execute(f"pragma table_info({name})")]
        for name in tables
    }
    indices = {
        name: " ".join(sql.split())
        for name, sql in connection.execute(
            "select name, sql from sqlite_master where type = 'index' and sql is not null"
        )
    }
    return found, indices


def test_there_is_one_way_from_the_first_tables_to_the_last():
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from rodeo.control.database.schema import MIGRATIONS

    settings = Config()
    settings.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(settings).get_heads() == [HEAD]


def test_tables_of_postgresql_can_be_made_of_it():
    from rodeo.control.database.tables import sa

    said = []
    engine = sa.create_mock_engine(
        "postgresql+psycopg://", lambda statement, *_: said.append(str(statement.compile(dialect=engine.dialect)))
    )
    METADATA.create_all(engine, checkfirst=False)
    text = "\n".join(said)
    assert (
        "WHERE state = 'OPEN'" in text
        and "BIGSERIAL" in text
        and len([one for one in said if "CREATE TABLE" in one]) == len(METADATA.tables)
    )


def test_a_connection_of_postgresql_does_not_wait_for_ever():
    from rodeo.control.database.tables import sa

    given = limits(sa.make_url("postgresql+psycopg://host/lab"), 5.0)
    assert (
        given["keepalives"] == 1
        and given["tcp_user_timeout"] == 12_000
        and given["options"] == "-c statement_timeout=60000 -c lock_timeout=5000"
    )
    own = limits(sa.make_url("postgresql+psycopg://host/lab?connect_timeout=9&options=-c%20lock_timeout%3D1"), 5.0)
    assert "connect_timeout" not in own and "options" not in own
    assert limits(sa.make_url("mysql://host/lab"), 5.0) == {}


def newer(path):
    made(path)
    with sqlite3.connect(path) as connection:
        connection.execute("update alembic_version set version_num = '9999'")
    connection.close()


def test_a_database_of_a_newer_version_is_left_alone_and_no_room_begins_with_it(tmp_path):
    newer(tmp_path / "runs.db")
    before = (tmp_path / "runs.db").read_bytes()

    async def main():
        with pytest.raises(Refused) as refused:
            async with opened(tmp_path):
                pass
        assert refused.value.code == "control.database_version" and "9999" in refused.value.what

    asyncio.run(main())
    assert (tmp_path / "runs.db").read_bytes() == before


def test_a_server_of_a_newer_version_is_left_alone_and_counts_as_gone(tmp_path):
    newer(tmp_path / "server.db")

    async def main():
        async with opened(tmp_path, f"sqlite:///{tmp_path / 'server.db'}") as database:
            health = database.writer.health()
            assert health["state"] == "gone" and "newer version" in health["why"]
            with pytest.raises(Refused):
                await begin(database)
            with pytest.raises(Refused):
                await database.reads.runs()

    asyncio.run(main())


def test_a_database_from_before_luminosity_blocks_gets_their_table_and_keeps_its_runs(tmp_path):
    path = tmp_path / "runs.db"
    schema = made(path)
    engine = schema.engine()
    with engine.connect() as connection, connection.begin():
        for table in ("lumi_block", "store", "outbox", "number_block"):
            connection.exec_driver_sql(f"drop table {table}")
        connection.exec_driver_sql("update alembic_version set version_num = '0001'")
        connection.exec_driver_sql("insert into run_number values ('lab', 7)")
    with engine.connect() as connection:
        schema.bring_up(connection)
    with engine.connect() as connection:
        assert version(connection) == HEAD
        assert connection.exec_driver_sql("select last from run_number").scalar() == 7
        assert connection.exec_driver_sql("select count(*) from lumi_block").scalar() == 0
    engine.dispose()


SECOND = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "0004", "0003"


def upgrade():
    op.add_column("run", sa.Column("beam", sa.Text()))
"""


def test_an_older_database_is_copied_and_then_brought_up_to_date(tmp_path, monkeypatch):
    old = made(tmp_path / "runs.db")
    migrations = tmp_path / "migrations"
    shutil.copytree(schema_module.MIGRATIONS, migrations)
    (migrations / "versions" / "0004_beam.py").write_text(SECOND)
    monkeypatch.setattr(schema_module, "MIGRATIONS", migrations)
    monkeypatch.setattr(schema_module, "HEAD", "0004")
    engine = old.engine(writes=False)
    with engine.connect() as connection, connection.begin(), pytest.raises(Refused, match="has tables 0003"):
        refuse_other(connection, old)
    engine.dispose()
    made(tmp_path / "runs.db")
    found = {}
    for name in ("runs.db", "runs.db.before-0004"):
        with sqlite3.connect(tmp_path / name) as connection:
            found[name] = (
                "beam" in [each[0] for each in columns(connection)[0]["run"]],
                connection.execute("select version_num from alembic_version").fetchall(),
            )
        connection.close()
    assert found == {"runs.db": (True, [("0004",)]), "runs.db.before-0004": (False, [("0003",)])}


def test_a_file_that_is_something_else_is_not_read_as_a_run_database(tmp_path):
    with sqlite3.connect(tmp_path / "runs.db") as connection:
        connection.execute("create table something (a)")
    connection.close()
    schema = Schema(f"sqlite:///{tmp_path / 'runs.db'}")
    engine = schema.engine(writes=False)
    with engine.connect() as connection, connection.begin(), pytest.raises(Refused, match="not a run database"):
        refuse_other(connection, schema)
    engine.dispose()
