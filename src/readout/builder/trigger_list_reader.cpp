#include "readout/builder/trigger_list_reader.h"

#include <algorithm>

namespace rodeo::readout {

// Makes runs[run_] one that has something left at at_; false if the list holds no more for now.
bool TriggerListReader::next_run() {
  for (;;) {
    if (page_ == nullptr) {
      if (list_ == nullptr || list_->poll(page_) != PollStatus::page) {
        page_ = nullptr;
        return false;
      }
      run_ = 0;
      at_ = 0;
    }
    for (; run_ < page_->runs.size(); ++run_, at_ = 0) {
      if (at_ < page_->runs[run_].count) return true;
    }
    page_->drop();
    page_ = nullptr;
  }
}

std::span<const ListedTrigger> TriggerListReader::read(std::uint32_t most) {
  most = std::min(most, kBatch);
  while (most != 0 && next_run()) {
    const ChunkRun& run = page_->runs[run_];
    const std::uint32_t n = std::min(most, run.count - at_);
    const std::uint32_t got = std::min(n, extractor_->extract(run, at_, n, ids_.data(), bcids_.data()));
    for (std::uint32_t i = 0; i < got; ++i) read_[i] = {ids_[i], bcids_[i], extractor_->trigger_type(run.chunk(at_ + i))};
    at_ += got < n ? got + 1 : got;  // what is no packet is passed over
    if (got != 0) return {read_.data(), got};
  }
  return {};
}

}  // namespace rodeo::readout
