# debian: python3-soundfile
import io

import numpy as np
import soundfile

wave = np.sin(np.arange(8000) / 9)
for form in "WAV", "FLAC", "OGG":
    out = io.BytesIO()
    soundfile.write(out, wave, 8000, format=form)
    out.seek(0)
    back, rate = soundfile.read(out)
    assert rate == 8000 and len(back) == 8000 and (form == "OGG" or abs(back - wave).max() < 1e-3)
