"""How alembic runs the migrations of the run database: on the connection that it is given, in the transaction that is open there."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transaction_per_migration=False)
with context.begin_transaction():
    context.run_migrations()
