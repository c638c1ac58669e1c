#include "gradflow/training/image_files.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/io/file.h"
#include "gradflow/io/image_codecs.h"

namespace gradflow {
namespace training {
namespace {

namespace fs = std::filesystem;
using internal::ImageFormat;
using internal::ImageSize;

// ---- Resizing ----

// An output pixel is the weighted mean of the input pixels from `begin` on.
struct PixelWeights {
  int64_t begin = 0;
  std::vector<float> weights;
};

// Returns the window of output pixel i of one dimension. The weights decrease linearly with the
// distance from the center of the output pixel. Enlarging therefore interpolates, and reducing
// takes a mean over all pixels.
PixelWeights WindowOf(int64_t i, int64_t in, int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double reach = std::max(scale, 1.0);
  const double center = (static_cast<double>(i) + 0.5) * scale;
  PixelWeights window;
  window.begin = std::max<int64_t>(0, static_cast<int64_t>(std::floor(center - reach + 0.5)));
  const int64_t end = std::min(in, static_cast<int64_t>(std::floor(center + reach + 0.5)));
  const auto weight = [&](int64_t k) {
    return std::max(0.0, 1 - std::abs(static_cast<double>(k) + 0.5 - center) / reach);
  };
  double sum = 0;
  for (int64_t k = window.begin; k < end; ++k) sum += weight(k);
  for (int64_t k = window.begin; k < end; ++k) {
    window.weights.push_back(static_cast<float>(weight(k) / sum));
  }
  return window;
}

// Uses memory proportional to one row, because a file may state an image of any proportions.
void Resize(const uint8_t* from, int64_t in_rows, int64_t in_columns, const ImageShape& shape,
            uint8_t* to) {
  const int channels = shape.channels;
  std::vector<PixelWeights> columns;
  for (int64_t c = 0; c < shape.columns; ++c) {
    columns.push_back(WindowOf(c, in_columns, shape.columns));
  }
  std::vector<float> sums(shape.columns * channels);
  for (int64_t r = 0; r < shape.rows; ++r) {
    const PixelWeights rows = WindowOf(r, in_rows, shape.rows);
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (size_t k = 0; k < rows.weights.size(); ++k) {
      const uint8_t* const row =
          from + (rows.begin + static_cast<int64_t>(k)) * in_columns * channels;
      float* out = sums.data();
      for (const PixelWeights& window : columns) {
        for (int c = 0; c < channels; ++c) {
          const uint8_t* in = row + window.begin * channels + c;
          float sum = 0;
          for (const float weight : window.weights) {
            sum += weight * static_cast<float>(*in);
            in += channels;
          }
          *out++ += rows.weights[k] * sum;
        }
      }
    }
    for (const float sum : sums) {
      *to++ = static_cast<uint8_t>(std::min(255.0f, std::max(0.0f, std::floor(sum + 0.5f))));
    }
  }
}

// ---- Decoding ----

struct Decoded {
  std::unique_ptr<uint8_t[]> pixels;
  int64_t rows = 0;
  int64_t columns = 0;
};

absl::StatusOr<Decoded> DecodeFile(const std::string& path, const ImageOptions& options) {
  constexpr size_t kMaxFileBytes = size_t{1} << 28;
  size_t size = 0;
  GRADFLOW_ASSIGN_OR_RETURN(const internal::FileDescriptor file, internal::OpenFile(path, &size));
  if (size > kMaxFileBytes) {
    return errors::ResourceExhausted("the file has ", size, " bytes, expected at most ",
                                     kMaxFileBytes);
  }
  std::string bytes(size, '\0');
  GRADFLOW_RETURN_IF_ERROR(internal::ReadAt(file.get(), 0, bytes.data(), size));
  Decoded decoded;
  // max_pixels also bounds the working memory.
  const auto charge = [](int64_t) { return absl::OkStatus(); };
  const auto allocate = [&](const ImageSize& image) -> absl::StatusOr<void*> {
    // The decoder has checked that the number of elements fits int32.
    if (image.rows * image.columns > options.max_pixels) {
      return errors::ResourceExhausted("the image has ", image.rows, " x ", image.columns,
                                       " pixels, expected at most ", options.max_pixels);
    }
    decoded.rows = image.rows;
    decoded.columns = image.columns;
    decoded.pixels = std::make_unique<uint8_t[]>(image.rows * image.columns * image.channels);
    return static_cast<void*>(decoded.pixels.get());
  };
  absl::Status status;
  switch (internal::ImageFormatOf(bytes)) {
    case ImageFormat::kPng:
      status = internal::DecodePng(bytes, options.channels, 8, {charge, allocate});
      break;
    case ImageFormat::kJpeg: {
      internal::JpegOptions jpeg;
      jpeg.channels = options.channels;
      status = internal::DecodeJpeg(bytes, jpeg, {charge, allocate});
      break;
    }
    default:
      status = errors::InvalidArgument("expected a PNG or JPEG image");
  }
  if (!status.ok()) return status;
  if (decoded.rows < 1 || decoded.columns < 1) {
    return errors::InvalidArgument("the image has no pixels");
  }
  return decoded;
}

absl::Status AtPath(const std::string& path, const absl::Status& status) {
  return errors::Prefix(absl::StrCat("'", path, "': "), status);
}

bool HasImageName(const fs::path& path) {
  const std::string extension = absl::AsciiStrToLower(path.extension().string());
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

// Returns the names in a folder that do not begin with a dot, in order.
absl::StatusOr<std::vector<std::string>> NamesIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  auto entry = fs::directory_iterator(folder, error);
  while (!error && entry != fs::directory_iterator()) {
    std::string name = entry->path().filename().string();
    if (!absl::StartsWith(name, ".")) names.push_back(std::move(name));
    entry.increment(error);
  }
  if (error) {
    return AtPath(folder.string(), absl::ErrnoToStatus(error.value(), "cannot list the folder"));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

absl::StatusOr<ImageFiles> ListImages(const std::string& folder) {
  ImageFiles files;
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  for (const std::string& name : names) {
    const fs::path of_class = fs::path(folder) / name;
    std::error_code error;
    const fs::file_status status = fs::status(of_class, error);
    // Skipping the class would change the labels of the following classes.
    if (status.type() == fs::file_type::none) {
      return AtPath(of_class.string(), absl::ErrnoToStatus(error.value(), "cannot be examined"));
    }
    if (!fs::is_directory(status)) continue;
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<std::string> images, NamesIn(of_class));
    for (const std::string& image : images) {
      if (!HasImageName(image)) continue;
      files.paths.push_back((of_class / image).string());
      files.labels.push_back(static_cast<int64_t>(files.classes.size()));
    }
    files.classes.push_back(name);
  }
  if (files.paths.empty()) {
    return AtPath(folder, errors::InvalidArgument(
                              "expected a folder of .png, .jpg or .jpeg files for each class, "
                              "found no such file"));
  }
  return files;
}

absl::StatusOr<ImageShape> ShapeOfExamples(const std::string& path, const ImageOptions& options) {
  if (options.height > 0) return ImageShape{options.height, options.width, options.channels};
  const absl::StatusOr<Decoded> decoded = DecodeFile(path, options);
  if (!decoded.ok()) return AtPath(path, decoded.status());
  return ImageShape{decoded->rows, decoded->columns, options.channels};
}

absl::Status ReadImage(const std::string& path, const ImageOptions& options,
                       const ImageShape& shape, uint8_t* pixels) {
  const absl::StatusOr<Decoded> decoded = DecodeFile(path, options);
  if (!decoded.ok()) return AtPath(path, decoded.status());
  if (decoded->rows == shape.rows && decoded->columns == shape.columns) {
    std::memcpy(pixels, decoded->pixels.get(), shape.elements());
    return absl::OkStatus();
  }
  if (options.height == 0) {
    return AtPath(path, errors::InvalidArgument("the image has ", decoded->rows, " x ",
                                                decoded->columns, " pixels, but the first one has ",
                                                shape.rows, " x ", shape.columns,
                                                "; ImageOptions::height and width resize images"));
  }
  Resize(decoded->pixels.get(), decoded->rows, decoded->columns, shape, pixels);
  return absl::OkStatus();
}

}  // namespace training
}  // namespace gradflow
