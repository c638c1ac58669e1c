#include "tools/quantize_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/status.h"

namespace gradflow::tools {
namespace {

// Browsers become slow with longer tables.
constexpr size_t kMaxRows = 2000;
constexpr size_t kWorst = 10;

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<style>
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8884; padding: 0.2em 0.6em; text-align: left; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.name { word-break: break-all; }
.bar { background: #c53; display: inline-block; height: 0.7em; }
.hist { fill: #48c; }
.range { stroke: #c53; }
p { max-width: 50em; }
</style>
)";

std::string Html(absl::string_view text) {
  constexpr size_t kMaxText = 1000;
  return absl::StrReplaceAll(errors::Printable(text, kMaxText),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// Returns the ratio of signal to noise in decibels: NaN if a sum is not finite, otherwise infinity
// if there are no errors.
double Decibels(double results, double errors) {
  constexpr double kPerPower = 10;
  if (!std::isfinite(results) || !std::isfinite(errors)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return errors == 0 ? std::numeric_limits<double>::infinity()
                     : kPerPower * std::log10(results / errors);
}

std::string DecibelText(double decibels) {
  if (std::isnan(decibels)) return "not finite";
  if (std::isinf(decibels)) return decibels > 0 ? "exact" : "lost";
  return absl::StrFormat("%.1f dB", decibels);
}

void AppendMore(size_t rows, std::string* page) {
  if (rows > kMaxRows) absl::StrAppend(page, "<p>… and ", rows - kMaxRows, " more</p>\n");
}

// Appends the histogram, with lines at the ends of the range. Heights are logarithms of counts.
void AppendHistogram(const ReportedRange& range, std::string* page) {
  constexpr double kWidth = 256;
  constexpr double kHeight = 40;
  const TensorHistogram& histogram = range.histogram;
  const double low = std::min(histogram.low(), range.min);
  const double high = std::max(histogram.high(), range.max);
  const double scale = kWidth / (high - low);
  const auto& counts = histogram.counts();
  const double most = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  absl::StrAppend(page, "<svg width=\"", kWidth, "\" height=\"", kHeight,
                  "\"><path class=\"hist\" d=\"");
  const double bin = (histogram.high() - histogram.low()) / static_cast<double>(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const double left = (histogram.low() + static_cast<double>(i) * bin - low) * scale;
    const double height = kHeight * std::log1p(static_cast<double>(counts[i])) / std::log1p(most);
    absl::StrAppendFormat(page, "M%.1f %.0fv-%.1fh%.1fv%.1fz", left, kHeight, height,
                          std::max(bin * scale, 1.0), height);
  }
  absl::StrAppend(page, "\"/>");
  for (const double end : {range.min, range.max}) {
    absl::StrAppendFormat(page, "<path class=\"range\" d=\"M%.1f 0v%.0f\"/>", (end - low) * scale,
                          kHeight);
  }
  absl::StrAppend(page, "</svg>");
}

}  // namespace

void TensorHistogram::Add(const Tensor& values, double range_min, double range_max) {
  if (values.dtype() != DT_FLOAT || !values.IsInitialized()) return;
  for (const float x : values.flat<float>()) {
    if (!std::isfinite(x)) continue;
    ++total_;
    if (x < range_min || x > range_max) ++outside_;
    const double bin = (x - low_) / (high_ - low_) * kBins;
    ++counts_[static_cast<size_t>(std::clamp<double>(bin, 0, kBins - 1))];
  }
}

std::string QuantizeReport(const std::string& title, const std::string& method, int64_t runs,
                           absl::Span<const ReportedProduct> products,
                           absl::Span<const ReportedRange> ranges) {
  std::string page = kHead;
  absl::StrAppend(&page, "<title>Quantization of ", Html(title), "</title>\n<h1>Quantization of ",
                  Html(title), "</h1>\n<p>", products.size(),
                  " convolutions and matrix products and ", ranges.size(),
                  " tensors with ranges by the method ", Html(method), ", from ", runs,
                  runs == 1 ? " run" : " runs", ".</p>\n");

  absl::StrAppend(&page, R"(<h2>Where accuracy is lost</h2>
<p>The products whose own rounding of weights and input loses most, with an exact input.
A rounding to 8 bits usually leaves 30 to 45 dB.</p>
<ol>
)");
  std::vector<const ReportedProduct*> worst;
  for (const ReportedProduct& product : products) worst.push_back(&product);
  const auto loss = [](const ReportedProduct* product) {
    const double decibels = Decibels(product->squared_results, product->squared_errors);
    return std::isnan(decibels) ? -std::numeric_limits<double>::infinity() : decibels;
  };
  std::stable_sort(worst.begin(), worst.end(),
                   [&](const auto* a, const auto* b) { return loss(a) < loss(b); });
  for (size_t i = 0; i < worst.size() && i < kWorst; ++i) {
    absl::StrAppend(&page, "<li>", Html(worst[i]->name), ": ",
                    DecibelText(Decibels(worst[i]->squared_results, worst[i]->squared_errors)),
                    "</li>\n");
  }

  absl::StrAppend(&page, R"(</ol>
<h2>Errors of products</h2>
<p>The ratio of the results to their errors. The first ratio is of the product alone; the second has the
errors of all earlier products too. The bar shows the root mean square error of the second, relative to the
results.</p>
<table>
<tr><th>Product</th><th>Op</th><th class="n">Alone</th><th class="n">In total</th><th>Error</th></tr>
)");
  for (size_t i = 0; i < products.size() && i < kMaxRows; ++i) {
    const ReportedProduct& product = products[i];
    const double total = Decibels(product.total_squared_results, product.total_squared_errors);
    const double error = std::sqrt(product.total_squared_errors / product.total_squared_results);
    constexpr double kMaxWidth = 200;
    const double width = std::isfinite(error) ? std::min(error * 1000, kMaxWidth) : kMaxWidth;
    absl::StrAppend(&page, "<tr><td class=\"name\">", Html(product.name), "</td><td>",
                    Html(product.op), "</td><td class=\"n\">",
                    DecibelText(Decibels(product.squared_results, product.squared_errors)),
                    "</td><td class=\"n\">", DecibelText(total), "</td><td>");
    if (product.total_squared_errors != 0) {
      absl::StrAppendFormat(&page, "<span class=\"bar\" style=\"width:%.0fpx\"></span> %.2f %%",
                            width, 100 * error);
    }
    absl::StrAppend(&page, "</td></tr>\n");
  }
  absl::StrAppend(&page, "</table>\n");
  AppendMore(products.size(), &page);

  absl::StrAppend(&page, R"(<h2>Ranges of tensors</h2>
<p>Heights of the histograms are logarithms of counts. The lines are the ends of the range; numbers outside
of it are clamped.</p>
<table>
<tr><th>Tensor</th><th class="n">Range</th><th class="n">Numbers</th><th class="n">Outside</th><th class="n">Step</th><th>Histogram</th></tr>
)");
  for (size_t i = 0; i < ranges.size() && i < kMaxRows; ++i) {
    const ReportedRange& range = ranges[i];
    const TensorHistogram& histogram = range.histogram;
    const double outside = histogram.total() == 0 ? 0
                                                  : static_cast<double>(histogram.outside()) /
                                                        static_cast<double>(histogram.total());
    constexpr double kSteps = 255;
    absl::StrAppend(&page, "<tr><td class=\"name\">", Html(range.name), "</td>");
    absl::StrAppendFormat(&page,
                          "<td class=\"n\">%.4g … %.4g</td><td class=\"n\">%.4g … %.4g</td>"
                          "<td class=\"n\">%.3g %%</td><td class=\"n\">%.3g</td><td>",
                          range.min, range.max, histogram.low(), histogram.high(), 100 * outside,
                          (range.max - range.min) / kSteps);
    AppendHistogram(range, &page);
    absl::StrAppend(&page, "</td></tr>\n");
  }
  absl::StrAppend(&page, "</table>\n");
  AppendMore(ranges.size(), &page);
  return page;
}

}  // namespace gradflow::tools
