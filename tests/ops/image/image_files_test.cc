// Tests of decoders and encoders of image files.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/io/image_codecs.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

Tensor Bytes(const std::string& bytes) { return Tensor(tstring(bytes)); }
std::string BytesOf(const absl::StatusOr<Tensor>& tensor) {
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return tensor.ok() ? std::string(tensor->scalar<tstring>()()) : std::string();
}
std::string Png(const Tensor& image) {
  return BytesOf(OpTester("EncodePng").Input(image).RunOne());
}
std::string Jpeg(const Tensor& image) {
  return BytesOf(OpTester("EncodeJpeg").Input(image).RunOne());
}
absl::StatusOr<Tensor> Decode(const char* op, const std::string& bytes) {
  return OpTester(op).Input(Bytes(bytes)).ShapeIsData().RunOne();
}

// Returns a smooth image, which JPEG changes little.
Tensor Smooth(int64_t rows, int64_t columns, int64_t channels) {
  Tensor image(DT_UINT8, {rows, columns, channels});
  for (int64_t i = 0; i < image.NumElements(); ++i) {
    const int64_t c = i % channels, x = i / channels % columns, y = i / channels / columns;
    image.flat<uint8_t>()(i) = static_cast<uint8_t>(
        60 + 50 * c + 100 * x / columns * (c == 1 ? -1 : 1) / 2 + 40 * y / rows);
  }
  return image;
}

int64_t GreatestDifference(const absl::StatusOr<Tensor>& a, const Tensor& b) {
  EXPECT_TRUE(a.ok()) << a.status();
  if (!a.ok()) return 1000;
  EXPECT_EQ(a->shape(), b.shape());
  if (a->shape() != b.shape()) return 1000;
  int64_t greatest = 0;
  for (int64_t i = 0; i < b.NumElements(); ++i) {
    greatest = std::max<int64_t>(
        greatest, std::abs(int64_t{a->flat<uint8_t>()(i)} - int64_t{b.flat<uint8_t>()(i)}));
  }
  return greatest;
}

// A GIF of 3 x 2 pixels, red and blue.
const char kGif[] =
    "GIF89a\x03\x00\x02\x00\x80\x00\x00\xff\x00\x00\x00\x00\xff"
    ",\x00\x00\x00\x00\x03\x00\x02\x00\x00\x02\x04\x44\x88\x10\x29\x00;";
std::string Gif() { return std::string(kGif, sizeof(kGif) - 1); }
// Lossless WebP files made by libwebp: an image of 2 x 2 pixels, an image of 2 x 1 pixels with
// alpha, and an animation of two frames of 2 x 1 pixels.
const char kWebP[] =
    "\x52\x49\x46\x46\x3c\x00\x00\x00\x57\x45\x42\x50\x56\x50\x38\x4c\x30\x00\x00\x00"
    "\x2f\x01\x40\x00\x00\x1f\x40\x20\x40\x19\x2b\x06\xb8\x46\x41\xda\x06\xcc\xbe\x7f"
    "\x45\xd3\xa6\xa0\x6d\x1b\x36\xd4\x43\xe1\x6c\xf3\x1f\xa1\xd7\xb6\xbd\x3f\x40\x36"
    "\x40\x99\x2a\xcc\x22\xfa\x1f\x1f";
const char kWebPAlpha[] =
    "\x52\x49\x46\x46\x24\x00\x00\x00\x57\x45\x42\x50\x56\x50\x38\x4c\x17\x00\x00\x00"
    "\x2f\x01\x00\x00\x10\x0f\x70\x0a\xa8\x2b\xf8\x9e\xc2\xe3\x28\xd7\x41\x8b\x0a\x44"
    "\xf4\x3f\x00\x00";
const char kWebPAnimation[] =
    "\x52\x49\x46\x46\x90\x00\x00\x00\x57\x45\x42\x50\x56\x50\x38\x58\x0a\x00\x00\x00"
    "\x02\x00\x00\x00\x01\x00\x00\x00\x00\x00\x41\x4e\x49\x4d\x06\x00\x00\x00\xff\xff"
    "\xff\xff\x00\x00\x41\x4e\x4d\x46\x2e\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00"
    "\x00\x00\x00\x00\x64\x00\x00\x02\x56\x50\x38\x4c\x16\x00\x00\x00\x2f\x01\x00\x00"
    "\x00\x0f\x70\x0a\xa8\x2b\xf8\x9e\xc2\x63\xfe\x83\x07\x15\x88\xe8\x7f\x00\x41\x4e"
    "\x4d\x46\x2e\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x64\x00"
    "\x00\x00\x56\x50\x38\x4c\x16\x00\x00\x00\x2f\x01\x00\x00\x00\x0f\x70\x0a\xa8\xf3"
    "\x30\xbe\xc3\x63\xfe\x83\x07\x15\x88\xe8\x7f\x00";
template <size_t N>
std::string Literal(const char (&bytes)[N]) {
  return std::string(bytes, N - 1);
}

std::string Bmp(int32_t columns, int32_t rows, int bits, const std::string& pixels) {
  std::string bytes(54, '\0');
  const auto put = [&](size_t at, uint32_t value) {
    for (int k = 0; k < 4; ++k) bytes[at + k] = static_cast<char>(value >> (8 * k));
  };
  bytes[0] = 'B';
  bytes[1] = 'M';
  put(10, 54);
  put(14, 40);
  put(18, static_cast<uint32_t>(columns));
  put(22, static_cast<uint32_t>(rows));
  bytes[26] = 1;
  bytes[28] = static_cast<char>(bits);
  return bytes + pixels;
}

// ---- Files made byte by byte ----

std::string BigEndian(uint32_t value, int bytes) {
  std::string result;
  for (int k = bytes; k-- > 0;) result += static_cast<char>(value >> (8 * k));
  return result;
}

uint32_t Crc32(absl::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int k = 0; k < 8; ++k) crc = (crc >> 1) ^ (crc % 2 == 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

constexpr char kPngSignature[] = "\x89PNG\r\n\x1a\n";

std::string PngChunk(const std::string& type, const std::string& data) {
  return BigEndian(static_cast<uint32_t>(data.size()), 4) + type + data +
         BigEndian(Crc32(type + data), 4);
}

// Calls fn(type, data) for each chunk of a PNG file.
void ForEachPngChunk(
    const std::string& png,
    const std::function<void(const std::string& type, const std::string& data)>& fn) {
  for (size_t at = 8; at + 12 <= png.size();) {
    size_t size = 0;
    for (size_t k = 0; k < 4; ++k) size = size << 8 | static_cast<uint8_t>(png[at + k]);
    if (size > png.size() - at - 12) return;
    fn(png.substr(at + 4, 4), png.substr(at + 8, size));
    at += size + 12;
  }
}

// Returns a PNG file whose pixels are stored without compression. In `data`, a filter byte precedes
// each row. Color types are 0 for gray, 2 for RGB and 3 for a palette.
std::string PngFile(uint32_t columns, uint32_t rows, int bits, int color_type, bool is_interlaced,
                    const std::string& chunks, const std::string& data) {
  uint32_t a = 1;
  uint32_t b = 0;
  for (const char c : data) {
    a = (a + static_cast<uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  const auto size = static_cast<uint32_t>(data.size());
  std::string stored = "\x78\x01\x01";
  for (const uint32_t n : {size, ~size}) {
    stored += static_cast<char>(n);
    stored += static_cast<char>(n >> 8);
  }
  std::string header = BigEndian(columns, 4) + BigEndian(rows, 4);
  for (const int value : {bits, color_type, 0, 0, is_interlaced ? 1 : 0}) {
    header += static_cast<char>(value);
  }
  return kPngSignature + PngChunk("IHDR", header) + chunks +
         PngChunk("IDAT", stored + data + BigEndian(b << 16 | a, 4)) + PngChunk("IEND", "");
}

// Returns a JPEG file of 8 x 8 pixels of one color. `transform` is the color transform of an Adobe
// marker, or -1 for no marker.
std::string JpegFile(const std::vector<int>& color, int transform) {
  const auto marker = [](int type, const std::string& data) {
    return std::string("\xff") + static_cast<char>(type) +
           BigEndian(static_cast<uint32_t>(data.size() + 2), 2) + data;
  };
  const auto count = static_cast<char>(color.size());
  std::string file = "\xff\xd8";
  if (transform >= 0) {
    file += marker(0xee, std::string("Adobe\0\x64\0\0\0\0", 11) + static_cast<char>(transform));
  }
  // All quantizers are 1.
  file += marker(0xdb, std::string(1, '\0') + std::string(64, '\1'));
  std::string frame = std::string("\x08\0\x08\0\x08", 5) + count;
  std::string scan = std::string(1, count);
  for (char c = 1; c <= count; ++c) {
    frame += std::string(1, c) + std::string("\x11\0", 2);
    scan += std::string(1, c) + std::string(1, '\0');
  }
  file += marker(0xc0, frame);
  // Twelve codes of 4 bits for the lengths of the means, and one code of 1 bit for the end of a
  // block.
  std::string lengths = std::string("\0\0\0\0\x0c", 5) + std::string(12, '\0');
  for (char k = 0; k < 12; ++k) lengths += k;
  file += marker(0xc4, lengths);
  file += marker(0xc4, "\x10\x01" + std::string(16, '\0'));
  file += marker(0xda, scan + std::string("\0\x3f\0", 3));
  std::string bits;
  for (const int value : color) {
    const int mean = 8 * (value - 128);
    int length = 0;
    while (std::abs(mean) >> length != 0) ++length;
    const auto put = [&](int number, int n) {
      for (int k = n; k-- > 0;) bits += (number >> k) % 2 == 0 ? '0' : '1';
    };
    put(length, 4);
    put(mean < 0 ? mean + (1 << length) - 1 : mean, length);
    bits += '0';
  }
  while (bits.size() % 8 != 0) bits += '1';
  for (size_t i = 0; i < bits.size(); i += 8) {
    file += static_cast<char>(std::stoi(bits.substr(i, 8), nullptr, 2));
    if (file.back() == '\xff') file += '\0';
  }
  return file + "\xff\xd9";
}

absl::StatusOr<Tensor> DecodeTo(const char* op, const std::string& bytes, int64_t channels,
                                DataType dtype = DT_UINT8) {
  OpTester tester(op);
  tester.Input(Bytes(bytes)).Attr("channels", channels).ShapeIsData();
  if (dtype != DT_UINT8) tester.Attr("dtype", dtype);
  return tester.RunOne();
}

TEST(Png, KeepsImages) {
  for (const DataType dtype : {DT_UINT8, DT_UINT16}) {
    for (int64_t channels = 1; channels <= 4; ++channels) {
      for (const int64_t compression : {-1, 0, 9}) {
        const Tensor image =
            RandomTensor(dtype, {7, 13, channels}, 0, dtype == DT_UINT8 ? 255 : 65535);
        const std::string bytes =
            BytesOf(OpTester("EncodePng").Input(image).Attr("compression", compression).RunOne());
        EXPECT_THAT(
            OpTester("DecodePng").Input(Bytes(bytes)).Attr("dtype", dtype).ShapeIsData().RunOne(),
            TensorEq(image));
      }
    }
  }
  // A batch of images becomes a batch of files.
  const Tensor images = RandomTensor(DT_UINT8, {2, 3, 4, 5, 3}, 0, 255);
  const auto files = OpTester("EncodePng").Input(images).RunOne();
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->shape(), TensorShape({2, 3}));
  EXPECT_THAT(Decode("DecodePng", files->flat<tstring>()(4)),
              TensorEq(images.SubSlice(1).SubSlice(1)));
}

TEST(Png, ConvertsChannelsAndTypes) {
  const Tensor image = AsTensor<uint8_t>({10, 100, 200, 250, 0, 30}, {1, 2, 3});
  const std::string bytes = Png(image);
  const auto decode = [&](const char* op, int64_t channels, DataType dtype) {
    return OpTester(op)
        .Input(Bytes(bytes))
        .Attr("channels", channels)
        .Attr("dtype", dtype)
        .ShapeIsData()
        .RunOne();
  };
  EXPECT_THAT(decode("DecodePng", 4, DT_UINT8),
              TensorEq(AsTensor<uint8_t>({10, 100, 200, 255, 250, 0, 30, 255}, {1, 2, 4})));
  EXPECT_THAT(decode("DecodePng", 3, DT_UINT16),
              TensorEq(AsTensor<uint16_t>({2570, 25700, 51400, 64250, 0, 7710}, {1, 2, 3})));
  EXPECT_THAT(decode("DecodeImage", 3, DT_FLOAT),
              TensorNear(AsTensor<float>(
                  {10 / 255.f, 100 / 255.f, 200 / 255.f, 250 / 255.f, 0, 30 / 255.f}, {1, 2, 3})));
  const Tensor gray = *decode("DecodePng", 1, DT_UINT8);
  EXPECT_NEAR(gray.flat<uint8_t>()(0), 0.299 * 10 + 0.587 * 100 + 0.114 * 200, 1.5);
  EXPECT_THAT(Decode("DecodeGif", bytes), TensorEq(*image.Reshaped({1, 1, 2, 3})));
}

TEST(Png, DecodesPalettes) {
  const std::string palette =
      PngChunk("PLTE", std::string("\x0a\x14\x1e\x28\x32\x3c\x46\x50\x5a\x64\x6e\x78", 12));
  // The last color has no alpha value, so it is opaque.
  const std::string alphas = PngChunk("tRNS", "\xc8\x01\x80");
  const Tensor rgb = AsTensor<uint8_t>(
      {100, 110, 120, 70, 80, 90, 40, 50, 60, 10, 20, 30, 10, 20, 30, 100, 110, 120}, {2, 3, 3});
  const Tensor rgba = AsTensor<uint8_t>({100, 110, 120, 255, 70, 80, 90, 128, 40,  50,  60,  1,
                                         10,  20,  30,  200, 10, 20, 30, 200, 100, 110, 120, 255},
                                        {2, 3, 4});
  const struct {
    int bits;
    std::string data;
  } cases[] = {{2, std::string("\0\xe4\0\x0c", 4)},
               {4, std::string("\0\x32\x10\0\0\x30", 6)},
               {8, std::string("\0\3\2\1\0\0\0\3", 8)}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.bits);
    const std::string opaque = PngFile(3, 2, c.bits, 3, false, palette, c.data);
    EXPECT_THAT(DecodeTo("DecodePng", opaque, 0), TensorEq(rgb));
    EXPECT_THAT(DecodeTo("DecodePng", opaque, 3), TensorEq(rgb));
    const std::string png = PngFile(3, 2, c.bits, 3, false, palette + alphas, c.data);
    EXPECT_THAT(DecodeTo("DecodePng", png, 0), TensorEq(rgba));
    EXPECT_THAT(DecodeTo("DecodePng", png, 3), TensorEq(rgb));
    EXPECT_THAT(DecodeTo("DecodePng", png, 4), TensorEq(rgba));
    const auto gray = DecodeTo("DecodePng", png, 1);
    ASSERT_TRUE(gray.ok()) << gray.status();
    EXPECT_NEAR(gray->flat<uint8_t>()(5), 0.299 * 100 + 0.587 * 110 + 0.114 * 120, 1.5);
    const auto wide = DecodeTo("DecodePng", png, 4, DT_UINT16);
    ASSERT_TRUE(wide.ok()) << wide.status();
    for (int64_t i = 0; i < rgba.NumElements(); ++i) {
      EXPECT_EQ(wide->flat<uint16_t>()(i), 257 * rgba.flat<uint8_t>()(i));
    }
  }
}

TEST(Png, DecodesGrayOfFewBits) {
  const std::string one = PngFile(3, 1, 1, 0, false, "", std::string("\0\xa0", 2));
  EXPECT_THAT(DecodeTo("DecodePng", one, 0), TensorEq(AsTensor<uint8_t>({255, 0, 255}, {1, 3, 1})));
  const std::string two = PngFile(4, 1, 2, 0, false, "", std::string("\0\x1b", 2));
  EXPECT_THAT(DecodeTo("DecodePng", two, 1),
              TensorEq(AsTensor<uint8_t>({0, 85, 170, 255}, {1, 4, 1})));
  const std::string four = PngFile(2, 1, 4, 0, false, "", std::string("\0\x2f", 2));
  EXPECT_THAT(DecodeTo("DecodePng", four, 3),
              TensorEq(AsTensor<uint8_t>({34, 34, 34, 255, 255, 255}, {1, 2, 3})));
  EXPECT_THAT(DecodeTo("DecodePng", four, 1, DT_UINT16),
              TensorEq(AsTensor<uint16_t>({34 * 257, 65535}, {1, 2, 1})));
  // One gray value of 8 bits is transparent.
  const std::string eight = PngFile(2, 1, 8, 0, false, PngChunk("tRNS", std::string("\0\7", 2)),
                                    std::string("\0\7\x09", 3));
  EXPECT_THAT(DecodeTo("DecodePng", eight, 4),
              TensorEq(AsTensor<uint8_t>({7, 7, 7, 0, 9, 9, 9, 255}, {1, 2, 4})));
  EXPECT_THAT(DecodeTo("DecodePng", eight, 1), TensorEq(AsTensor<uint8_t>({7, 9}, {1, 2, 1})));
}

TEST(Png, DecodesInterlacedImages) {
  const Tensor image = RandomTensor(DT_UINT8, {8, 8, 1}, 0, 255);
  // For each pass: its first column and row, and the distances between its columns and rows.
  constexpr int kPasses[][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  std::string data;
  for (const auto& pass : kPasses) {
    for (int r = pass[1]; r < 8; r += pass[3]) {
      data += '\0';
      for (int c = pass[0]; c < 8; c += pass[2]) {
        data += static_cast<char>(image.flat<uint8_t>()(8 * r + c));
      }
    }
  }
  EXPECT_THAT(DecodeTo("DecodePng", PngFile(8, 8, 8, 0, true, "", data), 0), TensorEq(image));
}

TEST(Jpeg, DecodesCmyk) {
  const auto solid = [](const std::vector<uint8_t>& color) {
    Tensor image(DT_UINT8, {8, 8, static_cast<int64_t>(color.size())});
    for (int64_t i = 0; i < image.NumElements(); ++i) {
      image.flat<uint8_t>()(i) = color[static_cast<size_t>(i) % color.size()];
    }
    return image;
  };
  EXPECT_THAT(DecodeTo("DecodeJpeg", JpegFile({77}, -1), 0), TensorEq(solid({77})));
  EXPECT_THAT(DecodeTo("DecodeJpeg", JpegFile({201, 99, 3}, 0), 0), TensorEq(solid({201, 99, 3})));
  const std::vector<int> cmyk = {200, 100, 50, 180};
  // Adobe inverts CMYK colors.
  EXPECT_THAT(DecodeTo("DecodeJpeg", JpegFile(cmyk, -1), 0), TensorEq(solid({16, 45, 60})));
  EXPECT_THAT(DecodeTo("DecodeJpeg", JpegFile(cmyk, 0), 3), TensorEq(solid({141, 70, 35})));
  // YCCK of a gray. Each color is 255 - 55.
  EXPECT_THAT(DecodeTo("DecodeJpeg", JpegFile({55, 128, 128, 180}, 2), 0),
              TensorEq(solid({141, 141, 141})));
  EXPECT_THAT(OpTester("DecodeAndCropJpeg")
                  .Input(Bytes(JpegFile(cmyk, 0)))
                  .Input<int32_t>({1, 2, 1, 2})
                  .ShapeIsData()
                  .RunOne(),
              TensorEq(AsTensor<uint8_t>({141, 70, 35, 141, 70, 35}, {1, 2, 3})));
}

TEST(Jpeg, KeepsSmoothImages) {
  for (const int64_t channels : {1, 3}) {
    const Tensor image = Smooth(33, 50, channels);
    for (const bool progressive : {false, true}) {
      const std::string bytes = BytesOf(OpTester("EncodeJpeg")
                                            .Input(image)
                                            .Attr("progressive", progressive)
                                            .Attr("optimize_size", true)
                                            .Attr("chroma_downsampling", false)
                                            .Attr("density_unit", "cm")
                                            .Attr("x_density", int64_t{11})
                                            .Attr("xmp_metadata", "some metadata")
                                            .RunOne());
      EXPECT_NE(bytes.find("http://ns.adobe.com/xap/1.0/" + std::string(1, '\0') + "some metadata"),
                std::string::npos);
      EXPECT_EQ(bytes.substr(13, 3), std::string("\x02\x00\x0b", 3));
      for (const char* const method : {"", "INTEGER_FAST", "INTEGER_ACCURATE"}) {
        EXPECT_LE(GreatestDifference(OpTester("DecodeJpeg")
                                         .Input(Bytes(bytes))
                                         .Attr("dct_method", method)
                                         .ShapeIsData()
                                         .RunOne(),
                                     image),
                  6);
      }
    }
  }
}

TEST(Jpeg, EncodesQualities) {
  const Tensor image = RandomTensor(DT_UINT8, {40, 40, 3}, 0, 255);
  size_t last = 0;
  for (const int32_t quality : {0, 30, 70, 100}) {
    const std::string bytes = BytesOf(OpTester("EncodeJpegVariableQuality")
                                          .Input(image)
                                          .Input(AsScalar<int32_t>(quality))
                                          .RunOne());
    EXPECT_EQ(
        bytes,
        BytesOf(OpTester("EncodeJpeg").Input(image).Attr("quality", int64_t{quality}).RunOne()));
    EXPECT_GT(bytes.size(), last);
    last = bytes.size();
  }
}

TEST(Jpeg, Crops) {
  const std::string bytes = Jpeg(Smooth(37, 45, 3));
  const Tensor whole = *Decode("DecodeJpeg", bytes);
  for (const std::vector<int32_t>& w :
       {std::vector<int32_t>{0, 0, 37, 45}, {5, 7, 11, 13}, {36, 44, 1, 1}, {0, 17, 20, 28}}) {
    const Tensor expected = *OpTester("Slice")
                                 .Input(whole)
                                 .Input<int32_t>({w[0], w[1], 0})
                                 .Input<int32_t>({w[2], w[3], 3})
                                 .RunOne();
    EXPECT_THAT(OpTester("DecodeAndCropJpeg")
                    .Input(Bytes(bytes))
                    .Input(AsTensor<int32_t>(w))
                    .ShapeIsData()
                    .RunOne(),
                TensorEq(expected));
  }
  for (const std::vector<int32_t>& w :
       {std::vector<int32_t>{0, 0, 38, 45}, {30, 0, 8, 1}, {0, 0, 0, 1}, {0, 45, 1, 1}}) {
    EXPECT_THAT(OpTester("DecodeAndCropJpeg").Input(Bytes(bytes)).Input(AsTensor<int32_t>(w)).Run(),
                StatusIs(kInvalidArgument, ::testing::HasSubstr("Invalid crop window")));
  }
  EXPECT_THAT(OpTester("DecodeAndCropJpeg").Input(Bytes(bytes)).Input<int32_t>({-1, 0, 1, 1}).Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("Invalid crop window")));
}

TEST(Jpeg, ScalesAndConverts) {
  const Tensor whole = Smooth(32, 48, 3);
  const std::string bytes = Jpeg(whole);
  for (const int64_t ratio : {1, 2, 4, 8}) {
    for (const int64_t channels : {0, 1, 3}) {
      SCOPED_TRACE(absl::StrCat(ratio, ", ", channels, " channels"));
      const auto image = OpTester("DecodeJpeg")
                             .Input(Bytes(bytes))
                             .Attr("ratio", ratio)
                             .Attr("channels", channels)
                             .Attr("fancy_upscaling", false)
                             .ShapeIsData()
                             .RunOne();
      // Scaling returns the means of blocks.
      const int64_t depth = channels == 1 ? 1 : 3;
      Tensor means(DT_UINT8, {32 / ratio, 48 / ratio, depth});
      for (int64_t i = 0; i < means.NumElements(); ++i) {
        const int64_t row = i / depth / (48 / ratio), column = i / depth % (48 / ratio);
        double sum = 0;
        for (int64_t k = 0; k < ratio * ratio; ++k) {
          const int64_t pixel = (row * ratio + k / ratio) * 48 + column * ratio + k % ratio;
          const uint8_t* const rgb = whole.flat<uint8_t>().data() + 3 * pixel;
          sum += depth == 3 ? rgb[i % 3] : 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
        }
        means.flat<uint8_t>()(i) =
            static_cast<uint8_t>(sum / static_cast<double>(ratio * ratio) + 0.5);
      }
      EXPECT_LE(GreatestDifference(image, means), 8);
    }
  }
}

TEST(Jpeg, MayBeTruncated) {
  const Tensor image = Smooth(64, 64, 3);
  const std::string bytes = Jpeg(image);
  const std::string half = bytes.substr(0, bytes.size() * 3 / 4);
  const auto decode = [&](const std::string& data, bool recover, float fraction) {
    return OpTester("DecodeJpeg")
        .Input(Bytes(data))
        .Attr("try_recover_truncated", recover)
        .Attr("acceptable_fraction", fraction)
        .ShapeIsData()
        .RunOne();
  };
  EXPECT_THAT(decode(half, false, 1),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("the file is truncated, with")));
  const auto partial = decode(half, false, 0.1f);
  ASSERT_TRUE(partial.ok()) << partial.status();
  EXPECT_EQ(partial->flat<uint8_t>()(partial->NumElements() - 1), 0);
  const auto recovered = decode(half, true, 1);
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_EQ(recovered->shape(), image.shape());
  EXPECT_THAT(decode(bytes.substr(0, 30), false, 0),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("Invalid JPEG data")));
}

TEST(Gif, HasFrames) {
  const Tensor image = AsTensor<uint8_t>(
      {255, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0, 255}, {1, 2, 3, 3});
  const Tensor decoded = *Decode("DecodeGif", Gif());
  EXPECT_THAT(decoded, TensorEq(image));
  // The file has two copies of the frame.
  std::string two = Gif();
  const size_t frame = two.find(',');
  two.insert(two.size() - 1, two.substr(frame, two.size() - 1 - frame));
  const Tensor frames = *Decode("DecodeGif", two);
  ASSERT_EQ(frames.shape(), TensorShape({2, 2, 3, 3}));
  EXPECT_THAT(frames.Slice(0, 1), TensorEq(decoded));
  EXPECT_THAT(frames.Slice(1, 2), TensorEq(decoded));
  EXPECT_THAT(Decode("DecodeImage", two), TensorEq(frames));
  EXPECT_THAT(OpTester("DecodeImage")
                  .Input(Bytes(two))
                  .Attr("expand_animations", false)
                  .ShapeIsData()
                  .RunOne(),
              TensorEq(decoded.SubSlice(0)));
  EXPECT_THAT(Decode("DecodePng", Gif()), TensorEq(decoded.SubSlice(0)));
  EXPECT_THAT(Decode("DecodeJpeg", two),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("an animation of 2 frames")));
}

// Interlaced rows come in the order 0, 4, 2, 6, 1, 3, 5, 7.
TEST(Gif, DecodesInterlacedImages) {
  std::string gif = std::string("GIF89a\x01\0\x08\0\xf2\0\0", 13);
  std::vector<uint8_t> colors;
  for (int i = 0; i < 8; ++i) {
    for (const int value : {30 * i, 255 - 30 * i, i}) colors.push_back(static_cast<uint8_t>(value));
  }
  gif.append(colors.begin(), colors.end());
  gif += std::string(",\0\0\0\0\x01\0\x08\0\x40", 10);
  // Codes have 4 bits, lowest bits first. Code 8 clears the table before codes get longer; it
  // occurs twice.
  gif += std::string("\x03\x06\x08\x24\x86\x31\x75\x09\0;", 10);
  EXPECT_THAT(Decode("DecodeGif", gif), TensorEq(AsTensor<uint8_t>(colors, {1, 8, 1, 3})));
}

TEST(Bmp, DecodesAllDepths) {
  // Rows are padded to four bytes. The last row comes first.
  const std::string bgr("\x01\x02\x03\x04\x05\x06\0\0\x07\x08\x09\x0a\x0b\x0c\0\0", 16);
  EXPECT_THAT(Decode("DecodeBmp", Bmp(2, 2, 24, bgr)),
              TensorEq(AsTensor<uint8_t>({9, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4}, {2, 2, 3})));
  EXPECT_THAT(Decode("DecodeImage", Bmp(2, -2, 24, bgr)),
              TensorEq(AsTensor<uint8_t>({3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10}, {2, 2, 3})));
  EXPECT_THAT(Decode("DecodeBmp", Bmp(1, 1, 32, "\x01\x02\x03\x04")),
              TensorEq(AsTensor<uint8_t>({3, 2, 1, 4}, {1, 1, 4})));
  const Tensor gray = Bytes(Bmp(3, 1, 8, std::string("\x05\x06\x07\0", 4)));
  EXPECT_THAT(OpTester("DecodeBmp").Input(gray).ShapeIsData().RunOne(),
              TensorEq(AsTensor<uint8_t>({5, 6, 7}, {1, 3, 1})));
  EXPECT_THAT(OpTester("DecodeBmp").Input(gray).Attr("channels", int64_t{4}).ShapeIsData().RunOne(),
              TensorEq(AsTensor<uint8_t>({5, 5, 5, 255, 6, 6, 6, 255, 7, 7, 7, 255}, {1, 3, 4})));
  const struct {
    std::string bytes;
    const char* error;
  } cases[] = {{Bmp(2, 2, 24, bgr + "x"), "expected 70 bytes, but there are 71"},
               {Bmp(0, 2, 24, ""), "the image has 0 x 2 pixels"},
               {Bmp(1, 1, 16, "1234"), "a pixel has 16 bits"},
               {Bmp(INT32_MAX, INT32_MIN, 32, ""), "is too large"},
               {"BM", "expected a header of 32 bytes"}};
  for (const auto& c : cases) {
    EXPECT_THAT(Decode("DecodeBmp", c.bytes),
                StatusIs(kInvalidArgument, ::testing::HasSubstr(c.error)));
  }
}

TEST(WebP, DecodesFiles) {
  const Tensor rgb = AsTensor<uint8_t>({10, 20, 30, 200, 100, 50, 1, 2, 3, 4, 5, 6}, {1, 2, 2, 3});
  EXPECT_THAT(Decode("DecodeWebP", Literal(kWebP)), TensorEq(rgb));
  EXPECT_THAT(Decode("DecodeImage", Literal(kWebP)), TensorEq(rgb));
  EXPECT_THAT(OpTester("DecodeImage")
                  .Input(Bytes(Literal(kWebP)))
                  .Attr("expand_animations", false)
                  .ShapeIsData()
                  .RunOne(),
              TensorEq(rgb.SubSlice(0)));
  EXPECT_THAT(Decode("DecodeWebP", Literal(kWebPAlpha)),
              TensorEq(AsTensor<uint8_t>({10, 20, 30, 40, 200, 100, 50, 255}, {1, 1, 2, 4})));
  const Tensor frames = AsTensor<uint8_t>(
      {10, 20, 30, 255, 200, 100, 50, 255, 60, 20, 30, 255, 200, 100, 59, 255}, {2, 1, 2, 4});
  EXPECT_THAT(Decode("DecodeWebP", Literal(kWebPAnimation)), TensorEq(frames));
  EXPECT_THAT(OpTester("DecodeImage")
                  .Input(Bytes(Literal(kWebPAnimation)))
                  .Attr("expand_animations", false)
                  .ShapeIsData()
                  .RunOne(),
              TensorEq(frames.SubSlice(0)));
  EXPECT_THAT(
      OpTester("DecodeWebP").Input(Bytes(Literal(kWebP))).Attr("channels", int64_t{4}).Run(),
      StatusIs(kInvalidArgument, "channels is 4, but the WebP data has 3"));
  EXPECT_THAT(OpTester("DecodeImage").Input(Bytes(Literal(kWebP))).Attr("dtype", DT_FLOAT).Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("decoded to uint8 only")));
  EXPECT_THAT(Decode("DecodeWebP", Literal(kWebPAnimation).substr(0, 100)),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("Invalid WebP data")));
  EXPECT_THAT(Decode("DecodeWebP", std::string("RIFF\x24\0\0\0WEBPVP8 ", 16)),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("the header cannot be read")));
}

TEST(ImageFiles, RejectOtherFormats) {
  const std::string png = Png(Smooth(2, 2, 3));
  const std::string jpeg = Jpeg(Smooth(2, 2, 3));
  const struct {
    const char* op;
    std::string bytes;
    const char* error;
  } cases[] = {
      {"DecodeBmp", png, "contents is a PNG image, which the op does not decode"},
      {"DecodePng", Bmp(1, 1, 32, "1234"), "contents is a BMP image"},
      {"DecodeWebP", jpeg, "contents is a JPEG image"},
      {"DecodeImage", "", "contents is empty"},
      {"DecodeImage", "text", "contents is not an image"},
      {"DecodePng", png.substr(0, 40), "Invalid PNG data: the file is truncated"},
      {"DecodePng", PngFile(2, 1, 8, 3, false, "", std::string("\0\0\1", 3)),
       "Invalid PNG data: IDAT: Missing PLTE before IDAT"},
      {"DecodeGif", "GIF89a", "Invalid GIF data"},
      {"DecodeGif", Gif().substr(0, 20), "Invalid GIF data"},
      {"DecodeJpeg", "\xff\xd8\xff", "Invalid JPEG data"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.error);
    EXPECT_THAT(Decode(c.op, c.bytes), StatusIs(kInvalidArgument, ::testing::HasSubstr(c.error)));
  }
  const struct {
    const char* op;
    const char* attr;
    int64_t value;
    std::string bytes;
  } attrs[] = {
      {"DecodePng", "channels", 5, png},     {"DecodePng", "channels", -1, png},
      {"DecodeJpeg", "channels", 4, jpeg},   {"DecodeJpeg", "ratio", 3, jpeg},
      {"DecodeImage", "channels", 1, Gif()}, {"DecodeBmp", "channels", 1, Bmp(1, 1, 32, "1234")}};
  for (const auto& a : attrs) {
    EXPECT_THAT(OpTester(a.op).Input(Bytes(a.bytes)).Attr(a.attr, a.value).Run(),
                StatusIs(kInvalidArgument, ::testing::HasSubstr(a.attr)));
  }
  ExpectErrors({{"scalar", OpTester("DecodePng").Input<tstring>({png}),
                 "Shape must be rank 0 but is rank 1: contents has shape [1]"}});
}

TEST(ImageFiles, RejectImagesThatCannotBeEncoded) {
  ExpectErrors({{"png", OpTester("EncodePng").Input(Smooth(2, 2, 3).SubSlice(0)), "rank"},
                {"jpeg", OpTester("EncodeJpeg").Input(Smooth(2, 2, 3).SubSlice(0)), "rank"}});
  EXPECT_THAT(OpTester("EncodePng").Input(Smooth(2, 2, 5)).Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("image must have 1 to 4 channels")));
  EXPECT_THAT(OpTester("EncodePng").Input(Tensor(DT_UINT8, {0, 2, 3})).Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("a PNG file cannot have 2 x 0")));
  // There are no images, but each would have 2^64 pixels.
  EXPECT_THAT(OpTester("EncodePng")
                  .Input(Tensor(DT_UINT8, {0, int64_t{1} << 32, int64_t{1} << 32, 4}))
                  .RunOne(),
              TensorEq(Tensor(DT_STRING, {0})));
  EXPECT_THAT(OpTester("EncodePng").Input(Smooth(1, 1, 1)).Attr("compression", int64_t{10}).Run(),
              StatusIs(kInvalidArgument, "compression is 10, expected -1 to 9"));
  EXPECT_THAT(OpTester("EncodeJpeg").Input(Smooth(2, 2, 2)).Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("image must have 1 or 3 channels")));
  EXPECT_THAT(OpTester("EncodeJpeg").Input(Smooth(2, 2, 3)).Attr("format", "grayscale").Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("image must have 1 channels")));
  EXPECT_THAT(OpTester("EncodeJpeg").Input(Tensor(DT_UINT8, {1, 70000, 1})).Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("a JPEG file cannot have")));
  EXPECT_THAT(OpTester("EncodeJpeg").Input(Smooth(2, 2, 3)).Attr("quality", int64_t{101}).Run(),
              StatusIs(kInvalidArgument, "quality must be in [0,100], but is 101"));
  EXPECT_THAT(OpTester("EncodeJpeg")
                  .Input(Smooth(2, 2, 3))
                  .Attr("xmp_metadata", std::string(70000, 'x'))
                  .Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("more than fit a JPEG file")));
  EXPECT_THAT(OpTester("EncodeJpegVariableQuality")
                  .Input(Smooth(2, 2, 3))
                  .Input(AsScalar<int32_t>(-1))
                  .Run(),
              StatusIs(kInvalidArgument, "quality must be in [0,100], but is -1"));
}

// A decoder stops when it sees that the deadline has passed.
TEST(ImageFiles, StopWithinAnImage) {
  StopToken stop(nullptr, nullptr, StopToken::Clock::time_point());
  const auto is_stopped = StatusIs(absl::StatusCode::kCancelled, "the run was stopped");
  const std::string progressive =
      BytesOf(OpTester("EncodeJpeg").Input(Smooth(17, 19, 3)).Attr("progressive", true).RunOne());
  for (const std::string& bytes : {Png(Smooth(9, 11, 3)), Jpeg(Smooth(17, 19, 3)), progressive,
                                   Gif(), Literal(kWebPAnimation)}) {
    OpTester op("DecodeImage");
    EXPECT_THAT(op.Input(Bytes(bytes)).StoppedBy(&stop).RunOnThreads(1), is_stopped);
  }
  const Tensor image = Smooth(17, 19, 3);
  OpTester op("EncodeJpeg");
  EXPECT_THAT(op.Input(image).StoppedBy(&stop).RunOnThreads(1), is_stopped);
  internal::ImageSize size;
  size.rows = 17;
  size.columns = 19;
  size.channels = 3;
  std::string bytes;
  EXPECT_THAT(internal::EncodePng(image.raw_data(), size, 8, -1, &bytes, &stop), is_stopped);
}

// Changes, removes and repeats bytes of files. Each file is decoded or rejected.
TEST(ImageFiles, MayHaveAnyBytes) {
  std::vector<std::string> files = {
      Png(Smooth(9, 11, 3)),   Png(RandomTensor(DT_UINT16, {3, 5, 4}, 0, 65535)),
      Jpeg(Smooth(17, 19, 3)), Gif(),
      Bmp(1, 1, 32, "1234"),   Literal(kWebP),
      Literal(kWebPAlpha),     Literal(kWebPAnimation)};
  files.push_back(
      BytesOf(OpTester("EncodeJpeg").Input(Smooth(17, 19, 3)).Attr("progressive", true).RunOne()));
  files.emplace_back("RIFF");
  files.push_back(JpegFile({200, 100, 50, 180}, 2));
  files.push_back(PngFile(3, 2, 2, 3, true,
                          PngChunk("PLTE", "abcdefghijkl") + PngChunk("tRNS", "\xc8\x01\x80"),
                          std::string("\0\xc0\0\x80\0\x40\0\xe4", 8)));
  std::mt19937 random(3);
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  int decoded = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = files[below(files.size())];
    for (size_t k = 0; k <= below(4); ++k) {
      const size_t at = below(bytes.size());
      switch (below(4)) {
        case 0:
          bytes[at] = static_cast<char>(below(256));
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
          break;
        case 2:
          bytes.resize(std::max<size_t>(1, at));
          break;
        default:
          bytes.insert(at, bytes.substr(below(bytes.size()), below(20)));
      }
    }
    // Without valid checksums, a decoder would not see changed chunks.
    if (internal::ImageFormatOf(bytes) == internal::ImageFormat::kPng && below(2) == 0) {
      std::string fixed = kPngSignature;
      ForEachPngChunk(bytes, [&](const std::string& type, const std::string& data) {
        fixed += PngChunk(type, data);
      });
      bytes = fixed;
    }
    OpTester op("DecodeImage");
    op.Input(Bytes(bytes)).Attr("dtype", below(2) == 0 ? DT_UINT8 : DT_FLOAT);
    const auto outputs = op.RunOnThreads(1);
    decoded += outputs.ok() ? 1 : 0;
    if (outputs.ok()) continue;
    const absl::StatusCode code = outputs.status().code();
    EXPECT_TRUE(code == kInvalidArgument || code == absl::StatusCode::kResourceExhausted)
        << outputs.status();
  }
  EXPECT_GT(decoded, 100);
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
