// TF_CheckpointReader.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/c/status.h"
#include "gradflow/c/tensor.h"
#include "gradflow/io/checkpoint.h"
#include "tensorflow/c/c_api_experimental.h"

struct TF_CheckpointReader {
  explicit TF_CheckpointReader(const gradflow::Checkpoint& opened)
      : checkpoint(opened), names(checkpoint.Names()) {}
  const gradflow::Checkpoint checkpoint;
  const std::vector<std::string> names;
};

using gradflow::Checkpoint;
using gradflow::capi::Call;
using gradflow::capi::CallOr;
using gradflow::capi::OrEmpty;

TF_CheckpointReader* TF_NewCheckpointReader(const char* filename, TF_Status* status) {
  TF_CheckpointReader* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(OrEmpty(filename)));
    result = new TF_CheckpointReader(checkpoint);
    return absl::OkStatus();
  });
  return result;
}

void TF_DeleteCheckpointReader(TF_CheckpointReader* reader) { delete reader; }

int TF_CheckpointReaderHasTensor(TF_CheckpointReader* reader, const char* name) {
  return CallOr(0, [&] { return reader->checkpoint.Find(OrEmpty(name)).ok() ? 1 : 0; });
}

const char* TF_CheckpointReaderGetVariable(TF_CheckpointReader* reader, int index) {
  const bool exists = index >= 0 && index < static_cast<int>(reader->names.size());
  return exists ? reader->names[index].c_str() : nullptr;
}

int TF_CheckpointReaderSize(TF_CheckpointReader* reader) {
  return static_cast<int>(reader->names.size());
}

TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader* reader, const char* name) {
  return CallOr(static_cast<TF_DataType>(0), [&] {
    const absl::StatusOr<Checkpoint::Info> info = reader->checkpoint.Find(OrEmpty(name));
    return gradflow::capi::ToC(info.ok() ? info->dtype : gradflow::DT_INVALID);
  });
}

void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader* reader, const char* name,
                                         int64_t* dims, int num_dims, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const Checkpoint::Info info, reader->checkpoint.Find(OrEmpty(name)));
    if (num_dims != info.shape.dims()) {
      return gradflow::errors::InvalidArgument("the tensor has rank ", info.shape.dims(),
                                               ", and num_dims is ", num_dims);
    }
    for (int d = 0; d < num_dims; ++d) dims[d] = info.shape.dim_size(d);
    return absl::OkStatus();
  });
}

int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader* reader, const char* name) {
  return CallOr(-1, [&] {
    const absl::StatusOr<Checkpoint::Info> info = reader->checkpoint.Find(OrEmpty(name));
    return info.ok() ? info->shape.dims() : -1;
  });
}

TF_Tensor* TF_CheckpointReaderGetTensor(TF_CheckpointReader* reader, const char* name,
                                        TF_Status* status) {
  TF_Tensor* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(gradflow::Tensor tensor, reader->checkpoint.Read(OrEmpty(name)));
    GRADFLOW_ASSIGN_OR_RETURN(result, gradflow::capi::TensorToC(std::move(tensor)));
    return absl::OkStatus();
  });
  return result;
}
