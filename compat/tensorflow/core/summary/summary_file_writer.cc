#include "tensorflow/core/summary/summary_file_writer.h"

#include <memory>
#include <utility>
#include <vector>

#include "gradflow/io/events.h"
#include "gradflow/proto/event.pb.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow {
namespace {

class SummaryFileWriter : public SummaryWriterInterface {
 public:
  explicit SummaryFileWriter(gradflow::EventWriter writer) : writer_(std::move(writer)) {}

  std::string DebugString() const override { return "SummaryFileWriter"; }

  absl::Status Flush() override {
    const mutex_lock lock(mutex_);
    return writer_.Sync();
  }
  absl::Status WriteTensor(int64_t step, Tensor t, const std::string& tag,
                           const std::string& serialized_metadata) override {
    NodeDefBuilder node("summary", "TensorSummaryV2");
    return WriteOutput(step, &node, {Tensor(tag), t, Tensor(serialized_metadata)});
  }
  absl::Status WriteScalar(int64_t step, Tensor t, const std::string& tag) override {
    NodeDefBuilder node("summary", "ScalarSummary");
    return WriteOutput(step, &node, {Tensor(tag), t});
  }
  absl::Status WriteHistogram(int64_t step, Tensor t, const std::string& tag) override {
    NodeDefBuilder node("summary", "HistogramSummary");
    return WriteOutput(step, &node, {Tensor(tag), t});
  }
  absl::Status WriteImage(int64_t step, Tensor t, const std::string& tag, int max_images,
                          Tensor bad_color) override {
    NodeDefBuilder node("summary", "ImageSummary");
    node.Attr("max_images", max_images).Attr("bad_color", bad_color);
    return WriteOutput(step, &node, {Tensor(tag), t});
  }
  absl::Status WriteAudio(int64_t, Tensor, const std::string&, int, float) override {
    return errors::Unimplemented("gradflow has no summaries of sounds");
  }
  absl::Status WriteGraph(int64_t step, std::unique_ptr<GraphDef> graph) override {
    Event event;
    event.set_step(step);
    if (!graph->SerializeToString(event.mutable_graph_def())) {
      return errors::InvalidArgument("the graph cannot be serialized");
    }
    return Write(std::move(event));
  }
  absl::Status WriteEvent(std::unique_ptr<Event> event) override {
    return Write(std::move(*event));
  }

 private:
  absl::Status Write(Event event) {
    const mutex_lock lock(mutex_);
    return writer_.Add(std::move(event));
  }

  // Runs the node on the inputs, and writes the resulting summary.
  absl::Status WriteOutput(int64_t step, NodeDefBuilder* builder, std::vector<Tensor> inputs) {
    std::vector<TensorValue> values;
    for (Tensor& input : inputs) {
      builder->Input("input", static_cast<int>(values.size()), input.dtype());
      values.emplace_back(&input);
    }
    NodeDef node;
    TF_RETURN_IF_ERROR(builder->Finalize(&node));
    const absl::StatusOr<std::unique_ptr<OpKernel>> kernel = CreateOpKernel(DEVICE_CPU, node);
    if (!kernel.ok()) return kernel.status();
    OpKernelContext::Params params;
    params.op_kernel = kernel->get();
    params.inputs = values;
    OpKernelContext context(&params);
    (*kernel)->Compute(&context);
    TF_RETURN_IF_ERROR(context.status());
    const mutex_lock lock(mutex_);
    return writer_.AddSummary(step, context.mutable_output(0)->scalar<tstring>()());
  }

  mutex mutex_;
  gradflow::EventWriter writer_;
};

}  // namespace

absl::Status CreateSummaryFileWriter(int, int, const std::string& logdir,
                                     const std::string& filename_suffix, Env*,
                                     SummaryWriterInterface** result) {
  absl::StatusOr<gradflow::EventWriter> writer =
      gradflow::EventWriter::OpenFile(logdir + "/events", filename_suffix);
  if (!writer.ok()) return writer.status();
  *result = new SummaryFileWriter(*std::move(writer));
  return absl::OkStatus();
}

}  // namespace tensorflow
