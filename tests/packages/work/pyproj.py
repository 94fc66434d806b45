# debian: python3-pyproj
import pyproj

x, y = pyproj.Transformer.from_crs(4326, 32633, always_xy=True).transform(15, 52)
assert abs(x - 500000) < 0.01 and abs(y - 5761038.21) < 1
_, _, metres = pyproj.Geod(ellps="WGS84").inv(0, 0, 1, 0)
assert abs(metres - 111319.49) < 0.1 and pyproj.CRS(4326).name == "WGS 84"
