# debian: python3-freetype fonts-dejavu-core
import freetype

face = freetype.Face("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
face.set_char_size(20 * 64)
face.load_char("A")
bitmap = face.glyph.bitmap
assert face.family_name == b"DejaVu Sans" and bitmap.rows > 10 and max(bitmap.buffer) > 200
