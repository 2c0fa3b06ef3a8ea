"""The schema of the run database: runs, their processes, files and counters, commands and notes. Times are UTC in ns, sizes in bytes. All its features
exist in PostgreSQL, too.

`migrations/` makes the tables; a test compares the two. Only this module's users import SQLAlchemy."""

from rodeo.control.paths import needed

sa = needed("sqlalchemy")

HEAD = "0003"  # the migration of these tables
OPEN, CLOSED, ABORTED = "OPEN", "CLOSED", "ABORTED"  # states of a run's row
METADATA = sa.MetaData()
Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite assigns ids only to a column of this type


def _text(name, **options):
    return sa.Column(name, sa.Text, **options)


def _ns(name, **options):
    return sa.Column(name, sa.BigInteger, **options)


def _id():
    return sa.Column("id", Number, primary_key=True, autoincrement=True)


def _run(**options):
    """Makes the column of a run number. It is no foreign key, because late records of the journal stay even if an older database has replaced this one."""
    return sa.Column("run", sa.BigInteger, **options)


LARGEST_RUN = 2**31 - 1  # limited to 31 bits, as in headers of RODs

run_number = sa.Table(
    "run_number", METADATA, _text("system", primary_key=True), sa.Column("last", sa.BigInteger, nullable=False)
)

config = sa.Table(
    "config", METADATA, _text("sha256", primary_key=True), _text("content", nullable=False)
)  # canonical JSON, and its checksum

run = sa.Table(
    "run",
    METADATA,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    _text("system", nullable=False),
    _text("type", nullable=False),
    _text("state", nullable=False),
    _text("condition"),
    _text("flags", nullable=False),
    _ns("asked_ns", nullable=False),
    _ns("first_event_ns"),
    _ns("stopped_ns"),
    _ns("closed_ns"),
    _text("reason", nullable=False),
    _text("config_sha256"),
    _text("build", nullable=False),
    _text("holder", nullable=False),
    _text("comment", nullable=False),
)
sa.Index(
    "one_open_run", run.c.system, unique=True, sqlite_where=run.c.state == OPEN, postgresql_where=run.c.state == OPEN
)
sa.Index("run_asked", run.c.asked_ns)

transition = sa.Table(
    "transition",
    METADATA,
    _id(),
    _run(nullable=False),
    _text("name", nullable=False),
    _text("from_state", nullable=False),
    _text("to_state", nullable=False),
    _text("actor", nullable=False),
    _ns("began_ns"),
    _ns("ended_ns"),
    _text("outcome", nullable=False),
    _text("detail", nullable=False),
)
sa.Index("transition_run", transition.c.run)

process = sa.Table(  # one launch of a process in a run: NAME, then NAME#2, NAME#3
    "process",
    METADATA,
    _run(primary_key=True, autoincrement=False),
    _text("name", primary_key=True),
    _text("class"),
    _text("kind"),
    _text("host"),
    _text("role"),
    sa.Column("pid", sa.BigInteger),
    _text("build"),
    _text("settings"),
    sa.Column("exit", sa.BigInteger),
    sa.Column("signal", sa.BigInteger),
    _text("core"),
    _text("report"),
)

file = sa.Table(
    "file",
    METADATA,
    _run(primary_key=True, autoincrement=False),
    _text("host", primary_key=True),
    _text("path", primary_key=True),
    sa.Column("bytes", sa.BigInteger),
    _text("sha256"),
    sa.Column("events", sa.BigInteger),
    sa.Column("verified", sa.Boolean, nullable=False),
    _text("state", nullable=False),
)

counter = sa.Table(
    "counter",
    METADATA,
    _run(primary_key=True, autoincrement=False),
    _text("process", primary_key=True),
    _text("name", primary_key=True),
    _text("labels", primary_key=True),
    _ns("when_ns", primary_key=True, autoincrement=False),
    sa.Column("value", sa.Double, nullable=False),
)

lumi_block = sa.Table(  # a stretch of a run with one luminosity block and scan step; null means unknown
    "lumi_block",
    METADATA,
    _run(primary_key=True, autoincrement=False),
    sa.Column("first_trigger", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("number", sa.BigInteger, nullable=False),
    sa.Column("scan_step", sa.BigInteger, nullable=False),
    sa.Column("first_id", sa.BigInteger),
    _ns("seen_ns"),
    sa.Column("triggers", sa.BigInteger),
    sa.Column("recorded", sa.BigInteger),
)

alarm = sa.Table(
    "alarm",
    METADATA,
    _text("system", primary_key=True),
    _text("cause", primary_key=True),
    _ns("raised_ns", primary_key=True, autoincrement=False),
    _run(),
    _text("severity", nullable=False),
    _text("what", nullable=False),
    _text("value"),
    _text("limit"),
    _text("do", nullable=False),
    _text("process"),
    _text("acked_by"),
    _ns("acked_ns"),
    _ns("cleared_ns"),
    _ns("followed_ns"),
)  # `followed` says that the same cause was raised again
sa.Index("alarm_raised", alarm.c.raised_ns)

note = sa.Table(  # a note never changes: a newer version has the id of the replaced one
    "note",
    METADATA,
    _id(),
    _run(),
    _text("author", nullable=False),
    _ns("written_ns", nullable=False),
    _text("text", nullable=False),
    sa.Column("replaces", sa.BigInteger),
)
sa.Index("note_run", note.c.run)

quality = sa.Table(
    "quality",
    METADATA,
    _id(),
    _run(nullable=False),
    _text("subsystem", nullable=False),
    _ns("from_ns"),
    _ns("to_ns"),
    _text("verdict", nullable=False),
    _text("by", nullable=False),
    _text("verified_by"),
)
sa.Index("quality_run", quality.c.run)

audit = sa.Table(  # chained: each row's checksum includes the one before
    "audit",
    METADATA,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    _text("system", nullable=False),
    _ns("time_ns", nullable=False),
    _text("actor", nullable=False),
    _text("whence", nullable=False),
    _text("role", nullable=False),
    _text("command", nullable=False),
    _text("arguments", nullable=False),
    _text("outcome", nullable=False),
    _text("detail", nullable=False),
    _text("previous", nullable=False),
    _text("sha256", nullable=False),
)

chain = sa.Table(
    "chain",
    METADATA,
    _text("name", primary_key=True),
    sa.Column("last", sa.BigInteger, nullable=False),
    _text("sha256", nullable=False),
)

remembered = sa.Table(
    "remembered",
    METADATA,
    _text("system", primary_key=True),
    _text("key", primary_key=True),
    _text("value", nullable=False),
)

# The last record of each store in these tables. The record's transaction writes it, so each record is applied once.
journal = sa.Table("journal", METADATA, _text("id", primary_key=True), sa.Column("last", sa.BigInteger, nullable=False))
unusable = sa.Table(  # records of a store that fit no table; they stay unchanged and are counted
    "unusable",
    METADATA,
    _text("journal", primary_key=True),
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    _text("record", nullable=False),
    _text("why", nullable=False),
)

# Only the store of a room has rows in these three.
store = sa.Table(  # one row: the id under which this file writes, its place, and the server that it feeds, or ""
    "store",
    METADATA,
    _text("id", primary_key=True),
    _text("host", nullable=False),
    _text("path", nullable=False),
    sa.Column("inode", sa.BigInteger, nullable=False),
    _text("server", nullable=False),
)
outbox = sa.Table(  # records that the server may lack
    "outbox",
    METADATA,
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    _text("store", nullable=False),
    _text("record", nullable=False),
)
number_block = sa.Table(  # run numbers that the server has reserved for this system: `next` to `last` are left
    "number_block",
    METADATA,
    sa.Column("first", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("next", sa.BigInteger, nullable=False),
    sa.Column("last", sa.BigInteger, nullable=False),
)
RUN_TABLES = (transition, process, file, counter, lumi_block, note, quality)  # tables of one run; alarms are apart
