"""The store of a room: its id and place, the records that wait for a server, and the run numbers that a server has reserved."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        "store",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("inode", sa.BigInteger(), nullable=False),
        sa.Column("server", sa.Text(), nullable=False),
    )
    op.create_table(
        "outbox",
        sa.Column("sequence", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("store", sa.Text(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
    )
    op.create_table(
        "number_block",
        sa.Column("first", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("next", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
    )
