#include "gradflow/ops/common/simd.h"

#include <hwy/targets.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace gradflow {
namespace simd_targets {
namespace {

// Highway 1.1 splits NEON into two targets, with and without AES.
#ifdef HWY_NEON_WITHOUT_AES
constexpr int64_t kNeon = HWY_NEON | HWY_NEON_WITHOUT_AES;
#else
constexpr int64_t kNeon = HWY_NEON;
#endif

struct Target {
  const char* name;
  // Highway's targets that this name stands for.
  int64_t bits;
};

constexpr Target kTargets[] = {
    {"avx512", HWY_AVX3_DL | HWY_AVX3},  {"avx2", HWY_AVX2}, {"sse4", HWY_SSE4}, {"neon", kNeon},
    {"scalar", HWY_SCALAR | HWY_EMU128},
};

// Returns the bits of the targets called `name` that this processor supports, or 0.
int64_t UsableBits(absl::string_view name) {
  // Detected once, independently of earlier choices. The fallback always exists: the scalar target
  // on x86-64, and NEON on arm64, where nothing else is compiled.
#if defined(__aarch64__)
  static const int64_t detected = (hwy::SupportedTargets() | HWY_STATIC_TARGET) & HWY_TARGETS;
#else
  static const int64_t detected = hwy::SupportedTargets() | HWY_SCALAR | HWY_EMU128;
#endif
  for (const Target& target : kTargets) {
    if (name == target.name) return target.bits & detected;
  }
  return 0;
}

// Returns the targets that GRADFLOW_SIMD selects; 0 if it selects none.
int64_t BitsFromEnvironment() {
  const char* name = std::getenv("GRADFLOW_SIMD");
  if (name == nullptr || *name == '\0') return 0;
  const int64_t bits = UsableBits(name);
  if (bits == 0) {
    std::fprintf(stderr, "GRADFLOW_SIMD=%s is ignored: this processor has no such target\n", name);
  }
  return bits;
}

}  // namespace
}  // namespace simd_targets

int64_t MinNonTemporalBytes() {
  // Bounds of the result. Reading a large cache that many cores share is hardly faster than reading
  // memory.
  constexpr int64_t kLeast = int64_t{4} << 20;
  constexpr int64_t kMost = int64_t{12} << 20;
  // An op reads about as much as it writes, and other programs also use the cache.
  constexpr int64_t kPart = 3;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  static const int64_t bytes =
      std::clamp<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE) / kPart, kLeast, kMost);
#else
  static const int64_t bytes = kLeast;
#endif
  return bytes;
}

std::vector<std::string> SimdTargets() {
  std::vector<std::string> names;
  for (const simd_targets::Target& target : simd_targets::kTargets) {
    if (simd_targets::UsableBits(target.name) != 0) names.emplace_back(target.name);
  }
  return names;
}

std::string CurrentSimdTarget() {
  ApplySimdSwitch();
  const int64_t chosen = hwy::SupportedTargets();
  for (const simd_targets::Target& target : simd_targets::kTargets) {
    if ((target.bits & chosen) != 0) return target.name;
  }
  return "scalar";
}

bool SetSimdTarget(absl::string_view name) {
  ApplySimdSwitch();
  const int64_t bits =
      name.empty() ? simd_targets::BitsFromEnvironment() : simd_targets::UsableBits(name);
  if (bits == 0 && !name.empty()) return false;
  hwy::SetSupportedTargetsForTest(bits);
  return true;
}

void ApplySimdSwitch() {
  static const bool applied = [] {
    simd_targets::UsableBits("");  // Detects the processor before a choice hides its targets.
    if (const int64_t bits = simd_targets::BitsFromEnvironment(); bits != 0) {
      hwy::SetSupportedTargetsForTest(bits);
    }
    return true;
  }();
  (void)applied;
}

}  // namespace gradflow
