// The slow twin of RdhFrameDecoder with one link: it copies every page and decides frame by frame, without optimisation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "formats/rdh.h"
#include "rodeo/chunk.h"

namespace rodeo::formats::testing {

struct Frame {
  std::uint8_t status = 0;
  std::vector<std::byte> bytes;
  bool operator==(const Frame&) const = default;
};

/// A frame that has begun. It is not nested, because some compilers cannot build an optional of a nested class.
struct OpenFrame {
  std::uint32_t number = 0;
  bool spans_superpages = false;
  bool stopped = false;
  std::uint8_t status = 0;
  std::vector<std::byte> bytes;
  std::size_t padding = 0;  // bytes after the last payload
  std::size_t length = 0;   // bytes up to the padding, without a maximum
  std::size_t came = 0;     // bytes with the padding
};

/// Whether the pieces of joined frames in the superpages equal the joined frames. `lies_there`: whether a piece is in a
/// superpage.
template <typename LiesThere>
bool parts_are_the_frames(std::span<const ChunkRun> runs, std::span<const std::span<const std::byte>> parts,
                          LiesThere&& lies_there) {
  for (const ChunkRun& run : runs) {
    if (lies_there(run.chunk(0))) continue;
    for (auto left = run.chunk(0); !left.empty(); parts = parts.subspan(1)) {
      if (parts.empty() || parts[0].empty() || parts[0].size() > left.size() || !lies_there(parts[0]) ||
          !std::ranges::equal(parts[0], left.first(parts[0].size())))
        return false;
      left = left.subspan(parts[0].size());
    }
  }
  return parts.empty();
}

class RdhTwin {
 public:
  RdhTwin(std::uint32_t orbits, std::uint32_t max_bytes, std::uint8_t link)
      : orbits_(orbits), max_bytes_(max_bytes), link_(link) {}

  void superpage(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      if (bytes.size() < kRdhBytes) return bad();
      const Rdh page = Rdh::read(bytes.data());
      if (!page.plausible() || page.offset_next() > bytes.size()) return bad();
      add(page, bytes.first(page.offset_next()));
      bytes = bytes.subspan(page.offset_next());
    }
    // From here on the frame's bytes are a copy, whose size is limited.
    if (open_) {
      open_->spans_superpages = true;
      cut(*open_);
    }
  }
  void finish() { close(open_ && open_->stopped ? 0 : chunk_status::kSoftwareTruncated); }

  std::vector<Frame> frames;
  std::uint64_t oversize = 0;
  std::uint64_t cut_bytes = 0;

 private:
  void bad() {
    close(chunk_status::kSoftwareMalformed);
    if (orbits_ > 1) joined_ = false;
  }
  void cut(OpenFrame& frame) const {
    if (!frame.spans_superpages || frame.bytes.size() <= max_bytes_) return;
    const std::size_t beyond = frame.bytes.size() - max_bytes_;
    frame.bytes.resize(max_bytes_);
    if (beyond > frame.padding) frame.status |= chunk_status::kSoftwareTruncated;
    frame.padding -= std::min(beyond, frame.padding);
  }
  void close(std::uint8_t status) {
    if (!open_) return;
    open_->status |= status;
    open_->bytes.resize(open_->bytes.size() - open_->padding);
    open_->padding = 0;
    cut(*open_);
    if (!open_->bytes.empty()) frames.push_back({open_->status, open_->bytes});
    oversize += open_->length > open_->bytes.size() ? 1 : 0;
    cut_bytes += open_->length - open_->bytes.size();
    open_.reset();
  }
  void add(const Rdh& page, std::span<const std::byte> bytes) {
    if (page.link_id() != link_) return close(chunk_status::kSoftwareMalformed);
    const bool in_frame = open_ && open_->number == number(page) && !(orbits_ == 1 && page.page_number() == 0);
    const bool follows = joined_ && last_ && is_next(page, in_frame);
    if (joined_ && last_ && last_->stop() && page.page_number() == 0 && orbits_ > 1) {
      const std::uint32_t step = page.orbit() - last_->orbit();
      if (step != 0 && step < 1U << 31) {
        ++steps_[step];
        ++all_steps_;
      }
    }
    last_ = page;
    if (open_ && !in_frame) close(follows ? 0 : chunk_status::kSoftwareTruncated);
    if (open_ && !follows) open_->status |= chunk_status::kSoftwareTruncated;
    if (!open_) {
      if (!joined_) {
        if (page.page_number() != 0 || (orbits_ > 1 && (page.trigger_type() & rdh_trigger::kTimeFrame) == 0)) return;
        joined_ = true;
        phase_ = page.orbit() % orbits_;
      }
      open_.emplace();
      open_->number = number(page);
      if (page.page_number() != 0 || (!follows && (page.orbit() - phase_) % orbits_ != 0))
        open_->status |= chunk_status::kSoftwareTruncated;
    }
    open_->bytes.insert(open_->bytes.end(), bytes.begin(), bytes.end());
    open_->stopped = page.stop();
    open_->length = open_->came + page.memory_size();
    open_->came += bytes.size();
    open_->padding = page.offset_next() - page.memory_size();
    if (page.stop() && (page.orbit() - phase_) % orbits_ == orbits_ - 1) close(0);
  }
  bool is_next(const Rdh& page, bool in_frame) const {
    if (in_frame && page.orbit() == last_->orbit()) return !last_->stop() && page.page_number() == last_->page_number() + 1;
    if (!last_->stop() || page.page_number() != 0) return false;
    if (orbits_ == 1) return !in_frame;
    // The step of more than half of the frames. The first is 1; without a majority any step is right.
    const std::uint32_t step = page.orbit() - last_->orbit();
    if (all_steps_ == 0) return step == 1;
    for (const auto& [one, times] : steps_) {
      if (times * 2 > all_steps_) return one == step;
    }
    return true;
  }
  std::uint32_t number(const Rdh& page) const { return (page.orbit() - phase_) / orbits_; }

  const std::uint32_t orbits_;
  const std::uint32_t max_bytes_;
  const std::uint8_t link_;
  bool joined_ = false;
  std::optional<Rdh> last_;
  std::map<std::uint32_t, std::uint64_t> steps_;
  std::uint64_t all_steps_ = 0;
  std::uint32_t phase_ = 0;
  std::optional<OpenFrame> open_;
};

}  // namespace rodeo::formats::testing
