// Signature: a computation of a SavedModel with named inputs and outputs.
//
//   GRADFLOW_ASSIGN_OR_RETURN(const Signature signature, bundle.signature("serving_default"));
//   for (const SignatureTensor& input : signature.inputs()) {
//     std::cout << input.name << " " << DataTypeString(input.dtype) << "\n";
//   }
//   GRADFLOW_ASSIGN_OR_RETURN(const SignatureCallable call, signature.MakeCallable());
//   GRADFLOW_ASSIGN_OR_RETURN(const NamedTensors outputs, call({{"x", x}}));
//   Use(outputs.at("y"));
//
// Thread safety: const members may be called from several threads at once. A SignatureCallable may
// run on any number of threads at once; its runs share the state of the model.
#ifndef GRADFLOW_SAVED_MODEL_SIGNATURE_H_
#define GRADFLOW_SAVED_MODEL_SIGNATURE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/runtime/session/session.h"

#pragma GCC visibility push(default)
namespace gradflow {

class SignatureDef;

// Tensors by the names of a signature.
using NamedTensors = std::map<std::string, Tensor>;

// An input or an output of a signature.
struct SignatureTensor {
  // The name for users, such as "x". A sparse tensor has three entries, "x/indices", "x/values" and
  // "x/dense_shape". A value of several tensors has "x/0", "x/1" and so on.
  std::string name;
  // The name in the graph, such as "serving_default_x:0".
  std::string tensor_name;
  // The type and the shape; DT_INVALID and an unknown shape if the model does not state them.
  DataType dtype = DT_INVALID;
  PartialTensorShape shape;
};

// Runs a signature. Copies share the callable of the session, which the last copy releases. The
// session must outlive all copies, even if it is closed.
class SignatureCallable {
 public:
  // Runs the signature. Returns INVALID_ARGUMENT, with the expected and the found names, types or
  // shapes, if an input is missing, unknown or does not fit. An input may be missing if the
  // signature has a default value for it.
  absl::StatusOr<NamedTensors> operator()(const NamedTensors& inputs) const;
  // Same as operator(), with the metadata and the cancellation token of Session::RunCallable().
  // Both pointers may be null.
  absl::StatusOr<NamedTensors> Call(const NamedTensors& inputs, RunMetadata* metadata,
                                    const CancellationToken* cancellation_token) const;
  // Runs the signature with tensors in the order of inputs() and outputs(), without looking up
  // names. Costs the same as Session::RunCallable().
  absl::Status Run(const std::vector<Tensor>& inputs, std::vector<Tensor>* outputs) const;

  // Inputs are sorted by name. Outputs are in the order that MakeCallable() was given.
  absl::Span<const SignatureTensor> inputs() const;
  absl::Span<const SignatureTensor> outputs() const;

 private:
  friend class Signature;
  struct Impl;
  explicit SignatureCallable(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

  std::shared_ptr<const Impl> impl_;
};

// A signature. Copies are cheap. Borrows the session that runs it.
class Signature {
 public:
  // Returns INVALID_ARGUMENT if `def` is malformed. `session` may be null if no callable is made.
  static absl::StatusOr<Signature> Make(absl::string_view name, const SignatureDef& def,
                                        Session* session);

  // Its name, such as "serving_default".
  const std::string& name() const;
  // Its purpose, such as "tensorflow/serving/predict".
  const std::string& method_name() const;
  // In the order of their names.
  absl::Span<const SignatureTensor> inputs() const;
  absl::Span<const SignatureTensor> outputs() const;
  // The values of inputs that a call may leave out.
  const NamedTensors& defaults() const;

  // Makes a callable that returns these outputs, in this order; by default all. Returns NOT_FOUND
  // if an output or a node of the graph does not exist, and the errors of kernels. Errors name the
  // signature.
  absl::StatusOr<SignatureCallable> MakeCallable(
      const std::vector<std::string>& outputs = {}) const;
  // Overload with options of the runs.
  absl::StatusOr<SignatureCallable> MakeCallable(const std::vector<std::string>& outputs,
                                                 const RunOptions& run_options) const;

 private:
  friend class SignatureCallable;
  struct Impl;
  explicit Signature(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

  std::shared_ptr<const Impl> impl_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_SAVED_MODEL_SIGNATURE_H_
