// The front-ends behind a CRU's links, as slow control sees them: a slow control adapter, a GBTx, and an echo of single
// words.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "emulator/register_file.h"

namespace rodeo::emulator {

/// The slow control of one link. Call it under the card's mutex.
class SlowControl {
 public:
  static constexpr std::size_t kMostWords = 1024;  // words waiting to be read; further words are lost, as in a full FIFO

  /// Answers a frame. An odd command reads what the even command before it wrote, channel by channel; 0xd1 of the ADC
  /// (channel 20) reads the chip's id. A channel that an SCA does not have, or an invalid command, gets the error flag.
  void exchange_sca(std::uint32_t command, std::uint32_t data);
  std::uint32_t sca_command() const { return sca_command_; }
  std::uint32_t sca_data() const { return sca_data_; }

  /// `command`: bits of the IC core's command register.
  void ic(std::uint32_t command, std::uint32_t word);
  std::uint32_t ic_answer() const { return ic_answer_; }
  /// Drops earlier answers, because the front-end does not answer.
  void no_answer() {
    ic_answers_.clear();
    sca_command_ = sca_data_ = ic_answer_ = 0;
  }

  /// Returns false if there is no room.
  bool send_swt(std::uint32_t low, std::uint32_t medium, std::uint32_t high);
  std::uint32_t swt_waiting() const { return static_cast<std::uint32_t>(words_.size()); }
  std::uint32_t read_swt();
  std::uint32_t swt_medium() const { return taken_.medium; }
  std::uint32_t swt_high() const { return taken_.high; }

  void reset();

 private:
  struct Word {
    std::uint32_t low = 0;
    std::uint32_t medium = 0;
    std::uint32_t high = 0;
  };

  std::map<std::uint32_t, std::uint32_t>
      sca_memory_;  // values by channel << 8 | even command; chips keep their values over a reset of the core
  std::uint32_t sca_command_ = 0;
  std::uint32_t sca_data_ = 0;
  std::map<std::uint32_t, std::uint32_t> gbtx_;  // values by address
  std::uint32_t ic_request_ = 0;
  std::deque<std::uint32_t> ic_answers_;
  std::uint32_t ic_answer_ = 0;
  std::deque<Word> words_;
  Word taken_;
};

}  // namespace rodeo::emulator
