#include "bench/network/kept_fragments.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/thread.h"
#include "formats/event_format.h"
#include "formats/words.h"

namespace rodeo::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kFirstSource = 0x610001;
constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
constexpr std::size_t kWord = sizeof(std::uint64_t);

constexpr std::size_t kHeadBytes =
    (formats::kRobHeaderWords + formats::kRodHeaderWords + 1) * formats::kWordBytes;  // one status word, before the data
constexpr std::size_t kTailBytes = formats::kRodTrailerWords * formats::kWordBytes;

/// The first word of a fragment after its stamp.
std::uint64_t first_word(std::uint32_t readout, std::uint64_t slot) { return (slot << 8 | readout) * kStep; }

std::uint64_t load(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, kWord);
  return word;
}

/// True if these bytes are those at `offset` of data that begin with `first`.
bool continues(std::span<const std::byte> bytes, std::size_t offset, std::uint64_t first) {
  std::size_t at = 0;
  if (offset % kWord != 0) {
    const std::uint64_t word = first + offset / kWord * kStep;
    at = std::min(bytes.size(), kWord - offset % kWord);
    if (std::memcmp(bytes.data(), reinterpret_cast<const std::byte*>(&word) + offset % kWord, at) != 0) return false;
  }
  std::uint64_t word = first + (offset + at) / kWord * kStep;
  std::uint64_t difference = 0;
  for (; at + kWord <= bytes.size(); at += kWord, word += kStep) difference |= load(bytes.data() + at) ^ word;
  return difference == 0 && std::memcmp(bytes.data() + at, &word, bytes.size() - at) == 0;
}

}  // namespace

std::string kept_service(std::uint32_t readout) { return fmt::format("bench{}.hlt", readout); }
SourceId kept_source(std::uint32_t readout) { return SourceId{kFirstSource + readout}; }

bool proves_kept(std::span<const std::byte> data, std::uint64_t id, std::uint32_t readout) {
  if (data.size() < kKeptStampBytes || load(data.data()) != id) return false;
  return continues(data.subspan(kKeptStampBytes), kKeptStampBytes, first_word(readout, load(data.data() + kWord)));
}

bool proves_kept_rob(std::span<const std::span<const std::byte>> rob, std::uint32_t fragment_bytes, std::uint64_t id,
                     std::uint32_t readout) {
  std::byte stamp[kKeptStampBytes];
  std::size_t stamped = 0;
  std::uint64_t first = 0;
  std::size_t at = 0;  // offset in the ROB
  bool good = true;
  for (std::span<const std::byte> piece : rob) {
    const std::size_t end = at + piece.size();
    std::size_t data_at = std::max(at, kHeadBytes);
    const std::size_t data_end = std::min(end, kHeadBytes + fragment_bytes);
    for (; stamped < kKeptStampBytes && data_at < data_end; ++data_at) stamp[stamped++] = piece[data_at - at];
    if (data_at < data_end) {
      first = first_word(readout, load(stamp + kWord));
      good = good && continues(piece.subspan(data_at - at, data_end - data_at), data_at - kHeadBytes, first);
    }
    at = end;
  }
  return good && stamped == kKeptStampBytes && load(stamp) == id && at == kHeadBytes + fragment_bytes + kTailBytes;
}

KeptSource::KeptSource(const KeptSettings& settings, std::uint32_t readout)
    : bytes_(settings.fragment_bytes), slots_(settings.kept + settings.queue + settings.sending + 16) {
  const std::size_t stride = (bytes_ + 63) / 64 * 64 + 64;
  auto arena = base::Arena::create(stride * slots_.size());
  if (!arena) throw SetupError(arena.error().within("fragments of a readout"));
  memory_ = std::move(*arena);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    std::byte* const data = memory_.data() + i * stride;
    slot.part = {data, bytes_};
    slot.source_id = kept_source(readout);
    slot.parts = &slot.part;
    slot.part_count = 1;
    slot.owner = this;
    std::uint64_t word = first_word(readout, i);
    for (std::size_t at = 0; at < bytes_; at += kWord, word += kStep)
      std::memcpy(data + at, &word, std::min(kWord, bytes_ - at));
    const std::uint64_t number = i;
    std::memcpy(data + kWord, &number, kWord);
    pool_.add(&slot);
  }
}

void KeptSource::run(FragmentConsumer& consumer, const std::atomic<bool>& stop) {
  base::set_thread_name("builder");
  pool_.own();
  for (std::uint64_t id = 0; !stop.load(std::memory_order_relaxed); ++id) {
    Slot* slot = nullptr;
    for (base::Backoff backoff; (slot = pool_.acquire()) == nullptr; backoff.idle()) {
      if (stop.load(std::memory_order_relaxed)) return;
    }
    slot->sequence = slot->global_id = id;
    slot->l1id = L1Id{static_cast<std::uint32_t>(id)};
    slot->references.store(1, std::memory_order_relaxed);
    std::memcpy(slot->part.data, &id, kWord);
    consumer.insert(FragmentPtr::adopt(slot));
  }
}

KeptReadout::KeptReadout(const KeptSettings& settings, const std::filesystem::path& bus, std::uint32_t number)
    : source_(settings, number),
      handler_({.name = "hlt",
                .retention = {.max_fragments = settings.kept, .queue = settings.queue, .sending = settings.sending},
                .service = {.replier = {.name = kept_service(number),
                                        .service = "fragments",
                                        .bus = bus,
                                        .providers = {settings.provider},
                                        .page_bytes = settings.page_bytes},
                            .robs = {kept_source(number)},
                            .most_waiting = 65'536,
                            .frame = {.run_number = 1}},
                .linger = 100ms}) {
  handler_.start();
}

void run_kept_readouts(const KeptSettings& settings, const std::filesystem::path& bus, std::uint32_t readouts,
                       const std::atomic<bool>& over) {
  std::vector<std::unique_ptr<KeptReadout>> all;
  for (std::uint32_t i = 0; i < readouts; ++i) all.push_back(std::make_unique<KeptReadout>(settings, bus, i));
  std::vector<std::jthread> sources;
  for (const auto& one : all) sources.emplace_back([&] { one->run(over); });
  while (!over.load(std::memory_order_relaxed)) std::this_thread::sleep_for(1ms);
  for (const auto& one : all) one->run_ends();
  sources.clear();
  for (const auto& one : all) one->stop();
}

}  // namespace rodeo::bench
