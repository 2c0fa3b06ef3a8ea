// Readout cards for programs: find cards, read and write registers, take data by DMA. Real and emulated cards work alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace rodeo {

/// The exception of the functions below: what is wrong and what to do, in one sentence each. `code` is "card.timeout" and so
/// on (`rodeo explain`).
class CardError : public std::runtime_error {
 public:
  CardError(std::string code, const std::string& message) : std::runtime_error(message), code_(std::move(code)) {}
  const std::string& code() const noexcept { return code_; }

 private:
  std::string code_;
};

/// One PCI function of a card.
struct CardInfo {
  unsigned sequence = 0;                  ///< "#0", "#1", ...
  std::string type;                       ///< "CRU", "C-RORC", "FELIX", "unknown"
  std::string address;                    ///< "0000:3b:00.0"
  std::optional<std::uint32_t> serial;    ///< nothing: not readable
  std::optional<unsigned> endpoint;       ///< 0 or 1
  std::optional<std::uint32_t> firmware;  ///< hash
  std::string firmware_name;              ///< "v3.19.4", or the hash if the name is unknown
  int numa_node = -1;                     ///< -1: unknown
  std::string problem;                    ///< why the card cannot be used; empty: no problem
};

/// All cards of this host, real and emulated. A card that does not answer gets a row with a problem; it causes no exception.
std::vector<CardInfo> list_cards();

class CardDma;
class CardHandle;

namespace card {
class Card;
/// Internal: the class behind a handle.
Card& inside_of(CardHandle& handle);
}  // namespace card

/// An open card. Any thread, and any number of processes at once. No call blocks without a limit. A forked child must open
/// the card itself: with its copy of a handle every access throws card.forked.
class CardHandle {
 public:
  /// Opens a card by PCI address ("3b:00.0"), place in the list ("#2") or serial number and endpoint ("0233:1").
  static CardHandle open(std::string_view id);
  /// `register_map` is for a FELIX that has the registers of a known map, "254.0", but names another one: use it only for
  /// firmware that was built to this map. Empty: the map that the card names. Throws card.unknown_map for an unknown name.
  static CardHandle open(std::string_view id, std::string_view register_map);
  CardHandle(CardHandle&&) noexcept;
  CardHandle& operator=(CardHandle&&) noexcept;
  ~CardHandle();

  const CardInfo& info() const;

  /// Reads 32 bits at a byte offset of a BAR. Throws if the offset is outside the BAR or not aligned.
  std::uint32_t read(unsigned bar, std::uint64_t offset);
  /// Throws card.read_only if the register at this offset is declared read-only, unless `force`; so do the other writing
  /// functions.
  void write(unsigned bar, std::uint64_t offset, std::uint32_t value, bool force = false);
  /// Changes `width` bits from bit `low` up; no other process can change them in between. Returns the value written.
  std::uint32_t modify(unsigned bar, std::uint64_t offset, unsigned low, unsigned width, std::uint32_t value,
                       bool force = false);
  /// Reads a register by its declared name; "superpages_done[3]" is one of a row; for a C-RORC the index is the channel.
  /// When writing, a value too large for the register throws card.bad_access.
  std::uint64_t read(std::string_view name);
  void write(std::string_view name, std::uint64_t value, bool force = false);

 private:
  friend class CardDma;
  friend card::Card& card::inside_of(CardHandle& handle);
  struct Inside;
  explicit CardHandle(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

/// The options of CardDma::open().
struct CardDmaOptions {
  unsigned channel = 0;
  std::size_t buffer_bytes = std::size_t{256} << 20;  ///< shared memory on the largest pages available
  std::uint32_t superpage_bytes = 1U << 20;           ///< a multiple of 32 KiB
  std::string source = "internal";                    ///< "fee", "ddg", "internal", "siu", "diu"
  bool check_firmware = true;
  /// Place of the thread that calls next(), from the first call to stop(), unless it is pinned already: "card" (the CPUs of
  /// the card's NUMA node, no pinning on a machine with one node), "off", or the number of a node.
  std::string numa = "card";
};

/// A piece of the data that the card wrote; pieces come in order.
struct CardSpan {
  std::span<const std::byte> bytes;
  std::uint64_t superpage = 0;  ///< number of its superpage since the start; never decreases
  int link = -1;                ///< -1: data of several links
  bool last = false;            ///< the superpage ends here
};

/// The owner of a DMA channel, from open() to close() or the destructor. One thread at a time: several threads must
/// serialise their calls. The card must outlive it. The destructor stops the card and never throws, even if the card is
/// gone. In a forked child the copy does nothing to the card: its calls throw card.forked, except close() and the
/// destructor, which release the child's resources; mapped memory stays readable.
class CardDma {
 public:
  /// Throws card.locked if the channel has an owner, card.bad_dma if the card does not accept the channel, the source, or
  /// the sizes of buffer or superpage.
  static CardDma open(CardHandle& card, const CardDmaOptions& options = {});
  CardDma(CardDma&&) noexcept;
  CardDma& operator=(CardDma&&) noexcept;
  ~CardDma();

  /// Ignored while the card runs. Throws card.not_drained unless next() has returned an empty result since the last stop(),
  /// card.closed after close().
  void start();
  /// The next span, or nothing if there is none now; never blocks. Throws if the card broke the rules (card.misbehaved) or
  /// is gone. After close() the result is empty.
  std::optional<CardSpan> next();
  /// Returns all superpages with lower numbers to the card: the caller must not use their memory any more.
  void release_before(std::uint64_t superpage);
  /// Stops the card. Data that it has written can still be read with next().
  void stop();
  /// Stops the card and frees the channel: any process may open it at once, this process as well. Data that next() has not
  /// returned are lost; earlier spans stay readable. The channel is closed even if the function throws because the card did
  /// not stop. A second call has no effect.
  void close();

  /// True between start() and stop(): more data may come.
  bool running() const;
  /// Place of the thread that calls next(): "on NUMA node 1 (CPUs 8-15)", or "free: ..." and the reason.
  const std::string& place() const;
  /// The buffer. While a copy of this pointer exists, the bytes of spans stay mapped, also after close() and the destructor;
  /// but a superpage that was returned may change until the card stops.
  std::shared_ptr<const void> memory() const;

 private:
  struct Inside;
  explicit CardDma(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace rodeo
