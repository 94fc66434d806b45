# debian: python3-ephem
import ephem

assert str(ephem.next_full_moon("2024/1/1")).startswith("2024/1/25")
where = ephem.Observer()
where.lat, where.lon, where.date = "52", "13", "2024/6/21 12:00"
assert abs(float(ephem.Sun(where).dec) - 0.409) < 0.001
assert ephem.constellation(ephem.Mars("2024/1/1"))[1]
