// DecodeCompressed.
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"

namespace gradflow::decompress {
namespace {

// Ends a zlib stream.
class Inflater {
 public:
  Inflater() = default;
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  // Reads a stream with a header of zlib or gzip.
  absl::Status Init(bool is_gzip, absl::string_view bytes) {
    constexpr int kGzip = 16;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    if (inflateInit2(&stream_, MAX_WBITS + (is_gzip ? kGzip : 0)) == Z_OK) return absl::OkStatus();
    return errors::ResourceExhausted("out of memory for zlib");
  }

  // Stores the next bytes. *done becomes true at the end of the stream, or of the bytes if the
  // stream is cut off.
  absl::Status Next(char* to, size_t size, size_t* stored, bool* done) {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(size);
    const int code = inflate(&stream_, Z_SYNC_FLUSH);
    *stored = size - stream_.avail_out;
    *done = code == Z_STREAM_END || code == Z_BUF_ERROR;
    if (*done || code == Z_OK) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("the compressed bytes are not valid: ",
                     stream_.msg != nullptr ? stream_.msg : "error of zlib"));
  }

  // Begins with the next stream. Returns false if no bytes are left.
  bool NextStream() { return stream_.avail_in > 0 && inflateReset(&stream_) == Z_OK; }

 private:
  z_stream stream_ = {};
};

class DecodeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    std::string type;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("compression_type", &type));
    if (type == "ZSTD") {
      return errors::Unimplemented(
          "compression_type 'ZSTD' is not supported; use 'ZLIB' or 'GZIP'");
    }
    if (!type.empty() && type != "ZLIB" && type != "GZIP") {
      return errors::InvalidArgument("compression_type must be '', 'ZLIB' or 'GZIP', but is '",
                                     errors::Printable(type), "'");
    }
    is_compressed_ = !type.empty();
    is_gzip_ = type == "GZIP";
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    if (input.dtype() != DT_STRING) {
      return errors::InvalidArgument("bytes must be of type string, but are ",
                                     DataTypeString(input.dtype()));
    }
    if (!is_compressed_) {
      ctx.set_output(0, input);
      return absl::OkStatus();
    }
    ctx.ExpectStringBytes(0);
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, input.shape(), &output));
    const auto in = input.span<tstring>();
    const auto out = output->span<tstring>();
    // The sizes of the results are not known, so each is charged while it grows.
    MemoryReservation done(ctx.allocator().get());
    MemoryReservation growing(ctx.allocator().get());
    double bytes = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      GRADFLOW_RETURN_IF_ERROR(Decode(ctx, in[i], &growing, &out[i]));
      bytes += static_cast<double>(out[i].capacity());
      growing.Set(0);
      GRADFLOW_RETURN_IF_ERROR(done.Set(bytes, "strings"));
    }
    done.Set(0);
    return output->ChargeStrings();
  }

 private:
  absl::Status Decode(const KernelContext& ctx, absl::string_view in, MemoryReservation* memory,
                      tstring* out) const {
    if (in.size() > std::numeric_limits<int32_t>::max()) {
      return errors::InvalidArgument("a string of ", in.size(), " bytes is too long");
    }
    if (in.empty()) return absl::OkStatus();
    // The window of zlib.
    constexpr double kInflaterBytes = 50'000;
    Inflater inflater;
    GRADFLOW_RETURN_IF_ERROR(memory->Set(kInflaterBytes, "zlib"));
    GRADFLOW_RETURN_IF_ERROR(inflater.Init(is_gzip_, in));
    size_t size = 0;
    constexpr size_t kLeast = 1024;
    constexpr size_t kMost = size_t{1} << 24;
    for (bool done = false; !done;) {
      if (ctx.ShouldStop()) return StoppedError();
      const size_t step = std::clamp(std::max(size, in.size()), kLeast, kMost);
      if (out->capacity() < size + step) {
        // Both strings exist while the bytes move.
        const size_t capacity = std::max(2 * size, size + step);
        GRADFLOW_RETURN_IF_ERROR(memory->Set(
            kInflaterBytes + static_cast<double>(size) + static_cast<double>(capacity), "strings"));
        out->reserve(capacity);
      }
      out->resize(size + step);
      size_t stored = 0;
      GRADFLOW_RETURN_IF_ERROR(inflater.Next(&(*out)[size], step, &stored, &done));
      size += stored;
      // A gzip file may have several parts.
      if (done && is_gzip_ && inflater.NextStream()) done = false;
    }
    out->resize(size);
    return absl::OkStatus();
  }

  bool is_compressed_ = false;
  bool is_gzip_ = false;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("DecodeCompressed")
      .Group("parsing_ops")
      .HandWritten()
      .Input("bytes: string")
      .Output("output: string")
      .Attr("compression_type: string = ''")
      .Shape(UnchangedShape)
      .Doc(R"(Decompresses strings.

bytes: Compressed strings.
output: The results, of the shape of `bytes`. A string that is cut off gives the bytes before its
  end.
compression_type: "ZLIB" or "GZIP", or "" for strings that are not compressed. TensorFlow's "ZSTD" is
  not supported.)");
  registry.Kernel("DecodeCompressed", MakeKernel<DecodeKernel>);
}

}  // namespace gradflow::decompress
