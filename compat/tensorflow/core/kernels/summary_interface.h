// SummaryWriterInterface: writes summaries of steps. See summary_file_writer.h.
#ifndef GRADFLOW_COMPAT_CORE_KERNELS_SUMMARY_INTERFACE_H_
#define GRADFLOW_COMPAT_CORE_KERNELS_SUMMARY_INTERFACE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/util/event.pb.h"

namespace tensorflow {

class SummaryWriterInterface : public ResourceBase {
 public:
  virtual absl::Status Flush() = 0;
  virtual absl::Status WriteTensor(int64_t global_step, Tensor t, const std::string& tag,
                                   const std::string& serialized_metadata) = 0;
  virtual absl::Status WriteScalar(int64_t global_step, Tensor t, const std::string& tag) = 0;
  virtual absl::Status WriteHistogram(int64_t global_step, Tensor t, const std::string& tag) = 0;
  virtual absl::Status WriteImage(int64_t global_step, Tensor t, const std::string& tag,
                                  int max_images, Tensor bad_color) = 0;
  virtual absl::Status WriteAudio(int64_t global_step, Tensor t, const std::string& tag,
                                  int max_outputs, float sample_rate) = 0;
  virtual absl::Status WriteGraph(int64_t global_step, std::unique_ptr<GraphDef> graph) = 0;
  virtual absl::Status WriteEvent(std::unique_ptr<Event> event) = 0;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_KERNELS_SUMMARY_INTERFACE_H_
