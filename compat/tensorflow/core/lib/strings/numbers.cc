#include "tensorflow/core/lib/strings/numbers.h"

#include <cctype>
#include <cmath>

#include "tensorflow/core/lib/strings/stringprintf.h"

namespace tensorflow {
namespace strings {

std::string FpToString(uint64 fingerprint) {
  return Printf("%016llx", static_cast<unsigned long long>(fingerprint));
}

bool StringToFp(const std::string& text, uint64* fingerprint) {
  return HexStringToUint64(text, fingerprint);
}

bool HexStringToUint64(absl::string_view text, uint64* result) {
  if (text.empty() || text.size() > 16) return false;
  uint64 value = 0;
  for (const char c : text) {
    const auto digit = static_cast<unsigned char>(c);
    if (std::isxdigit(digit) == 0) return false;
    value = value << 4 | static_cast<uint64>(
                             std::isdigit(digit) != 0 ? c - '0' : std::tolower(digit) - 'a' + 10);
  }
  *result = value;
  return true;
}

std::string HumanReadableNum(int64 value) {
  const char* const sign = value < 0 ? "-" : "";
  double size = std::abs(static_cast<double>(value));
  if (size < 1000) return Printf("%s%.0f", sign, size);
  static constexpr char kUnits[] = "kMBT";
  int unit = 0;
  for (size /= 1000; size >= 1000 && unit < 3; ++unit) size /= 1000;
  // Three digits are enough for human readers.
  if (size >= 1000) return Printf("%s%0.3G%c", sign, size, kUnits[unit]);
  return Printf("%s%.2f%c", sign, size, kUnits[unit]);
}

std::string HumanReadableNumBytes(int64 bytes) {
  const char* const sign = bytes < 0 ? "-" : "";
  double size = std::abs(static_cast<double>(bytes));
  if (size < 1024) return Printf("%s%.0fB", sign, size);
  static constexpr char kUnits[] = "KMGTPE";
  int unit = 0;
  for (size /= 1024; size >= 1024 && unit < 5; ++unit) size /= 1024;
  return Printf(kUnits[unit] == 'K' ? "%s%.1f%ciB" : "%s%.2f%ciB", sign, size, kUnits[unit]);
}

std::string HumanReadableElapsedTime(double seconds) {
  const char* const sign = seconds < 0 ? "-" : "";
  seconds = std::abs(seconds);
  struct Unit {
    double limit;
    double factor;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{1e-3, 1e6, "us"},
                                    {1, 1e3, "ms"},
                                    {60, 1, "s"},
                                    {3600, 1.0 / 60, "min"},
                                    {86400, 1.0 / 3600, "h"},
                                    {2592000, 1.0 / 86400, "days"},
                                    {31557600, 1.0 / 2592000, "months"}};
  for (const Unit& unit : kUnits) {
    if (seconds < unit.limit) return Printf("%s%0.3g %s", sign, seconds * unit.factor, unit.name);
  }
  return Printf("%s%0.3g years", sign, seconds / 31557600);
}

}  // namespace strings
}  // namespace tensorflow
