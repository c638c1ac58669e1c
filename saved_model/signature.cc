#include "gradflow/saved_model/signature.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/meta_graph.pb.h"
#include "gradflow/saved_model/signature_tensors.h"

namespace gradflow {
namespace {

// The maximum number of names in an error text.
constexpr size_t kMaxListed = 20;

std::string NamesOf(absl::Span<const SignatureTensor> tensors) {
  std::vector<std::string> names;
  for (const SignatureTensor& tensor : tensors) {
    if (names.size() == kMaxListed) {
      names.emplace_back("...");
      break;
    }
    names.push_back(internal::Quoted(tensor.name));
  }
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

absl::Status AddTensor(const std::string& name, const TensorInfo& info, int depth,
                       std::vector<SignatureTensor>* tensors) {
  constexpr int kMaxDepth = 10;
  constexpr size_t kMaxTensors = 100'000;
  const auto error = [&](absl::string_view text) {
    return errors::InvalidArgument("tensor ", internal::Quoted(name), " ", text);
  };
  if (depth > kMaxDepth) {
    return error(absl::StrCat("is nested more than ", kMaxDepth, " levels deep"));
  }
  if (tensors->size() >= kMaxTensors) {
    return error(absl::StrCat("exceeds the limit of ", kMaxTensors, " tensors of a signature"));
  }
  const auto add = [&](std::string part, const std::string& tensor_name, DataType dtype,
                       PartialTensorShape shape) {
    if (tensor_name.empty()) return error("has no name in the graph");
    tensors->push_back({std::move(part), tensor_name, dtype, std::move(shape)});
    return absl::OkStatus();
  };
  switch (info.encoding_case()) {
    case TensorInfo::kName: {
      PartialTensorShape shape;
      if (info.has_tensor_shape()) {
        absl::StatusOr<PartialTensorShape> made = PartialTensorShape::Make(info.tensor_shape());
        if (!made.ok()) return error(absl::StrCat("has no valid shape: ", made.status().message()));
        shape = *std::move(made);
      }
      return add(name, info.name(), info.dtype(), std::move(shape));
    }
    case TensorInfo::kCooSparse: {
      const TensorInfo::CooSparse& sparse = info.coo_sparse();
      GRADFLOW_RETURN_IF_ERROR(add(name + "/indices", sparse.indices_tensor_name(), DT_INT64,
                                   PartialTensorShape::UnknownOfRank(2)));
      GRADFLOW_RETURN_IF_ERROR(add(name + "/values", sparse.values_tensor_name(), info.dtype(),
                                   PartialTensorShape::UnknownOfRank(1)));
      return add(name + "/dense_shape", sparse.dense_shape_tensor_name(), DT_INT64,
                 PartialTensorShape::UnknownOfRank(1));
    }
    case TensorInfo::kCompositeTensor: {
      for (int i = 0; i < info.composite_tensor().components_size(); ++i) {
        GRADFLOW_RETURN_IF_ERROR(AddTensor(
            absl::StrCat(name, "/", i), info.composite_tensor().components(i), depth + 1, tensors));
      }
      return absl::OkStatus();
    }
    default:
      return error("has no name in the graph");
  }
}

}  // namespace

absl::StatusOr<std::vector<SignatureTensor>> internal::SignatureTensors(
    const google::protobuf::Map<std::string, TensorInfo>& infos) {
  std::vector<SignatureTensor> tensors;
  for (const auto& [name, info] : infos) {
    GRADFLOW_RETURN_IF_ERROR(AddTensor(name, info, 0, &tensors));
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const SignatureTensor& a, const SignatureTensor& b) { return a.name < b.name; });
  for (size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i].name == tensors[i - 1].name) {
      return errors::InvalidArgument("two tensors have the name ",
                                     internal::Quoted(tensors[i].name));
    }
  }
  return tensors;
}

// ---- Signature ----

struct Signature::Impl {
  std::string name;
  std::string method_name;
  std::vector<SignatureTensor> inputs;
  std::vector<SignatureTensor> outputs;
  // The default values of inputs.
  NamedTensors defaults;
  Session* session = nullptr;

  std::string Prefix() const { return absl::StrCat("signature ", internal::Quoted(name), ": "); }
};

absl::StatusOr<Signature> Signature::Make(absl::string_view name, const SignatureDef& def,
                                          Session* session) {
  const auto impl = std::make_shared<Impl>();
  const absl::Status status = CallSafely([&]() -> absl::Status {
    impl->name = std::string(name);
    impl->method_name = def.method_name();
    impl->session = session;
    GRADFLOW_ASSIGN_OR_RETURN(impl->inputs, internal::SignatureTensors(def.inputs()));
    GRADFLOW_ASSIGN_OR_RETURN(impl->outputs, internal::SignatureTensors(def.outputs()));
    // A short message may repeat one value in a large tensor, so the limit counts the bytes of all
    // tensors.
    constexpr int64_t kMaxBytes = int64_t{1} << 30;
    int64_t bytes = 0;
    const auto prefix = [](const std::string& input) {
      return absl::StrCat("the default of input ", internal::Quoted(input), ": ");
    };
    for (const auto& [input, value] : def.defaults()) {
      absl::Status valid = ValidateTensorProto(value);
      if (valid.ok()) {
        const int64_t more = TensorProtoBytes(value);
        if (more < 0 || more > kMaxBytes - bytes) {
          valid = errors::InvalidArgument("the defaults have more than ", kMaxBytes, " bytes");
        }
        bytes += more;
      }
      if (!valid.ok()) return errors::Prefix(prefix(input), valid);
    }
    for (const auto& [input, value] : def.defaults()) {
      absl::StatusOr<Tensor> tensor = TensorFromProto(value);
      if (!tensor.ok()) return errors::Prefix(prefix(input), tensor.status());
      impl->defaults.emplace(input, *std::move(tensor));
    }
    return absl::OkStatus();
  });
  if (!status.ok()) {
    return errors::Prefix(absl::StrCat("signature ", internal::Quoted(name), ": "), status);
  }
  return Signature(impl);
}

const std::string& Signature::name() const { return impl_->name; }
const std::string& Signature::method_name() const { return impl_->method_name; }
absl::Span<const SignatureTensor> Signature::inputs() const { return impl_->inputs; }
absl::Span<const SignatureTensor> Signature::outputs() const { return impl_->outputs; }
const NamedTensors& Signature::defaults() const { return impl_->defaults; }

// ---- SignatureCallable ----

struct SignatureCallable::Impl {
  ~Impl() {
    // Ignores the error of a closed session, which has already released the callable.
    if (handle != 0) session->ReleaseCallable(handle).IgnoreError();
  }

  std::string Prefix() const { return signature->Prefix(); }

  std::shared_ptr<const Signature::Impl> signature;
  std::vector<SignatureTensor> outputs;
  Session* session = nullptr;
  Session::CallableHandle handle = 0;
};

absl::StatusOr<SignatureCallable> Signature::MakeCallable(
    const std::vector<std::string>& outputs) const {
  return MakeCallable(outputs, RunOptions::default_instance());
}

absl::StatusOr<SignatureCallable> Signature::MakeCallable(const std::vector<std::string>& outputs,
                                                          const RunOptions& run_options) const {
  const auto made = std::make_shared<SignatureCallable::Impl>();
  const absl::Status status = CallSafely([&]() -> absl::Status {
    if (impl_->session == nullptr) {
      return errors::FailedPrecondition("the signature has no session that could run it");
    }
    made->signature = impl_;
    made->session = impl_->session;
    CallableOptions options;
    *options.mutable_run_options() = run_options;
    for (const SignatureTensor& input : impl_->inputs) options.add_feed(input.tensor_name);
    if (outputs.empty()) made->outputs = impl_->outputs;
    for (const std::string& name : outputs) {
      const auto found = std::find_if(impl_->outputs.begin(), impl_->outputs.end(),
                                      [&](const auto& output) { return output.name == name; });
      if (found == impl_->outputs.end()) {
        return errors::NotFound("there is no output ", internal::Quoted(name), "; the outputs are ",
                                NamesOf(impl_->outputs));
      }
      made->outputs.push_back(*found);
    }
    for (const SignatureTensor& output : made->outputs) options.add_fetch(output.tensor_name);
    return impl_->session->MakeCallable(options, &made->handle);
  });
  if (!status.ok()) return errors::Prefix(impl_->Prefix(), status);
  return SignatureCallable(made);
}

absl::Span<const SignatureTensor> SignatureCallable::inputs() const {
  return impl_->signature->inputs;
}
absl::Span<const SignatureTensor> SignatureCallable::outputs() const { return impl_->outputs; }

absl::StatusOr<NamedTensors> SignatureCallable::operator()(const NamedTensors& inputs) const {
  return Call(inputs, nullptr, nullptr);
}

absl::StatusOr<NamedTensors> SignatureCallable::Call(
    const NamedTensors& inputs, RunMetadata* metadata,
    const CancellationToken* cancellation_token) const {
  NamedTensors named;
  const absl::Status status = CallSafely([&]() -> absl::Status {
    const std::vector<SignatureTensor>& expected = impl_->signature->inputs;
    std::vector<Tensor> tensors;
    tensors.reserve(expected.size());
    size_t used = 0;
    for (const SignatureTensor& input : expected) {
      auto found = inputs.find(input.name);
      if (found == inputs.end()) {
        found = impl_->signature->defaults.find(input.name);
        if (found == impl_->signature->defaults.end()) {
          return errors::InvalidArgument("input ", internal::Quoted(input.name),
                                         " is missing; the inputs are ", NamesOf(expected));
        }
      } else {
        ++used;
      }
      const Tensor& tensor = found->second;
      if (input.dtype != DT_INVALID && tensor.dtype() != input.dtype) {
        return errors::InvalidArgument("input ", internal::Quoted(input.name), ": expected type ",
                                       DataTypeString(input.dtype), ", found ",
                                       DataTypeString(tensor.dtype()));
      }
      if (!input.shape.IsCompatibleWith(tensor.shape())) {
        return errors::InvalidArgument("input ", internal::Quoted(input.name), ": expected shape ",
                                       input.shape.DebugString(), ", found ",
                                       tensor.shape().DebugString());
      }
      tensors.push_back(tensor);
    }
    if (used != inputs.size()) {
      for (const auto& [name, tensor] : inputs) {
        if (std::none_of(expected.begin(), expected.end(),
                         [&, &key = name](const auto& input) { return input.name == key; })) {
          return errors::InvalidArgument("there is no input ", internal::Quoted(name),
                                         "; the inputs are ", NamesOf(expected));
        }
      }
    }
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(
        cancellation_token == nullptr
            ? impl_->session->RunCallable(impl_->handle, tensors, &outputs, metadata)
            : impl_->session->RunCallable(impl_->handle, tensors, &outputs, metadata,
                                          *cancellation_token));
    for (size_t i = 0; i < outputs.size(); ++i) {
      named.emplace(impl_->outputs[i].name, std::move(outputs[i]));
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return errors::Prefix(impl_->Prefix(), status);
  return named;
}

absl::Status SignatureCallable::Run(const std::vector<Tensor>& inputs,
                                    std::vector<Tensor>* outputs) const {
  absl::Status status = impl_->session->RunCallable(impl_->handle, inputs, outputs, nullptr);
  return status.ok() ? status : errors::Prefix(impl_->Prefix(), status);
}

}  // namespace gradflow
