# debian: python3-sqlalchemy-ext
# pypi: SQLAlchemy
import sys

import sqlalchemy as sa

# Where its extensions are depends on its version, and it does without.
native = [n for n, m in sys.modules.items() if str(getattr(m, "__file__", "")).endswith(".so")]
assert any(n.startswith("sqlalchemy.") for n in native)
engine = sa.create_engine("sqlite://")
meta = sa.MetaData()
table = sa.Table("t", meta, sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.String))
with engine.begin() as connection:
    meta.create_all(connection)
    connection.execute(table.insert(), [{"name": "n%d" % i} for i in range(100)])
    rows = connection.execute(sa.text("select id, name from t where id > 97 order by id")).fetchall()
assert [tuple(r) for r in rows] == [(98, "n97"), (99, "n98"), (100, "n99")] and rows[0].name == "n97"
engine.dispose()
