# debian: python3-pyqt5
from PyQt5.QtCore import QObject, Qt, QTimer, pyqtSignal
from PyQt5.QtGui import QColor, QImage, QPainter
from PyQt5.QtWidgets import QApplication, QLabel, QVBoxLayout, QWidget


class Counter(QObject):
    counted = pyqtSignal(int)


application = QApplication(["test"])
window = QWidget()
layout = QVBoxLayout(window)
for i in range(5):
    label = QLabel("label %d" % i)
    label.setObjectName("l%d" % i)
    layout.addWidget(label)
assert len(window.findChildren(QLabel)) == 5 and window.findChild(QLabel, "l3").text() == "label 3"
window.show()

counter, seen = Counter(), []
counter.counted.connect(seen.append)
QTimer.singleShot(0, lambda: (counter.counted.emit(7), application.quit()))
application.exec_()
assert seen == [7]

image = QImage(20, 20, QImage.Format_RGB32)
image.fill(Qt.black)
painter = QPainter(image)
painter.fillRect(5, 5, 10, 10, QColor(10, 200, 30))
painter.end()
assert image.pixelColor(9, 9).green() == 200 and image.pixelColor(1, 1).green() == 0
window.close()
del painter, window, application
