# debian: python3-cairo
import io

import cairo

surface = cairo.ImageSurface(cairo.FORMAT_ARGB32, 40, 30)
pen = cairo.Context(surface)
pen.set_source_rgb(1, 0, 0)
pen.rectangle(10, 10, 20, 10)
pen.fill()
pen.move_to(2, 25)
pen.show_text("x")
surface.flush()
data = bytes(surface.get_data())
assert data[15 * surface.get_stride() + 20 * 4 :][:4] == b"\0\0\xff\xff"
out = io.BytesIO()
surface.write_to_png(out)
assert cairo.ImageSurface.create_from_png(io.BytesIO(out.getvalue())).get_width() == 40
pdf = io.BytesIO()
cairo.PDFSurface(pdf, 10, 10).finish()
assert pdf.getvalue().startswith(b"%PDF")
