#include "tools/edit/edit_file.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/export.h"

namespace gradflow::tools {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::internal::WireFormatLite;

// A field in the bytes of a file.
struct FieldBytes {
  int number;
  // The range of the field, including its tag and length in a binary file, or its name in a text.
  size_t begin;
  size_t end;
  // The range of the fields of a message.
  size_t inner_begin;
  size_t inner_end;
};
using Slices = std::vector<FieldBytes>;

// Returns the fields of a binary message; nothing if it does not parse.
std::optional<Slices> FindBinaryFields(absl::string_view bytes, size_t begin, size_t end) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()) + begin,
                                            static_cast<int>(end - begin));
  const auto position = [&] { return begin + static_cast<size_t>(in.CurrentPosition()); };
  Slices slices;
  while (position() < end) {
    FieldBytes slice{};
    slice.begin = position();
    const uint32_t tag = in.ReadTag();
    slice.number = WireFormatLite::GetTagFieldNumber(tag);
    if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      uint32_t size = 0;
      if (!in.ReadVarint32(&size) || size > end - position()) return std::nullopt;
      slice.inner_begin = position();
      if (!in.Skip(static_cast<int>(size))) return std::nullopt;
      slice.inner_end = position();
    } else if (tag == 0 || !WireFormatLite::SkipField(&in, tag)) {
      return std::nullopt;
    }
    slice.end = position();
    slices.push_back(slice);
  }
  return slices;
}

// Finds the fields of a text that has been parsed. All fields are messages, like the fields of
// GraphDef, FunctionDefLibrary and FunctionDef.
class TextFields {
 public:
  TextFields(absl::string_view text, size_t begin, size_t end, const Descriptor& type)
      : text_(text), at_(begin), end_(end), type_(type) {}

  // Returns nothing if a field has another form.
  std::optional<Slices> Find() {
    Slices slices;
    while (true) {
      SkipSpace();
      if (at_ >= end_) return slices;
      FieldBytes slice{};
      slice.begin = at_;
      while (at_ < end_ && (absl::ascii_isalnum(text_[at_]) || text_[at_] == '_')) ++at_;
      const std::string name(text_.substr(slice.begin, at_ - slice.begin));
      // Skips separators of fields, and rejects other forms.
      if (name.empty()) {
        if (text_[at_] != ',' && text_[at_] != ';') return std::nullopt;
        ++at_;
        continue;
      }
      const FieldDescriptor* const field = type_.FindFieldByName(name);
      if (field == nullptr) return std::nullopt;
      slice.number = field->number();
      SkipSpace();
      if (at_ < end_ && text_[at_] == ':') {
        ++at_;
        SkipSpace();
      }
      if (at_ >= end_ || (text_[at_] != '{' && text_[at_] != '<')) return std::nullopt;
      slice.inner_begin = at_ + 1;
      if (!SkipMessage()) return std::nullopt;
      slice.end = at_;
      slice.inner_end = at_ - 1;
      slices.push_back(slice);
    }
  }

 private:
  void SkipSpace() {
    while (at_ < end_) {
      if (text_[at_] == '#') {
        while (at_ < end_ && text_[at_] != '\n') ++at_;
      } else if (absl::ascii_isspace(text_[at_])) {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool SkipMessage() {
    int depth = 0;
    while (at_ < end_) {
      const char c = text_[at_];
      if (c == '#') {
        SkipSpace();
        continue;
      }
      if (c == '"' || c == '\'') {
        for (++at_; at_ < end_ && text_[at_] != c; ++at_) {
          if (text_[at_] == '\\') ++at_;
        }
      }
      if (c == '{' || c == '<') ++depth;
      if (c == '}' || c == '>') --depth;
      ++at_;
      if (depth == 0) return at_ <= end_;
    }
    return false;
  }

  const absl::string_view text_;
  size_t at_;
  const size_t end_;
  const Descriptor& type_;
};

// A member of a repeated field, or a message, in a changed file.
struct Element {
  // The index in the file, among elements of the same field number; -1 for a new element.
  int origin = -1;
  // True if `content` replaces the fields of the element in the file.
  bool is_changed = false;
  // The fields of a changed element, or the complete text of a new element.
  std::string content;
};
// The new elements of a field, by its number.
using Replaced = std::map<int, std::vector<Element>>;

FunctionDef Header(const FunctionDef& function) {
  FunctionDef header = function;
  header.clear_node_def();
  return header;
}

// Returns a copy of a function with only one field.
FunctionDef OnlyField(const FunctionDef& function, const FieldDescriptor* field) {
  FunctionDef copy = function;
  std::vector<const FieldDescriptor*> fields;
  copy.GetReflection()->ListFields(copy, &fields);
  for (const FieldDescriptor* other : fields) {
    if (other != field) copy.GetReflection()->ClearField(&copy, other);
  }
  copy.GetReflection()->MutableUnknownFields(&copy)->Clear();
  return copy;
}

// Returns the bytes of a message. They are equal for equal messages.
std::string Bytes(const Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&out);
  }
  return bytes;
}

class FileWriter {
 public:
  FileWriter(const EditBase& base, const EditedGraph& graph)
      : base_(base), graph_(graph), bytes_(base.bytes), is_text_(base.is_text) {}

  std::optional<std::string> Write() const {
    // Comments that hold unknown fields name nodes by their positions.
    if (is_text_ && absl::StrContains(bytes_, "\n#? ")) return std::nullopt;
    const std::optional<Slices> fields = Fields(0, bytes_.size(), *GraphDef::descriptor());
    if (!fields.has_value()) return std::nullopt;
    Replaced replaced;
    std::vector<Element>& nodes = replaced[GraphDef::kNodeFieldNumber];
    for (size_t i = 0; i < graph_.origin.size(); ++i) {
      nodes.push_back({graph_.origin[i], false, ""});
      if (graph_.origin[i] >= 0) continue;
      GraphDef single;
      *single.add_node() = graph_.def.node(static_cast<int>(i));
      nodes.back().content = is_text_ ? GraphDefToText(single) : Bytes(single);
    }
    if (!IsLibraryUntouched()) {
      constexpr int kLibrary = GraphDef::kLibraryFieldNumber;
      const FieldBytes* const library = Only(*fields, kLibrary);
      if (library != nullptr) {
        std::optional<std::string> inner = Library(*library);
        if (!inner.has_value()) return std::nullopt;
        replaced[kLibrary] = {{0, true, *std::move(inner)}};
      } else if (!base_.def.has_library()) {
        // The file has no library: all functions are new.
        GraphDef only;
        *only.mutable_library() = graph_.def.library();
        replaced[kLibrary] = {{-1, false, is_text_ ? GraphDefToText(only) : Bytes(only)}};
      } else {
        return std::nullopt;
      }
    }
    std::optional<std::string> content = Rebuild(0, bytes_.size(), *fields, replaced);
    if (!content.has_value() || !is_text_) return content;
    if (!content->empty() && content->back() != '\n') *content += "\n";
    // An unchanged file keeps its last line without a newline.
    if (absl::StrCat(bytes_, "\n") == *content) content->pop_back();
    return content;
  }

 private:
  std::optional<Slices> Fields(size_t begin, size_t end, const Descriptor& type) const {
    return is_text_ ? TextFields(bytes_, begin, end, type).Find()
                    : FindBinaryFields(bytes_, begin, end);
  }

  // Returns the field with a number; null unless there is exactly one.
  static const FieldBytes* Only(const Slices& fields, int number) {
    const FieldBytes* found = nullptr;
    for (const FieldBytes& field : fields) {
      if (field.number != number) continue;
      if (found != nullptr) return nullptr;
      found = &field;
    }
    return found;
  }

  bool IsLibraryUntouched() const {
    const auto& functions = graph_.functions;
    if (static_cast<int>(functions.size()) != base_.def.library().function_size()) return false;
    for (size_t f = 0; f < functions.size(); ++f) {
      if (!functions[f].is_untouched || functions[f].base != static_cast<int>(f)) return false;
    }
    return true;
  }

  // Returns the fields of the changed library.
  std::optional<std::string> Library(const FieldBytes& library) const {
    const std::optional<Slices> fields =
        Fields(library.inner_begin, library.inner_end, *FunctionDefLibrary::descriptor());
    if (!fields.has_value()) return std::nullopt;
    constexpr int kFunction = FunctionDefLibrary::kFunctionFieldNumber;
    std::vector<const FieldBytes*> slices;
    for (const FieldBytes& field : *fields) {
      if (field.number == kFunction) slices.push_back(&field);
    }
    if (static_cast<int>(slices.size()) != base_.def.library().function_size()) return std::nullopt;
    Replaced replaced;
    // If the graph has no functions, removes the functions of the file.
    std::vector<Element>& functions = replaced[kFunction];
    for (size_t f = 0; f < graph_.functions.size(); ++f) {
      const EditedFunction& function = graph_.functions[f];
      Element element{function.base, !function.is_untouched, ""};
      if (function.base < 0) {
        element = {-1, false, NewFunction(graph_.def.library().function(static_cast<int>(f)))};
      } else if (!function.is_untouched) {
        std::optional<std::string> inner = Function(static_cast<int>(f), *slices[function.base]);
        if (!inner.has_value()) return std::nullopt;
        element.content = *std::move(inner);
      }
      functions.push_back(std::move(element));
    }
    return Rebuild(library.inner_begin, library.inner_end, *fields, replaced);
  }

  // Returns a field of the library.
  std::string NewFunction(const FunctionDef& function) const {
    FunctionDefLibrary library;
    *library.add_function() = function;
    if (!is_text_) return Bytes(library);
    GraphDef graph;
    *graph.mutable_library() = std::move(library);
    return Within(GraphDefToText(graph), "library {\n", "\n}");
  }

  // Returns `text` without the lines `begin` and `end` around it; "" if the text has other lines.
  static std::string Within(const std::string& text, absl::string_view begin,
                            absl::string_view end) {
    const size_t last = text.rfind(end.data(), std::string::npos, end.size());
    if (!absl::StartsWith(text, begin) || last == std::string::npos || last < begin.size()) {
      return "";
    }
    return text.substr(begin.size(), last - begin.size());
  }

  // Returns the fields of a changed function, which is at `slice` in the file.
  std::optional<std::string> Function(int f, const FieldBytes& slice) const {
    const EditedFunction& edited = graph_.functions[f];
    const FunctionDef& after = graph_.def.library().function(f);
    const FunctionDef headers[2] = {Header(base_.def.library().function(edited.base)),
                                    Header(after)};
    const Descriptor& type = *FunctionDef::descriptor();
    const std::optional<Slices> fields = Fields(slice.inner_begin, slice.inner_end, type);
    if (!fields.has_value()) return std::nullopt;
    Replaced replaced;
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor* const field = type.field(i);
      if (field->number() == FunctionDef::kNodeDefFieldNumber) continue;
      const FunctionDef only = OnlyField(headers[1], field);
      if (Bytes(OnlyField(headers[0], field)) == Bytes(only)) continue;
      replaced[field->number()].push_back({-1, false, FunctionFields(only)});
    }
    std::vector<Element>& nodes = replaced[FunctionDef::kNodeDefFieldNumber];
    for (size_t i = 0; i < edited.origin.size(); ++i) {
      nodes.push_back({edited.origin[i], false, ""});
      if (edited.origin[i] >= 0) continue;
      FunctionDef single;
      *single.add_node_def() = after.node_def(static_cast<int>(i));
      nodes.back().content = FunctionFields(single);
    }
    return Rebuild(slice.inner_begin, slice.inner_end, *fields, replaced);
  }

  // Returns fields of a function in the format of the file.
  std::string FunctionFields(const FunctionDef& function) const {
    if (!is_text_) return Bytes(function);
    GraphDef graph;
    *graph.mutable_library()->add_function() = function;
    return Within(GraphDefToText(graph), "library {\n  function {\n", "\n  }\n}");
  }

  // Returns the fields of the message in [begin, end), with replacements for some fields.
  std::optional<std::string> Rebuild(size_t begin, size_t end, const Slices& fields,
                                     const Replaced& replaced) const {
    std::string out;
    size_t at = begin;
    std::map<int, bool> is_done;
    for (size_t i = 0; i < fields.size(); ++i) {
      const auto found = replaced.find(fields[i].number);
      if (found == replaced.end()) continue;
      // Fails if other fields are between the fields with this number.
      if (is_done[found->first]) return std::nullopt;
      is_done[found->first] = true;
      const size_t first = i;
      while (i + 1 < fields.size() && fields[i + 1].number == found->first) ++i;
      absl::StrAppend(&out, bytes_.substr(at, fields[first].begin - at));
      at = fields[i].end;
      for (size_t e = 0; e < found->second.size(); ++e) {
        if (!Append(found->second[e], e == 0, &fields[first], i + 1 - first, &out)) {
          return std::nullopt;
        }
      }
    }
    // New fields follow the existing fields.
    size_t last = end;
    while (is_text_ && last > at && absl::ascii_isspace(bytes_[last - 1])) --last;
    absl::StrAppend(&out, bytes_.substr(at, last - at));
    for (const auto& [number, elements] : replaced) {
      if (is_done[number]) continue;
      for (const Element& element : elements) {
        if (!Append(element, false, nullptr, 0, &out)) return std::nullopt;
      }
    }
    absl::StrAppend(&out, bytes_.substr(last, end - last));
    return out;
  }

  // Appends an element. `slices` are the fields of the same number in the file.
  bool Append(const Element& element, bool is_first, const FieldBytes* slices, size_t num_slices,
              std::string* out) const {
    if (element.origin < 0) {
      if (is_text_) {
        // A new element starts on a new line.
        while (!out->empty() && (out->back() == ' ' || out->back() == '\t')) out->pop_back();
        if (!out->empty() && out->back() != '\n') *out += "\n";
      }
      absl::StrAppend(out, is_text_ ? absl::StripTrailingAsciiWhitespace(element.content)
                                    : absl::string_view(element.content));
      return true;
    }
    const auto origin = static_cast<size_t>(element.origin);
    if (origin >= num_slices) return false;
    const FieldBytes& slice = slices[origin];
    // Includes the text between the previous element and this element: space and comments.
    if (is_text_ && !is_first && origin == 0) *out += "\n";
    const size_t space = is_text_ && origin > 0 ? slices[origin - 1].end : slice.begin;
    if (!element.is_changed) {
      absl::StrAppend(out, bytes_.substr(space, slice.end - space));
    } else if (is_text_) {
      absl::StrAppend(out, bytes_.substr(space, slice.inner_begin - space), element.content,
                      bytes_.substr(slice.inner_end, slice.end - slice.inner_end));
    } else {
      google::protobuf::io::StringOutputStream stream(out);
      google::protobuf::io::CodedOutputStream coded(&stream);
      coded.WriteTag(
          WireFormatLite::MakeTag(slice.number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
      coded.WriteVarint32(static_cast<uint32_t>(element.content.size()));
      coded.WriteString(element.content);
    }
    return true;
  }

  const EditBase& base_;
  const EditedGraph& graph_;
  const absl::string_view bytes_;
  const bool is_text_;
};

}  // namespace

std::optional<std::string> FileInPlace(const EditBase& base, const EditedGraph& graph) {
  return FileWriter(base, graph).Write();
}

}  // namespace gradflow::tools
