# debian: python3-asyncpg
# pypi: asyncpg
import asyncio

import asyncpg
import asyncpg.pgproto.pgproto
import asyncpg.protocol.protocol

u = asyncpg.pgproto.pgproto.UUID("12345678-1234-5678-9234-567812345678")
assert u.version == 5 and u.int == 0x12345678123456789234567812345678


async def main():
    try:
        await asyncpg.connect(host="127.0.0.1", port=1, user="u", database="d", timeout=60)
    except OSError:
        return
    raise AssertionError("connected to nothing")


asyncio.run(main())
