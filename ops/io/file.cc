// ReadFile, WriteFile and MatchingFiles.
#include "gradflow/io/file.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/io/file_access.h"
#include "gradflow/io/file_pattern.h"
#include "gradflow/ops/common/input_checks.h"

namespace gradflow::file {
namespace {

// Adds the path to an error.
absl::Status AtPath(const std::string& path, const absl::Status& status) {
  return errors::Prefix(absl::StrCat("'", errors::Printable(path), "': "), status);
}

// Returns the string of scalar input i. Returns INVALID_ARGUMENT if it is empty or contains a 0
// byte.
absl::StatusOr<std::string> Path(const KernelContext& ctx, int i, const char* name) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(i, name));
  if (ctx.input_dtype(i) != DT_STRING) {
    return errors::InvalidArgument(name, " must be a string, but is ",
                                   DataTypeString(ctx.input_dtype(i)));
  }
  const std::string& path = ctx.input(i).scalar<tstring>()();
  if (path.empty() || path.find('\0') != std::string::npos) {
    return errors::InvalidArgument(name, " must be a path, but is '", errors::Printable(path), "'");
  }
  return path;
}

absl::Status ReadFile(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::string path, Path(ctx, 0, "filename"));
  size_t size = 0;
  absl::StatusOr<internal::FileDescriptor> file =
      internal::OpenFile(path, &size, FileAccessOf(ctx));
  if (!file.ok()) return AtPath(path, file.status());
  ctx.ExpectStringBytes(static_cast<double>(size));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {}, &output));
  tstring& contents = output->scalar<tstring>()();
  contents.resize(size);
  // Reads in parts, because the run can be stopped between parts.
  constexpr size_t kPart = size_t{1} << 24;
  for (size_t at = 0; at < size && !ctx.ShouldStop(); at += kPart) {
    const absl::Status status =
        internal::ReadAt(file->get(), at, &contents[at], std::min(kPart, size - at));
    if (!status.ok()) return AtPath(path, status);
  }
  return absl::OkStatus();
}

absl::Status WriteFile(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::string path, Path(ctx, 0, "filename"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(1, "contents"));
  if (ctx.input_dtype(1) != DT_STRING) {
    return errors::InvalidArgument("contents must be a string, but is ",
                                   DataTypeString(ctx.input_dtype(1)));
  }
  const tstring& contents = ctx.input(1).scalar<tstring>()();
  const absl::Status folders = internal::MakeFolders(path, FileAccessOf(ctx));
  if (!folders.ok()) return AtPath(path, folders);
  const absl::Status status =
      internal::WriteFile(path, {contents}, /*sync=*/false, FileAccessOf(ctx));
  return status.ok() ? status : AtPath(path, status);
}

absl::Status MatchingFiles(KernelContext& ctx) {
  const Tensor& patterns = ctx.input(0);
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtMost("pattern", patterns.shape(), 1));
  if (patterns.dtype() != DT_STRING) {
    return errors::InvalidArgument("pattern must be of type string, but is ",
                                   DataTypeString(patterns.dtype()));
  }
  internal::FileReservation reservation(ctx.allocator().get());
  std::vector<std::string> paths;
  for (const tstring& pattern : patterns.span<tstring>()) {
    const absl::Status status = internal::MatchingPaths(
        pattern, [&] { return ctx.ShouldStop(); }, &reservation, &paths, FileAccessOf(ctx));
    if (!status.ok()) return AtPath(pattern, status);
  }
  std::sort(paths.begin(), paths.end());
  double bytes = 0;
  for (const std::string& path : paths) bytes += static_cast<double>(path.size());
  // The output takes ownership of the characters.
  reservation.Remove(static_cast<size_t>(bytes));
  reservation.Trim();
  ctx.ExpectStringBytes(bytes);
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {static_cast<int64_t>(paths.size())}, &output));
  std::move(paths.begin(), paths.end(), output->flat<tstring>().begin());
  return absl::OkStatus();
}

absl::Status ReadShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  return ScalarShape(c);
}
absl::Status MatchingShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtMost(c, 0, 1));
  c.set_output(0, PartialTensorShape({-1}));
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("ReadFile")
      .Group("io_ops")
      .Input("filename: string")
      .Output("contents: string")
      .Stateful()
      .Shape(ReadShape)
      .Doc(R"(Reads a whole file.

filename: The path of the file, which must be a regular file.
contents: The bytes of the file.)");
  registry.Op("WriteFile")
      .Group("io_ops")
      .Input("filename: string")
      .Input("contents: string")
      .Stateful()
      .Shape(ReadShape)
      .Doc(R"(Writes a file, which appears whole or not at all. Makes the folders of its path.

filename: The path of the file.
contents: The bytes to write.)");
  registry.Op("MatchingFiles")
      .Group("io_ops")
      .Input("pattern: string")
      .Output("filenames: string")
      .Stateful()
      .Shape(MatchingShape)
      .Doc(R"(Returns the files whose paths match a pattern, in alphabetical order.

In each part of a path between slashes, `*` stands for any characters, `?` for one character, and
`[a-z]` for one character of a set.

pattern: One or more patterns, a scalar or a vector.
filenames: The paths.)");
  registry.Kernel("ReadFile", MakeFunctionKernel<ReadFile>);
  registry.Kernel("WriteFile", MakeFunctionKernel<WriteFile>);
  registry.Kernel("MatchingFiles", MakeFunctionKernel<MatchingFiles>);
}

}  // namespace gradflow::file
