"""The first schema of the run database."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite assigns ids only to a column of this type


def upgrade():
    op.create_table(
        "run_number",
        sa.Column("system", sa.Text(), primary_key=True),
        sa.Column("last", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "config",
        sa.Column("sha256", sa.Text(), primary_key=True),
        sa.Column("content", sa.Text(), nullable=False),
    )
    op.create_table(
        "run",
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("system", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("condition", sa.Text()),
        sa.Column("flags", sa.Text(), nullable=False),
        sa.Column("asked_ns", sa.BigInteger(), nullable=False),
        sa.Column("first_event_ns", sa.BigInteger()),
        sa.Column("stopped_ns", sa.BigInteger()),
        sa.Column("closed_ns", sa.BigInteger()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("config_sha256", sa.Text()),
        sa.Column("build", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
    )
    op.create_index(
        "one_open_run",
        "run",
        ["system"],
        unique=True,
        sqlite_where=sa.text("state = 'OPEN'"),
        postgresql_where=sa.text("state = 'OPEN'"),
    )
    op.create_index("run_asked", "run", ["asked_ns"])
    op.create_table(
        "transition",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("from_state", sa.Text(), nullable=False),
        sa.Column("to_state", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("began_ns", sa.BigInteger()),
        sa.Column("ended_ns", sa.BigInteger()),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
    )
    op.create_index("transition_run", "transition", ["run"])
    op.create_table(
        "process",
        sa.Column("run", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("class", sa.Text()),
        sa.Column("kind", sa.Text()),
        sa.Column("host", sa.Text()),
        sa.Column("role", sa.Text()),
        sa.Column("pid", sa.BigInteger()),
        sa.Column("build", sa.Text()),
        sa.Column("settings", sa.Text()),
        sa.Column("exit", sa.BigInteger()),
        sa.Column("signal", sa.BigInteger()),
        sa.Column("core", sa.Text()),
        sa.Column("report", sa.Text()),
    )
    op.create_table(
        "file",
        sa.Column("run", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("host", sa.Text(), primary_key=True),
        sa.Column("path", sa.Text(), primary_key=True),
        sa.Column("bytes", sa.BigInteger()),
        sa.Column("sha256", sa.Text()),
        sa.Column("events", sa.BigInteger()),
        sa.Column("verified", sa.Boolean(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
    )
    op.create_table(
        "counter",
        sa.Column("run", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("process", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("labels", sa.Text(), primary_key=True),
        sa.Column("when_ns", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("value", sa.Double(), nullable=False),
    )
    op.create_table(
        "alarm",
        sa.Column("system", sa.Text(), primary_key=True),
        sa.Column("cause", sa.Text(), primary_key=True),
        sa.Column("raised_ns", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("run", sa.BigInteger()),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("value", sa.Text()),
        sa.Column("limit", sa.Text()),
        sa.Column("do", sa.Text(), nullable=False),
        sa.Column("process", sa.Text()),
        sa.Column("acked_by", sa.Text()),
        sa.Column("acked_ns", sa.BigInteger()),
        sa.Column("cleared_ns", sa.BigInteger()),
        sa.Column("followed_ns", sa.BigInteger()),
    )
    op.create_index("alarm_raised", "alarm", ["raised_ns"])
    op.create_table(
        "note",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("run", sa.BigInteger()),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("written_ns", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("replaces", sa.BigInteger()),
    )
    op.create_index("note_run", "note", ["run"])
    op.create_table(
        "quality",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("subsystem", sa.Text(), nullable=False),
        sa.Column("from_ns", sa.BigInteger()),
        sa.Column("to_ns", sa.BigInteger()),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("verified_by", sa.Text()),
    )
    op.create_index("quality_run", "quality", ["run"])
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("system", sa.Text(), nullable=False),
        sa.Column("time_ns", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("whence", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
    )
    op.create_table(
        "chain",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
    )
    op.create_table(
        "remembered",
        sa.Column("system", sa.Text(), primary_key=True),
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("value", sa.Text(), nullable=False),
    )
    op.create_table(
        "journal",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("last", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "unusable",
        sa.Column("journal", sa.Text(), primary_key=True),
        sa.Column("sequence", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
    )
    op.execute("insert into chain (name, last, sha256) values ('audit', 0, '" + "0" * 64 + "')")
