"""Luminosity blocks of a run: first trigger, number of triggers, number of recorded events."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        "lumi_block",
        sa.Column("run", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("first_trigger", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("scan_step", sa.BigInteger(), nullable=False),
        sa.Column("first_id", sa.BigInteger()),
        sa.Column("seen_ns", sa.BigInteger()),
        sa.Column("triggers", sa.BigInteger()),
        sa.Column("recorded", sa.BigInteger()),
    )
