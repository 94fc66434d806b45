# debian: python3-magic
import magic

# Two modules have this name.
if hasattr(magic, "from_buffer"):
    assert magic.from_buffer(b"%PDF-1.4\n%", mime=True) == "application/pdf"
    assert "ELF" in magic.from_file("/bin/true")
else:
    m = magic.open(magic.MAGIC_MIME_TYPE)
    m.load()
    assert m.buffer(b"%PDF-1.4\n%") == "application/pdf"
    m.close()
