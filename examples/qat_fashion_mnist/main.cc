// Trains a quantized network on Fashion-MNIST, and compares it with integer arithmetic.
//
//   qat_fashion_mnist DIR [NAME=VALUE]...
//
//     epochs=10       passes over the 60,000 images
//     steps=0         if not 0, ends after this number of steps
//     batch=128       images in a step
//     rate=0.003      the first learning rate; it falls along a cosine
//     seed=1          seed of initial values and of the order of images
//     threads=0       0 for all cores
//     quantize=1      0 trains the same network in float
//     mirror=0        1 mirrors training images at random
//     checkpoint=100  steps between checkpoints
//     kill=0          if not 0, kills the process after this step, like a power cut
//     test=10000      number of test images
//     workers=1       number of processes on this machine that share the training; also --workers N
//     micro=0         if not 0, each batch is cut into this number of micro-batches, and training
//                     has the same bits with any number of workers
//     data=/usr/share/datasets/fashion-mnist
//
// DIR receives checkpoints (ckpt-*), the frozen graph (frozen.pb), curves (training.png), and
// events for TensorBoard. A second call continues where the first call stopped, for example by
// Ctrl-C.
//
// A launcher can also start the workers, on several machines; see docs/distributed.md. All workers
// then need the same DIR.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "examples/qat_fashion_mnist/chart.h"
#include "examples/qat_fashion_mnist/frozen.h"
#include "examples/qat_fashion_mnist/integers.h"
#include "examples/qat_fashion_mnist/network.h"
#include "gradflow/core/collectives.h"
#include "gradflow/core/status.h"
#include "gradflow/distributed/gloo_collectives.h"
#include "gradflow/distributed/launch.h"
#include "gradflow/distributed/local_workers.h"
#include "gradflow/graph/export.h"
#include "gradflow/io/events.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/training/data_parallel.h"
#include "gradflow/training/input.h"
#include "gradflow/training/losses.h"
#include "gradflow/training/optimizer.h"
#include "gradflow/training/schedules.h"
#include "gradflow/training/trainer.h"
#include "gradflow/training/variables.h"

namespace qat {
namespace {

using gradflow::ClientSession;
using gradflow::Operation;
using gradflow::Output;
using gradflow::Scope;
using gradflow::Tensor;
namespace errors = gradflow::errors;
namespace ops = gradflow::ops;
namespace training = gradflow::training;

const char* const kNames[kClasses] = {"T-shirt", "Trouser", "Pullover", "Dress", "Coat",
                                      "Sandal",  "Shirt",   "Sneaker",  "Bag",   "Boot"};
constexpr int64_t kTestBatch = 500;

struct TrainingOptions {
  std::string dir;
  std::string data = "/usr/share/datasets/fashion-mnist";
  int64_t epochs = 10;
  int64_t steps = 0;
  int64_t batch = 128;
  int64_t seed = 1;
  int64_t threads = 0;
  int64_t quantize = 1;
  int64_t mirror = 0;
  int64_t checkpoint = 100;
  int64_t kill = 0;
  int64_t test = 10000;
  int64_t workers = 1;
  int64_t micro = 0;
  float rate = 0.003f;
};

absl::Status ParseOption(absl::string_view text, TrainingOptions* options) {
  const std::map<absl::string_view, int64_t*> numbers = {
      {"epochs", &options->epochs},         {"steps", &options->steps},
      {"batch", &options->batch},           {"seed", &options->seed},
      {"threads", &options->threads},       {"quantize", &options->quantize},
      {"checkpoint", &options->checkpoint}, {"test", &options->test},
      {"mirror", &options->mirror},         {"kill", &options->kill},
      {"workers", &options->workers},       {"micro", &options->micro}};
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  const auto number = numbers.find(parts.first);
  if (parts.first == "data") {
    options->data = std::string(parts.second);
    return absl::OkStatus();
  }
  if (parts.first == "rate" && absl::SimpleAtof(parts.second, &options->rate)) {
    return absl::OkStatus();
  }
  if (number != numbers.end() && absl::SimpleAtoi(parts.second, number->second) &&
      *number->second >= 0) {
    return absl::OkStatus();
  }
  return errors::InvalidArgument("bad option '", text, "'");
}

// Images and their labels.
struct LabeledImages {
  Tensor images;
  Tensor labels;
};

absl::StatusOr<LabeledImages> Load(const std::string& data, const std::string& kind) {
  LabeledImages examples;
  const std::string prefix = absl::StrCat(data, "/", kind);
  GRADFLOW_ASSIGN_OR_RETURN(examples.images, training::ReadArray(prefix + "-images-idx3-ubyte.gz"));
  GRADFLOW_ASSIGN_OR_RETURN(examples.labels, training::ReadArray(prefix + "-labels-idx1-ubyte.gz"));
  const Tensor& images = examples.images;
  const Tensor& labels = examples.labels;
  if (images.dtype() != gradflow::DT_UINT8 || images.dims() != 3 || images.dim_size(0) == 0 ||
      images.dim_size(1) != kHeight || images.dim_size(2) != kWidth ||
      labels.dtype() != gradflow::DT_UINT8 || labels.dims() != 1 ||
      labels.dim_size(0) != images.dim_size(0)) {
    return errors::InvalidArgument("expected images of 28 x 28 bytes and a label for each, found ",
                                   images.shape().DebugString(), " and ",
                                   labels.shape().DebugString());
  }
  for (const uint8_t label : labels.span<uint8_t>()) {
    if (label >= kClasses) return errors::InvalidArgument("found label ", label);
  }
  return examples;
}

// Returns the classes of images. Calls `run`, which classifies a part of them, for one part after
// the other.
template <typename Run>
absl::StatusOr<std::vector<int>> ClassesOf(const Tensor& images, const Run& run) {
  std::vector<int> classes;
  for (int64_t i = 0; i < images.dim_size(0); i += kTestBatch) {
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor some, run(images.Slice(i, i + kTestBatch)));
    for (const int64_t c : some.span<int64_t>()) classes.push_back(static_cast<int>(c));
  }
  return classes;
}

double AccuracyOf(const std::vector<int>& classes, const Tensor& labels) {
  int64_t hits = 0;
  for (size_t i = 0; i < classes.size(); ++i) hits += classes[i] == labels.span<uint8_t>()[i];
  return static_cast<double>(hits) / static_cast<double>(classes.size());
}

void PrintConfusion(const std::vector<int>& classes, const Tensor& labels) {
  int counts[kClasses][kClasses] = {};
  for (size_t i = 0; i < classes.size(); ++i) ++counts[labels.span<uint8_t>()[i]][classes[i]];
  std::printf("\nPredicted classes (columns) of the test images of each class (rows):\n%-10s", "");
  for (const char* name : kNames) std::printf("%9s", name);
  for (int row = 0; row < kClasses; ++row) {
    std::printf("\n%-10s", kNames[row]);
    for (const int count : counts[row]) std::printf("%9d", count);
  }
  std::printf("\n\n");
}

// Reads at most `most` completed epochs from a file in the folder of the checkpoints.
std::vector<Epoch> ReadHistory(const std::string& path, int64_t most) {
  std::vector<Epoch> epochs;
  std::ifstream file(path);
  Epoch epoch;
  while (static_cast<int64_t>(epochs.size()) < most && file >> epoch.loss >> epoch.accuracy) {
    epochs.push_back(epoch);
  }
  return epochs;
}

// Writes the completed epochs. If the process is killed, the file is unchanged. Numbers keep all
// digits, so that a run that continues draws the same chart.
absl::Status WriteHistory(const std::string& path, const std::vector<Epoch>& epochs) {
  const std::string temporary = path + ".new";
  std::ofstream file(temporary);
  file << std::setprecision(std::numeric_limits<double>::max_digits10);
  for (const Epoch& epoch : epochs) file << epoch.loss << " " << epoch.accuracy << "\n";
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(temporary, path, error);
  if (!file || error) return errors::Internal("cannot write '", path, "'");
  return absl::OkStatus();
}

// The classes of images, and the median time of a batch.
struct Classified {
  std::vector<int> classes;
  double milliseconds = 0;
};

// Classifies images with the frozen graph, in float or in 8-bit integers.
absl::StatusOr<Classified> Run(const TrainingOptions& options, const gradflow::GraphDef& graph,
                               const Tensor& images, bool in_int8) {
  gradflow::SessionOptions session_options;
  session_options.integer_inference = in_int8;
  session_options.config.set_intra_op_parallelism_threads(static_cast<int>(options.threads));
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<gradflow::Session> session,
                            gradflow::Session::Make(session_options));
  GRADFLOW_RETURN_IF_ERROR(session->Create(graph));
  Classified result;
  std::vector<double> times;
  GRADFLOW_ASSIGN_OR_RETURN(
      result.classes, ClassesOf(images, [&](const Tensor& some) -> absl::StatusOr<Tensor> {
        std::vector<Tensor> outputs;
        const auto begin = std::chrono::steady_clock::now();
        GRADFLOW_RETURN_IF_ERROR(session->Run({{"images", some}}, {"classes"}, {}, &outputs));
        const std::chrono::duration<double, std::milli> time =
            std::chrono::steady_clock::now() - begin;
        times.push_back(time.count());
        return outputs[0];
      }));
  std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 2),
                   times.end());
  result.milliseconds = times[times.size() / 2];
  return result;
}

size_t CountSame(const std::vector<int>& a, const std::vector<int>& b) {
  size_t same = 0;
  for (size_t i = 0; i < a.size(); ++i) same += a[i] == b[i] ? 1 : 0;
  return same;
}

// Freezes the trained network, and compares it with integer arithmetic on all images.
absl::Status Export(const TrainingOptions& options, const Scope& scope,
                    const ClientSession& session, training::Model* model,
                    const LabeledImages& test) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<FrozenLayer> layers, Freeze(scope, session, model));
  gradflow::GraphDef graph;
  GRADFLOW_RETURN_IF_ERROR(MakeGraph(layers, &graph));
  const std::string path = options.dir + "/frozen.pb";
  GRADFLOW_RETURN_IF_ERROR(gradflow::WriteGraphDef(path, graph));
  std::printf("Frozen graph: %s, %d nodes, %zu bytes\n", path.c_str(), graph.node_size(),
              graph.ByteSizeLong());

  GRADFLOW_ASSIGN_OR_RETURN(const Classified in_float, Run(options, graph, test.images, false));
  GRADFLOW_ASSIGN_OR_RETURN(const Classified in_int8, Run(options, graph, test.images, true));
  const Prediction reference = Classify(layers, test.images);
  // The weights of the float network before it was quantized, and of the frozen graph.
  int64_t weights = 0;
  for (const FrozenLayer& layer : layers) weights += layer.weights.NumElements();
  std::printf("\n%-20s%14s%18s%24s\n", "", "accuracy", "bytes of weights", "ms a batch of 500");
  const auto print = [&](const char* name, const Classified& run, int64_t bytes) {
    std::printf("%-20s%12.2f %%%18lld%24.2f\n", name, 100 * AccuracyOf(run.classes, test.labels),
                static_cast<long long>(bytes), run.milliseconds);
  };
  print("frozen, in float", in_float, weights * static_cast<int64_t>(sizeof(float)));
  print("frozen, in int8", in_int8, weights);
  std::printf("\n");
  const double images = static_cast<double>(test.images.dim_size(0));
  const size_t same_int8 = CountSame(in_float.classes, in_int8.classes);
  std::printf("Same class in float and in int8: %zu of %.0f images (%.2f %%)\n", same_int8, images,
              100 * static_cast<double>(same_int8) / images);
  const size_t same = CountSame(in_float.classes, reference.classes);
  std::printf("Same class in float and in integers: %zu of %zu images; largest sum %d\n", same,
              in_float.classes.size(), reference.largest_sum);
  // 99.5 %, because values at the border between two steps may be rounded differently.
  constexpr double kMostlySame = 0.995;
  if (static_cast<double>(same_int8) < kMostlySame * images) {
    return errors::Internal("the frozen graph in float and in int8 differ");
  }
  if (same != in_float.classes.size()) {
    return errors::Internal("the frozen graph and its integers differ");
  }
  return absl::OkStatus();
}

// Returns the variables that training changes by the statistics of its images.
std::vector<Output> StatisticsOf(const training::Model& model) {
  std::vector<Output> statistics;
  for (const Output& variable : model.variables()) {
    const auto& trainable = model.trainable();
    if (std::none_of(trainable.begin(), trainable.end(),
                     [&](const Output& other) { return other.node() == variable.node(); })) {
      statistics.push_back(variable);
    }
  }
  return statistics;
}

absl::Status Train(const TrainingOptions& options) {
  GRADFLOW_ASSIGN_OR_RETURN(const gradflow::LaunchOptions launch,
                            gradflow::LaunchOptionsFromEnvironment());
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<gradflow::Collectives> collectives,
                            gradflow::GlooCollectives(launch));
  // One worker prints and writes files.
  const bool is_first = launch.rank == 0;
  std::error_code error;
  std::filesystem::create_directories(options.dir, error);
  GRADFLOW_ASSIGN_OR_RETURN(const LabeledImages train, Load(options.data, "train"));
  GRADFLOW_ASSIGN_OR_RETURN(LabeledImages test, Load(options.data, "t10k"));
  test.images = test.images.Slice(0, std::max<int64_t>(options.test, 1));
  test.labels = test.labels.Slice(0, std::max<int64_t>(options.test, 1));
  training::BatchesOptions batches_options;
  batches_options.batch_size = options.batch;
  batches_options.seed = static_cast<uint64_t>(options.seed);
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<training::Batches> batches,
                            training::Batches::Make({train.images, train.labels}, batches_options));
  const int64_t all_steps = std::max<int64_t>(options.epochs * batches->batches_per_epoch(), 1);

  // The graph: the network in its forms for training and for inference, which share variables.
  const Scope scope = Scope::NewRootScope();
  const bool quantize = options.quantize != 0;
  training::Model model(scope, options.seed);
  const Output images = Images(scope);
  const Output labels = ops::Placeholder(scope.WithOpName("labels"), gradflow::DT_UINT8,
                                         ops::Placeholder::Shape({-1}));
  const Output step =
      training::NewVariable(scope, "global_step", gradflow::DT_INT64, gradflow::TensorShape());
  const Output steps_before = training::ReadVariable(scope, step);
  const Output input =
      options.mirror != 0 ? Mirrored(scope, images, steps_before, options.seed) : images;
  const Output loss = training::SoftmaxCrossEntropy(
      scope, Network(scope.NewSubScope("train"), &model, input, quantize, true), labels);
  const Output classes =
      ops::ArgMax(scope, Network(scope.NewSubScope("infer"), &model, images, quantize, false), 1);
  training::Adam adam(scope, training::AdamOptions().LearningRate(training::CosineDecay(
                                 scope, steps_before, options.rate, all_steps)));
  training::DataParallelOptions parallel_options;
  parallel_options.micro_batches = options.micro;
  training::DataParallel parallel(scope, collectives, parallel_options);
  Operation update;
  GRADFLOW_RETURN_IF_ERROR(parallel.Minimize(&adam, loss, model.trainable(), &update));
  const Operation statistics = parallel.Update(StatisticsOf(model), model.updates());
  const Operation count = ops::AssignAddVariableOp(scope.WithControlDependencies({update}), step,
                                                   ops::Const<int64_t>(scope, 1))
                              .operation;
  std::vector<Operation> initializers = model.initializers();
  initializers.insert(initializers.end(), adam.initializers().begin(), adam.initializers().end());
  initializers.push_back(training::AssignVariable(scope, step, ops::Const<int64_t>(scope, 0)));
  std::vector<Output> variables = model.variables();
  variables.insert(variables.end(), adam.slots().begin(), adam.slots().end());
  variables.push_back(step);
  const Operation broadcast = parallel.Broadcast(variables);

  // The loop.
  const std::string history = options.dir + "/history.txt";
  std::optional<gradflow::EventWriter> events;
  if (is_first) {
    GRADFLOW_ASSIGN_OR_RETURN(events, gradflow::EventWriter::Open(options.dir));
  }
  std::vector<Epoch> epochs;
  const ClientSession* running = nullptr;
  const training::Trainer* looping = nullptr;
  const auto classify = [&](const Tensor& some) -> absl::StatusOr<Tensor> {
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(running->Run({{images, some}}, {classes}, &outputs));
    return outputs[0];
  };
  training::TrainerOptions trainer_options;
  trainer_options.inputs = {images, labels};
  trainer_options.loss = loss;
  trainer_options.targets = {statistics, count};
  trainer_options.parallel = &parallel;
  trainer_options.steps = options.steps > 0 ? options.steps : all_steps;
  trainer_options.progress = [&](const std::string& line) {
    if (is_first) std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  };
  trainer_options.after_step = [&](int64_t at, float step_loss) {
    if (at == options.kill) std::raise(SIGKILL);
    return is_first ? events->AddScalar("loss", at, step_loss) : absl::OkStatus();
  };
  trainer_options.evaluate = [&](int64_t at) -> absl::StatusOr<double> {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<int> found, ClassesOf(test.images, classify));
    const int64_t epoch = at / batches->batches_per_epoch();
    epochs.resize(std::min<size_t>(epochs.size(), epoch - 1));
    epochs.push_back({looping->mean_loss(), AccuracyOf(found, test.labels)});
    std::printf("epoch %lld of %lld: loss %.4f, test accuracy %.2f %%\n",
                static_cast<long long>(epoch), static_cast<long long>(options.epochs),
                epochs.back().loss, 100 * epochs.back().accuracy);
    std::fflush(stdout);
    GRADFLOW_RETURN_IF_ERROR(
        events->AddScalar("accuracy", at, static_cast<float>(epochs.back().accuracy)));
    GRADFLOW_RETURN_IF_ERROR(WriteHistory(history, epochs));
    return epochs.back().accuracy;
  };
  // The others wait for its next step.
  if (is_first) trainer_options.evaluate_every = batches->batches_per_epoch();
  trainer_options.checkpoint_prefix = options.dir + "/ckpt";
  trainer_options.checkpoint_every = options.checkpoint;
  trainer_options.stop_on_interrupt = true;
  training::Trainer trainer(scope, variables, trainer_options);
  looping = &trainer;
  GRADFLOW_RETURN_IF_ERROR(scope.status());

  gradflow::SessionOptions session_options;
  session_options.config.set_intra_op_parallelism_threads(static_cast<int>(options.threads));
  session_options.collectives = collectives;
  const ClientSession session(scope, session_options);
  running = &session;
  GRADFLOW_ASSIGN_OR_RETURN(const bool resumed, trainer.Resume(session, batches.get()));
  if (resumed) {
    if (is_first) {
      std::printf("Continuing after step %lld\n", static_cast<long long>(trainer.step()));
    }
    epochs = ReadHistory(history, trainer.step() / batches->batches_per_epoch());
  } else {
    GRADFLOW_RETURN_IF_ERROR(session.Run({}, {}, initializers, nullptr));
  }
  GRADFLOW_RETURN_IF_ERROR(session.Run({}, {}, {broadcast}, nullptr));
  GRADFLOW_ASSIGN_OR_RETURN(const training::StopReason reason, trainer.Run(session, batches.get()));
  if (!is_first) return absl::OkStatus();
  if (reason == training::StopReason::kStopped) {
    std::printf("Stopped after step %lld; the same command continues\n",
                static_cast<long long>(trainer.step()));
    return absl::OkStatus();
  }

  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<int> found, ClassesOf(test.images, classify));
  PrintConfusion(found, test.labels);
  std::printf("Test accuracy %.2f %%\n", 100 * AccuracyOf(found, test.labels));
  if (!epochs.empty()) {
    const std::string chart = options.dir + "/training.png";
    GRADFLOW_RETURN_IF_ERROR(WriteChart(chart, epochs));
    std::printf("Loss (red) and accuracy (blue, 80 to 100 %%) of the epochs: %s\n", chart.c_str());
  }
  return quantize ? Export(options, scope, session, &model, test) : absl::OkStatus();
}

}  // namespace
}  // namespace qat

int main(int argc, char** argv) {
  qat::TrainingOptions options;
  if (argc < 2 || argv[1][0] == '-') {
    std::cerr << "usage: qat_fashion_mnist DIR [NAME=VALUE]...\n"
                 "  DIR receives checkpoints, the frozen graph, curves and events.\n"
                 "  NAME is one of epochs, steps, batch, rate, seed, threads, quantize, mirror,\n"
                 "  checkpoint, kill, test, data, workers and micro; the top of main.cc explains\n"
                 "  them.\n";
    return 2;
  }
  options.dir = argv[1];
  absl::Status status;
  for (int i = 2; i < argc && status.ok(); ++i) {
    std::string option = argv[i];
    if (option == "--workers" && i + 1 < argc) option = absl::StrCat("workers=", argv[++i]);
    status = qat::ParseOption(option, &options);
  }
  if (options.workers > 1 && options.threads == 0) {
    options.threads = std::max<int64_t>(1, std::thread::hardware_concurrency() / options.workers);
  }
  if (status.ok() && options.workers > 1 && !gradflow::IsLaunched()) {
    const absl::StatusOr<int> code =
        gradflow::RunLocalWorkers(static_cast<int>(std::min<int64_t>(options.workers, 1024)), argv);
    if (code.ok()) return *code;
    status = code.status();
  }
  if (status.ok()) status = qat::Train(options);
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  return 1;
}
