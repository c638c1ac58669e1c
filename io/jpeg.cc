// JPEG, by libjpeg.
//
// libjpeg reports errors by a callback that must not return; the callback calls longjmp. Each step
// that calls libjpeg is a function without objects that have destructors. Its data are in a struct
// that outlives the jump.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// Included after <cstdio>, because jpeglib.h needs FILE.
#include <jpeglib.h>

#include "absl/cleanup/cleanup.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/io/image_codecs.h"

namespace gradflow::internal {
namespace {

struct ErrorManager {
  // Must be first: libjpeg has a pointer to it.
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
  StopToken* stop;
  bool is_stopped;
};

[[noreturn]] void OnError(j_common_ptr info) {
  ErrorManager* const manager = reinterpret_cast<ErrorManager*>(info->err);
  info->err->format_message(info, manager->message);
  std::longjmp(manager->jump, 1);
}
void OnMessage(j_common_ptr) {}

void InitErrors(ErrorManager* manager) {
  std::memset(manager, 0, sizeof(*manager));
  jpeg_std_error(&manager->base);
  manager->base.error_exit = OnError;
  manager->base.output_message = OnMessage;
}

// Runs a step. Returns false, with a message, if libjpeg reports an error.
template <typename State>
bool Run(State* state, void (*step)(State*)) {
  if (setjmp(state->errors.jump) != 0) return false;
  step(state);
  return true;
}

// ---- Decoding ----

struct Decoder {
  ErrorManager errors;
  jpeg_decompress_struct info;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  const JOCTET* input;
  size_t input_size;
  const JpegOptions* options;
  int components;
  bool is_cmyk;
  // True if the header or the tables end too early.
  bool is_truncated;
  // The part of the image to return, and where it goes.
  JDIMENSION first_row;
  JDIMENSION first_column;
  JDIMENSION rows;
  JDIMENSION columns;
  uint8_t* output;
  // A row of the decoder, allocated by malloc.
  JSAMPLE* row;
  // The number of returned rows that have been read.
  JDIMENSION rows_read;
};

constexpr JOCTET kEndOfImage[2] = {0xff, JPEG_EOI};

void InitSource(j_decompress_ptr) {}
// Called at the end of the input: pretends that the image ends there, or suspends.
boolean FillInput(j_decompress_ptr info) {
  const Decoder& d = *static_cast<Decoder*>(info->client_data);
  if (!d.options->recover_truncated || info->src->next_input_byte == kEndOfImage + 2) return FALSE;
  info->src->next_input_byte = kEndOfImage;
  info->src->bytes_in_buffer = 2;
  return TRUE;
}
void SkipInput(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  const size_t n = std::min(static_cast<size_t>(count), info->src->bytes_in_buffer);
  info->src->next_input_byte += n;
  info->src->bytes_in_buffer -= n;
}
void TermSource(j_decompress_ptr) {}

// Called regularly: ends codecs of a stopped run.
void CheckStop(j_common_ptr info) {
  ErrorManager* const manager = reinterpret_cast<ErrorManager*>(info->err);
  if (!IsStopped(manager->stop)) return;
  manager->is_stopped = true;
  std::longjmp(manager->jump, 1);
}
// Also ends the decoding of files with too many scans, which would take much more time than their
// size justifies.
void OnProgress(j_common_ptr info) {
  CheckStop(info);
  constexpr int kMaxScans = 500;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  ErrorManager* const manager = reinterpret_cast<ErrorManager*>(info->err);
  std::strcpy(manager->message, "there are more than 500 scans");
  std::longjmp(manager->jump, 1);
}

void ReadHeader(Decoder* d) {
  jpeg_create_decompress(&d->info);
  // jpeg_create_decompress() clears the client data.
  d->info.client_data = d;
  d->progress.progress_monitor = OnProgress;
  d->info.progress = &d->progress;
  d->source.init_source = InitSource;
  d->source.fill_input_buffer = FillInput;
  d->source.skip_input_data = SkipInput;
  d->source.resync_to_restart = jpeg_resync_to_restart;
  d->source.term_source = TermSource;
  d->source.next_input_byte = d->input;
  d->source.bytes_in_buffer = d->input_size;
  d->info.src = &d->source;
  if (jpeg_read_header(&d->info, TRUE) != JPEG_HEADER_OK) {
    d->is_truncated = true;
    return;
  }
  d->components =
      d->options->channels != 0 ? d->options->channels : std::min(d->info.num_components, 3);
  if (d->components == 2) d->components = 3;
  d->is_cmyk = d->components == 3 &&
               (d->info.jpeg_color_space == JCS_CMYK || d->info.jpeg_color_space == JCS_YCCK);
  d->info.out_color_space = d->components == 1 ? JCS_GRAYSCALE : d->is_cmyk ? JCS_CMYK : JCS_RGB;
  d->info.do_fancy_upsampling = d->options->fancy_upscaling ? TRUE : FALSE;
  d->info.scale_num = 1;
  d->info.scale_denom = static_cast<unsigned>(d->options->ratio);
  d->info.dct_method = d->options->accurate ? JDCT_ISLOW : JDCT_IFAST;
  jpeg_calc_output_dimensions(&d->info);
}

void Start(Decoder* d) { d->is_truncated = jpeg_start_decompress(&d->info) == FALSE; }

// Converts a pixel of inverted (Adobe) or plain CMYK.
void ToRgb(const JSAMPLE* cmyk, bool is_inverted, uint8_t* rgb) {
  const int k = cmyk[3];
  for (int c = 0; c < 3; ++c) {
    const int value = is_inverted ? k * cmyk[c] / 255 : (255 - k) * (255 - cmyk[c]) / 255;
    rgb[c] = static_cast<uint8_t>(value);
  }
}

void ReadRows(Decoder* d) {
  const size_t row_size = size_t{d->columns} * static_cast<size_t>(d->components);
  const size_t offset =
      size_t{d->first_column} * (d->is_cmyk ? 4 : static_cast<size_t>(d->components));
  while (d->info.output_scanline < d->first_row + d->rows) {
    const JDIMENSION row = d->info.output_scanline;
    if (jpeg_read_scanlines(&d->info, &d->row, 1) != 1) return;
    if (row < d->first_row) continue;
    uint8_t* const to = d->output + (row - d->first_row) * row_size;
    if (d->is_cmyk) {
      for (JDIMENSION x = 0; x < d->columns; ++x) {
        ToRgb(d->row + offset + 4 * size_t{x}, d->info.saw_Adobe_marker, to + 3 * size_t{x});
      }
    } else {
      std::memcpy(to, d->row + offset, row_size);
    }
    ++d->rows_read;
  }
}

absl::Status Invalid(const ErrorManager& errors) {
  if (errors.is_stopped) return StoppedError();
  return errors::InvalidArgument("Invalid JPEG data: ", errors::Printable(errors.message));
}

absl::Status CheckCrop(const JpegOptions& options, int64_t rows, int64_t columns) {
  if (options.crop_rows > 0 && options.crop_columns > 0 && options.crop_row >= 0 &&
      options.crop_column >= 0 && options.crop_row + options.crop_rows <= rows &&
      options.crop_column + options.crop_columns <= columns) {
    return absl::OkStatus();
  }
  return errors::InvalidArgument("Invalid crop window: row ", options.crop_row, ", column ",
                                 options.crop_column, ", ", options.crop_rows, " rows and ",
                                 options.crop_columns, " columns of an image of ", rows,
                                 " rows and ", columns, " columns");
}

// ---- Encoding ----

struct Encoder {
  ErrorManager errors;
  jpeg_compress_struct info;
  jpeg_progress_mgr progress;
  const JpegEncoding* encoding;
  const uint8_t* elements;
  JDIMENSION rows;
  JDIMENSION columns;
  int channels;
  // The marker of the metadata, and its size.
  const JOCTET* metadata;
  unsigned metadata_size;
  // The file, allocated by malloc.
  unsigned char* output;
  unsigned long output_size;
};

void WriteImage(Encoder* e) {
  jpeg_create_compress(&e->info);
  e->progress.progress_monitor = CheckStop;
  e->info.progress = &e->progress;
  jpeg_mem_dest(&e->info, &e->output, &e->output_size);
  e->info.image_width = e->columns;
  e->info.image_height = e->rows;
  e->info.input_components = e->channels;
  e->info.in_color_space = e->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&e->info);
  if (e->encoding->optimize_size) e->info.optimize_coding = TRUE;
  e->info.density_unit = static_cast<UINT8>(e->encoding->density_unit);
  e->info.X_density = static_cast<UINT16>(e->encoding->x_density);
  e->info.Y_density = static_cast<UINT16>(e->encoding->y_density);
  jpeg_set_quality(&e->info, e->encoding->quality, TRUE);
  if (e->encoding->progressive) jpeg_simple_progression(&e->info);
  if (!e->encoding->chroma_downsampling) {
    for (int c = 0; c < e->info.num_components; ++c) {
      e->info.comp_info[c].h_samp_factor = 1;
      e->info.comp_info[c].v_samp_factor = 1;
    }
  }
  jpeg_start_compress(&e->info, TRUE);
  if (e->metadata_size > 0) {
    jpeg_write_marker(&e->info, JPEG_APP0 + 1, e->metadata, e->metadata_size);
  }
  const size_t row_size = size_t{e->columns} * static_cast<size_t>(e->channels);
  while (e->info.next_scanline < e->rows) {
    JSAMPROW row = const_cast<JSAMPLE*>(e->elements + e->info.next_scanline * row_size);
    jpeg_write_scanlines(&e->info, &row, 1);
  }
  jpeg_finish_compress(&e->info);
}

}  // namespace

absl::Status DecodeJpeg(absl::string_view bytes, const JpegOptions& options, ImageMemory memory,
                        StopToken* stop) {
  Decoder d;
  std::memset(&d, 0, sizeof(d));
  InitErrors(&d.errors);
  d.errors.stop = stop;
  d.info.err = &d.errors.base;
  d.input = reinterpret_cast<const JOCTET*>(bytes.data());
  d.input_size = bytes.size();
  d.options = &options;
  const auto cleanup = absl::MakeCleanup([&d] {
    jpeg_destroy_decompress(&d.info);
    std::free(d.row);
  });
  if (!Run(&d, ReadHeader)) return Invalid(d.errors);
  const int64_t rows = d.info.output_height;
  const int64_t columns = d.info.output_width;
  if (d.is_truncated) return errors::InvalidArgument("Invalid JPEG data: the file is truncated");
  const int64_t components = std::max(d.info.num_components, d.is_cmyk ? 4 : d.components);
  if (rows < 1 || columns < 1 || rows * columns * components >= kMaxImageElements / 4) {
    return errors::InvalidArgument("Invalid JPEG data: an image of ", columns, " x ", rows,
                                   " pixels is too large");
  }
  ImageSize size;
  size.rows = rows;
  size.columns = columns;
  size.channels = d.components;
  d.rows = static_cast<JDIMENSION>(rows);
  d.columns = static_cast<JDIMENSION>(columns);
  if (options.crop) {
    GRADFLOW_RETURN_IF_ERROR(CheckCrop(options, rows, columns));
    d.first_row = static_cast<JDIMENSION>(options.crop_row);
    d.first_column = static_cast<JDIMENSION>(options.crop_column);
    d.rows = static_cast<JDIMENSION>(size.rows = options.crop_rows);
    d.columns = static_cast<JDIMENSION>(size.columns = options.crop_columns);
  }
  // Files with several scans need the coefficients of the whole image; other files need a few rows
  // of blocks.
  const int64_t full_columns = int64_t{d.info.image_width} + 64;
  const int64_t kept_rows =
      jpeg_has_multiple_scans(&d.info) != FALSE ? int64_t{d.info.image_height} + 64 : 128;
  GRADFLOW_RETURN_IF_ERROR(memory.charge(full_columns * kept_rows * d.info.num_components * 2 +
                                         4 * columns + kDecoderBytes));
  GRADFLOW_ASSIGN_OR_RETURN(void* const output, memory.allocate(size));
  d.output = static_cast<uint8_t*>(output);
  d.row = static_cast<JSAMPLE*>(std::malloc(static_cast<size_t>(columns) * 4));
  if (d.row == nullptr) return errors::ResourceExhausted("no memory for a row of a JPEG file");
  if (!Run(&d, Start)) return Invalid(d.errors);
  if (d.is_truncated) return errors::InvalidArgument("Invalid JPEG data: the file is truncated");
  if (d.info.output_components != (d.is_cmyk ? 4 : d.components) ||
      d.info.output_width != static_cast<JDIMENSION>(columns)) {
    return errors::InvalidArgument("Invalid JPEG data: ", d.info.output_components,
                                   " channels cannot become ", d.components);
  }
  if (!Run(&d, ReadRows)) return Invalid(d.errors);
  if (d.rows_read == d.rows) return absl::OkStatus();
  const float fraction = static_cast<float>(d.rows_read) / static_cast<float>(d.rows);
  if (fraction < std::min(1.0f, options.acceptable_fraction)) {
    return errors::InvalidArgument("Invalid JPEG data: the file is truncated, with ", d.rows_read,
                                   " of ", d.rows, " rows");
  }
  const size_t row_size = static_cast<size_t>(size.columns * size.channels);
  std::memset(d.output + d.rows_read * row_size, 0, (d.rows - d.rows_read) * row_size);
  return absl::OkStatus();
}

absl::Status EncodeJpeg(const uint8_t* elements, const ImageSize& size,
                        const JpegEncoding& encoding, std::string* bytes, StopToken* stop) {
  // The format's limit.
  constexpr int64_t kMax = JPEG_MAX_DIMENSION;
  if (size.rows < 1 || size.columns < 1 || size.rows > kMax || size.columns > kMax) {
    return errors::InvalidArgument("a JPEG file cannot have ", size.columns, " x ", size.rows,
                                   " pixels");
  }
  std::string metadata;
  if (!encoding.xmp_metadata.empty()) {
    metadata = std::string("http://ns.adobe.com/xap/1.0/") + '\0' + encoding.xmp_metadata;
    if (metadata.size() > 65533) {
      return errors::InvalidArgument("xmp_metadata has ", encoding.xmp_metadata.size(),
                                     " bytes, more than fit a JPEG file");
    }
  }
  Encoder e;
  std::memset(&e, 0, sizeof(e));
  InitErrors(&e.errors);
  e.errors.stop = stop;
  e.info.err = &e.errors.base;
  const auto cleanup = absl::MakeCleanup([&e] {
    jpeg_destroy_compress(&e.info);
    std::free(e.output);
  });
  e.encoding = &encoding;
  e.elements = elements;
  e.rows = static_cast<JDIMENSION>(size.rows);
  e.columns = static_cast<JDIMENSION>(size.columns);
  e.channels = static_cast<int>(size.channels);
  e.metadata = reinterpret_cast<const JOCTET*>(metadata.data());
  e.metadata_size = static_cast<unsigned>(metadata.size());
  if (!Run(&e, WriteImage)) {
    // If the buffer has grown, `output` is stale until term_destination() sets it. The buffer
    // exists if it has a size.
    if (e.output_size > 0) e.info.dest->term_destination(&e.info);
    if (e.errors.is_stopped) return StoppedError();
    return errors::ResourceExhausted("cannot write JPEG data: ",
                                     errors::Printable(e.errors.message));
  }
  bytes->append(reinterpret_cast<const char*>(e.output), e.output_size);
  return absl::OkStatus();
}

}  // namespace gradflow::internal
