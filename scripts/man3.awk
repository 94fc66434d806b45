# Writes the manual page of a public header: each declaration with the comment that is its contract.
#
#   awk -f scripts/man3.awk -v page=NAME -v date=DATE -v see='NAME SECTION,...' HEADER
#
# What it knows of the headers: the first comment is about the whole; a section starts with a line of dashes;
# a comment before a blank line stands for itself; any other is about the declaration that follows, or about
# several if it starts with a plural verb ("Give the paths"); one at a line's end is about that line.

BEGIN {
    header = ARGV[1]
    while ((getline line <header) > 0)
        if (line ~ /^EXTI_API/ && match(line, /exti[a-z]*_[a-z_]+\(/))
            functions[substr(line, RSTART, RLENGTH - 1)] = 1
    close(header)
}

# ---- output: the text of `description` and `synopsis` -------------------------------------------

function put(line) { description = description line "\n" }

# Text of several lines, with its spaces as they are.
function literal(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/'/, "\\(aq", text)
    return text
}

function argument(text) {
    gsub(/"/, "\\(dq", text)
    return "\"" literal(text) "\""
}

function flush_words() {
    if (words != "")
        put(words ~ /^[.']/ ? "\\&" words : words)
    words = ""
}

# The macro that marks a word up, or "".
function macro_of(word) {
    if (word in functions)
        return "Fn " word
    if (word ~ /^[a-z]+\(\)$/)
        return "Fn " substr(word, 1, length(word) - 2)
    if (word == "NULL" || word ~ /^EXTI(PY)?_[A-Z0-9_*]+$/)
        return "Dv " word
    if (word ~ /^`[^`]+`$/)
        return "Fa " substr(word, 2, length(word) - 2)
    if (word ~ /^\*[a-z]+$/)
        return "Fa " word
    if (word ~ /^[a-z-]+\([1-9]\)$/)
        return "Xr " substr(word, 1, length(word) - 3) " " substr(word, length(word) - 1, 1)
    return ""
}

function put_word(word,    open, shut, core, macro, i) {
    match(word, /^\(*/)
    open = substr(word, 1, RLENGTH)
    core = substr(word, RLENGTH + 1)
    shut = ""
    if (macro_of(core) == "" && match(core, /[.,;:)?]+$/)) {
        shut = substr(core, RSTART)
        core = substr(core, 1, RSTART - 1)
    }
    macro = macro_of(core)
    if (macro != "") {
        flush_words()
        gsub(/./, " &", shut)
        put("." (open == "" ? macro : substr(macro, 1, 2) " " open substr(macro, 3)) shut)
        return
    }
    gsub(/\\/, "\\e", word)
    if (word ~ /_/) # is not hyphenated
        word = "\\%" word
    if (length(words) + length(word) > 75)
        flush_words()
    words = words (words == "" ? "" : " ") word
    # A sentence ends with its line.
    if (word ~ /[a-zA-Z0-9_"')][.?!][)"]*$/)
        flush_words()
}

# Paragraphs; lines that are set in are shown as they are.
function put_text(text,    lines, n, i, parts, m, j, shown) {
    n = split(text, lines, "\n")
    for (i = 1; i <= n; i++) {
        if ((lines[i] ~ /^  +[^ ]/) != shown) {
            flush_words()
            put(shown ? ".Ed" : ".Bd -literal -offset indent")
            shown = !shown
        }
        if (shown)
            put(literal(lines[i]))
        else if (lines[i] == "") {
            flush_words()
            put(".Pp")
        } else {
            m = split(lines[i], parts, / +/)
            for (j = 1; j <= m; j++)
                put_word(parts[j])
        }
    }
    flush_words()
    if (shown)
        put(".Ed")
}

# ---- lists: one of declarations, with one of members in it --------------------------------------

function end_list() {
    if (in_list)
        put(".El")
    in_list = 0
}

function begin_item(head) {
    if (!in_list)
        put(".Bl -tag -width Ds")
    in_list = 1
    put(".It " head)
}

function put_prose(text) {
    end_list()
    if (description !~ /\n\.S[sh] [^\n]*\n$/)
        put(".Pp")
    put_text(text)
}

# ---- declarations ---------------------------------------------------------------------------------

# The text of a comment, without what marks it as one.
function bare(comment) {
    sub(/^\/\* ?/, "", comment)
    sub(/ *\*\/$/, "", comment)
    gsub(/\n *\* ?/, "\n", comment)
    return comment
}

# Takes a comment off the end of `text`, into `note`.
function take_note(text,    at) {
    at = index(text, "/*")
    note = at ? bare(substr(text, at)) : ""
    if (at)
        text = substr(text, 1, at - 1)
    gsub(/[ \n]+/, " ", text)
    sub(/ $/, "", text)
    return text
}

# Splits the parameters between a declaration's outer brackets into `parameters`.
function split_parameters(text,    n, i, c, depth) {
    parameters[n = 1] = ""
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        depth += (c == "(") - (c == ")")
        if (c == "," && depth == 0)
            parameters[++n] = ""
        else if (c != " " || parameters[n] != "")
            parameters[n] = parameters[n] c
    }
    return n
}

function name_of(parameter) {
    if (match(parameter, /\(\*[a-z_]+/))
        return substr(parameter, RSTART + 2, RLENGTH - 2)
    if (parameter == "void")
        return ""
    match(parameter, /[a-z_0-9]+$/)
    return substr(parameter, RSTART)
}

function add_function(text,    name, returned, n, i, head) {
    match(text, /exti[a-z]*_[a-z_]+\(/)
    name = substr(text, RSTART, RLENGTH - 1)
    returned = substr(text, 10, RSTART - 10)
    sub(/ $/, "", returned)
    names = names " ,\n.Nm " name
    synopsis = synopsis ".Ft " argument(returned) "\n.Fo " name "\n"
    n = split_parameters(substr(text, RSTART + RLENGTH, length(text) - RSTART - RLENGTH - 1))
    head = "Fn " name
    for (i = 1; i <= n; i++) {
        synopsis = synopsis ".Fa " argument(parameters[i]) "\n"
        if (name_of(parameters[i]) != "")
            head = head " " name_of(parameters[i])
    }
    synopsis = synopsis ".Fc\n"
    return head
}

# What is said of several declarations or members follows the last of them.
function end_group() {
    put_text(of_several)
    of_several = ""
}

# A declaration with the comment before it; what is said at its end is in `note`.
function put_declaration(head) {
    if (pending != "")
        end_group()
    # A comment before macros that have their own is about them all.
    if (pending != "" && note != "" && head ~ /^Dv /) {
        put_prose(pending)
        pending = ""
    }
    begin_item(head)
    if (pending ~ /^(Give|Add) /)
        of_several = pending
    else
        put_text(pending)
    pending = ""
    put_text(note)
}

function put_member(head) {
    if (of_several != "" && note != "")
        end_group()
    if (!in_members || (said != "" && note != "")) {
        if (in_members)
            put(".El")
        if (description !~ /\n\.It [^\n]*\n$/)
            put(".Pp")
        if (said != "" && note != "") {
            put_text(said)
            put(".Pp")
            said = ""
        }
        put(".Bl -tag -width Ds -compact")
        in_members = 1
    }
    put(".It " head)
    if (said != "")
        of_several = said
    said = ""
    put_text(note)
}

function whole(text) { return text !~ /\/\*/ || text ~ /\*\/$/ }

# Members of a struct, or enumerators: `text` is what is between the braces.
function put_members(text, is_enum,    lines, n, i, one, line) {
    in_members = 0
    one = said = ""
    n = split(text, lines, "\n")
    for (i = 1; i <= n; i++) {
        line = lines[i]
        sub(/^ +/, "", line)
        one = one (one == "" ? "" : "\n") line
        if (!whole(one))
            continue
        if (one == "" || one ~ /^\/\*/) {
            end_group()
            said = bare(one)
        } else if (is_enum || one ~ /;/) {
            one = take_note(one)
            sub(/( = .*)?[,;]?$/, "", one)
            put_member(is_enum ? "Dv " one : "Vt " argument(one))
        } else
            continue
        one = ""
    }
    end_group()
    if (in_members)
        put(".El")
}

function add_declaration(text,    at, inside, head) {
    if (text ~ /^EXTI_API/) {
        text = take_note(text)
        put_declaration(add_function(text))
    } else if (text ~ /^#define/) {
        text = take_note(text)
        split(text, parts, " ")
        put_declaration("Dv " parts[2])
    } else if ((at = index(text, "{"))) {
        head = substr(text, 1, at - 2)
        inside = substr(text, at + 1)
        sub(/\n?[}];$/, "", inside)
        if (inside !~ /\n/)
            gsub(/, /, ",\n", inside)
        sub(/^\n/, "", inside)
        note = ""
        put_declaration("Vt " argument(head))
        put_members(inside, head ~ /^enum/)
    } else {
        text = take_note(text)
        sub(/^typedef /, "", text)
        sub(/;$/, "", text)
        put_declaration("Vt " argument(text))
    }
}

# ---- the header -----------------------------------------------------------------------------------

function is_complete(text) {
    if (text ~ /[{]\n/ || text ~ /^(struct|enum) [a-z_]+ [{]$/)
        return text ~ /\n[}];$/
    return whole(text) && (text ~ /^#define/ || text ~ /;/)
}

/^\/\* ---- .* -+ \*\/$/ {
    end_list()
    title = $0
    gsub(/^\/\* -+ | -+ \*\/$/, "", title)
    put(".Ss " toupper(substr(title, 1, 1)) substr(title, 2))
    next
}

item == "" && /^\/\*/ || comment != "" {
    comment = comment (comment == "" ? "" : "\n") $0
    if (!whole(comment))
        next
    end_group()
    if (pending != "")
        put_prose(pending)
    pending = bare(comment)
    comment = ""
    if (about == "") {
        about = pending
        sub(/\.?\n.*/, "", about)
        sub(/.* - /, "", about)
        sub(/^[^\n]*\n+/, "", pending)
        put_text(pending)
        pending = ""
    }
    next
}

item == "" && /^$/ {
    end_group()
    if (pending != "")
        put_prose(pending)
    pending = ""
    next
}

item == "" && !/^(EXTI_API|struct|enum|typedef|#define) ?/ || title == "" { next }

{
    item = item (item == "" ? "" : "\n") $0
    if (!is_complete(item))
        next
    add_declaration(item)
    item = ""
}

END {
    end_list()
    n = split(see, others, ",")
    print ".Dd " date "\n.Dt " toupper(page) " 3\n.Os"
    print ".Sh NAME\n.Nm " page names "\n.Nd " about
    print ".Sh LIBRARY\nlib" page ", by pkg-config " page
    include = header
    sub(/.*include\//, "", include)
    print ".Sh SYNOPSIS\n.In " include
    printf "%s", synopsis
    printf ".Sh DESCRIPTION\n%s", description
    print ".Sh SEE ALSO"
    for (i = 1; i <= n; i++)
        print ".Xr " others[i] (i < n ? " ," : "")
}
