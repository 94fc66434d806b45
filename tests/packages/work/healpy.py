# debian: python3-healpy
import healpy
import numpy as np

assert healpy.nside2npix(8) == 768
theta, phi = healpy.pix2ang(8, np.arange(768))
assert (healpy.ang2pix(8, theta, phi) == np.arange(768)).all()
alm = healpy.map2alm(np.full(768, 2.0), lmax=8)
assert abs(alm[0].real - 2 * np.sqrt(4 * np.pi)) < 1e-6
