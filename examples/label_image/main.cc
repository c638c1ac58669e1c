// Classifies an image.
//
//   label_image GRAPH IMAGE [OPTION=VALUE...]
//
// GRAPH is a frozen classifier, a GraphDef of TensorFlow. IMAGE is a JPEG, PNG, GIF or BMP file.
// Prints the five best classes, each with a bar. Options:
//
//   input=NAME    the classifier's input, float [batch, height, width, channels]; default: its
//                 only Placeholder
//   output=NAME   the classifier's output, [batch, classes]; default: its only tensor that no node
//                 uses
//   size=N        height and width of the input, if the shape of the Placeholder is not known
//   mean=M std=S  the input is (pixel - M) / S for pixels from 0 to 255; default: 0 and 255
//   labels=FILE   the names of the classes, one per line
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/import.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/session.h"

namespace {

using gradflow::GraphDef;
using gradflow::NodeDef;
using gradflow::Tensor;

constexpr int kBest = 5;
constexpr int kBarWidth = 40;

struct LabelOptions {
  std::string graph, image, input, output, labels;
  int64_t height = 0, width = 0, channels = 3;
  float mean = 0, std = 255;
};

absl::StatusOr<LabelOptions> ParseOptions(int argc, char** argv) {
  LabelOptions options;
  options.graph = argv[1];
  options.image = argv[2];
  for (int i = 3; i < argc; ++i) {
    const std::pair<std::string, std::string> option =
        absl::StrSplit(argv[i], absl::MaxSplits('=', 1));
    const auto& [name, value] = option;
    bool ok = true;
    if (name == "input") {
      options.input = value;
    } else if (name == "output") {
      options.output = value;
    } else if (name == "labels") {
      options.labels = value;
    } else if (name == "size") {
      ok = absl::SimpleAtoi(value, &options.height) && options.height > 0;
      options.width = options.height;
    } else if (name == "mean") {
      ok = absl::SimpleAtof(value, &options.mean);
    } else if (name == "std") {
      ok = absl::SimpleAtof(value, &options.std) && options.std != 0;
    } else {
      ok = false;
    }
    if (!ok) return absl::InvalidArgumentError(absl::StrCat("bad option '", argv[i], "'"));
  }
  return options;
}

// Returns the only element of `names`, or an error if there is not exactly one.
absl::StatusOr<std::string> Only(const std::vector<std::string>& names, const char* what) {
  if (names.size() == 1) return names[0];
  return absl::InvalidArgumentError(absl::StrCat(
      "the graph has ", names.size(), " candidates for its ", what, "; give ", what, "=NAME"));
}

// Sets the options that the command line left out, from the nodes of the graph.
absl::Status Complete(const GraphDef& graph, LabelOptions* options) {
  std::vector<std::string> inputs, outputs;
  std::set<std::string> used;
  for (const NodeDef& node : graph.node()) {
    if (node.op() == "Placeholder") inputs.push_back(node.name());
    for (absl::string_view input : node.input()) {
      used.emplace(input.substr(0, input.find(':')));
    }
  }
  for (const NodeDef& node : graph.node()) {
    if (used.count(node.name()) == 0 && node.op() != "NoOp") outputs.push_back(node.name());
  }
  if (options->input.empty()) {
    GRADFLOW_ASSIGN_OR_RETURN(options->input, Only(inputs, "input"));
  }
  if (options->output.empty()) {
    GRADFLOW_ASSIGN_OR_RETURN(options->output, Only(outputs, "output"));
  }
  for (const NodeDef& node : graph.node()) {
    if (node.name() != options->input) continue;
    const auto shape = node.attr().find("shape");
    if (shape == node.attr().end() || shape->second.shape().dim_size() != 4) continue;
    const auto& dims = shape->second.shape().dim();
    if (options->height == 0) {
      options->height = dims[1].size();
      options->width = dims[2].size();
    }
    if (dims[3].size() > 0) options->channels = dims[3].size();
  }
  if (options->height < 1 || options->width < 1) {
    return absl::InvalidArgumentError("the size of the input is unknown; give size=N");
  }
  return absl::OkStatus();
}

// Reads the image in the form of the classifier's input: float [1, height, width, channels].
absl::StatusOr<Tensor> ReadImage(const LabelOptions& options) {
  using namespace gradflow::ops;  // NOLINT: short example
  const int32_t height = static_cast<int32_t>(options.height);
  const int32_t width = static_cast<int32_t>(options.width);
  gradflow::Scope scope = gradflow::Scope::NewRootScope();
  auto bytes = ReadFile(scope, Tensor(options.image));
  auto pixels =
      DecodeImage(scope, bytes, DecodeImage::Channels(options.channels).ExpandAnimations(false));
  auto image = ExpandDims(scope, Cast(scope, pixels, gradflow::DT_FLOAT), 0);
  auto resized = ResizeBilinear(scope, image, {height, width});
  auto scaled = Div(scope, Sub(scope, resized, options.mean), options.std);
  gradflow::ClientSession session(scope);
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(session.Run({scaled}, &outputs));
  return outputs[0];
}

absl::StatusOr<std::vector<std::string>> ReadLabels(const std::string& path) {
  std::vector<std::string> labels;
  if (path.empty()) return labels;
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open '", path, "'"));
  for (std::string line; std::getline(file, line);) labels.push_back(line);
  return labels;
}

absl::Status Label(int argc, char** argv) {
  GRADFLOW_ASSIGN_OR_RETURN(LabelOptions options, ParseOptions(argc, argv));
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<std::string> labels, ReadLabels(options.labels));
  GRADFLOW_ASSIGN_OR_RETURN(GraphDef graph, gradflow::ReadGraphDef(options.graph));
  GRADFLOW_RETURN_IF_ERROR(Complete(graph, &options));
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor image, ReadImage(options));

  GRADFLOW_ASSIGN_OR_RETURN(std::unique_ptr<gradflow::Session> session,
                            gradflow::Session::Make(gradflow::SessionOptions()));
  GRADFLOW_RETURN_IF_ERROR(session->Create(std::move(graph)));
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(session->Run({{options.input, image}}, {options.output}, {}, &outputs));
  if (outputs[0].dtype() != gradflow::DT_FLOAT || outputs[0].NumElements() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", options.output, "' is not a classifier's output: ", outputs[0].DebugString(0)));
  }

  const auto values = outputs[0].flat<float>();
  // A classifier may return NaN, which cannot be sorted.
  const auto scores = [&](int64_t c) {
    return std::isnan(values(c)) ? -std::numeric_limits<float>::infinity() : values(c);
  };
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const int64_t shown = std::min<int64_t>(kBest, values.size());
  std::partial_sort(order.begin(), order.begin() + shown, order.end(), [&](int64_t a, int64_t b) {
    return scores(a) != scores(b) ? scores(a) > scores(b) : a < b;
  });
  for (int64_t i = 0; i < shown; ++i) {
    const int64_t c = order[i];
    // Bars show probabilities. For logits, the length of the bar is clamped.
    const float bar = std::min(std::max(scores(c), 0.0f), 1.0f) * kBarWidth;
    const std::string name =
        c < static_cast<int64_t>(labels.size()) ? labels[c] : absl::StrCat("class ", c);
    std::printf("%8.4f  %-*s  %s\n", values(c), kBarWidth,
                std::string(static_cast<size_t>(std::lround(bar)), '#').c_str(), name.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: " << argv[0] << " GRAPH IMAGE [OPTION=VALUE...]\n";
    return 2;
  }
  const absl::Status status = Label(argc, argv);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
