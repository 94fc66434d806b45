# Shared by tests/servers.
# shellcheck shell=bash
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/runtime/lib.sh
. "$here/../runtime/lib.sh"
export EXTISOLATE=${run% run}
kept=${EXTI_BUILD:-$root/build}/servers
# shellcheck source=tests/support/index.bash
. "$here/../support/index.bash"
