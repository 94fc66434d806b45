# debian: python3-shapely
# pypi: shapely
import shapely.wkt
from shapely.geometry import Point, Polygon
from shapely.ops import unary_union

square = Polygon([(0, 0), (4, 0), (4, 4), (0, 4)])
hole = square.difference(Point(2, 2).buffer(1, 64))
assert abs(hole.area - (16 - 3.1412)) < 0.01 and not hole.contains(Point(2, 2))
assert unary_union([square, Polygon([(4, 0), (8, 0), (8, 4), (4, 4)])]).area == 32
assert shapely.wkt.loads("POINT (1 2)").distance(Point(4, 6)) == 5
