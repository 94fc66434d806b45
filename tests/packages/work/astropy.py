# debian: python3-astropy
import numpy as np
from astropy import units as u
from astropy.io import fits
from astropy.table import Table
from astropy.time import Time
from astropy.wcs import WCS

assert abs((1 * u.lyr).to(u.km).value / 9.4607304725808e12 - 1) < 1e-12
assert Time("2000-01-01T12:00:00", scale="tt").jd == 2451545.0
w = WCS(naxis=2)
w.wcs.ctype = ["RA---TAN", "DEC--TAN"]
w.wcs.crval, w.wcs.crpix, w.wcs.cdelt = [10, 20], [50, 50], [0.01, 0.01]
assert np.allclose(w.wcs_world2pix(w.wcs_pix2world([[30, 70]], 1), 1), [[30, 70]])
table = Table.read("a b\n1 2.5\n3 4.5\n", format="ascii.fast_basic")
assert table["b"].sum() == 7
assert fits.ImageHDU(np.ones((3, 3))).data.sum() == 9
