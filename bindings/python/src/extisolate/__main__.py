"""``python -m extisolate doctor``: what this interpreter can, and why not."""

import sys

from . import _doctor, _program

if sys.argv[1:2] == ["doctor"]:
    sys.exit(_doctor.main())
_program.main()
