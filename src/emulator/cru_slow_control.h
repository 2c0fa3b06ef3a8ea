// The front-ends behind a CRU's links, as slow control sees them: a slow control adapter, a GBTx, and something that sends single words back.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "emulator/register_file.h"

namespace rodeo::emulator {

/// One link's; its functions are called under the card's mutex.
class SlowControl {
 public:
  static constexpr std::size_t kMostWords =
      1024;  // that wait to be read; what comes then is lost, as in a FIFO that is full

  /// Answers a frame: what was written with an even command is read with the next odd one, channel by channel; 0xd1 of the ADC (channel 20) is the
  /// chip's id. A channel that an SCA does not have, or a command that it cannot know, is answered with the error's flag.
  void exchange_sca(std::uint32_t command, std::uint32_t data);
  std::uint32_t sca_command() const { return sca_command_; }
  std::uint32_t sca_data() const { return sca_data_; }

  /// The bits of the IC core's command register.
  void ic(std::uint32_t command, std::uint32_t word);
  std::uint32_t ic_answer() const { return ic_answer_; }
  /// The front-end is not heard: what it answered before is gone.
  void no_answer() {
    ic_answers_.clear();
    sca_command_ = sca_data_ = ic_answer_ = 0;
  }

  /// False: there is no room for it.
  bool send_swt(std::uint32_t low, std::uint32_t medium, std::uint32_t high);
  std::uint32_t swt_waiting() const { return static_cast<std::uint32_t>(words_.size()); }
  std::uint32_t take_swt();
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
      sca_memory_;  // channel << 8 | even command; chips keep what they have over a reset of the core
  std::uint32_t sca_command_ = 0;
  std::uint32_t sca_data_ = 0;
  std::map<std::uint32_t, std::uint32_t> gbtx_;  // by address
  std::uint32_t ic_request_ = 0;
  std::deque<std::uint32_t> ic_answers_;
  std::uint32_t ic_answer_ = 0;
  std::deque<Word> words_;
  Word taken_;
};

}  // namespace rodeo::emulator
