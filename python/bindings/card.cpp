// rodeo._card: cards for Python - registers, and superpages as memory. Users import rodeo.card.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "card/card.h"
#include "card/enumeration.h"
#include "card/pci/lock.h"
#include "card/pci/owner_process.h"
#include "card/register_target.h"
#include "rodeo/card.h"

namespace rodeo::python {
namespace {

namespace nb = nanobind;

using Place = std::variant<std::string, std::uint64_t>;

/// Returns the value or throws CardError, which the module's translator turns into a Python exception.
template <typename T>
T unwrap(Result<T> result) {
  if (!result) throw CardError(result.error().code, result.error().message());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

void need(Result<void> done) { unwrap(std::move(done)); }

/// The Python type of an error. Errors after which a retry or another card may help are not ValueErrors.
PyObject* exception_of(const CardError& error) {
  if (error.code() == "card.timeout") return PyExc_TimeoutError;
  if (error.code() == "card.gone" || error.code() == "card.all_ones") return PyExc_ConnectionError;
  return PyExc_ValueError;
}

/// A card that stays open as long as any object made from it exists.
struct OpenCard {
  CardHandle handle;
  card::Card& inside() { return card::inside_of(handle); }
};

class PyBar {
 public:
  PyBar(std::shared_ptr<OpenCard> card, unsigned number)
      : card_(std::move(card)), bar_(unwrap(card_->inside().bar(number))) {}

  std::uint64_t read(const Place& place) const { return unwrap(card::read_register(card_->inside(), target(place))); }
  void write(const Place& place, std::uint64_t value, bool force) const {
    need(card::write_register(card_->inside(), target(place), value, force));
  }
  std::uint64_t modify(const Place& place, unsigned position, unsigned width, std::uint64_t value, bool force) const {
    return unwrap(card::modify_register(card_->inside(), target(place), position, width, value, force));
  }
  unsigned number() const { return bar_->number(); }
  std::uint64_t bytes() const { return bar_->bytes(); }

 private:
  card::RegisterTarget target(const Place& place) const {
    const card::Card& card = card_->inside();
    const card::RegisterSpace space{&card.map(), card.type() == card::CardType::crorc,
                                    card.type() == card::CardType::felix ? 8U : 4U};
    const std::string text = std::holds_alternative<std::string>(place) ? std::get<std::string>(place)
                                                                        : std::to_string(std::get<std::uint64_t>(place));
    return unwrap(card::find_register(space, text, bar_->number()));
  }
  std::shared_ptr<OpenCard> card_;
  const card::Bar* bar_;
};

/// A superpage as Python sees it: the whole one, even if the card delivered it in pieces.
struct Whole {
  std::span<const std::byte> bytes;
  int link = -1;
  std::shared_ptr<const void> memory;
};

/// Reads one DMA channel by whole superpages. A superpage returns to the card when the next one is requested. Any thread,
/// without the GIL: each call holds the mutex only briefly, so that stop() can run between two polls of a waiting next().
class PyDma {
 public:
  PyDma(std::shared_ptr<OpenCard> card, const CardDmaOptions& options)
      : card_(std::move(card)), dma_(CardDma::open(card_->handle, options)) {}

  void start() {
    check_owner();
    const std::lock_guard guard(mutex_);
    if (!dma_.running()) {
      part_ = {};
      lent_.reset();
    }
    dma_.start();
    started_ = true;
  }
  void stop() {
    check_owner();
    const std::lock_guard guard(mutex_);
    dma_.stop();
  }
  void close() {
    if (!owner_.here()) return;  // a thread that exists only in the parent may hold the mutex
    const std::lock_guard guard(mutex_);
    dma_.close();
  }

  /// Waits for a superpage with data until `end`. `over`: the channel is stopped and empty, so no more will come.
  std::optional<Whole> next(std::chrono::steady_clock::time_point end, bool& over) {
    check_owner();
    for (bool first = true;; first = false) {
      {
        const std::lock_guard guard(mutex_);
        if (!started_) throw nb::value_error("the DMA channel was not started: iterate inside of `with`");
        if (first && lent_) dma_.release_before(*std::exchange(lent_, std::nullopt) + 1);
        if (auto whole = take()) return whole;
        over = !dma_.running();
      }
      if (over || std::chrono::steady_clock::now() >= end) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
  }
  const std::string& place() const { return dma_.place(); }  // never changes

 private:
  void check_owner() const {
    if (!owner_.here()) need(card::pci::forked(card_->handle.info().address));
  }
  std::optional<Whole> take() {
    while (const auto span = dma_.next()) {
      // The spans of a superpage are contiguous in memory.
      part_ = part_.empty() ? span->bytes : std::span(part_.data(), part_.size() + span->bytes.size());
      if (!span->last) continue;
      const auto bytes = std::exchange(part_, {});
      if (bytes.empty()) {
        dma_.release_before(span->superpage + 1);
        continue;
      }
      lent_ = span->superpage;
      return Whole{bytes, span->link, dma_.memory()};
    }
    return std::nullopt;
  }

  const card::pci::OwnerProcess owner_;
  std::mutex mutex_;
  std::shared_ptr<OpenCard> card_;
  CardDma dma_;
  std::span<const std::byte> part_;  // the next bytes of a superpage that the card is still filling
  std::optional<std::uint64_t> lent_;
  bool started_ = false;
};

/// A tuple of link and data, or None. It handles Python's signals while it waits.
nb::object next_superpage(PyDma& dma, double timeout_s) {
  using Clock = std::chrono::steady_clock;
  constexpr double kMostSeconds = 1e9;  // limit for the range of the clock
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(timeout_s > 0 ? std::min(timeout_s, kMostSeconds) : 0));
  std::optional<Whole> found;
  for (bool over = false; !found;) {
    {
      const nb::gil_scoped_release released;
      found = dma.next(std::min(end, Clock::now() + std::chrono::milliseconds{100}), over);
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!found && (over || Clock::now() >= end)) return nb::none();
  }
  // The array keeps the memory alive, but not the channel.
  using Memory = std::shared_ptr<const void>;
  auto kept = std::make_unique<Memory>(std::move(found->memory));
  const nb::capsule owner(kept.get(), [](void* memory) noexcept { delete static_cast<Memory*>(memory); });
  (void)kept.release();
  const nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>> view(found->bytes.data(), {found->bytes.size()}, owner);
  return nb::make_tuple(found->link, nb::cast(view, nb::rv_policy::reference));
}

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
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const CardError& error) {
      PyErr_SetString(exception_of(error), error.what());
    }
  });

  nb::class_<PyBar>(module, "Bar")
      .def("read", &PyBar::read, nb::arg("register"))
      .def("write", &PyBar::write, nb::arg("register"), nb::arg("value"), nb::arg("force") = false)
      .def("modify", &PyBar::modify, nb::arg("register"), nb::arg("position"), nb::arg("width"), nb::arg("value"),
           nb::arg("force") = false)
      .def_prop_ro("number", &PyBar::number)
      .def_prop_ro("bytes", &PyBar::bytes);

  nb::class_<PyDma>(module, "Dma")
      .def("start", &PyDma::start, nb::call_guard<nb::gil_scoped_release>())
      .def("stop", &PyDma::stop, nb::call_guard<nb::gil_scoped_release>())
      .def("close", &PyDma::close, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("place", &PyDma::place)
      .def("next", &next_superpage, nb::arg("timeout_s"));

  nb::class_<OpenCard>(module, "Card")
      .def_prop_ro("type", [](const OpenCard& self) { return self.handle.info().type; })
      .def_prop_ro("pci_address", [](const OpenCard& self) { return self.handle.info().address; })
      .def_prop_ro("serial", [](const OpenCard& self) { return self.handle.info().serial; })
      .def_prop_ro("endpoint", [](const OpenCard& self) { return self.handle.info().endpoint; });

  module.def(
      "open",
      [](const std::string& id, const std::string& register_map) {
        return std::make_shared<OpenCard>(CardHandle::open(id, register_map));
      },
      nb::arg("id"), nb::arg("register_map"));
  module.def("bar", [](std::shared_ptr<OpenCard> card, unsigned number) {
    return std::make_unique<PyBar>(std::move(card), number);
  });
  module.def("dma",
             [](std::shared_ptr<OpenCard> card, unsigned channel, const std::string& source, std::uint64_t buffer_bytes,
                std::uint32_t superpage_bytes, const std::string& numa, bool check_firmware) {
               const CardDmaOptions options{channel, buffer_bytes, superpage_bytes, source, check_firmware, numa};
               return std::make_unique<PyDma>(std::move(card), options);
             });
  module.def("list_cards", &list_cards);
}

}  // namespace rodeo::python
