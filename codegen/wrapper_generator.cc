#include "gradflow/codegen/wrapper_generator.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gradflow/codegen/op_wrapper.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {
namespace {

constexpr char kNotice[] =
    "// Generated from the definitions of the ops. Do not edit.\n"
    "// clang-format off\n";

std::string Guard(const std::string& path) {
  return absl::StrCat(
      absl::AsciiStrToUpper(absl::StrReplaceAll(path, {{"/", "_"}, {".", "_"}, {"-", "_"}})), "_");
}

// Returns true if an attribute without a default is a function or a list of functions. Headers
// forward-declare the type of these attributes.
bool TakesFunctions(const std::vector<OpWrapper>& ops) {
  return std::any_of(ops.begin(), ops.end(), [](const OpWrapper& op) {
    return std::any_of(op.required().begin(), op.required().end(), [](const auto& attr) {
      return attr.def->type() == "func" || attr.def->type() == "list(func)";
    });
  });
}

bool HasSeveralListOutputs(const std::vector<OpWrapper>& ops) {
  return std::any_of(ops.begin(), ops.end(),
                     [](const OpWrapper& op) { return op.HasSeveralListOutputs(); });
}

GeneratedFile Header(const std::string& include_dir, const std::string& group,
                     const std::vector<OpWrapper>& ops) {
  const std::string name = absl::StrCat(group, ".h");
  const std::string guard = Guard(absl::StrCat(include_dir, "/", name));
  std::string text =
      absl::StrCat(kNotice, "#ifndef ", guard, "\n#define ", guard,
                   "\n\n"
                   "#include <cstddef>\n"
                   "#include <cstdint>\n"
                   "#include <limits>\n"
                   "#include <string>\n"
                   "#include <vector>\n"
                   "\n"
                   "#include \"absl/strings/string_view.h\"\n"
                   "#include \"absl/types/span.h\"\n"
                   "#include \"gradflow/core/tensor.h\"\n"
                   "#include \"gradflow/core/tensor_shape.h\"\n"
                   "#include \"gradflow/core/types.h\"\n"
                   "#include \"gradflow/graph/ops.h\"\n"
                   "#include \"gradflow/graph/scope.h\"\n"
                   "\n"
                   "#pragma GCC visibility push(default)\n"
                   "namespace gradflow {\n",
                   TakesFunctions(ops) ? "class NameAttrList;\n\n" : "", "namespace ops {\n");
  for (const OpWrapper& op : ops) absl::StrAppend(&text, "\n", op.Declaration());
  absl::StrAppend(&text,
                  "\n}  // namespace ops\n}  // namespace gradflow\n"
                  "#pragma GCC visibility pop\n\n#endif  // ",
                  guard, "\n");
  return {name, std::move(text)};
}

GeneratedFile Source(const std::string& include_dir, const std::string& group,
                     const std::vector<OpWrapper>& ops) {
  std::string text =
      absl::StrCat(kNotice, "#include \"", include_dir, "/", group, ".h\"\n\n",
                   HasSeveralListOutputs(ops) ? "#include \"gradflow/core/op_def_util.h\"\n" : "",
                   "#include \"gradflow/graph/node_builder.h\"\n",
                   TakesFunctions(ops) ? "#include \"gradflow/proto/attr_value.pb.h\"\n" : "",
                   "\n"
                   "namespace gradflow {\n"
                   "namespace ops {\n");
  for (const OpWrapper& op : ops) absl::StrAppend(&text, "\n", op.Definition());
  absl::StrAppend(&text, "\n}  // namespace ops\n}  // namespace gradflow\n");
  return {absl::StrCat(group, ".cc"), std::move(text)};
}

}  // namespace

absl::StatusOr<std::vector<GeneratedFile>> GenerateWrappers(const Registry& registry,
                                                            const std::vector<std::string>& groups,
                                                            const std::string& include_dir,
                                                            const Registry* base) {
  GRADFLOW_RETURN_IF_ERROR(registry.status());
  std::map<std::string, std::vector<OpWrapper>> ops_of_group;
  for (const std::string& group : groups) ops_of_group[group];
  for (const OpRegistration* op : registry.Ops()) {
    const std::string& name = op->def().name();
    // Ops whose name begins with an underscore are internal and have no wrapper.
    if (op->api().hand_written || name[0] == '_') continue;
    if (base != nullptr && base->FindOp(name) != nullptr) continue;
    const auto ops = ops_of_group.find(op->api().group);
    if (ops == ops_of_group.end()) {
      return errors::InvalidArgument("op '", name, "' is in group '", op->api().group,
                                     "', expected one of ", absl::StrJoin(groups, ", "));
    }
    GRADFLOW_ASSIGN_OR_RETURN(OpWrapper wrapper, OpWrapper::Make(*op));
    ops->second.push_back(std::move(wrapper));
  }
  const std::string guard = Guard(absl::StrCat(include_dir, "/standard_ops.h"));
  std::string all = absl::StrCat(kNotice, "#ifndef ", guard, "\n#define ", guard, "\n\n");
  std::vector<GeneratedFile> files;
  for (const auto& [group, ops] : ops_of_group) {
    files.push_back(Header(include_dir, group, ops));
    files.push_back(Source(include_dir, group, ops));
    absl::StrAppend(&all, "#include \"", include_dir, "/", group, ".h\"\n");
  }
  absl::StrAppend(&all, "#include \"gradflow/graph/const_op.h\"\n\n#endif  // ", guard, "\n");
  if (base == nullptr) files.push_back({"standard_ops.h", std::move(all)});
  return files;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  if (!in) return errors::NotFound("cannot read '", path, "'");
  return content.str();
}

absl::Status WriteIfChanged(const std::string& directory, const GeneratedFile& file) {
  const std::string path = absl::StrCat(directory, "/", file.name);
  const absl::StatusOr<std::string> old = ReadTextFile(path);
  if (old.ok() && *old == file.content) return absl::OkStatus();
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << file.content;
  out.close();
  if (!out) return errors::FailedPrecondition("cannot write '", path, "'");
  return absl::OkStatus();
}

absl::Status WriteWrappers(const Registry& registry, const std::vector<std::string>& groups,
                           const std::string& include_dir, const Registry* base,
                           const std::string& directory) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<GeneratedFile> files,
                            GenerateWrappers(registry, groups, include_dir, base));
  for (const GeneratedFile& file : files) {
    GRADFLOW_RETURN_IF_ERROR(WriteIfChanged(directory, file));
  }
  return absl::OkStatus();
}

}  // namespace gradflow
