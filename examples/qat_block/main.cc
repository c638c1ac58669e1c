// Gradients of a quantized batch-norm block on Fashion-MNIST.
//
//   qat_block prepare DIR    writes the graph (qat_block.pb) and a batch of 4,096 images (.npy)
//   qat_block report DIR     reports the results of `gradflow run`, compares every gradient with
//                            finite differences on a small batch, and draws qat_block.png
//
// demo.sh runs both, with `gradflow run` as a separate process between them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "examples/qat_block/block.h"
#include "examples/qat_block/finite_differences.h"
#include "examples/qat_block/picture.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/idx.h"
#include "gradflow/io/npy.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"

namespace qat_block {
namespace {

using gradflow::GraphDef;
using gradflow::Tensor;

constexpr int64_t kImages = 4096;
constexpr int64_t kSmallBatch = 8;
constexpr int kPictured = 10;
// Maximum relative error of gradients against finite differences.
constexpr double kTolerance = 0.01;

// Returns float [n, 14, 14, 4]: the next image minus each image, per pixel. Stands in for the
// gradient from the rest of a network.
absl::StatusOr<Tensor> MakeUpstream(const Tensor& images) {
  const int64_t count = images.dim_size(0);
  GRADFLOW_ASSIGN_OR_RETURN(
      Tensor upstream,
      Tensor::Allocate(gradflow::DT_FLOAT, {count, kHeight / 2, kWidth / 2, kChannels}));
  const auto pixels = images.tensor<uint8_t, 3>();
  auto out = upstream.tensor<float, 4>();
  for (int64_t n = 0; n < count; ++n) {
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        const int difference = pixels((n + 1) % count, y, x) - pixels(n, y, x);
        out(n, y / 2, x / 2, 2 * (y % 2) + x % 2) = difference / 255.0f;
      }
    }
  }
  return upstream;
}

// Prints the ops of all nodes whose names begin with `prefix`: the backward pass of a branch.
void PrintOps(const GraphDef& graph, const char* what, const std::string& prefix) {
  std::printf("  %-11s", what);
  for (const auto& node : graph.node()) {
    if (absl::StartsWith(node.name(), prefix) && node.op() != "Identity" && node.op() != "Const") {
      std::printf(" %s", node.op().c_str());
    }
  }
  std::printf("\n");
}

// Reads the first images of the data set, uint8 [kImages, 28, 28].
absl::StatusOr<Tensor> ReadImages(const std::string& path) {
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor images, gradflow::ReadIdx(path));
  if (images.dtype() != gradflow::DT_UINT8 || images.dims() != 3 || images.dim_size(0) < kImages ||
      images.dim_size(1) != kHeight || images.dim_size(2) != kWidth) {
    return gradflow::errors::InvalidArgument("'", path, "': expected at least ", kImages,
                                             " images of 28 x 28 bytes, found shape ",
                                             images.shape().DebugString());
  }
  return images.Slice(0, kImages);
}

absl::Status Prepare(const std::string& dir, const std::string& dataset) {
  gradflow::Scope scope = gradflow::Scope::NewRootScope();
  BuildBlock(scope);
  GraphDef graph;
  GRADFLOW_RETURN_IF_ERROR(scope.ToGraphDef(&graph));
  GRADFLOW_RETURN_IF_ERROR(gradflow::WriteGraphDef(dir + "/qat_block.pb", graph));

  GRADFLOW_ASSIGN_OR_RETURN(const Tensor images,
                            ReadImages(dataset + "/t10k-images-idx3-ubyte.gz"));
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor upstream, MakeUpstream(images));
  GRADFLOW_RETURN_IF_ERROR(gradflow::WriteNpy(dir + "/images.npy", images));
  GRADFLOW_RETURN_IF_ERROR(gradflow::WriteNpy(dir + "/upstream.npy", upstream));
  std::printf("Built a graph of %d nodes and a batch of %d Fashion-MNIST images.\n",
              graph.node_size(), static_cast<int>(images.dim_size(0)));
  for (const std::string branch : {"per_tensor", "per_channel"}) {
    std::printf("Backward pass of %s:\n", branch.c_str());
    PrintOps(graph, "derived:", branch + "/gradients/");
    PrintOps(graph, "by hand:", branch + "/by_hand/");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<gradflow::Session>> LoadBlock(const std::string& dir) {
  GRADFLOW_ASSIGN_OR_RETURN(const GraphDef graph, gradflow::ReadGraphDef(dir + "/qat_block.pb"));
  GRADFLOW_ASSIGN_OR_RETURN(std::unique_ptr<gradflow::Session> session,
                            gradflow::Session::Make(gradflow::SessionOptions()));
  GRADFLOW_RETURN_IF_ERROR(session->Create(graph));
  return session;
}

// Tells whether the derived gradient has the same bits as the gradient that is written by hand.
// Uses separate runs, because one run would compute equal nodes only once.
absl::StatusOr<bool> SameAsByHand(gradflow::Session& session, const Tensor& images,
                                  const Tensor& upstream, const Gradient& gradient) {
  const Feeds feeds = {{"images", images}, {"upstream", upstream}};
  std::vector<Tensor> derived;
  std::vector<Tensor> by_hand;
  GRADFLOW_RETURN_IF_ERROR(session.Run(feeds, {gradient.gradient}, {}, &derived));
  GRADFLOW_RETURN_IF_ERROR(session.Run(feeds, {gradient.by_hand}, {}, &by_hand));
  return derived[0].shape() == by_hand[0].shape() &&
         derived[0].tensor_data() == by_hand[0].tensor_data();
}

// Returns the relative error of a gradient against finite differences, on the first images of the
// batch.
absl::StatusOr<double> Check(gradflow::Session& session, const Tensor& images,
                             const Tensor& upstream, const Gradient& gradient) {
  const Feeds batch = {{"images", images.Slice(0, kSmallBatch)},
                       {"upstream", upstream.Slice(0, kSmallBatch)}};
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(
      session.Run(batch, {gradient.gradient, gradient.variable, "x"}, {}, &outputs));
  const Feeds feeds = {{"upstream", upstream.Slice(0, kSmallBatch)}};
  // Pixels are multiples of 1/255. The step is much smaller, so it seldom moves a value across a
  // bound, where the clamp is not differentiable. Rounding of float32 would hide an even smaller
  // step.
  constexpr float kStep = 7e-4f;
  Feeds fixed = feeds;
  if (gradient.variable != "x") fixed.emplace_back("x", outputs[2]);
  GRADFLOW_ASSIGN_OR_RETURN(
      const Tensor differences,
      FiniteDifferences(session, fixed, gradient.loss, gradient.variable, outputs[1], kStep));
  return RelativeDistance(outputs[0], differences);
}

absl::Status Report(const std::string& dir) {
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor images, gradflow::ReadNpy(dir + "/images.npy"));
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor upstream, gradflow::ReadNpy(dir + "/upstream.npy"));
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<gradflow::Session> session, LoadBlock(dir));

  std::printf(
      "\nGradients of %d images, and their distance from central finite differences\n"
      "on a batch of %d (relative, Euclidean norm):\n\n  %-20s %-16s %26s  %9s  by hand\n",
      static_cast<int>(kImages), static_cast<int>(kSmallBatch), "gradient", "shape", "range",
      "distance");
  std::vector<Tensor> pictured;
  bool all_agree = true;
  bool all_same = true;
  for (const Gradient& gradient : Gradients()) {
    const std::string file = absl::StrReplaceAll(gradient.gradient, {{"/", "."}});
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor value,
                              gradflow::ReadNpy(absl::StrCat(dir, "/", file, ".npy")));
    GRADFLOW_ASSIGN_OR_RETURN(const double distance, Check(*session, images, upstream, gradient));
    const auto flat = value.flat<float>();
    const auto [low, high] = std::minmax_element(flat.begin(), flat.end());
    // The comparison is false for NaN.
    const bool agrees = distance <= kTolerance;
    GRADFLOW_ASSIGN_OR_RETURN(const bool same, SameAsByHand(*session, images, upstream, gradient));
    all_agree = all_agree && agrees;
    all_same = all_same && same;
    std::printf("  %-20s %-16s [%11.4f, %11.4f]  %8.4f%%  %s%s\n", gradient.name.c_str(),
                value.shape().DebugString().c_str(), *low, *high, 100 * distance,
                same ? "same bits" : "DIFFERS", agrees ? "" : "  TOO FAR");
    std::fflush(stdout);
    if (gradient.variable == "x") pictured.push_back(value);
  }
  const std::string picture = dir + "/qat_block.png";
  GRADFLOW_RETURN_IF_ERROR(WritePicture(picture, images, pictured, kPictured));
  std::printf("\nPicture of images and their input gradients: %s\n", picture.c_str());
  if (!all_agree) {
    return gradflow::errors::Internal("a gradient is over ", 100 * kTolerance,
                                      " % from its finite differences");
  }
  if (!all_same) {
    return gradflow::errors::Internal("a derived gradient differs from the one written by hand");
  }
  std::printf("Every gradient agrees with its finite differences to %g %% or better.\n",
              100 * kTolerance);
  return absl::OkStatus();
}

}  // namespace
}  // namespace qat_block

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  absl::Status status;
  if (command == "prepare" && (argc == 3 || argc == 4)) {
    status = qat_block::Prepare(argv[2], argc == 4 ? argv[3] : "/usr/share/datasets/fashion-mnist");
  } else if (command == "report" && argc == 3) {
    status = qat_block::Report(argv[2]);
  } else {
    std::cerr << "Usage: qat_block prepare DIR [DATASET]\n       qat_block report DIR\n";
    return 2;
  }
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  return 1;
}
