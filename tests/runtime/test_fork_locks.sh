#!/bin/bash
# One context forks while another makes libcrypto, which both share, look for its algorithms anew, under a
# lock of libcrypto's: each child can hash.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
name=children_find_no_lock_of_libcrypto_taken

if [ "$sanitizer" = a ]; then
    echo "skip $name: the address sanitizer's allocator may be locked in a forked child"
    exit 0
fi
cat >hashes.py <<'END'
import ctypes, _hashlib
libcrypto = ctypes.CDLL("libcrypto.so.3")

def hash_anew():
    # Other properties than before, as far as it knows: it forgets which functions it has found.
    libcrypto.EVP_default_properties_enable_fips(None, 0)
    return _hashlib.new("sha256", b"text").hexdigest()

expected = hash_anew()
END
cat >forks.py <<'END'
import extisolate, os, signal, sys
from hashes import expected, hash_anew

def fork():
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        os._exit(hash_anew() != expected)
    return os.waitpid(pid, 0)[1]

if extisolate.index == 0:
    try:
        wrong = sum(fork() != 0 for i in range(int(sys.argv[1])))
    finally:
        open("done", "w").close()
    print("wrong", wrong)
else:
    while not os.path.exists("done"):
        hash_anew()
END
if ! $system -c 'import hashes' 2>err; then
    echo "skip $name: $system has no OpenSSL 3: $(tail -n 1 err)"
    exit 0
fi
$run --python $system --contexts 2 forks.py 300 >out 2>err
rc=$?
if [ $rc = 0 ] && [ "$(cat out)" = "wrong 0" ]; then
    ok $name
else
    not_ok $name "status $rc" "$(cat out)" "$(tail -n 20 err)"
fi
