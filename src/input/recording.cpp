#include "input/recording.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/named_counters.h"
#include "base/sentence.h"
#include "formats/block_decoder.h"
#include "formats/recording_info.h"

namespace rodeo::input {
namespace {

using formats::BlockCounter;

constexpr std::size_t kBlocksAtOnce = 16;

// The value, or the error thrown with the file's name.
template <typename T>
T must(Result<T> result, const std::filesystem::path& file) {
  if (result) return *std::move(result);
  if (result.error().where.empty()) result.error().where = file.string();
  throw SetupError(std::move(result.error()));
}

}  // namespace

Recording::Recording(const std::filesystem::path& file, const Options& options)
    : options_(options), file_(must(base::MappedFile::open(file.string()), file)), ids_(options.l1id) {
  format_ = must(formats::detect_block_format(file_.bytes()), file);
  const std::size_t blocks = file_.bytes().size() / format_.block_bytes;
  blocks_ = file_.bytes().first(blocks * format_.block_bytes);
  if (blocks_.size() != file_.bytes().size()) {
    base::log_warning("{}: the recording ends in the middle of a block; its {} whole blocks are used", file.string(),
                      blocks);
    damage_.push_back({"cut_blocks", 1});
  }
  elinks_ = formats::elinks_of(blocks_, format_);
  if (options.trigger_elink) std::erase(elinks_, *options.trigger_elink);
  read_through();
  if (const auto whole = check(); !whole) throw SetupError(whole.error());
  if (!damage_.empty()) {
    std::string list;
    for (const NamedCounter& one : damage_) list += fmt::format("{}{} {}", list.empty() ? "" : ", ", one.name, one.value);
    base::log_warning("{}: the recording is damaged: {}; its intact chunks are played, and the run will not be GOOD",
                      file.string(), list);
  }
  if (chunks_ == 0) {
    throw SetupError(Error{"readout.no_chunks",
                           fmt::format("there is no chunk in the recording of {}", base::counted(blocks, "block")),
                           file.string()});
  }
}

void Recording::read_through() {
  std::vector<std::uint16_t> all = elinks_;
  if (options_.trigger_elink) all.push_back(*options_.trigger_elink);
  std::vector<std::uint64_t> chunks(all.size());
  formats::BlockDecoder decoder({.format = format_, .max_chunk_bytes = options_.max_chunk_bytes}, all);
  formats::DecodeBuffer buffer(decoder.capacity_for(kBlocksAtOnce));
  ids_.begin_learning(elinks_.size());
  for (std::size_t at = 0; at < blocks_.size();) {
    buffer.clear();
    at += decoder.decode(blocks_.subspan(at, std::min(kBlocksAtOnce * format_.block_bytes, blocks_.size() - at)), buffer);
    for (const ChunkRun& run : buffer.runs()) {
      chunks[run.link] += run.more_follows ? 0 : run.count;
      if (run.link == elinks_.size()) continue;
      for (std::uint32_t i = 0; i < run.count; ++i) ids_.learn(run.link, run.chunk(i));
      chunks_ += run.count;
    }
  }
  events_ = std::ranges::max(chunks);
  ids_.end_learning();
  buffer.clear();
  decoder.finish(buffer);
  const auto tells = [](BlockCounter counter) { return is_anomaly(counter) || counter == BlockCounter::unfinished; };
  for (NamedCounter& one : base::named_counters(decoder.counters(), formats::kBlockCounterInfo, tells)) {
    if (one.value > 0) damage_.push_back(std::move(one));
  }
}

}  // namespace rodeo::input
