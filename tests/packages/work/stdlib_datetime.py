# debian: libpython3-stdlib
import datetime
import zoneinfo

berlin = zoneinfo.ZoneInfo("Europe/Berlin")
summer = datetime.datetime(2021, 7, 1, 12, tzinfo=berlin)
assert summer.utcoffset() == datetime.timedelta(hours=2)
assert summer.astimezone(datetime.timezone.utc).isoformat() == "2021-07-01T10:00:00+00:00"
assert datetime.date.fromisoformat("2024-02-29").strftime("%j") == "060"
