# debian: python3-setproctitle
import setproctitle

# The title is the process's, which this shares with others: that of the thread is its own.
assert setproctitle.getproctitle()
setproctitle.setthreadtitle("worker")
assert setproctitle.getthreadtitle() == "worker"
