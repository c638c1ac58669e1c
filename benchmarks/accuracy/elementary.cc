// SweepElementary() (checks.h).
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "benchmarks/accuracy/checks.h"
#include "tests/ops/common/elementary_cases.h"

namespace gradflow::benchmarks {
namespace {

using Function = testing::ElementaryCase<double>;

struct Worst {
  double ulps = 0;
  float x = 0;
  bool too_much = false;
};

// Compares `count` floats, starting with the float whose bits are `first`.
Worst Compare(const Function& f, int64_t first, int64_t count) {
  std::vector<float> x(count);
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = static_cast<uint32_t>(first + i);
    std::memcpy(&x[i], &bits, sizeof(float));
  }
  std::vector<float> y(count);
  ApplyElementary(f.function, x.data(), y.data(), count);
  Worst worst;
  for (int64_t i = 0; i < count; ++i) {
    const double exact = f.reference(x[i]);
    const double ulps = testing::ErrorInUlps(y[i], exact);
    if (ulps > worst.ulps) {
      worst.ulps = ulps;
      worst.x = x[i];
    }
    worst.too_much |= ulps > testing::AllowedUlps<float>(f, exact);
  }
  return worst;
}

}  // namespace

bool SweepElementary(bool small) {
  constexpr int64_t kFloats = int64_t{1} << 32;
  const int64_t count = small ? 1 << 8 : 1 << 16;
  const int64_t step = small ? kFloats / 61 : count;
  const int64_t steps = (kFloats + step - 1) / step;
  bool good = true;
  for (const Function& f : testing::kElementaryCases<double>) {
    std::vector<Worst> worst(steps);
    tbb::parallel_for(int64_t{0}, steps,
                      [&](int64_t i) { worst[i] = Compare(f, i * step, count); });
    const Worst most = *std::max_element(
        worst.begin(), worst.end(), [](const Worst& a, const Worst& b) { return a.ulps < b.ulps; });
    const bool too_much =
        std::any_of(worst.begin(), worst.end(), [](const Worst& w) { return w.too_much; });
    const int64_t total = steps * count;
    std::printf("%-7s of %lld floats: at most %.2f units in the last place, of %.9g%s\n", f.name,
                static_cast<long long>(total), most.ulps, double{most.x},
                too_much ? "  TOO MUCH" : "");
    std::fflush(stdout);
    good &= !too_much;
  }
  return good;
}

}  // namespace gradflow::benchmarks
