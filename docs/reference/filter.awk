# Makes comments of doxygen of ours, which are plain. The documentation of a name is
#   - the comment before it, also for the names that follow it without an empty line;
#   - of a class that the comment at the top of the file names: that comment;
#   - otherwise the heading that it is under: "// ---- Lists of types ----".

function indent_of(line) {
  match(line, /^ */)
  return RLENGTH
}

# Forgets the comments of names at this indent and deeper ones.
function forget_comments(indent, i) {
  for (i in comments) if (i + 0 >= indent) delete comments[i]
}

# Returns true if the file's comment names the class that `line` begins.
function named_at_top(line) {
  sub(/^template <[^>]*> */, "", line)
  sub(/^(class|struct) (ABSL_[A-Z_]+ )?/, "", line)
  sub(/[ :{].*/, "", line)
  return top ~ ("[^A-Za-z]" line "[^A-Za-z]")
}

FNR == 1 && /^\/\// {
  print "/// @file"
  at_top = 1
}

# A comment.
/^ *\/\// {
  indent = indent_of($0)
  line = $0
  sub(/\/\//, "///", line)
  if (at_top) top = top line "\n"
  if (line ~ /\/\/\/ ----/) {
    gsub(/ *----+ */, " ", line)
    heading = line "\n"
    heading_indent = indent
    forget_comments(indent)
    print ""
    next
  }
  if (!in_comment) forget_comments(indent)
  in_comment = 1
  comments[indent] = comments[indent] line "\n"
  print line
  next
}

/^ *$/ {
  empty_before = ended = 1
  in_comment = 0
  print
  next
}

{
  at_top = 0
  indent = indent_of($0)
  code = $0
  sub(/ *\/\/.*/, "", code)
  directive = code ~ /^#/
  if ((empty_before && !in_comment) || (directive && code !~ /^#define/)) forget_comments(indent)
  if (code ~ /^ *(public|protected|private):/) forget_comments(indent)
  if (indent < heading_indent && !directive) heading = ""
  # In clang-format's layout, a line at an indent of names begins one if the line before has ended
  # one.
  if (ended && !in_comment && (code ~ /^#define/ || code !~ /^ *[})#]/) &&
      code !~ /^ *(public|protected|private):/ &&
      code !~ /^ *(namespace |(class|struct) [A-Za-z]+;|extern |using namespace|GRADFLOW|ABSL)/) {
    if (indent in comments) {
      printf "%s", comments[indent]
    } else if (code ~ /^(template .*)?(class|struct) .*{$/ && named_at_top(code)) {
      printf "%s", top
    } else if (heading != "" && indent == heading_indent) {
      printf "%s", heading
    }
  }
  in_comment = empty_before = 0
  ended = directive || code ~ /[;}:]$/ || code ~ /^(namespace|class|struct) .*{$/
  print
}
