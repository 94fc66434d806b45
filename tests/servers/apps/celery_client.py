import sys

import celery_app

app = celery_app.made(sys.argv[2])
results = [app.tasks["square"].delay(n) for n in range(30)]
assert [r.get(timeout=60) for r in results] == [n * n for n in range(30)]
