# debian: python3-pil
# pypi: Pillow
import io

from PIL import Image, ImageChops, ImageDraw, ImageFilter

image = Image.new("RGB", (64, 48), "navy")
ImageDraw.Draw(image).ellipse((10, 10, 40, 40), fill="orange")
for form in "PNG", "JPEG", "TIFF", "GIF", "WEBP":
    out = io.BytesIO()
    image.save(out, form)
    again = Image.open(io.BytesIO(out.getvalue())).convert("RGB")
    assert again.size == (64, 48) and again.format is None
    if form in ("PNG", "TIFF"):
        assert ImageChops.difference(image, again).getbbox() is None
blurred = image.filter(ImageFilter.GaussianBlur(3)).resize((32, 24), Image.LANCZOS)
assert blurred.getpixel((12, 12)) != blurred.getpixel((0, 0))
