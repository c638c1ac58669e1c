// ShardedFilename and ShardedFilespec.
#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow::sharded_filename {
namespace {

absl::Status ScalarsShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  c.set_output(0, TensorShape());
  return absl::OkStatus();
}

// Sets the output to the basename followed by `suffix`.
absl::Status SetName(KernelContext& ctx, const std::string& suffix) {
  const tstring& basename = ctx.input(0).scalar<tstring>()();
  ctx.ExpectStringBytes(static_cast<double>(basename.size() + suffix.size()));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, TensorShape(), &output));
  output->scalar<tstring>()() = basename + suffix;
  return absl::OkStatus();
}

absl::Status ShardedFilename(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "basename"));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t shard, ctx.ScalarInt(1, "shard"));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t num_shards, ctx.ScalarInt(2, "num_shards"));
  return SetName(ctx, absl::StrFormat("-%05d-of-%05d", shard, num_shards));
}

absl::Status ShardedFilespec(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "basename"));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t num_shards, ctx.ScalarInt(1, "num_shards"));
  return SetName(ctx, absl::StrFormat("-\?\?\?\?\?-of-%05d", num_shards));
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("ShardedFilename")
      .Group("io_ops")
      .Input("basename: string")
      .Input("shard: int32")
      .Input("num_shards: int32")
      .Output("filename: string")
      .Shape(ScalarsShape)
      .Doc(R"(Returns the name of one of several files: "name-00003-of-00010".

basename: A scalar: the beginning of the name.
shard: A scalar: the number of the file.
num_shards: A scalar: the number of files.
filename: The name.)");
  registry.Kernel("ShardedFilename", MakeFunctionKernel<ShardedFilename, /*Cheap=*/true>);
  registry.Op("ShardedFilespec")
      .Group("io_ops")
      .Input("basename: string")
      .Input("num_shards: int32")
      .Output("filename: string")
      .Shape(ScalarsShape)
      .Doc(R"(Returns a pattern that matches the names of several files: "name-?????-of-00010".

basename: A scalar: the beginning of the names.
num_shards: A scalar: the number of files.
filename: The pattern.)");
  registry.Kernel("ShardedFilespec", MakeFunctionKernel<ShardedFilespec, /*Cheap=*/true>);
}

}  // namespace gradflow::sharded_filename
