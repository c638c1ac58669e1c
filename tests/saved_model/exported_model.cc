#include "tests/saved_model/exported_model.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/io/npy.h"
#include "gradflow/saved_model/builder.h"
#include "gradflow/saved_model/loader.h"

namespace gradflow::testing {
namespace {

// The elements as complex numbers; halves and bfloat16 included.
template <typename T>
std::vector<std::complex<double>> Elements(const Tensor& tensor) {
  std::vector<std::complex<double>> elements;
  for (const T& x : tensor.span<T>()) {
    if constexpr (std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, std::complex<double>>) {
      elements.emplace_back(x);
    } else {
      elements.emplace_back(static_cast<double>(x));
    }
  }
  return elements;
}

absl::StatusOr<std::vector<std::complex<double>>> Numbers(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DT_FLOAT:
      return Elements<float>(tensor);
    case DT_DOUBLE:
      return Elements<double>(tensor);
    case DT_HALF:
      return Elements<half>(tensor);
    case DT_INT8:
      return Elements<int8_t>(tensor);
    case DT_UINT8:
      return Elements<uint8_t>(tensor);
    case DT_INT32:
      return Elements<int32_t>(tensor);
    case DT_INT64:
      return Elements<int64_t>(tensor);
    case DT_BOOL:
      return Elements<bool>(tensor);
    case DT_COMPLEX64:
      return Elements<std::complex<float>>(tensor);
    case DT_COMPLEX128:
      return Elements<std::complex<double>>(tensor);
    default:
      return errors::Unimplemented("cannot compare ", DataTypeString(tensor.dtype()));
  }
}

// Returns the largest difference, relative to the largest element.
absl::StatusOr<double> Difference(const Tensor& found, const Tensor& expected) {
  if (found.dtype() != expected.dtype() || found.shape() != expected.shape()) {
    return errors::InvalidArgument("expected ", expected.DebugString(2), ", found ",
                                   found.DebugString(2));
  }
  if (found.dtype() == DT_STRING) {
    const auto a = found.span<tstring>();
    const auto b = expected.span<tstring>();
    return std::equal(a.begin(), a.end(), b.begin()) ? 0.0 : 1.0;
  }
  GRADFLOW_ASSIGN_OR_RETURN(const auto a, Numbers(found));
  GRADFLOW_ASSIGN_OR_RETURN(const auto b, Numbers(expected));
  double largest = 0;
  double difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(std::abs(a[i])) != std::isnan(std::abs(b[i]))) return 1e30;
    if (a[i] == b[i] || std::isnan(std::abs(b[i]))) continue;
    difference = std::max(difference, std::abs(a[i] - b[i]));
  }
  for (const auto& x : b) {
    if (!std::isnan(std::abs(x))) largest = std::max(largest, std::abs(x));
  }
  return difference == 0 ? 0 : difference / std::max(largest, 1e-30);
}

struct Call {
  std::string signature;
  NamedTensors feeds;
  NamedTensors expected;
};

}  // namespace

absl::StatusOr<double> RunExportedModel(const std::string& folder,
                                        const ExportedModelOptions& exported) {
  std::ifstream file(folder + "/calls.txt");
  double tolerance = 0;
  std::vector<Call> calls;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, name, path;
    words >> kind >> name >> path;
    if (kind == "tolerance") tolerance = std::strtod(name.c_str(), nullptr);
    if (kind == "call") calls.push_back({name, {}, {}});
    if (kind != "feed" && kind != "expect") continue;
    GRADFLOW_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy(absl::StrCat(folder, "/", path)));
    (kind == "feed" ? calls.back().feeds : calls.back().expected).emplace(name, std::move(tensor));
  }
  SessionOptions options;
  options.file_access = FileAccess::None();
  if (!exported.freezes) options.freeze_variables = false;
  SavedModelBundle bundle;
  GRADFLOW_RETURN_IF_ERROR(
      LoadSavedModel(options, RunOptions(), folder + "/model", {"serve"}, &bundle));
  double largest = 0;
  std::map<std::string, SignatureCallable> callables;
  for (size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    if (callables.count(call.signature) == 0) {
      GRADFLOW_ASSIGN_OR_RETURN(const Signature signature, bundle.signature(call.signature));
      GRADFLOW_ASSIGN_OR_RETURN(SignatureCallable made, signature.MakeCallable());
      callables.emplace(call.signature, std::move(made));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const NamedTensors outputs, callables.at(call.signature)(call.feeds));
    for (const auto& [name, expected] : call.expected) {
      const auto found = outputs.find(name);
      if (found == outputs.end()) return errors::NotFound("no output '", name, "'");
      GRADFLOW_ASSIGN_OR_RETURN(const double difference, Difference(found->second, expected));
      largest = std::max(largest, difference);
      if (difference > tolerance) {
        return errors::FailedPrecondition("call ", i, " (", call.signature, "): output '", name,
                                          "' differs by ", difference);
      }
    }
  }
  if (!exported.written.empty()) {
    SavedModelBuilder builder(exported.written);
    GRADFLOW_RETURN_IF_ERROR(
        builder.AddModel(folder + "/model", bundle.meta_graph_def, bundle.session->resources()));
    GRADFLOW_RETURN_IF_ERROR(builder.Save(/*replace=*/true));
  }
  return largest;
}

}  // namespace gradflow::testing
