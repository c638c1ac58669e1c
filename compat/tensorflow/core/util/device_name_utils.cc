#include "tensorflow/core/util/device_name_utils.h"

#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tensorflow {
namespace {

auto AllParts(const DeviceNameUtils::ParsedName& n) {
  return std::tie(n.has_job, n.job, n.has_replica, n.replica, n.has_task, n.task, n.has_type,
                  n.type, n.has_id, n.id);
}

auto AddressParts(const DeviceNameUtils::ParsedName& n) {
  return std::tie(n.has_job, n.job, n.has_replica, n.replica, n.has_task, n.task);
}

// Parses a number, or "*", which matches any number.
bool ParseNumber(absl::string_view text, bool* has, int* number) {
  *has = text != "*";
  return !*has || absl::SimpleAtoi(text, number);
}

}  // namespace

bool DeviceNameUtils::ParsedName::operator==(const ParsedName& other) const {
  return AllParts(*this) == AllParts(other);
}

bool DeviceNameUtils::ParseFullName(absl::string_view name, ParsedName* parsed) {
  parsed->Clear();
  if (name == "/" || name.empty()) return true;
  if (!absl::ConsumePrefix(&name, "/")) return false;
  for (absl::string_view part : absl::StrSplit(name, '/')) {
    if (absl::ConsumePrefix(&part, "job:")) {
      parsed->has_job = part != "*";
      if (parsed->has_job) parsed->job = std::string(part);
      if (part.empty()) return false;
    } else if (absl::ConsumePrefix(&part, "replica:")) {
      if (!ParseNumber(part, &parsed->has_replica, &parsed->replica)) return false;
    } else if (absl::ConsumePrefix(&part, "task:")) {
      if (!ParseNumber(part, &parsed->has_task, &parsed->task)) return false;
    } else {
      // "device:CPU:0", "device:CPU", or "cpu:0" of TensorFlow 1.x.
      const bool is_device = absl::ConsumePrefix(&part, "device:");
      const std::pair<absl::string_view, absl::string_view> halves =
          absl::StrSplit(part, absl::MaxSplits(':', 1));
      const std::string type =
          is_device ? std::string(halves.first) : absl::AsciiStrToUpper(halves.first);
      if (!is_device && type != "CPU" && type != "GPU") return false;
      if (type.empty()) return is_device && part.empty();
      parsed->has_type = type != "*";
      if (parsed->has_type) parsed->type = type;
      if (halves.first.size() == part.size()) continue;
      if (!ParseNumber(halves.second, &parsed->has_id, &parsed->id)) return false;
    }
  }
  return true;
}

std::string DeviceNameUtils::ParsedNameToString(const ParsedName& name) {
  std::string text;
  if (name.has_job) absl::StrAppend(&text, "/job:", name.job);
  if (name.has_replica) absl::StrAppend(&text, "/replica:", name.replica);
  if (name.has_task) absl::StrAppend(&text, "/task:", name.task);
  if (name.has_type) {
    absl::StrAppend(&text, "/device:", name.type, ":");
    absl::StrAppend(&text, name.has_id ? std::to_string(name.id) : "*");
  }
  return text;
}

bool DeviceNameUtils::HasSomeDetails(const ParsedName& name) {
  return name.has_job || name.has_replica || name.has_task || name.has_type || name.has_id;
}

bool DeviceNameUtils::IsSameAddressSpace(const ParsedName& a, const ParsedName& b) {
  return AddressParts(a) == AddressParts(b);
}

bool DeviceNameUtils::IsSameAddressSpace(absl::string_view a, absl::string_view b) {
  ParsedName parsed_a, parsed_b;
  return ParseFullName(a, &parsed_a) && ParseFullName(b, &parsed_b) &&
         IsSameAddressSpace(parsed_a, parsed_b);
}

}  // namespace tensorflow
