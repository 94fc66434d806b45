#!/bin/bash
# Prints how much of a COV=1 build the tests reached, per room and folder: lines, then branches.
# Fails if a folder is below what is asked of it.
#
#   scripts/coverage.sh OBJECTS OUT
#
# OUT/lines and OUT/branches name what was missed in each file, OUT/summary.json has the counts.
set -eu -o pipefail

objects=$1 out=$2
cd "$(dirname "$0")/.."
mkdir -p "$out"

# Sources that this system does not build have no objects, and are not counted.  What a fork has cut into
# while it was counted comes out below 0 here and there, which gcovr takes for an error.
gcovr --root . --object-directory "$objects" --exclude-unreachable-branches --gcov-ignore-parse-errors --json "$out/trace.json" \
    "$objects"/{base,elf,macho,pe,loader,runtime,cli}
gcovr --root . -a "$out/trace.json" --txt "$out/lines" --json-summary "$out/summary.json"
gcovr --root . -a "$out/trace.json" --branches --txt "$out/branches"

jq -r --argjson least '{"lines": 95, "branches": 85}' \
    --argjson held '["elf", "macho", "pe", "loader", "runtime"]' '
    def percent($part; $all): if $all == 0 then 100 else 100 * $part / $all end;
    def sum: {
        lines: map(.line_total) | add, reached_lines: map(.line_covered) | add,
        branches: map(.branch_total) | add, reached_branches: map(.branch_covered) | add };
    def shares: {
        lines: percent(.reached_lines; .lines), branches: percent(.reached_branches; .branches) };
    def padded($n): tostring | " " * ([$n - length, 0] | max) + .;
    def share: . * 10 | floor | "\(. / 10 | floor).\(. % 10)" | padded(5);
    def row($name): "\(.lines | padded(7)) \(shares.lines | share) %  " +
        "\(.branches | padded(7)) \(shares.branches | share) %  \($name)";
    def folder: split("/")[0];
    def room: .filename | split("/")[:-1] | join("/");
    [.files[] | {key: room, file: .}] as $files
    | ($files | group_by(.key | folder)[]
        | (.[0].key | folder) as $folder
        | (group_by(.key)[] | .[0].key as $room | select($room != $folder)
            | map(.file) | sum | row("  " + $room)),
          (map(.file) | sum | row($folder))),
      ($files | map(select(.key | folder | IN($held[])) | .file) | sum
        | row("of these: " + ($held | join(", ")))),
      ($files | map(.file) | sum | row("in all")),
      ($held[] | . as $folder
        | $files | map(select(.key | folder == $folder) | .file) | sum | shares
        | ("lines", "branches") as $what | select(.[$what] < $least[$what])
        | "\($folder): \(.[$what] | share | ltrimstr(" ")) % of its \($what) are reached, " +
          "\($least[$what]) % are asked")
    ' "$out/summary.json" | tee "$out/table"
! grep -q 'are asked$' "$out/table"
