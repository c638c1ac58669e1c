// Names of devices that programs pass: "", "CPU:0", "/cpu:0", "/job:localhost/.../device:CPU:0".
#ifndef GRADFLOW_C_EAGER_DEVICE_NAME_H_
#define GRADFLOW_C_EAGER_DEVICE_NAME_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gradflow/c/eager/context.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node_checks.h"

namespace gradflow::capi {

// Returns INVALID_ARGUMENT unless the name is empty or names the CPU.
inline absl::Status CheckDevice(absl::string_view name) {
  if (name.empty()) return absl::OkStatus();
  const std::string lower = absl::AsciiStrToLower(name);
  const bool is_cpu = absl::EndsWith(lower, "cpu:0") || absl::EndsWith(lower, "cpu") ||
                      absl::EndsWith(lower, "cpu:*");
  if (is_cpu) return absl::OkStatus();
  return errors::InvalidArgument(errors::Printable(name), " unknown device. The only device is ",
                                 kCpuName);
}

}  // namespace gradflow::capi

#endif  // GRADFLOW_C_EAGER_DEVICE_NAME_H_
