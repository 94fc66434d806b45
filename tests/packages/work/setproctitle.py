# debian: python3-setproctitle
import setproctitle

# The title is the process's, and only a program that is Python has one; a thread has its own.
assert isinstance(setproctitle.getproctitle(), str)
setproctitle.setthreadtitle("worker")
assert setproctitle.getthreadtitle() == "worker"
