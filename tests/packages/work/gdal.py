# debian: python3-gdal
import numpy as np
from osgeo import gdal, ogr, osr

gdal.UseExceptions()
name = "/vsimem/%d.tif" % id(object())
image = gdal.GetDriverByName("GTiff").Create(name, 16, 8, 1, gdal.GDT_Int16)
image.GetRasterBand(1).WriteArray(np.arange(128, dtype=np.int16).reshape(8, 16))
image = None
image = gdal.Open(name)
assert image.ReadAsArray()[3, 5] == 53 and image.GetRasterBand(1).ComputeStatistics(False)[2] == 63.5
image = None
gdal.Unlink(name)
assert ogr.CreateGeometryFromWkt("POINT (0 0)").Buffer(1).Area() > 3.1
system = osr.SpatialReference()
system.ImportFromEPSG(32633)
assert system.IsProjected() and system.GetUTMZone() == 33
