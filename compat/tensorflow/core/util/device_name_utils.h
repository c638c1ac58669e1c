// DeviceNameUtils: the parts of "/job:worker/replica:0/task:1/device:CPU:0".
#ifndef GRADFLOW_COMPAT_CORE_UTIL_DEVICE_NAME_UTILS_H_
#define GRADFLOW_COMPAT_CORE_UTIL_DEVICE_NAME_UTILS_H_

#include <string>

#include "tensorflow/core/lib/core/stringpiece.h"

namespace tensorflow {

class DeviceNameUtils {
 public:
  // The parts of a name that are present.
  struct ParsedName {
    void Clear() { *this = ParsedName(); }
    bool operator==(const ParsedName& other) const;
    bool operator!=(const ParsedName& other) const { return !(*this == other); }

    bool has_job = false;
    std::string job;
    bool has_replica = false;
    int replica = 0;
    bool has_task = false;
    int task = 0;
    bool has_type = false;
    std::string type;
    bool has_id = false;
    int id = 0;
  };

  // Parses a name, which may lack parts. Returns false if it has unknown parts. Accepts "/cpu:0".
  static bool ParseFullName(absl::string_view name, ParsedName* parsed);
  static bool ParseFullOrLocalName(absl::string_view name, ParsedName* parsed) {
    return ParseFullName(name, parsed);
  }
  static std::string ParsedNameToString(const ParsedName& name);
  static bool HasSomeDetails(const ParsedName& name);
  // Returns true if both name the same job, replica and task.
  static bool IsSameAddressSpace(const ParsedName& a, const ParsedName& b);
  static bool IsSameAddressSpace(absl::string_view a, absl::string_view b);
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_DEVICE_NAME_UTILS_H_
