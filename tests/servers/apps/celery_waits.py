import sys
import time

import celery_app

result = celery_app.made(sys.argv[2]).tasks["wait"].delay()
while result.state != "STARTED":
    time.sleep(0.1)
