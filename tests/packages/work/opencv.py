# debian: python3-opencv
# pypi: opencv-python-headless
import cv2
import numpy as np

image = np.zeros((120, 160, 3), np.uint8)
cv2.circle(image, (80, 60), 30, (255, 255, 255), -1)
grey = cv2.cvtColor(cv2.GaussianBlur(image, (5, 5), 0), cv2.COLOR_BGR2GRAY)
outlines, _ = cv2.findContours(grey, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
(x, y), radius = cv2.minEnclosingCircle(outlines[0])
assert len(outlines) == 1 and abs(x - 80) < 2 and abs(y - 60) < 2 and abs(radius - 31) < 3
done, coded = cv2.imencode(".png", image)
assert done and (cv2.imdecode(coded, cv2.IMREAD_COLOR) == image).all()
