// Histogram: counts numbers in buckets, like HistogramSummary.
#ifndef GRADFLOW_COMPAT_CORE_LIB_HISTOGRAM_HISTOGRAM_H_
#define GRADFLOW_COMPAT_CORE_LIB_HISTOGRAM_HISTOGRAM_H_

#include <mutex>
#include <string>
#include <vector>

#include "tensorflow/core/framework/summary.pb.h"
#include "tensorflow/core/lib/gtl/array_slice.h"

namespace tensorflow {
namespace histogram {

class Histogram {
 public:
  // Creates buckets for all numbers. Their widths grow by 10% with the distance from 0.
  Histogram();
  // REQUIRES: the limits increase and are not empty
  explicit Histogram(gtl::ArraySlice<double> custom_bucket_limits);
  Histogram(const Histogram&) = delete;
  Histogram& operator=(const Histogram&) = delete;

  // Replaces the histogram. Returns false if the message has no buckets or is invalid.
  bool DecodeFromProto(const HistogramProto& proto);
  // Stores the histogram. Without `preserve_zero_buckets`, consecutive empty buckets become one.
  void EncodeToProto(HistogramProto* proto, bool preserve_zero_buckets) const;

  void Clear();
  void Add(double value);

  double Median() const { return Percentile(50); }
  // Returns the number that exceeds p% of the numbers, interpolated within its bucket.
  double Percentile(double p) const;
  // Return 0 for an empty histogram.
  double Average() const;
  double StandardDeviation() const;
  // Returns the count, the moments, and a line for each non-empty bucket.
  std::string ToString() const;

 private:
  // The upper limits of the buckets.
  std::vector<double> limits_;
  std::vector<double> buckets_;
  double min_, max_, num_, sum_, sum_squares_;
};

// A histogram with a lock.
class ThreadSafeHistogram {
 public:
  ThreadSafeHistogram() = default;
  explicit ThreadSafeHistogram(gtl::ArraySlice<double> limits) : histogram_(limits) {}

  bool DecodeFromProto(const HistogramProto& proto) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return histogram_.DecodeFromProto(proto);
  }
  void EncodeToProto(HistogramProto* proto, bool preserve_zero_buckets) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    histogram_.EncodeToProto(proto, preserve_zero_buckets);
  }
  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    histogram_.Clear();
  }
  void Add(double value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    histogram_.Add(value);
  }
  double Median() const { return Percentile(50); }
  double Percentile(double p) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return histogram_.Percentile(p);
  }
  double Average() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return histogram_.Average();
  }
  double StandardDeviation() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return histogram_.StandardDeviation();
  }
  std::string ToString() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return histogram_.ToString();
  }

 private:
  mutable std::mutex mutex_;
  Histogram histogram_;
};

}  // namespace histogram
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_HISTOGRAM_HISTOGRAM_H_
