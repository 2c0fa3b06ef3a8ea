// An input of a plug-in whose source disappears during a run: three chunks, then DataInput::failure().
#include <rodeo/plugin.h>

#include <array>
#include <atomic>
#include <stdexcept>

namespace {

constexpr rodeo::Fid kLink = rodeo::Fid::of(7, 0, 0, 0);
constexpr std::array<std::byte, 6> kChunks{std::byte{0}, std::byte{0}, std::byte{1},
                                           std::byte{0}, std::byte{2}, std::byte{0}};

rodeo::TriggerInfo extract(std::span<const std::byte> chunk) {
  if (chunk.size() < 2) return {.valid = false};
  return {.l1id = std::to_integer<std::uint32_t>(chunk[0]) | std::to_integer<std::uint32_t>(chunk[1]) << 8};
}

/// State shared by streams and input.
struct State {
  std::atomic<bool> started{false};
  std::atomic<bool> over{false};  // the input was stopped, or has failed
  std::atomic<bool> failed{false};
  std::atomic<std::uint64_t> handed_over{0};
};

class Stream final : public rodeo::DataStream {
 public:
  explicit Stream(State& state) : state_(state) {
    page_.runs = {&run_, 1};
    page_.stream = this;
  }

  rodeo::PollStatus poll(rodeo::Page*& page) override {
    if (!state_.started) return state_.over ? rodeo::PollStatus::end : rodeo::PollStatus::empty;
    if (state_.handed_over == 0) {
      state_.handed_over = run_.count;
      page_.references = 1;
      page = &page_;
      return rodeo::PollStatus::page;
    }
    state_.failed = true;  // the crate is switched off
    state_.over = true;
    return rodeo::PollStatus::end;
  }
  void release(rodeo::Page&) noexcept override {}
  std::uint64_t clock_ns() const override { return 0; }
  rodeo::StreamCounters counters() const override { return {.chunks = state_.handed_over}; }

 private:
  State& state_;
  rodeo::ChunkRun run_{.data = kChunks.data(), .size = 2, .stride = 2, .count = 3};
  rodeo::Page page_;
};

class Input final : public rodeo::DataInput {
 public:
  std::span<const rodeo::Fid> links() const override { return {&kLink, 1}; }
  std::unique_ptr<rodeo::DataStream> open(std::span<const rodeo::Fid>) override { return std::make_unique<Stream>(state_); }
  void start() override { state_.started = true; }
  void stop() override { state_.over = true; }
  std::vector<rodeo::NamedCounter> counters() const override { return {{"sent", state_.handed_over}}; }
  std::string failure() const override { return state_.failed ? "The crate of chamber 7 does not answer any more." : ""; }

 private:
  State state_;
};

}  // namespace

RODEO_PLUGIN(registry) {
  registry.add_input({.name = "crate", .help = "Three chunks of a crate that is then switched off"},
                     [](const rodeo::Parameters&) { return std::make_unique<Input>(); });
  registry.add_extractor({.name = "crate", .help = "16-bit L1 id in the first two bytes"}, {.l1id_bits = 16}, &extract);
}
