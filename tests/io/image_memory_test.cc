// Compares the memory that decoders allocate with the memory that they charge, for files that need
// a lot of memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <webp/encode.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

// These headers need FILE from <cstdio>.
#include <gif_lib.h>
#include <jpeglib.h>
#include <png.h>

#include "absl/strings/str_cat.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/io/image_codecs.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/testing/heap_meter.h"
#include "tests/testing/image_files.h"

namespace gradflow {
namespace {

using ::gradflow::testing::HeapMeter;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::LosslessWebPChunk;
using ::gradflow::testing::LosslessWebPData;
using ::gradflow::testing::PngChunk;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::WebPChunk;
using ::gradflow::testing::WebPFile;
using ::gradflow::testing::WebPFrameChunk;
using ::gradflow::testing::WebPHeaderChunk;
using ::testing::HasSubstr;

constexpr int64_t kNoLimit = int64_t{1} << 40;

struct Decoding {
  absl::Status status;
  // The largest charge, and the largest allocated memory without the image.
  int64_t charged = 0;
  int64_t peak = 0;
  std::vector<uint8_t> image;
};

Decoding Decode(const std::string& bytes, int64_t limit = kNoLimit, bool all_frames = true,
                StopToken* stop = nullptr) {
  Decoding result;
  const auto charge = [&](int64_t charged) -> absl::Status {
    if (charged > limit) return absl::ResourceExhaustedError("limit");
    result.charged = std::max(result.charged, charged);
    return absl::OkStatus();
  };
  const auto allocate = [&](const internal::ImageSize& size) -> absl::StatusOr<void*> {
    result.image.resize(2 * size.frames * size.rows * size.columns * size.channels);
    return result.image.data();
  };
  const internal::ImageMemory memory = {charge, allocate};
  const HeapMeter meter;
  switch (internal::ImageFormatOf(bytes)) {
    case internal::ImageFormat::kPng:
      result.status = internal::DecodePng(bytes, 0, 8, memory, stop);
      break;
    case internal::ImageFormat::kJpeg:
      result.status = internal::DecodeJpeg(bytes, {}, memory, stop);
      break;
    case internal::ImageFormat::kGif:
      result.status = internal::DecodeGif(bytes, all_frames, memory, stop);
      break;
    case internal::ImageFormat::kBmp:
      result.status = internal::DecodeBmp(bytes, 0, memory);
      break;
    case internal::ImageFormat::kWebP:
      result.status = internal::DecodeWebP(bytes, 0, all_frames, memory, stop);
      break;
    case internal::ImageFormat::kUnknown:
      ADD_FAILURE() << "no image";
  }
  result.peak = meter.peak() - static_cast<int64_t>(result.image.capacity());
  return result;
}

// Expects that decoding allocates at most the charged memory, and at least `part` of it if the
// image is large enough.
void ExpectCharged(const std::string& bytes, double part = 0) {
  const Decoding decoding = Decode(bytes);
  EXPECT_THAT(decoding.status, IsOk());
  // malloc rounds sizes up.
  EXPECT_LE(decoding.peak, decoding.charged + 64) << bytes.size() << " bytes";
  EXPECT_GE(static_cast<double>(decoding.peak), part * static_cast<double>(decoding.charged));
  if (std::getenv("GRADFLOW_PRINT_PEAKS") != nullptr) {
    std::printf("%zu bytes: charged %.2f MB, peak %.2f MB\n", bytes.size(),
                static_cast<double>(decoding.charged) / 1e6,
                static_cast<double>(decoding.peak) / 1e6);
  }
}

// ---- WebP ----

TEST(WebPMemory, ChargesPrefixCodes) {
  for (const int cache_bits : {0, 1, 6, 11}) {
    for (const int groups : {1, 999, 1000, 1001, 5000}) {
      SCOPED_TRACE(absl::StrCat(groups, " groups, ", cache_bits, " bits"));
      ExpectCharged(
          WebPFile({LosslessWebPChunk(300, 300, LosslessWebPData(300, 300, groups, cache_bits))}),
          0.5);
    }
  }
}

// Returns files of `size` x `size` pixels with this number of code groups: an image, the alpha
// channel of an image, and frames of animations with each of them.
std::vector<std::string> FilesWithGroups(int size, int groups) {
  const std::string data = LosslessWebPData(size, size, groups, 0);
  const std::string lossless = LosslessWebPChunk(size, size, data);
  const std::vector<uint8_t> pixels(3 * static_cast<size_t>(size) * size);
  uint8_t* encoded = nullptr;
  const size_t bytes = WebPEncodeRGB(pixels.data(), size, size, 3 * size, 50, &encoded);
  const std::string lossy(reinterpret_cast<const char*>(encoded) + 12, bytes - 12);
  WebPFree(encoded);
  const std::string alpha = WebPChunk("ALPH", "\1" + data);
  const std::string header = WebPHeaderChunk(size, size, 2 | 16);
  const std::string animation = WebPChunk("ANIM", std::string(6, '\0'));
  return {
      WebPFile({lossless}),
      WebPFile({WebPHeaderChunk(size, size, 16), alpha, lossy}),
      WebPFile({header, animation, WebPFrameChunk(size, size, lossless)}),
      WebPFile({header, animation, WebPFrameChunk(size, size, alpha + lossy)}),
  };
}

TEST(WebPMemory, ChargesPrefixCodesOfAlphaAndFrames) {
  for (const std::string& file : FilesWithGroups(256, 2000)) ExpectCharged(file, 0.9);
}

// A small file would need much memory.
TEST(WebPMemory, ManyPrefixCodesExceedTheLimit) {
  constexpr int64_t kLimit = 40 << 20;
  for (const std::string& file : FilesWithGroups(1024, 65536)) {
    EXPECT_LT(file.size(), 300000u);
    const Decoding limited = Decode(file, kLimit);
    EXPECT_THAT(limited.status, StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_LE(limited.peak, kLimit);
  }
}

// Images of all kinds from libwebp's encoder. Their prefix codes must be read like libwebp does.
TEST(WebPMemory, ChargesEncodedImages) {
  std::mt19937 random(1);
  int many_groups = 0;
  for (int round = 0; round < 48; ++round) {
    // Every sixth image has different areas, so the encoder makes several code groups.
    const bool has_areas = round % 6 == 5;
    const int columns = has_areas ? 512 : 1 + static_cast<int>(random() % 300);
    const int rows = has_areas ? 512 : 1 + static_cast<int>(random() % 300);
    std::vector<uint8_t> pixels(4 * static_cast<size_t>(columns) * rows);
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        const int area = r / 64 * 8 + c / 64;
        for (int k = 0; k < 4; ++k) {
          const auto noise = static_cast<uint32_t>(random());
          // Noise, a gradient, few colors, repeated blocks, noise on black, and areas of noise.
          const uint32_t values[] = {noise,
                                     2u * r + 3 * c * k,
                                     (r / 7 + c / 5) % 3 * 100u,
                                     static_cast<uint32_t>(r % 16 * (c % 16)) * (k + 1),
                                     noise % 4 == 0 ? noise >> 8 : 0,
                                     area * 37u * (k + 1) + noise % (1u << area % 8)};
          pixels[4 * (r * columns + c) + k] = static_cast<uint8_t>(values[round % 6]);
        }
      }
    }
    WebPConfig config;
    ASSERT_NE(WebPConfigInit(&config), 0);
    ASSERT_NE(WebPConfigLosslessPreset(&config, round % 7), 0);
    config.lossless = round % 4 < 3 ? 1 : 0;
    config.exact = 1;
    WebPPicture picture;
    ASSERT_NE(WebPPictureInit(&picture), 0);
    picture.use_argb = config.lossless;
    picture.width = columns;
    picture.height = rows;
    ASSERT_NE(WebPPictureImportRGBA(&picture, pixels.data(), 4 * columns), 0);
    WebPMemoryWriter writer;
    WebPMemoryWriterInit(&writer);
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = &writer;
    ASSERT_NE(WebPEncode(&config, &picture), 0);
    const std::string file(reinterpret_cast<const char*>(writer.mem), writer.size);
    WebPMemoryWriterClear(&writer);
    WebPPictureFree(&picture);
    SCOPED_TRACE(absl::StrCat("round ", round, ", ", columns, " x ", rows));
    ExpectCharged(file);
    const Decoding decoding = Decode(file);
    const int64_t table_bytes =
        decoding.charged - internal::kDecoderBytes - 6 * columns * rows - 192 * columns;
    if (table_bytes > 50000) ++many_groups;
    if (config.lossless == 0) continue;
    // The decoder returns 3 channels if the image is opaque.
    const size_t channels =
        std::equal(pixels.begin(), pixels.begin() + 4, decoding.image.begin()) ? 4 : 3;
    for (size_t i = 0; i < pixels.size(); ++i) {
      if (i % 4 >= channels) continue;
      ASSERT_EQ(decoding.image[i / 4 * channels + i % 4], pixels[i]);
    }
  }
  EXPECT_GT(many_groups, 3);
}

TEST(WebPMemory, RejectsDamagedPrefixCodes) {
  const std::string file = WebPFile({LosslessWebPChunk(64, 64, LosslessWebPData(64, 64, 100, 3))});
  ASSERT_THAT(Decode(file).status, IsOk());
  // The data ends within the prefix image.
  EXPECT_THAT(
      Decode(WebPFile({LosslessWebPChunk(64, 64, LosslessWebPData(64, 64, 100, 3).substr(0, 100))}))
          .status,
      StatusIs(absl::StatusCode::kInvalidArgument,
               "Invalid WebP data: the prefix codes cannot be read"));
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = file;
    for (int k = 0; k < 3; ++k) {
      // Keeps the signature and the size of the image.
      damaged[25 + random() % std::min<size_t>(100, damaged.size() - 25)] ^=
          static_cast<char>(1 << random() % 8);
    }
    const Decoding decoding = Decode(damaged);
    if (!decoding.status.ok()) {
      EXPECT_THAT(decoding.status, StatusIs(absl::StatusCode::kInvalidArgument));
    }
    EXPECT_LE(decoding.peak, decoding.charged + 4096);
  }
}

TEST(WebPMemory, ChargesNarrowImages) {
  for (const auto& [columns, rows] : {std::pair(16383, 1), std::pair(1, 16383)}) {
    ExpectCharged(
        WebPFile({LosslessWebPChunk(columns, rows, LosslessWebPData(columns, rows, 2, 0))}));
    std::vector<uint8_t> pixels(4 * static_cast<size_t>(columns) * rows, 7);
    uint8_t* lossy = nullptr;
    const size_t size = WebPEncodeRGBA(pixels.data(), columns, rows, 4 * columns, 50, &lossy);
    ExpectCharged(std::string(reinterpret_cast<const char*>(lossy), size));
    WebPFree(lossy);
  }
}

// libwebp keeps a record of each chunk and each frame.
TEST(WebPMemory, ChargesManyChunksAndFrames) {
  const std::string pixel = LosslessWebPChunk(1, 1, LosslessWebPData(1, 1, 1, 0));
  const std::string anim_chunk = WebPChunk("ANIM", std::string(6, '\0'));
  for (const bool has_frames : {false, true}) {
    std::string many;
    for (int i = 0; i < 10000; ++i)
      many += has_frames ? WebPFrameChunk(1, 1, pixel) : WebPChunk("none", "");
    const std::string file =
        WebPFile({WebPHeaderChunk(8, 8, 2), anim_chunk, WebPFrameChunk(1, 1, pixel), many});
    ExpectCharged(file);
    EXPECT_THAT(Decode(file, 1 << 19).status, StatusIs(absl::StatusCode::kResourceExhausted));
  }
}

// Frames that are not decoded do not count. Decoded frames must fit the canvas.
TEST(WebPMemory, ChargesFramesOfAnAnimation) {
  const std::string pixel = LosslessWebPChunk(64, 64, LosslessWebPData(64, 64, 1, 0));
  const std::string groups = LosslessWebPChunk(64, 64, LosslessWebPData(64, 64, 256, 0));
  const std::string anim_chunk = WebPChunk("ANIM", std::string(6, '\0'));
  const std::string file =
      WebPFile({WebPHeaderChunk(64, 64, 2), anim_chunk, WebPFrameChunk(64, 64, pixel),
                WebPFrameChunk(64, 64, groups)});
  ExpectCharged(file, 0.5);
  const Decoding first = Decode(file, kNoLimit, /*all_frames=*/false);
  EXPECT_THAT(first.status, IsOk());
  EXPECT_LE(first.peak, first.charged);
  EXPECT_LT(first.charged, 1 << 20);
  const std::string large = LosslessWebPChunk(16384, 16384, LosslessWebPData(64, 64, 1, 0));
  EXPECT_THAT(
      Decode(WebPFile({WebPHeaderChunk(64, 64, 2), anim_chunk, WebPFrameChunk(64, 64, large)}))
          .status,
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("larger than the canvas")));
}

TEST(WebPMemory, StopsWhileItReadsPrefixCodes) {
  StopToken stop;
  stop.Stop();
  EXPECT_THAT(Decode(WebPFile({LosslessWebPChunk(1024, 1024, LosslessWebPData(1024, 1024, 2, 0))}),
                     kNoLimit, true, &stop)
                  .status,
              StatusIs(absl::StatusCode::kCancelled));
}

// ---- JPEG ----

struct JpegKind {
  int columns;
  int rows;
  int components;
  bool progressive;
  bool arithmetic;
  // If true, each component has its own scan.
  bool separate_scans;
  int horizontal_sampling;
  int vertical_sampling;
};

std::string JpegFile(const JpegKind& kind) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* output = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &output, &size);
  info.image_width = kind.columns;
  info.image_height = kind.rows;
  info.input_components = kind.components;
  info.in_color_space = kind.components == 1   ? JCS_GRAYSCALE
                        : kind.components == 3 ? JCS_RGB
                                               : JCS_CMYK;
  jpeg_set_defaults(&info);
  info.comp_info[0].h_samp_factor = kind.horizontal_sampling;
  info.comp_info[0].v_samp_factor = kind.vertical_sampling;
  info.arith_code = kind.arithmetic ? TRUE : FALSE;
  if (kind.progressive) jpeg_simple_progression(&info);
  std::vector<jpeg_scan_info> scans(kind.components);
  for (int i = 0; i < kind.components; ++i) {
    scans[i] = {};
    scans[i].comps_in_scan = 1;
    scans[i].component_index[0] = i;
    scans[i].Se = 63;
  }
  if (kind.separate_scans) {
    info.scan_info = scans.data();
    info.num_scans = kind.components;
  }
  jpeg_start_compress(&info, TRUE);
  std::vector<JSAMPLE> row(static_cast<size_t>(kind.columns) * kind.components);
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<JSAMPLE>(i * i % 251);
  while (info.next_scanline < info.image_height) {
    JSAMPROW rows[] = {row.data()};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string file(reinterpret_cast<const char*>(output), size);
  std::free(output);
  return file;
}

TEST(JpegMemory, ChargesScansAndSizes) {
  for (const auto& [columns, rows] :
       {std::pair(700, 500), std::pair(65500, 1), std::pair(1, 65500), std::pair(8, 8)}) {
    for (const int components : {1, 3, 4}) {
      for (const int mode : {0, 1, 2, 3, 4}) {
        for (const auto& [horizontal, vertical] :
             {std::pair(1, 1), std::pair(2, 2), std::pair(4, 2), std::pair(1, 4)}) {
          if (components == 1 && horizontal * vertical > 1) continue;
          // The format allows at most ten blocks.
          if (horizontal * vertical + components - 1 > 10) continue;
          SCOPED_TRACE(absl::StrCat(columns, " x ", rows, " x ", components, ", mode ", mode,
                                    ", sampling ", horizontal, " x ", vertical));
          ExpectCharged(JpegFile({columns, rows, components, /*progressive=*/mode % 2 == 1,
                                  /*arithmetic=*/mode >= 3, /*separate_scans=*/mode == 2,
                                  horizontal, vertical}));
        }
      }
    }
  }
}

// Comments, profiles, and repeated tables.
TEST(JpegMemory, ChargesManyMarkers) {
  const std::string file = JpegFile({64, 64, 3, false, false, false, 1, 1});
  std::string markers;
  for (int i = 0; i < 100; ++i) {
    for (const char marker : {'\xe1', '\xe2', '\xee', '\xfe'}) {
      markers +=
          std::string("\xff") + marker + std::string("\xff\xff", 2) + std::string(0xffff - 2, 'x');
    }
    // A quantization table.
    markers += std::string("\xff\xdb\x00\x43\x00", 5) + std::string(64, '\1');
  }
  ExpectCharged(file.substr(0, 2) + markers + file.substr(2));
}

// ---- PNG ----

struct PngKind {
  int columns;
  int rows;
  int color_type;
  int bit_depth;
  bool is_interlaced;
};

std::string PngFile(const PngKind& kind) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp writer, png_bytep bytes, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(writer))
            ->append(reinterpret_cast<const char*>(bytes), size);
      },
      nullptr);
  png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
  png_set_IHDR(png, info, kind.columns, kind.rows, kind.bit_depth, kind.color_type,
               kind.is_interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> colors(1 << std::min(8, kind.bit_depth));
  if (kind.color_type == PNG_COLOR_TYPE_PALETTE) {
    png_set_PLTE(png, info, colors.data(), static_cast<int>(colors.size()));
  }
  png_write_info(png, info);
  const int passes = png_set_interlace_handling(png);
  std::vector<png_byte> row(png_get_rowbytes(png, info), 1);
  for (int pass = 0; pass < passes; ++pass) {
    for (int r = 0; r < kind.rows; ++r) png_write_row(png, row.data());
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

TEST(PngMemory, ChargesKindsAndSizes) {
  for (const auto& [columns, rows] :
       {std::pair(300, 200), std::pair(1000000, 1), std::pair(1, 100000)}) {
    for (const bool is_interlaced : {false, true}) {
      for (const auto& [color_type, bit_depth] :
           {std::pair(PNG_COLOR_TYPE_GRAY, 1), std::pair(PNG_COLOR_TYPE_GRAY, 16),
            std::pair(PNG_COLOR_TYPE_PALETTE, 2), std::pair(PNG_COLOR_TYPE_PALETTE, 8),
            std::pair(PNG_COLOR_TYPE_RGB, 8), std::pair(PNG_COLOR_TYPE_RGB_ALPHA, 16)}) {
        SCOPED_TRACE(absl::StrCat(columns, " x ", rows, ", type ", color_type, ", ", bit_depth,
                                  " bits", is_interlaced ? ", interlaced" : ""));
        ExpectCharged(PngFile({columns, rows, color_type, bit_depth, is_interlaced}));
      }
    }
  }
}

std::string Deflate(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string compressed(size, '\0');
  compress(reinterpret_cast<Bytef*>(compressed.data()), &size,
           reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  compressed.resize(size);
  return compressed;
}

// Returns a color profile of this size that libpng accepts.
std::string Profile(uint32_t size) {
  std::string profile(size, '\0');
  const auto put = [&](size_t at, const std::string& text) { profile.replace(at, 4, text); };
  const auto number = [](uint32_t value) {
    std::string text;
    for (int shift = 24; shift >= 0; shift -= 8) text.push_back(static_cast<char>(value >> shift));
    return text;
  };
  put(0, number(size));
  put(8, number(0x02000000));
  put(12, "mntr");
  put(16, "RGB ");
  put(20, "XYZ ");
  put(36, "acsp");
  // The white point D50.
  put(68, number(0xf6d6));
  put(72, number(0x10000));
  put(76, number(0xd32d));
  return profile;
}

// Chunks that decompress to megabytes, large chunks, and many chunks.
TEST(PngMemory, ChargesAncillaryChunks) {
  const std::string file = PngFile({64, 64, PNG_COLOR_TYPE_RGB, 8, false});
  constexpr size_t kHeaderBytes = 8 + 25;
  const std::string zeros(7 << 20, '\0');
  std::string many;
  for (int i = 0; i < 20000; ++i)
    many += PngChunk("tEXt", absl::StrCat("key", i, std::string(1, '\0'), "x"));
  std::string palettes;
  for (int i = 0; i < 1000; ++i) {
    palettes += PngChunk(
        "sPLT", absl::StrCat("p", i) + std::string(1, '\0') + "\x08" + std::string(6000, '\1'));
  }
  const std::pair<const char*, std::string> chunks[] = {
      {"iCCP", PngChunk("iCCP", std::string("p\0\0", 3) + Deflate(Profile(7 << 20)))},
      {"zTXt", PngChunk("zTXt", std::string("k\0\0", 3) + Deflate(zeros))},
      {"iTXt", PngChunk("iTXt", std::string("k\0\1\0\0\0", 6) + Deflate(zeros))},
      {"tEXt", PngChunk("tEXt", std::string("k\0", 2) + std::string(7 << 20, 'x'))},
      {"eXIf", PngChunk("eXIf", "MM" + std::string(7 << 20, 'x'))},
      {"unknown", PngChunk("abCd", zeros)},
      {"many", many},
      {"sPLT", palettes},
      {"pCAL", PngChunk("pCAL", std::string("k\0\0\0\0\0\0\0\0\1\0\2u\0", 14) + "1" +
                                    std::string(1, '\0') + std::string(7 << 20, '1'))},
      {"sCAL", PngChunk("sCAL", "\1" + std::string(3 << 20, '1') + std::string(1, '\0') +
                                    std::string(3 << 20, '1'))},
  };
  for (const auto& [name, chunk] : chunks) {
    SCOPED_TRACE(name);
    ExpectCharged(file.substr(0, kHeaderBytes) + chunk + file.substr(kHeaderBytes));
    // After the image, before the end chunk.
    const size_t end = file.size() - 12;
    ExpectCharged(file.substr(0, end) + chunk + file.substr(end));
  }
}

// ---- GIF ----

std::string GifFile(int columns, int rows, int frames, int extensions, bool is_interlaced) {
  std::string file;
  int error = 0;
  GifFileType* const gif = EGifOpen(
      &file,
      [](GifFileType* writer, const GifByteType* bytes, int size) {
        static_cast<std::string*>(writer->UserData)
            ->append(reinterpret_cast<const char*>(bytes), size);
        return size;
      },
      &error);
  ColorMapObject* const colors = GifMakeMapObject(256, nullptr);
  EGifPutScreenDesc(gif, columns, rows, 8, 0, colors);
  const std::string comment(255, 'x');
  std::vector<GifByteType> row(columns, 3);
  for (int i = 0; i < frames; ++i) {
    for (int k = 0; k < extensions; ++k) {
      EGifPutExtension(gif, COMMENT_EXT_FUNC_CODE, 255, comment.data());
    }
    EGifPutImageDesc(gif, 0, 0, columns, rows, is_interlaced, colors);
    for (int r = 0; r < rows; ++r) EGifPutLine(gif, row.data(), columns);
  }
  GifFreeMapObject(colors);
  EGifCloseFile(gif, &error);
  return file;
}

TEST(GifMemory, ChargesFramesAndExtensions) {
  ExpectCharged(GifFile(40, 30, 1, 0, false));
  ExpectCharged(GifFile(40, 30, 1, 0, true));
  ExpectCharged(GifFile(2, 2, 5000, 0, false));
  ExpectCharged(GifFile(2, 2, 10, 3000, false));
  ExpectCharged(GifFile(65535, 2, 2, 0, false));
  ExpectCharged(GifFile(2, 65535, 2, 0, true));
}

// ---- BMP ----

TEST(BmpMemory, ChargesOnlyTheImage) {
  std::string file(54, '\0');
  file.replace(0, 2, "BM");
  file[10] = 54;
  file[18] = 100;
  file[22] = 100;
  file[28] = 24;
  ExpectCharged(file + std::string(100 * 300, '\7'));
}

}  // namespace
}  // namespace gradflow
