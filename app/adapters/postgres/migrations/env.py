from alembic import context
from sqlalchemy import create_engine, pool, text

# Any number will do that nobody else locks: the first digits of the golden ratio.
LOCK = 1618033988

engine = create_engine(context.config.attributes["url"], poolclass=pool.NullPool)
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=None)
    with context.begin_transaction():
        # Held until the transaction ends, so that a second process reads the version only after the first is done.
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        context.run_migrations()
engine.dispose()
