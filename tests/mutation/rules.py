"""The rules of mutate.py for making faults: small changes to one line of C++."""

import re


class Fault:
    """A source with one changed line."""

    def __init__(self, line, rule, before, after, text):
        self.line, self.rule, self.text = line, rule, text
        self.before, self.after = before.strip(), after.strip()

    def __str__(self):
        return f"{self.rule}: `{self.before}` -> `{self.after}`"


def mask(text):
    """Returns the text with comments and character literals replaced by spaces."""
    pattern = re.compile(
        r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.S)
    # Digit separators are not literals.
    text = re.sub(r"(?<=\d)'(?=\d)", "_", text)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


# (name, pattern, replacement). Each match outside of literals is a fault.
PATTERNS = [
    ("edge", r" < ", " <= "),
    ("edge", r" <= ", " < "),
    ("edge", r" > ", " >= "),
    ("edge", r" >= ", " > "),
    ("comparison", r" == ", " != "),
    ("comparison", r" != ", " == "),
    ("operator", r" && ", " || "),
    ("operator", r" \|\| ", " && "),
    ("operator", r" \+ ", " - "),
    ("operator", r" - ", " + "),
    ("operator", r"\bstd::min\b", "std::max"),
    ("operator", r"\bstd::max\b", "std::min"),
    ("operands", r"(?<![\w.>])(\w+(?:\(\)|\[\w+\])?) ([-/%<]) (\w+(?:\(\)|\[\w+\])?)(?![\w.(\[]|->)",
     r"\3 \2 \1"),
    ("assignment", r" ([|&+-])= ", " = "),
    ("step", r"\+\+(?=\w)", "--"),
    ("not", r"\(!(?=[\w:]+)", "("),
    ("boolean", r"\btrue\b", "false"),
    ("boolean", r"\bfalse\b", "true"),
]
NUMBER = re.compile(r"(?<![\w.'])(\d+)(?![\w.'])")

# Lines that are not statements, or whose faults are meaningless.
SKIPPED = re.compile(
    r"^\s*(#|using |namespace|template|typename|static_assert|friend|public:|private:|extern|"
    r"class |struct |enum |case |default:|GRADFLOW_UNROLL|REGISTER|registry\.)|__builtin_prefetch|"
    r"reserve\(|\bVLOG\b|\bLOG\b")
# A complete statement that is a call or an assignment. Declarations begin with two words.
STATEMENT = re.compile(
    r"^\s*(?:GRADFLOW_RETURN_IF_ERROR\(.*\)|[*\w][\w.:>\[\]()*-]*(?:\(.*\)| [-+*/|&%]?= .*|\+\+)|"
    r"(?:\+\+|--)[\w.>\[\]-]+);$")


def is_statement(lines, i):
    """Returns whether line i is a statement that can be dropped."""
    line = lines[i].rstrip()
    if not STATEMENT.match(line) or line.count("(") != line.count(")"):
        return False
    if re.match(r"^\s*(return|delete|throw|goto|break|continue|case|EXPECT|ASSERT|GRADFLOW_ASSIGN_OR_RETURN)\b", line):
        return False
    before = next((lines[j].rstrip() for j in range(i - 1, -1, -1) if lines[j].strip()), "")
    return before.endswith((";", "{", "}", ":")) and not before.lstrip().startswith("for (")


def faults(text):
    """Returns the faults of a source."""
    masked = mask(text)
    lines, masked_lines = text.split("\n"), masked.split("\n")
    result = []

    def add(i, rule, line):
        changed = lines[:i] + [line] + lines[i + 1:]
        if line != lines[i]:
            result.append(Fault(i + 1, rule, lines[i], line, "\n".join(changed)))

    for i, line in enumerate(masked_lines):
        # Lines inside of functions are indented.
        if not line.startswith("  ") or SKIPPED.search(line):
            continue
        for rule, pattern, replacement in PATTERNS:
            for match in re.finditer(pattern, line):
                add(i, rule, lines[i][:match.start()] + match.expand(replacement) +
                    lines[i][match.end():])
        for match in NUMBER.finditer(line):
            number = str(int(match.group(), 8 if match.group().startswith("00") else 10) + 1)
            add(i, "constant", lines[i][:match.start()] + number + lines[i][match.end():])
        if is_statement(masked_lines, i):
            add(i, "dropped", re.match(r"\s*", lines[i]).group() + ";")
    return result
