# debian: python3-pyside2.qtcore python3-pyside2.qtgui python3-pyside2.qtwidgets
from PySide2.QtCore import QObject, Qt, QTimer, Signal
from PySide2.QtGui import QColor, QImage, QPainter
from PySide2.QtWidgets import QApplication, QLabel, QVBoxLayout, QWidget


class Counter(QObject):
    counted = Signal(int)


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
application.shutdown()
