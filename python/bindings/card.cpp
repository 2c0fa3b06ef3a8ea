// rodeo._card: cards for Python - registers, and superpages as memory. What users import is rodeo.card, which documents it.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "card/dma/channel.h"
#include "card/dma/memory.h"
#include "card/enumeration.h"
#include "card/numa.h"
#include "card/pci/lock.h"
#include "card/register_target.h"
#include "errors.h"

namespace rodeo::python {
namespace {

namespace nb = nanobind;

using Place = std::variant<std::string, std::uint64_t>;

void need(Result<void> done) { unwrap(std::move(done)); }

/// A card that stays open as long as anything made from it lives.
struct OpenCard {
  card::CardEntry entry;
  std::unique_ptr<card::Card> card;
};

std::shared_ptr<OpenCard> open_card(const std::string& id) {
  auto entry = unwrap(card::find_card(id));
  auto card = unwrap(card::Card::open(entry.function));
  return std::make_shared<OpenCard>(OpenCard{std::move(entry), std::move(card)});
}

class PyBar {
 public:
  PyBar(std::shared_ptr<OpenCard> card, unsigned number) : card_(std::move(card)), bar_(unwrap(card_->card->bar(number))) {}

  std::uint64_t read(const Place& place) const { return unwrap(card::read_register(*bar_, target(place))); }
  void write(const Place& place, std::uint64_t value) const { need(card::write_register(*bar_, target(place), value)); }
  std::uint64_t modify(const Place& place, unsigned position, unsigned width, std::uint64_t value) const {
    const auto found = target(place);
    unwrap(card::with_bits(found, 0, position, width, value));
    const auto alone = unwrap(card::pci::ByteLock::acquire(card_->card->found().lock_file, card::pci::kConfigurationByte,
                                                           "the registers of the card", std::chrono::seconds{2}));
    const auto changed = unwrap(card::with_bits(found, unwrap(card::read_register(*bar_, found)), position, width, value));
    need(card::write_register(*bar_, found, changed));
    return changed;
  }
  unsigned number() const { return bar_->number(); }
  std::uint64_t bytes() const { return bar_->bytes(); }

 private:
  card::RegisterTarget target(const Place& place) const {
    const card::Card& card = *card_->card;
    const card::RegisterSpace space{&card.map(), card.type() == card::CardType::crorc,
                                    card.type() == card::CardType::felix ? 8U : 4U};
    const std::string text = std::holds_alternative<std::string>(place) ? std::get<std::string>(place)
                                                                        : std::to_string(std::get<std::uint64_t>(place));
    return unwrap(card::find_register(space, text, bar_->number()));
  }
  std::shared_ptr<OpenCard> card_;
  const card::Bar* bar_;
};

/// Reads one DMA channel. The superpage that was handed out goes back to the card when the next one is asked for.
class PyDma {
 public:
  PyDma(std::shared_ptr<OpenCard> card, unsigned channel, const std::string& source, std::uint64_t buffer_bytes,
        std::uint32_t superpage_bytes, const std::string& numa)
      : card_(std::move(card)),
        superpage_bytes_(superpage_bytes),
        place_(unwrap(card::reader_place(numa, card_->entry.function.numa_node))) {
    const auto from = card::data_source_of(source);
    if (!from) throw nb::value_error("data_source is fee, ddg, internal, siu or diu");
    if (superpage_bytes == 0 || buffer_bytes / superpage_bytes < 2)
      throw nb::value_error("the buffer must hold at least two superpages");
    const card::StayAtCard here(place_);  // memory lies where it is touched first
    memory_ = unwrap(card::DmaMemory::create(buffer_bytes / superpage_bytes * superpage_bytes));
    channel_ = unwrap(card::DmaChannel::open(*card_->card, channel, memory_.shared(), {.source = *from}));
    const std::size_t count = memory_.bytes().size() / superpage_bytes;
    free_ = card::FixedQueue<std::size_t>(count);
    for (std::size_t i = 0; i < count; ++i) free_.push(i);
  }
  ~PyDma() { stop(); }
  PyDma(const PyDma&) = delete;
  PyDma& operator=(const PyDma&) = delete;

  void start() { need(channel_->start()); }
  void stop() {
    stay_.reset();
    if (channel_->state() == card::DmaState::started) need(channel_->stop());
  }

  /// Waits for a superpage with data; nothing after the time-out or once the channel is stopped and empty.
  std::optional<card::Superpage> next(double timeout_s) {
    give_back();
    if (!stay_ && channel_->state() == card::DmaState::started) stay_.emplace(place_);
    const nb::gil_scoped_release released;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
    while (true) {
      if (channel_->state() == card::DmaState::started) {
        while (!free_.empty() && channel_->transfer_room() > 0 &&
               channel_->push({.offset = free_.front() * superpage_bytes_, .bytes = superpage_bytes_}) ==
                   card::PushStatus::done) {
          free_.pop();
        }
        if (auto filled = channel_->fill(); !filled) failure_ = filled.error();
      }
      while (const auto superpage = channel_->pop()) {
        if (superpage->received != 0) {
          lent_ = superpage->offset / superpage_bytes_;
          return superpage;
        }
        free_.push(superpage->offset / superpage_bytes_);
      }
      if (failure_ || channel_->state() != card::DmaState::started || std::chrono::steady_clock::now() >= end)
        return std::nullopt;
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
  }
  const std::optional<Error>& failure() const { return failure_; }
  const std::string& place() const { return place_.description; }
  std::byte* at(std::uint64_t offset) const { return memory_.bytes().data() + offset; }

 private:
  void give_back() {
    if (lent_) free_.push(*lent_);
    lent_.reset();
  }

  std::shared_ptr<OpenCard> card_;
  std::uint32_t superpage_bytes_;
  card::ReaderPlace place_;
  std::optional<card::StayAtCard> stay_;  // the thread that asks for superpages, from the first to the stop
  card::DmaMemory memory_;
  std::unique_ptr<card::DmaChannel> channel_;  // ends before its memory
  card::FixedQueue<std::size_t> free_;
  std::optional<std::size_t> lent_;
  std::optional<Error> failure_;
};

nb::list list_cards() {
  nb::list rows;
  const auto entries = card::list_cards();
  const bool numbered = std::ranges::none_of(entries, [](const card::CardEntry& entry) { return entry.silent; });
  for (const card::CardEntry& entry : entries) {
    nb::dict row;
    row["sequence"] = numbered ? std::optional(entry.sequence) : std::nullopt;
    row["type"] = std::string(card::name_of(entry.type));
    row["pci_address"] = entry.function.address.text();
    row["serial"] = entry.identity.serial;
    row["endpoint"] = entry.identity.endpoint;
    row["problem"] = entry.problem;
    rows.append(row);
  }
  return rows;
}

}  // namespace

NB_MODULE(_card, module) {
  nb::class_<PyBar>(module, "Bar")
      .def("read", &PyBar::read, nb::arg("register"))
      .def("write", &PyBar::write, nb::arg("register"), nb::arg("value"))
      .def("modify", &PyBar::modify, nb::arg("register"), nb::arg("position"), nb::arg("width"), nb::arg("value"))
      .def_prop_ro("number", &PyBar::number)
      .def_prop_ro("bytes", &PyBar::bytes);

  nb::class_<PyDma>(module, "Dma")
      .def("start", &PyDma::start)
      .def("stop", &PyDma::stop)
      .def_prop_ro("place", &PyDma::place)
      .def(
          "next",
          [](nb::handle self, double timeout_s) -> nb::object {
            auto& dma = nb::cast<PyDma&>(self);
            const auto superpage = dma.next(timeout_s);
            if (dma.failure()) unwrap(Result<int>(std::unexpected(*dma.failure())));
            if (!superpage) return nb::none();
            auto view = nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>(dma.at(superpage->offset),
                                                                                {superpage->received}, self);
            return nb::make_tuple(superpage->link, nb::cast(view, nb::rv_policy::reference));
          },
          nb::arg("timeout_s"));

  nb::class_<OpenCard>(module, "Card")
      .def_prop_ro("type", [](const OpenCard& self) { return std::string(card::name_of(self.card->type())); })
      .def_prop_ro("pci_address", [](const OpenCard& self) { return self.card->address().text(); })
      .def_prop_ro("serial", [](const OpenCard& self) { return self.entry.identity.serial; })
      .def_prop_ro("endpoint", [](const OpenCard& self) { return self.card->endpoint(); });

  module.def("open", [](const std::string& id) { return open_card(id); }, nb::arg("id"));
  module.def("bar", [](std::shared_ptr<OpenCard> card, unsigned number) {
    return std::make_unique<PyBar>(std::move(card), number);
  });
  module.def("dma", [](std::shared_ptr<OpenCard> card, unsigned channel, const std::string& source,
                       std::uint64_t buffer_bytes, std::uint32_t superpage_bytes, const std::string& numa) {
    return std::make_unique<PyDma>(std::move(card), channel, source, buffer_bytes, superpage_bytes, numa);
  });
  module.def("list_cards", &list_cards);
}

}  // namespace rodeo::python
