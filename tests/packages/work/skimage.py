# debian: python3-skimage
import numpy as np
from skimage import draw, filters, measure, morphology, segmentation

image = np.zeros((60, 60))
image[draw.disk((20, 20), 8)] = 1
image[draw.disk((42, 42), 10)] = 1
labels = measure.label(filters.gaussian(image, 1) > 0.5)
assert labels.max() == 2 and measure.euler_number(labels > 0, 2) == 2
assert morphology.skeletonize(image > 0).sum() < 60
assert segmentation.watershed(-image, labels).max() == 2
